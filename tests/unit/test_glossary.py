from __future__ import annotations

import msgspec
import pytest

from roofterm.analysis.findings import rules
from roofterm.cli.main import main
from roofterm.glossary import find, glossary, nearest
from roofterm.results import (
    TABLES,
    GraphReplay,
    HostBalance,
    InputOp,
    InputPipeline,
    LaunchPath,
    MemoryBlock,
    MemoryCurve,
    MemoryHolder,
    MemoryOp,
    MemoryPool,
    MemoryPressure,
    MemoryStep,
    RankRow,
    RooflineRow,
    StepRow,
    Summary,
    XlaOverview,
)

# What is no figure but a name, an id or a list of names needs no definition.
NAMES = {
    "after",
    "before",
    "block",
    "bytes_by_role",
    "bytes_from",
    "bytes_per_s",
    "category",
    "collective",
    "cores",
    "counted_for",
    "counter_series",
    "device",
    "device_names",
    "devices",
    "distinct_kernels",
    "flops_from",
    "flops_per_s",
    "grid",
    "group",
    "hardware",
    "host",
    "host_kind",
    "hosts",
    "is_backward",
    "kernel_us_by_device",
    "kernel_us_by_rank",
    "level",
    "library",
    "name",
    "note",
    "on_device",
    "op",
    "operands",
    "ops",
    "path",
    "peak_op",
    "peak_step",
    "per",
    "phase",
    "pool",
    "process_names",
    "rank",
    "ranks",
    "runs",
    "shape",
    "shapes",
    "short_name",
    "start_us",
    "step",
    "step_names",
    "steps",
    "stream_ids",
    "thread",
    "threads",
    "time_per_unit_us",
    "time_us",
    "users",
    "version",
}


RECORDS = (
    Summary,
    StepRow,
    RooflineRow,
    RankRow,
    LaunchPath,
    GraphReplay,
    HostBalance,
    MemoryPool,
    MemoryHolder,
    MemoryOp,
    MemoryStep,
    MemoryBlock,
    MemoryCurve,
    MemoryPressure,
    XlaOverview,
    InputPipeline,
    InputOp,
)


@pytest.mark.parametrize("record", RECORDS)
def test_every_figure_of_a_record_has_a_definition(record: type[msgspec.Struct]):
    assert [name for name in record.__struct_fields__ if name not in NAMES and name not in glossary()] == []


@pytest.mark.parametrize("by", TABLES)
def test_every_figure_of_a_table_has_a_definition(by: str):
    assert [name for name in TABLES[by] if name not in NAMES and name not in glossary()] == []


def test_names_are_found_with_blanks_and_capitals():
    assert find("Host Wait US") is glossary()["host_wait_us"]
    assert find("self_time") is glossary()["self time"]
    assert "mfu_pct" in nearest("mfu_pc")


def test_explain_prints_definition_and_source(capsys: pytest.CaptureFixture[str]):
    assert main(["explain", "bound_by"]) == 0
    shown = capsys.readouterr().out
    assert "highest utilisation" in shown
    assert "XProf" in shown


def test_explain_of_nothing_known_is_a_usage_error(capsys: pytest.CaptureFixture[str]):
    assert main(["explain", "mfu_pcx"]) == 2
    assert "mfu_pct" in capsys.readouterr().err


def test_every_finding_can_be_explained(capsys: pytest.CaptureFixture[str]):
    for one in rules().values():
        assert main(["explain", one.id]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert one.question in shown
        assert f"source: {one.source}" in shown
