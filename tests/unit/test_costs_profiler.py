"""The profiler's own FLOPs, against `key_averages()` of the same runs."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from typing import Any

import pytest

from roofterm.analysis.costs import profiler_flops
from tests.reference import reference

RUNS = (
    "convnet_infer_no_step",
    "transformer_compile_cold",
    "transformer_compile_warm",
    "transformer_train_all_flags",
    "transformer_train_lean",
)


@pytest.mark.parametrize("run", RUNS)
def test_every_row_of_key_averages_has_its_flops(run: str) -> None:
    table = json.loads(reference(f"traces/torch_cpu/{run}.key_averages.json").read_text())
    got: dict[tuple[str, str], int] = defaultdict(int)
    with gzip.open(reference(f"traces/torch_cpu/{run}.pt.trace.json.gz")) as file:
        events: list[dict[str, Any]] = json.load(file)["traceEvents"]
    for event in events:
        if event.get("ph") == "X" and event.get("cat") == "cpu_op":
            args = event.get("args", {})
            dims = args.get("Input Dims")
            got[event["name"], json.dumps(dims or [])] += profiler_flops(event["name"], dims, args.get("Concrete Inputs"))
    wanted = {(row["key"], json.dumps(row["input_shapes"])): row["flops"] for row in table["by_input_shape"]}
    assert sum(wanted.values()) > 0
    for key, flops in wanted.items():
        if flops:
            assert got[key] == flops, key
    assert sum(got.values()) == sum(wanted.values())


def test_json_text_as_kept_in_a_profile_gives_the_same() -> None:
    assert profiler_flops("aten::mm", "[[2,3],[3,4]]", None) == 2 * 2 * 3 * 4


def test_conv2d_with_stride_dilation_and_groups() -> None:
    # 4 x 16 x 32 x 32 by 32 x 8 x 3 x 3, stride 2, dilation 2: out = (32 - 2*2 - 1) // 2 + 1 = 14
    dims = [[4, 16, 32, 32], [32, 8, 3, 3], [32], [], [], [], []]
    concrete = ["", "", "", "[2, 2]", "[0, 0]", "[2, 2]", "2"]
    assert profiler_flops("aten::conv2d", dims, concrete) == 2 * 4 * 14 * 14 * 3 * 3 * 16 * 32 // 2


def test_batched_products_and_first_input_rule() -> None:
    assert profiler_flops("aten::bmm", [[4, 32, 48], [4, 48, 24]], []) == 2 * 4 * 32 * 48 * 24
    assert profiler_flops("aten::baddbmm", [[4, 32, 24], [4, 32, 48], [4, 48, 24], [], []], []) == 2 * 4 * 32 * 48 * 24
    assert profiler_flops("aten::add", [[8, 64, 1], [8, 64, 128], []], []) == 8 * 64


@pytest.mark.parametrize(
    ("name", "dims"),
    [
        ("aten::linear", [[8, 64], [32, 64]]),
        ("aten::mm", None),
        ("aten::mm", []),
        ("aten::mm", "not json"),
        ("aten::mm", [[0, 0], [0, 4]]),
        ("aten::mm", [["a"], [3]]),
        ("aten::mm", [[-1, 128], [128, 64]]),
        ("aten::conv2d", [[4, 16, 32], [32, 8, 3]]),
    ],
)
def test_what_the_profiler_does_not_count_is_zero(name: str, dims: Any) -> None:
    assert profiler_flops(name, dims, ["", "", "", "[1]", "[0]", "[1]", "1"]) == 0
