"""Sweeps: the values that an option asks for, and the step at each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from roofterm.analysis.model_config import parse_config
from roofterm.analysis.sweep import parse_sweep, points, sweep, value_text
from roofterm.analysis.whatif import what_if
from roofterm.analysis.whatif_base import model_bases
from roofterm.analysis.whatif_state import Base, Change
from roofterm.analysis.workload import Machine, WhatIfError
from roofterm.hardware.roofs import named_device

SMALL: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 4, "num_attention_heads": 16,
    "vocab_size": 1000, "torch_dtype": "bfloat16",
}  # fmt: skip


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Base:
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    machine = Machine(named_device("h100-sxm5-80gb"))
    return model_bases(parse_config(SMALL), machine, 2, None, 512)[0]


@pytest.mark.parametrize(
    ("text", "name", "values"),
    [
        ("batch=1..256", "batch", [1, 2, 4, 8, 16, 32, 64, 128, 256]),
        ("batch=1..100", "batch", [1, 2, 4, 8, 16, 32, 64, 100]),
        ("tp=2..8:2", "tp", [2, 4, 6, 8]),
        ("context=1k,4k,32k", "context", [1024, 4096, 32768]),
        ("prompt=512", "prompt", [512]),
        ("spec=0..3:1", "spec", [0, 1, 2, 3]),
        ("batch=7..7", "batch", [7]),
    ],
)
def test_values_of_a_sweep(text: str, name: str, values: list[int]) -> None:
    assert parse_sweep(text) == (name, values)


@pytest.mark.parametrize("text", ["batch", "batch=", "size=1..4", "batch=8..1", "batch=1..x", "batch=1..10000:1", "batch=1..4:0"])
def test_what_is_no_sweep_is_said(text: str) -> None:
    with pytest.raises(WhatIfError, match="--sweep"):
        parse_sweep(text)


def test_each_row_is_the_answer_to_its_own_question(base: Base) -> None:
    found = sweep(base, Change(kv_dtype="fp8"), None, "batch", [1, 8, 64])
    assert [row.value for row in found.rows] == [1, 8, 64]
    for row in found.rows:
        assert row.state == what_if(base, Change(kv_dtype="fp8", batch=row.value), bare=True).whatif
    assert any("no idle time" in line for line in found.held)


def test_a_sweep_of_drafts(base: Base) -> None:
    found = sweep(base, Change(accept=0.5), None, "spec", [0, 1, 3])
    assert [row.state.tokens_per_step for row in found.rows] == [1, 1.5, 1.875]


def test_points_lie_where_the_states_say(base: Base) -> None:
    (state,) = [row.state for row in sweep(base, Change(), None, "batch", [4]).rows]
    (point,) = points(sweep(base, Change(), None, "batch", [4]).rows)
    assert point.category == "4"
    assert point.intensity["hbm"] == pytest.approx(state.flops / state.bytes)
    assert point.flops_per_s == pytest.approx(state.flops / (state.bound_us * 1e-6))
    assert point.time_us == state.bound_us


def test_values_as_text() -> None:
    assert [value_text(value) for value in (1, 1000, 1024, 32768, 0.5)] == ["1", "1000", "1k", "32k", "0.5"]
