"""`ops --by gap` of real traces against gaps counted in the raw events: how many, how long, what the host did in the longest."""

from __future__ import annotations

from typing import Any

import pytest

from roofterm.analysis.scope import STEADY
from roofterm.analysis.study import Study
from roofterm_parsers import open_profile
from tests.golden.raw_events import is_work, raw_events
from tests.reference import reference

US = 1_000_000
LONGEST = {
    # DDP takes its buckets apart.
    "hta_a100_2gpu_resnet_nccl_meta": "aten::unflatten_dense_tensors",
    # Nothing is recorded inside of the node.
    "hta_a100_rank3of8_train": "autograd::engine::evaluate_function: MulBackward0",
}


def windows(events: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """Each step from the later of the previous one's end and its own start until the work that it launched has ended."""
    work = [e for e in events if is_work(e)]
    steps = [e for e in events if e["name"].startswith("ProfilerStep#") and e["cat"] == "user_annotation"]
    calls = {e["args"].get("correlation"): e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")}
    launched = [(calls.get(e["args"].get("correlation")), e) for e in work]
    found: list[tuple[int, int]] = []
    for step in steps:
        own = [e["end"] for call, e in launched if call is not None and step["start"] <= call["start"] and call["end"] <= step["end"]]
        begin = max(step["start"], found[-1][1]) if found else step["start"]
        found.append((begin, max([step["end"], *own])))
    return found


def gaps(events: list[dict[str, Any]], start: int, end: int) -> list[int]:
    """Lengths of the time in which no work runs, from one end to the other."""
    reach, found = start, []
    for piece in sorted((e for e in events if is_work(e)), key=lambda e: e["start"]):
        if piece["end"] <= start or piece["start"] >= end:
            continue
        found.append(piece["start"] - reach)
        reach = max(reach, piece["end"])
    return [length for length in [*found, end - reach] if length > 0]


@pytest.mark.parametrize("name", LONGEST)
def test_gaps_are_those_of_the_file(name: str) -> None:
    path = reference(f"traces/torch/{name}.json.gz")
    events = raw_events(path)
    table = Study(open_profile(path, cache=False)).table("gap", STEADY)
    want = sorted(length for start, end in windows(events) for length in gaps(events, start, end))
    assert sorted(table["total_us"].to_list()) == [length / US for length in want]
    assert table["name"][0] == LONGEST[name]
