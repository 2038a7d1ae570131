"""The digest of steps: over the steady ones, weighted as a share of their whole time."""

from __future__ import annotations

from typing import Any

import pytest

from roofterm import results
from roofterm.analysis.digest import digest, whole_breakdown
from roofterm.report.breakdown import PARTS


def row(name: str, dur_us: float, **facts: Any) -> results.StepRow:
    """A complete, steady step; figures not given are unknown."""
    values: dict[str, Any] = dict.fromkeys(results.StepRow.__struct_fields__)
    return results.StepRow(**{**values, "name": name, "dur_us": dur_us, "steady": True, "complete": True, **facts})


def test_only_steady_steps_count():
    found = digest([row("a", 500.0, steady=False), row("b", 100.0), row("c", 110.0), row("d", 90.0)])
    assert (found.steps, found.counted, found.counted_as) == (4, 3, "steady")
    assert (found.p50_us, found.slowest, found.slowest_us) == (100.0, "c", 110.0)
    assert found.p99_us == pytest.approx(109.8)  # 100 + 0.98 * (110 - 100), between the two largest of three


def test_without_steady_ones_the_complete_steps_count_then_all():
    assert digest([row("a", 1.0, steady=False), row("b", 2.0, steady=False, complete=False)]).counted_as == "complete"
    found = digest([row("b", 2.0, steady=False, complete=False)])
    assert (found.counted_as, found.counted) == ("incomplete", 1)


def test_shares_are_of_the_whole_time():
    """100 us at 50 % and 300 us at 90 % are 320 of 400 us."""
    found = digest([row("a", 100.0, busy_pct=50.0), row("b", 300.0, busy_pct=90.0)])
    assert found.busy_pct == pytest.approx(80.0)


def test_unknown_stays_unknown():
    found = digest([row("a", 100.0), row("b", 100.0, launches=7)])
    assert found.busy_pct is None
    assert found.launches == 7
    assert digest([]).p50_us is None


def summary(**facts: Any) -> results.Summary:
    values: dict[str, Any] = dict.fromkeys(results.Summary.__struct_fields__, 0)
    return results.Summary(**{**values, **facts})


def test_whole_file_breakdown_adds_up_to_the_span_of_every_device():
    """Two devices for 1,000 us: 2,000 us, of which 60 % compute, 100 us exposed collectives, 1,400 us busy, so 100 us copies."""
    found = whole_breakdown(summary(span_us=1000.0, devices=2, compute_busy_pct=60.0, exposed_comm_us=100.0, gpu_busy_us=1400.0))
    assert found == pytest.approx(
        {"compute": 1200.0, "exposed_comm": 100.0, "exposed_copy": 100.0, "host_wait": 0.0, "kernel_gap": 0.0, "idle_other": 600.0}
    )
    assert list(found or {}) == [key for key, _, _ in PARTS]
    assert sum((found or {}).values()) == pytest.approx(2000.0)


def test_without_a_device_there_is_no_breakdown():
    assert whole_breakdown(summary(span_us=1000.0, devices=0, compute_busy_pct=None)) is None
