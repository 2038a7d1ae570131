"""The collectives of a group matched over its ranks: how long each waited for the last to arrive, how long the transfer took."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.intervals import I64, Intervals, covered
from roofterm_parsers.occurring import occurring
from roofterm_parsers.profile import Profile

MATCHED = pl.Schema(
    {
        "slice": pl.UInt32,  # as in `collective_calls.CALLS`
        "match": pl.UInt32,  # number of the meeting, in order of its first arrival
        "participants": pl.UInt32,  # devices that the profile shows of it
        "wait_ps": pl.Int64,  # latest arrival less own arrival
        "transfer_ps": pl.Int64,  # shortest of the matched calls
        "exposed_wait_ps": pl.Int64,  # of the call's exposed time what lies before the last arrival
        "exposed_transfer_ps": pl.Int64,  # and what lies after it
        "is_last": pl.Boolean,  # arrived last
        "lead_ps": pl.Int64,  # of the last one: how long after the one before it came, so what it alone cost; else 0
        "end_spread_ps": pl.Int64,  # latest end less earliest end: large where clocks disagree
        "meets": pl.Boolean,  # the last one came before the first one left
    }
)
"""One row a call that was matched over two devices or more."""


def match_calls(profile: Profile, calls: pl.DataFrame, compute: dict[int, Intervals]) -> pl.DataFrame:
    """Match collectives (schema `collective_calls.CALLS`) over devices: frame of schema `MATCHED`, in order of meeting and device.

    `compute`: the union of each device's compute.

    Calls of one group meet if they have the same sequence number, or are of the same kind and the n-th of it that the same step
    launched (without steps: the n-th of all). NCCL wants every rank to ask for a group's collectives in the same order. Where
    the devices of a group have different numbers of calls in a step, none of them is matched. An XLA collective is matched only
    if its group takes in all devices of the profile, since the file does not tell which device is in which group.
    """
    if calls.height == 0:
        return pl.DataFrame(schema=MATCHED)
    devices = calls["device"].n_unique()
    keyed = calls.with_columns(
        group_key=pl.coalesce("ranks", "group", pl.lit("")),
        number=profile.steps["number"][calls["step"]] if profile.steps.height else pl.lit(0, pl.Int64),
        program=pl.when(pl.col("library") == "xla").then("collective").otherwise(pl.lit("")),
    ).filter(
        pl.col("number").is_not_null() & ((pl.col("library") != "xla") | (pl.col("group_size") >= devices)).fill_null(True),
    )
    order = ["group_key", "program", "kind", "number"]
    keyed = keyed.sort("start_ps", maintain_order=True).with_columns(
        nth=pl.when(pl.col("sequence").is_not_null()).then("sequence").otherwise(pl.int_range(pl.len()).over([*order, "device"])),
        calls=pl.len().over([*order, "device"]),
    )
    uneven = pl.col("calls").n_unique().over(order) > 1
    keyed = keyed.filter(pl.col("sequence").is_not_null() | ~uneven)
    meeting = [*order, "nth"]
    keyed = keyed.filter(pl.len().over(meeting) == pl.col("device").n_unique().over(meeting))
    keyed = keyed.with_columns(participants=pl.len().over(meeting)).filter(pl.col("participants") > 1)
    last, length = pl.col("start_ps").max().over(meeting), pl.col("end_ps") - pl.col("start_ps")
    # The second latest arrival: the largest of all but one of the latest.
    second = pl.col("start_ps").top_k(2).min().over(meeting)
    is_last = pl.col("start_ps") == last
    keyed = keyed.with_columns(
        wait_ps=last - pl.col("start_ps"),
        transfer_ps=length.min().over(meeting),
        is_last=is_last,
        lead_ps=pl.when(is_last).then(last - second).otherwise(0),
        end_spread_ps=(pl.col("end_ps").max() - pl.col("end_ps").min()).over(meeting),
        meets=last <= pl.col("end_ps").min().over(meeting),
        first_ps=pl.col("start_ps").min().over(meeting),
    )
    keyed = keyed.with_columns(match=pl.struct("first_ps", *meeting).rank("dense") - 1).sort("match", "device")
    keyed = _with_exposed_wait(keyed, compute)
    return keyed.select(pl.col(name).cast(kind) for name, kind in MATCHED.items())


def _with_exposed_wait(calls: pl.DataFrame, compute: dict[int, Intervals]) -> pl.DataFrame:
    """The exposed time of each call (the end of it that no earlier collective covers), split where the last rank arrived."""
    end = calls["end_ps"].to_numpy()
    start = end - (calls["exposed_ps"] + calls["hidden_ps"]).to_numpy()
    arrived = np.clip((calls["start_ps"] + calls["wait_ps"]).to_numpy(), start, end)
    device = calls["device"].to_numpy()
    exposed: NDArray[np.int64] = arrived - start - _covered(compute, device, start, arrived)
    return calls.with_columns(
        exposed_wait_ps=pl.Series(exposed), exposed_transfer_ps=pl.col("exposed_ps") - pl.Series(exposed, dtype=pl.Int64)
    )


def _covered(compute: dict[int, Intervals], device: NDArray[np.uint16], start: I64, end: I64) -> I64:
    found = np.zeros(start.size, np.int64)
    for number in occurring(device):
        mine = device == number
        found[mine] = covered(compute[int(number)], start[mine], end[mine])
    return found
