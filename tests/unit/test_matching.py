"""Collectives matched over ranks, by hand: which calls meet, who waits, and where nothing may be matched."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from roofterm.analysis.collective_calls import CALLS
from roofterm.analysis.intervals import NONE, Intervals
from roofterm.analysis.matching import MATCHED, match_calls
from roofterm_parsers.profile import FRAMES, Profile

US = 1_000_000


def call(device: int, start: int, end: int, **facts: Any) -> dict[str, Any]:
    """A call of one device (us), all of it exposed."""
    row: dict[str, Any] = {name: None for name in CALLS}
    row |= {"source": device, "device": device, "start_ps": start * US, "end_ps": end * US, "kind": "all_reduce", "library": "nccl"}
    return row | {"evidence": "args", "exposed_ps": (end - start) * US, "hidden_ps": 0, "ranks": "[0, 1]"} | facts


def matched(*calls: dict[str, Any], steps: int = 0, compute: dict[int, Intervals] | None = None) -> list[dict[str, Any]]:
    """Matched rows by slice (the call's place); `steps`: that many steps of each of two sources, numbered alike."""
    rows = [one | {"slice": at} for at, one in enumerate(calls)]
    profile = Profile()
    marks = [{"source": source, "number": number, "name": f"ProfilerStep#{number}"} for source in (0, 1) for number in range(steps)]
    profile.steps = pl.DataFrame(
        marks, schema={name: kind for name, kind in FRAMES["steps"].items() if name in ("source", "number", "name")}
    )
    found = match_calls(profile, pl.DataFrame(rows, schema=CALLS), compute or {device: NONE for device in range(8)})
    assert found.schema == MATCHED
    return found.sort("slice").rows(named=True)


def test_the_last_to_arrive_is_waited_for():
    """Rank 0 comes at 10, rank 1 at 40; both leave at 50: 30 us of waiting, 10 us of transfer."""
    early, late = matched(call(0, 10, 50), call(1, 40, 50))
    assert (early["wait_ps"], early["transfer_ps"], early["is_last"], early["lead_ps"]) == (30 * US, 10 * US, False, 0)
    assert (late["wait_ps"], late["transfer_ps"], late["is_last"], late["lead_ps"]) == (0, 10 * US, True, 30 * US)
    assert (early["participants"], early["match"], early["meets"]) == (2, 0, True)


def test_of_three_the_last_costs_what_it_came_after_the_second():
    rows = matched(*(call(device, start, 100, ranks="[0, 1, 2]") for device, start in enumerate((10, 50, 80))))
    assert [row["lead_ps"] for row in rows] == [0, 0, 30 * US]
    assert [row["wait_ps"] for row in rows] == [70 * US, 30 * US, 0]


def test_exposed_time_splits_at_the_last_arrival():
    """Rank 0 waits from 10 to 40 with 20 us of compute under it, then transfers to 50 with none."""
    compute = {0: Intervals(np.array([15 * US]), np.array([35 * US])), 1: NONE}
    early, late = matched(call(0, 10, 50, exposed_ps=20 * US, hidden_ps=20 * US), call(1, 40, 50), compute=compute)
    assert (early["exposed_wait_ps"], early["exposed_transfer_ps"]) == (10 * US, 10 * US)
    assert (late["exposed_wait_ps"], late["exposed_transfer_ps"]) == (0, 10 * US)


def test_calls_meet_by_their_order_within_a_step():
    """Rank 1's recording missed the first step's call: by order over all, its first would meet rank 0's first."""
    rows = matched(call(0, 10, 20, step=0), call(0, 110, 120, step=1), call(1, 112, 120, step=3), steps=2)
    assert [(row["slice"], row["wait_ps"]) for row in rows] == [(1, 2 * US), (2, 0)]


def test_a_step_with_uneven_counts_is_matched_not_at_all():
    assert matched(call(0, 10, 20, step=0), call(0, 30, 40, step=0), call(1, 12, 20, step=1), steps=1) == []


def test_sequence_numbers_settle_it():
    """Numbers match what order could not: rank 1 lacks number 7."""
    rows = matched(call(0, 10, 20, sequence=7), call(0, 30, 40, sequence=8), call(1, 33, 40, sequence=8))
    assert [(row["slice"], row["wait_ps"]) for row in rows] == [(1, 3 * US), (2, 0)]


def test_groups_and_kinds_are_kept_apart():
    rows = matched(
        call(0, 10, 20, ranks="[0, 1]"),
        call(1, 11, 20, ranks="[1, 2]"),
        call(0, 30, 40, kind="broadcast"),
        call(1, 50, 60, kind="all_gather"),
    )
    assert rows == []


def test_an_orphan_of_a_profile_with_steps_meets_nobody():
    assert matched(call(0, 10, 20, step=None), call(1, 12, 20, step=None), steps=1) == []


def test_xla_groups_smaller_than_the_devices_are_not_guessed():
    """All-reduces over pairs of four devices: nothing tells which device is whose peer."""
    pairs = [call(device, 10, 20, library="xla", group_size=2, collective="all-reduce.1") for device in range(4)]
    assert matched(*pairs) == []
    whole = [call(device, 10 + device, 20, library="xla", group_size=4, collective="all-reduce.1") for device in range(4)]
    assert [row["wait_ps"] for row in matched(*whole)] == [3 * US, 2 * US, US, 0]


def test_clocks_that_disagree_are_told():
    """Rank 0 leaves before rank 1 comes: no all-reduce does that, so one of the clocks is off."""
    first, second = matched(call(0, 10, 20), call(1, 30, 40))
    assert (first["meets"], second["meets"]) == (False, False)
    assert first["end_spread_ps"] == 20 * US


def test_one_rank_alone_matches_nothing():
    assert matched(call(0, 10, 20), call(0, 30, 40)) == []
    assert matched() == []
