"""Pairs of real traces whose difference is known: what a comparison must say of them, and what not."""

from __future__ import annotations

from functools import cache

import pytest

from roofterm.analysis.compare import Comparison, compare
from roofterm.analysis.compare_notes import notes
from roofterm.analysis.study import Study
from roofterm_parsers import open_profile
from tests.golden.raw_events import PS_PER_US, raw_events
from tests.reference import reference

LOADERS = [f"kineto_v100_resnet50_2021_workers{workers}.pt.trace.json.gz" for workers in (0, 4)]
VENDORS = [f"tracelens_{device}_qwen05b_chat.json.gz" for device in ("h100", "mi300x")]


@cache
def comparison(*names: str) -> Comparison:
    base, new = (Study(open_profile(reference(f"traces/torch/{name}"))) for name in names)
    return compare(base, new)


def rows(found: Comparison, level: str) -> dict[str, dict[str, object]]:
    return {str(row["name"]): row for row in found.changes.iter_rows(named=True) if row["level"] == level}


def test_dataloader_workers_take_the_loaders_time_away_and_leave_the_kernels():
    """ResNet-50 on a V100 in 2021, with 0 and with 4 workers: the training is the same, the loader's time is not.

    `enumerate(DataLoader)` lasts 69 ms a step without workers (added up from the file); cuDNN chooses other algorithms in
    the second run, so single convolutions change, their sum does not.
    """
    found = comparison(*LOADERS)
    loader = rows(found, "host phase")["dataloader"]
    assert loader["status"] == "changed"
    assert loader["base"] == pytest.approx(loading_us(LOADERS[0]), rel=0.01)
    assert loader["new"] == pytest.approx(loading_us(LOADERS[1]), rel=0.01)
    assert rows(found, "step")["compute_us"]["status"] == "within spread"
    assert {name for name, row in rows(found, "category").items() if row["status"] == "changed"} <= {"copy", "layout", "memset"}
    said = notes(found)
    assert any(note.startswith("kernel time unchanged") for note in said)
    assert any(note.startswith("host, own time: dataloader -") for note in said)


def loading_us(name: str) -> float:
    """Mean time a step in `enumerate(DataLoader)`, over all steps (all of them are steady)."""
    events = raw_events(reference(f"traces/torch/{name}"))
    steps = [event for event in events if event["name"].startswith("ProfilerStep#")]
    loads = [event for event in events if event["name"].startswith("enumerate(DataLoader)")]
    inside = [load for load in loads if any(step["start"] <= load["start"] < step["end"] for step in steps)]
    return sum(load["end"] - load["start"] for load in inside) / len(steps) / PS_PER_US


def test_two_vendors_compare_by_op():
    """Qwen 0.5B on an H100 and an MI300X: the same model, so the ops and their calls are the same and the kernels are not."""
    found = comparison(*VENDORS)
    assert found.two_vendors
    ops = rows(found, "op")
    for name in ("aten::mm", "aten::addmm", "aten::mul", "aten::_flash_attention_forward", "aten::cat", "aten::silu"):
        assert ops[name]["base_calls"] == ops[name]["new_calls"], name
        assert ops[name]["status"] == "differs"  # one step each: nothing to judge a change by
    shapes = rows(found, "op with shapes")
    assert sum(row["status"] == "differs" for row in shapes.values()) > 20
    assert rows(found, "module")
    assert any("two vendors" in note for note in notes(found))


@pytest.mark.parametrize("name", [LOADERS[1], VENDORS[0]])
def test_a_real_trace_against_itself_shows_nothing(name: str):
    assert set(comparison(name, name).changes["status"]) <= {"same", "unknown"}
