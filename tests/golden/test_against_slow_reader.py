"""`summary` of every real PyTorch trace against the slow reader of this folder, which shares no code with roofterm."""

from __future__ import annotations

from pathlib import Path

import pytest

from roofterm.analysis.study import Study
from roofterm_parsers import open_profile
from tests.golden import slow_reader
from tests.reference import reference, root

US = 1_000_000

NO_CHROME = ("execution_trace_pair_et", "param_et_", "rocprofv3")
"""Execution traces and a rocprofv3 result: refused, not read."""


def traces() -> list[str]:
    folder = root()
    if folder is None:
        return ["traces/torch/tracelens_h100_bert_small.json.gz"]
    found = sorted((folder / "traces").glob("torch*/**/*.json.gz"))
    return [str(p.relative_to(folder)) for p in found if not any(word in p.name for word in NO_CHROME)]


@pytest.mark.parametrize("name", traces())
def test_summary_agrees_with_the_slow_reader(name: str):
    path: Path = reference(name)
    want = slow_reader.read(path)
    got = Study(open_profile(path, cache=False)).summary()
    facts = {
        "slices": want.slices,
        "kernels": len(want.kernels),
        "kernel_us": sum(p.end - p.start for p in want.kernels) / US,
        "memcpy_us": sum(p.end - p.start for p in want.pieces if p.cat not in slow_reader.KERNEL) / US,
        "gpu_busy_us": want.busy() / US,
        "steps": len(want.steps),
        "step_us": [(end - start) / US for start, end in sorted(want.steps.values())],
        "device_step_us": [(end - start) / US for start, end in want.device_steps()],
        "unlinked_kernels": sum(p.launch is None for p in want.kernels),
        "sync_us": want.sync / US,
        "distinct_kernels": len({p.name for p in want.kernels}),
        "devices": len({p.device for p in want.pieces}),
        "threads": len(want.threads),
        "comm_us": sum(p.end - p.start for p in want.collectives()) / US,
        "exposed_comm_us": want.exposed() / US,
        "gpu_idle_in_step_us": want.idle_in_steps() / US if want.steps and want.pieces else None,
        "min_launch_delay_us": None if (delay := want.least_delay()) is None else delay / US,
        "peak_mem_bytes": want.memory.get(True, want.memory.get(False)),
        "total_self_us": sum(want.self_by_name.values()) / US,
        "self_us_min": min(want.self_by_name.values()) / US,
    }
    if "mtia" in name:
        # MTIA writes device work under categories of its own, which this reader does not know.
        facts = {key: facts[key] for key in ("slices", "steps", "sync_us", "threads", "total_self_us", "self_us_min")}
    assert {key: getattr(got, key) for key in facts} == facts
