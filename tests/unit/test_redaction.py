"""What tells where a profile was recorded is left out of every format; figures and names of ops stay."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

from roofterm.analysis.study import Study
from roofterm.cli.main import main
from roofterm.report.redaction import redacted
from roofterm_parsers import open_profile

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
SECRETS = ("alice", "gpu-node-17", "corp.example", "/home", "secretproject", "s3://bucket", "Users")


def trace(folder: Path) -> Path:
    """A trace whose names, threads and header tell who recorded it where."""
    host = {"ph": "X", "pid": 10, "tid": 11}
    python = {**host, "cat": "python_function"}
    events = [
        {"ph": "M", "name": "process_name", "pid": 10, "args": {"name": "alice python3"}},
        {"ph": "M", "name": "thread_name", "pid": 10, "tid": 11, "args": {"name": "worker@gpu-node-17"}},
        {**host, "cat": "user_annotation", "name": "ProfilerStep#1", "ts": 0, "dur": 900},
        {**python, "name": "/home/alice/secretproject v2/train.py(12): step", "ts": 1, "dur": 800, "args": {"Python id": 1}},
        {**python, "name": "torch/nn/modules/module.py(1743): _call_impl", "ts": 2, "dur": 700, "args": {"Python id": 2}},
        {**host, "cat": "cpu_op", "name": "aten::mm", "ts": 10, "dur": 50, "args": {"External id": 5, "Input Dims": [[8, 8], [8, 8]]}},
        {**host, "cat": "user_annotation", "name": "load s3://bucket/alice/data from C:\\Users\\alice\\x.bin", "ts": 100, "dur": 50},
        {**host, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 12, "dur": 5, "args": {"External id": 5, "correlation": 7}},
        {"ph": "X", "pid": 0, "tid": 7, "cat": "kernel", "name": "volta_sgemm_128x64_nn", "ts": 20, "dur": 30,
         "args": {"External id": 5, "correlation": 7, "device": 0, "stream": 7}},
    ]  # fmt: skip
    header: dict[str, Any] = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "Tesla V100-SXM2-16GB"}],
        "host_name": "gpu-node-17.corp.example",
        "user": "alice",
        "cmdline": "/home/alice/run.sh",
        "note": "see /home/alice/secretproject/notes.txt",
        "traceEvents": events,
    }
    path = folder / "gpu-node-17_333.1731000000000000000.pt.trace.json"
    path.write_text(json.dumps(header))
    return path


@pytest.mark.parametrize("ending", [".csv", ".json", ".trace.json", ".trace.json.gz"])
def test_no_format_tells_who_recorded_it_where(ending: str, tmp_path: Path):
    out = tmp_path / f"out{ending}"
    assert main(["export", str(trace(tmp_path)), "-o", str(out), "--redact", "--no-cache", "-q"]) == 0
    content = out.read_bytes()
    text = (gzip.decompress(content) if ending.endswith(".gz") else content).decode()
    assert not [secret for secret in SECRETS if secret in text]
    for kept in ("train.py(12): step", "torch/nn/modules/module.py(1743): _call_impl", "volta_sgemm_128x64_nn", "aten::mm"):
        assert kept in text


def test_figures_stay_what_they_are(tmp_path: Path):
    path = trace(tmp_path)
    profile = open_profile(path, cache=False)
    cleared = redacted(profile)
    cleared.check()
    before, after = (msgspec.to_builtins(Study(one).summary()) for one in (profile, cleared))
    differing = {key for key in before if before[key] != after[key]}
    assert differing <= {"hosts", "process_names", "threads", "cpu_top"}
    assert cleared.sources[0].path == "host0_333.1731000000000000000.pt.trace.json"
    assert cleared.sources[0].metadata.get("note") == "see notes.txt"
    assert "user" not in cleared.sources[0].metadata


@pytest.mark.parametrize(
    "sample", ["transformer_h100_synthetic.pt.trace.json.gz", "mlp_jax_cpu.xplane.pb", "decoder_gpu_synthetic.xplane.pb"]
)
def test_names_of_ops_and_instructions_are_left_alone(sample: str):
    profile = open_profile(SAMPLES / sample, cache=False)
    cleared = redacted(profile)
    for frame, column in (("names", "text"), ("hlo_ops", "name"), ("hlo_ops", "framework_op"), ("signatures", "dims")):
        before, after = getattr(profile, frame)[column], getattr(cleared, frame)[column]
        changed = pl.DataFrame({"before": before, "after": after}).filter(pl.col("before").ne_missing(pl.col("after")))
        assert all("/" in text or "synthetic-h100" in text for text in changed["before"]), changed


# Tables


@pytest.mark.parametrize("table", ["kernel", "op", "category", "gap", "steps", "ranks", "roofline", "roofline-phase"])
def test_every_table_is_exported_whole(table: str, tmp_path: Path):
    sample, out = SAMPLES / "transformer_h100_synthetic.pt.trace.json.gz", tmp_path / "out.parquet"
    assert main(["export", str(sample), "--table", table, "-o", str(out), "--no-cache", "-q"]) == 0
    frame = pl.read_parquet(out)
    assert frame.height > 0
    as_json = tmp_path / "out.json"
    assert main(["export", str(sample), "--table", table, "-o", str(as_json), "--no-cache", "-q"]) == 0
    assert len(json.loads(as_json.read_bytes())["rows"]) == frame.height


def test_a_table_takes_the_filter_and_names_its_endings(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    sample, out = SAMPLES / "transformer_h100_synthetic.pt.trace.json.gz", tmp_path / "out.csv"
    assert main(["export", str(sample), "--table", "kernel", "--where", "nvjet", "-o", str(out), "--no-cache", "-q"]) == 0
    names = pl.read_csv(out)["name"]
    assert names.len() > 0
    assert names.str.contains("nvjet").all()
    assert main(["export", str(sample), "--table", "kernel", "-o", str(tmp_path / "x.trace.json"), "--no-cache", "-q"]) == 0
    assert main(["export", str(sample), "--table", "kernel", "-o", str(tmp_path / "x.txt"), "--no-cache", "-q"]) == 2
    assert ".parquet" in capsys.readouterr().err


def test_the_names_of_tables_are_those_of_the_help():
    from roofterm.cli.arguments import EXPORTED
    from roofterm.report.result_tables import NAMES

    assert set(EXPORTED) == set(NAMES)
