"""What a TPU's core spends on waiting for its host is idle time, not work: an infeed, also inside a loop."""

from __future__ import annotations

import pytest

from roofterm.analysis.gaps import gap_table
from roofterm.analysis.scope import ALL
from roofterm.analysis.study import Study
from roofterm_parsers.profile import Source
from roofterm_parsers.xplane.reader import read
from tests.xspace import space, tpu_plane

US = 1_000_000


@pytest.fixture
def study() -> Study:
    """One step of 160 us: a loop from 0 to 100 us with dots from 10 and from 70 us on and an infeed from 40 to 70 us; 20 us of
    nothing; an infeed of 30 us; a dot of 10 us."""
    core = tpu_plane()
    loop = core.op("%while = ()", display="while", hlo_category="while", program_id=1, symbol_id=1)
    dot = core.op("%dot = f32[]", display="dot", hlo_category="convolution fusion", program_id=1, symbol_id=2, flops=1e9)
    feed = core.op("%infeed = f32[]", display="infeed.1", hlo_category="infeed", program_id=1, symbol_id=3)
    spans = [(loop, 0, 100), (dot, 10, 20), (feed, 40, 30), (dot, 70, 30), (feed, 120, 30), (dot, 150, 10)]
    core.line("Steps", [core.event("0", 0, 160 * US)], id=1)
    core.line("XLA Ops", [core.event(op, start * US, dur * US) for op, start, dur in spans], id=2)
    return Study(read(space(core), Source("t.xplane.pb", "xplane", "plain"), lambda size: None, cancelled=lambda: False))


def test_waiting_for_input_is_not_busy(study: Study) -> None:
    # 100 us of the loop less 30 of its infeed, and 10 us of the last dot.
    assert study.summary().gpu_busy_us == 80
    [step] = study.steps()
    assert (step.compute_us, step.exposed_comm_us, step.exposed_copy_us, step.idle_us) == (80, 0, 0, 80)
    assert step.host_wait_us == 60  # both infeeds; the 20 us between stay unexplained


def test_a_gap_in_which_an_op_waits_for_the_host_says_so(study: Study) -> None:
    gaps = gap_table(study, ALL).sort("start_us").to_dicts()
    assert [(gap["start_us"], gap["total_us"], gap["host_wait_us"]) for gap in gaps] == [(40, 30, 30), (100, 50, 30)]
    assert {(gap["name"], gap["category"], gap["after"]) for gap in gaps} == {("infeed.1", "host_wait", "dot")}
    assert [gap["before"] for gap in gaps] == ["while", "while"]


def test_waiting_is_no_part_of_what_the_roofline_covers(study: Study) -> None:
    coverage = study.roofline(ALL, 0).coverage
    assert coverage.unknown_pct is not None
    # Own times: the loop's 20 us have no cost, the dots' 60 us have FLOPs.
    assert (coverage.modelled_pct, coverage.unknown_pct) == (75, 25)
