"""Steps of several hosts in XProf's roofline: which are one step, and how long it takes. Figures are what XProf 2.24.2 gave."""

from __future__ import annotations

import pytest

from roofterm.analysis.xprof.roofline import xprof_roofline
from roofterm_parsers.opening import open_profile
from tests.xspace import Plane, Signed, space, tpu_plane

US = 1_000_000
EPOCH_NS = 1_731_000_000_000_000_000


def core(id: int, step_us: int, numbers: tuple[int, ...], at_us: int) -> Plane:
    """A core whose steps begin every 100 us from a time on, each with a fusion."""
    plane = tpu_plane(id)
    fusion = plane.op("%f = f32[8]", display="f", hlo_category="loop fusion", program_id=1, symbol_id=4, flops=5000, bytes_accessed=640)
    steps, ops = [], []
    for place, number in enumerate(numbers):
        at = (at_us + place * 100) * US
        steps.append(plane.event(str(number), at, step_us * US, group_id=Signed(number)))
        ops.append(plane.event(fusion, at + 10 * US, (step_us - 70 + place) * US, group_id=Signed(number)))
    plane.line("Steps", steps, id=1, start_ns=EPOCH_NS)
    plane.line("XLA Ops", ops, id=3, start_ns=EPOCH_NS)
    return plane


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        # The second host comes 120 us later: its steps overlap with the first's second to fourth by 71 us each.
        ([core(0, 91, (3, 4, 5, 6), 0)], [core(0, 93, (9, 10, 11), 120)], {"0": 184, "1": 184, "2": 184}),
        # The second host has two steps before the first's first. On each host all cores take as long as the longest one.
        (
            [core(0, 91, (3, 4, 5, 6), 210)],
            [core(0, 93, (9, 10, 11, 12, 13), 0), core(1, 94, (9, 10, 11, 12, 13), 0)],
            {"0": 279, "1": 279, "2": 279},
        ),
        ([core(0, 91, (3, 4), 0)], [core(0, 93, (3, 4, 5, 6), 150)], {"0": 184}),
    ],
)
def test_steps_that_lie_over_one_another_are_one_whatever_their_numbers(
    tmp_path_factory: pytest.TempPathFactory, first: list[Plane], second: list[Plane], expected: dict[str, float]
) -> None:
    run = tmp_path_factory.mktemp("log") / "plugins" / "profile" / "2026_01_02_03_04_05"
    run.mkdir(parents=True)
    for host, planes in (("hosta", first), ("hostb", second)):
        (run / f"{host}.xplane.pb").write_bytes(space(*planes, host=host))
    table = xprof_roofline(open_profile(run.parents[2], cache=False), "2.24.2")["rows"]
    steps = {row["step"]: row["total_time"] for row in table if row["step"].isdecimal() and row["include_infeed_outfeed"]}
    assert steps == expected
