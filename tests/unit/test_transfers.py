"""An asynchronous copy of XLA is one transfer, from its start op to its done op; by the done op's own length it would be absurd."""

from __future__ import annotations

from typing import Any

import pytest

from roofterm.analysis.roofline import level_records
from roofterm.analysis.scope import ALL
from roofterm.analysis.study import Study
from roofterm.analysis.transfers import transfers
from roofterm_parsers.profile import Source
from roofterm_parsers.xplane.reader import read
from tests.xspace import Plane, space, tpu_plane

US = 1_000_000
COPIED = 46_000_000
"""bytes"""


def study(core: Plane) -> Study:
    return Study(read(space(core), Source("t.xplane.pb", "xplane", "plain"), lambda size: None, cancelled=lambda: False))


def core_with_copies(
    start: str = "copy-start.7", text: str = "%copy-done.2 = f32[8] copy-done((f32[8], f32[8], u32[]) %copy-start.7)"
) -> Plane:
    """Twice: a start of 1 us, 80 us of a fusion, the done op at 91 us for 1 us. At 1000 GB/s the copy needs 46 us."""
    core = tpu_plane()
    facts: dict[str, Any] = {"program_id": 1, "bytes_accessed": COPIED}
    begin = core.op(f"%{start} = ()", display=start, hlo_category="copy-start", symbol_id=1, **facts)
    end = core.op(text, display="copy-done.2", hlo_category="copy-done", symbol_id=2, **facts)
    fusion = core.op("%fusion = f32[8]", display="fusion", hlo_category="loop fusion", program_id=1, symbol_id=3, bytes_accessed=8)
    spans = [(op, at + shift, dur) for shift in (0, 200) for op, at, dur in ((begin, 0, 1), (fusion, 5, 80), (end, 91, 1))]
    core.line("XLA Ops", [core.event(op, at * US, dur * US) for op, at, dur in spans])
    return core


@pytest.mark.parametrize(
    ("start", "text"),
    [
        ("copy-start.7", "%copy-done.2 = f32[8] copy-done((f32[8], f32[8], u32[]) %copy-start.7)"),  # as its text says
        ("copy-start.2", "%copy-done.2 = f32[8]"),  # as its name says
    ],
)
def test_a_copy_lasts_from_its_start_op_to_its_done_op(start: str, text: str) -> None:
    made = study(core_with_copies(start, text))
    assert transfers(made.profile)["transfer_ps"].to_list() == [92 * US, 92 * US]


def test_its_rate_is_that_of_the_whole_transfer() -> None:
    made = study(core_with_copies())
    rows = {row.name: row for row in level_records(made.profile, made.bounded(ALL), made.facts, made.device, "op", 0)}
    done = rows["copy-done.2"]
    assert (done.calls, done.time_us, done.bytes) == (2, 2, {"hbm": 2 * COPIED})
    assert done.pct_of_roof == pytest.approx(100 * 46 / 92)
    assert done.bytes_per_s["hbm"] == pytest.approx(2 * COPIED / 184e-6)
    assert done.headroom_us == 2  # no more than the op's own time can be won
    assert [flag.partition(":")[0] for flag in done.flags] == ["asynchronous"]
    assert rows["copy-start.7"].bytes == {}


def test_a_start_before_the_profile_leaves_the_done_op_alone() -> None:
    core = tpu_plane()
    end = core.op("%copy-done.2 = f32[8]", display="copy-done.2", hlo_category="copy-done", program_id=1, symbol_id=2)
    core.line("XLA Ops", [core.event(end, 0, US)])
    made = study(core)
    assert transfers(made.profile).height == 0


def test_each_core_and_each_copy_has_starts_of_its_own() -> None:
    """Core 0: starts of copy 1 at 0 and 10 us and of copy 2 at 5 us, done ops at 20 and 30 us, 1 us each; core 1 the same 2 us later,
    but without copy 2's start. The latest start before a done op counts: 21 - 10, 31 - 5 and 21 - 10 us."""
    cores = []
    for number, late in ((0, 0), (1, 2)):
        core = tpu_plane(number)
        starts, dones = (
            [core.op(f"%copy-{end}.{i} = f32[8]", f"copy-{end}.{i}", hlo_category="c", program_id=1, symbol_id=i) for i in (1, 2)]
            for end in ("start", "done")
        )
        ran = [(starts[0], 0), (starts[1], 5), (starts[0], 10), (dones[0], 20), (dones[1], 30)]
        ran = [one for one in ran if number == 0 or one[0] != starts[1]]
        core.line("XLA Ops", [core.event(op, (at + late) * US, US) for op, at in ran])
        cores.append(core)
    profile = read(space(*cores), Source("t.xplane.pb", "xplane", "plain"), lambda size: None, cancelled=lambda: False)
    found = transfers(profile)
    assert found["slice"].to_list() == [3, 4, 7]  # of five slices of core 0 and four of core 1
    assert found["transfer_ps"].to_list() == [11 * US, 26 * US, 11 * US]
