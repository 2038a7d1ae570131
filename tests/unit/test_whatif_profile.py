"""What-ifs of a profile made by hand: two layers of decode, 32 sequences with a context of 1,024, on an H100."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from roofterm.analysis.categories import Category
from roofterm.analysis.model_config import storage
from roofterm.analysis.scaling import Batch, scaled
from roofterm.analysis.scope import ALL
from roofterm.analysis.study import Study
from roofterm.analysis.whatif import what_if
from roofterm.analysis.whatif_base import profile_base
from roofterm.analysis.whatif_state import Change
from roofterm.analysis.workload import Machine, Shape, WhatIfError
from roofterm.hardware.roofs import named_device
from roofterm.results import WhatIf, WhatIfRow
from tests.build import Build

BF16, INT = "c10::BFloat16", "long int"
HBM, PEAK, VECTOR = 3.352e12, 989.4e12, 66.9e12
WIDE, INNER = 1024, 4096
TENSOR = "nvjet_tst_64x32"


@pytest.fixture(autouse=True)
def no_user_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))


class Made:
    """A profile that is built op by op, each with one kernel of 10 us."""

    def __init__(self) -> None:
        self.build = Build()
        self.at = 0.0

    def op(self, name: str, kernel: str, dims: list[Any], inside: str | None = None, **facts: Any) -> None:
        types = [BF16 if isinstance(shape, list) and shape else "Scalar" for shape in dims]
        if inside is not None:
            self.build.host(inside, self.at, 50, external_id=1)
        made = self.build.host(name, self.at + 1, 40, dims=json.dumps(dims), types=json.dumps(types), **facts)
        self.build.kernel(kernel, self.at + 60, 10, launch=self.build.call(self.at + 5, 5), op=made)
        self.at += 100

    def linear(self, rows: int, k: int, n: int) -> None:
        self.op("aten::mm", TENSOR, [[rows, k], [k, n]], inside="aten::linear")

    def layer(self, sequences: int = 32, queries: int = 1, context: int = 1024) -> None:
        rows = sequences * queries
        self.op(
            "aten::native_layer_norm", "vectorized_layer_norm_kernel<c10::BFloat16>", [[sequences, queries, WIDE], [], [WIDE], [WIDE], []]
        )
        self.linear(rows, WIDE, 3 * WIDE)
        query, keys = [sequences, 16, queries, 64], [sequences, 16, context, 64]
        causal = "False" if context > queries else "True"
        self.op(
            "aten::_scaled_dot_product_flash_attention",
            "flash_fwd_splitkv_kernel<cutlass::bfloat16_t>",
            [query, keys, keys, [], []],
            concrete=json.dumps(["", "", "", "0.", causal]),
        )
        self.linear(rows, WIDE, WIDE)
        self.linear(rows, WIDE, INNER)
        self.linear(rows, INNER, WIDE)

    def study(self) -> Study:
        return Study(self.build.profile())


def decode(**shape: int) -> Study:
    made = Made()
    for _ in range(2):
        made.layer(**shape)
    return made.study()


def asked(study: Study, on: str | None = None, itl_us: float | None = None, **change: Any) -> WhatIf:
    assert study.device is not None
    wanted = Change(**change)
    base = profile_base(study, ALL, Machine(study.device), wanted)
    return what_if(base, wanted, Machine(named_device(on)) if on else None, itl_us)


def rows_of(found: WhatIf, name: str) -> list[WhatIfRow]:
    return [row for row in found.rows if row.name == name]


def of_shapes(found: WhatIf, dims: list[Any]) -> WhatIfRow:
    return next(row for row in found.rows if row.shapes is not None and json.loads(row.shapes) == dims)


WEIGHTS = 2 * (3 * WIDE * WIDE + WIDE * WIDE + 2 * WIDE * INNER)
CACHE = 2 * 2 * 32 * 16 * 1024 * 64 * 2
"""two layers, keys and values, 32 sequences, 16 heads of 64, 1,024 tokens, 2 bytes"""


def test_the_step_is_told_by_its_products_and_its_attention() -> None:
    state = asked(decode()).base
    assert (state.phase, state.sequences, state.tokens, state.context) == ("decode", 32, 1, 1024)
    assert (state.dtype, state.device, state.tp) == ("bf16", "h100-sxm5-80gb", 1)
    norms = 2 * 2 * 2 * WIDE
    assert state.bytes_by_role["weight"]["read"] == 2 * WEIGHTS + norms
    assert state.bytes_by_role["kv"]["read"] == CACHE
    assert state.flops == pytest.approx(2 * 32 * WEIGHTS + 2 * 4 * 32 * 16 * 64 * 1024 + 2 * 32 * WIDE * 8)
    assert state.estimate_us == pytest.approx(12 * 10)  # nothing is changed: the measured time


def test_a_larger_batch_reads_the_same_weights() -> None:
    found = asked(decode(), batch=64)
    now, then = found.base, found.whatif
    assert then.sequences == 64
    assert then.flops == 2 * now.flops
    assert then.bytes_by_role["weight"] == now.bytes_by_role["weight"]
    assert then.bytes_by_role["kv"]["read"] == 2 * CACHE
    assert then.bytes_by_role["activation"]["read"] == 2 * now.bytes_by_role["activation"]["read"]
    assert then.bytes_by_role["activation"]["write"] == 2 * now.bytes_by_role["activation"]["write"]
    assert asked(decode(), batch_times=2).whatif == then


def test_the_estimate_keeps_each_parts_share_of_its_roof() -> None:
    found = asked(decode(), batch=64)
    for row in found.rows:
        assert row.bound_us
        assert row.estimate_us == pytest.approx(row.time_us * row.whatif_us / row.bound_us if row.time_us else 0)
    assert found.whatif.estimate_us == pytest.approx(sum(row.estimate_us or 0 for row in found.rows))


def test_a_longer_context_only_grows_the_cache() -> None:
    found = asked(decode(), context=4096)
    assert found.whatif.bytes_by_role["kv"]["read"] == 4 * CACHE
    assert found.whatif.bytes_by_role["weight"] == found.base.bytes_by_role["weight"]
    attention = 2 * 4 * 32 * 16 * 64 * 1024
    assert found.whatif.flops - found.base.flops == 3 * attention


def test_an_fp8_cache_is_half_as_large() -> None:
    assert asked(decode(), kv_dtype="fp8").whatif.bytes_by_role["kv"]["read"] == CACHE / 2


def test_quantised_weights() -> None:
    found = asked(decode(), weights=storage("int4:64"))
    norms = 2 * 2 * 2 * WIDE
    assert found.whatif.bytes_by_role["weight"]["read"] == pytest.approx(WEIGHTS / 2 + WEIGHTS / 64 * 2 + norms)
    output = of_shapes(found, [[32, WIDE], [WIDE, WIDE]]).whatif_us
    # 2 layers of [32, 1024] by [1024, 1024]: 4 bits a weight and a 2-byte scale each 64, and what goes in and out
    moved = 2 * (WIDE * WIDE / 2 + WIDE * WIDE / 64 * 2 + 2 * 2 * 32 * WIDE)
    assert output == pytest.approx(max(moved / HBM, 2 * 2 * WIDE * WIDE / VECTOR, 2 * 2 * 32 * WIDE * WIDE / PEAK) * 1e6, rel=1e-3)


def test_the_head_keeps_its_type() -> None:
    made = Made()
    for _ in range(2):
        made.layer()
    made.linear(32, WIDE, 50_000)
    found = asked(made.study(), weights=storage("int8"))
    head = of_shapes(found, [[32, WIDE], [WIDE, 50_000]])
    assert head.weight_bytes == 2 * WIDE * 50_000
    assert of_shapes(found, [[32, WIDE], [WIDE, WIDE]]).weight_bytes == 2 * (WIDE * WIDE + 2 * WIDE)  # a scale a column
    assert any("head keep" in line for line in found.held)


def test_weights_of_experts_are_quantised_too() -> None:
    made = Made()
    for _ in range(2):
        made.layer()
        dims = [[32, WIDE], [8, 2 * INNER, WIDE], [8, WIDE, INNER], [32, 2], [32, 2]]
        made.op("vllm::inplace_fused_experts", "fused_moe_kernel", dims)
    found = asked(made.study(), weights=storage("int4"))
    (experts,) = rows_of(found, "vllm::inplace_fused_experts")
    elements = 2 * 8 * 3 * INNER * WIDE  # 32 tokens with 2 experts each: all 8 may be read
    assert experts.weight_bytes == pytest.approx(elements / 2 + elements / 128 * 2)


def test_drafts_are_checked_together() -> None:
    found = asked(decode(), drafts=3, accept=0.5)
    assert (found.whatif.tokens, found.whatif.context) == (4, 1027)
    assert found.whatif.tokens_per_step == pytest.approx(1 + 0.5 + 0.25 + 0.125)
    assert found.whatif.bytes_by_role["weight"] == found.base.bytes_by_role["weight"]
    assert found.whatif.bytes_by_role["kv"]["read"] == pytest.approx(CACHE * 1027 / 1024)
    assert found.whatif.itl_us == pytest.approx(found.whatif.bound_us / 1.875)


def test_a_split_step_reduces_twice_a_layer() -> None:
    found = asked(decode(), tp=4)
    (reduce,) = rows_of(found, "all-reduce of tensor parallelism")
    assert reduce.calls == 4  # two layers
    assert reduce.wire_bytes == 4 * 2 * 3 / 4 * (32 * WIDE * 2)
    assert reduce.bound_us is None
    assert found.whatif.bytes_by_role["kv"]["read"] == CACHE / 4
    norms = 2 * 2 * 2 * WIDE
    assert found.whatif.bytes_by_role["weight"]["read"] == 2 * WEIGHTS / 4 + norms
    up = of_shapes(found, [[32, WIDE], [WIDE, INNER]])
    # widening: the input is whole on every device, weight and result are shared
    assert up.activation_bytes == 2 * (2 * 32 * WIDE + 2 * 32 * INNER / 4)
    down = of_shapes(found, [[32, INNER], [INNER, WIDE]])
    assert down.activation_bytes == 2 * (2 * 32 * INNER / 4 + 2 * 32 * WIDE)


def test_another_device_has_other_roofs() -> None:
    found = asked(decode(), on="a100-sxm4-80gb")
    assert found.whatif.device == "a100-sxm4-80gb"
    assert found.whatif.memory_us == pytest.approx(found.base.memory_us * HBM / 2.039e12, rel=1e-3)


def test_the_largest_batch_for_a_time_between_tokens() -> None:
    study = decode()
    limits = {limit.name: limit.batch for limit in asked(study, itl_us=1000).limits}
    largest = limits["slo_itl"]
    assert largest is not None
    assert asked(study, batch=largest).whatif.bound_us <= 1000 < asked(study, batch=largest + 1).whatif.bound_us
    assert limits["ridge_step"] is None
    assert "memory" not in limits  # what else lies there is not known


def test_work_without_a_model_keeps_its_measured_time() -> None:
    made = Made()
    made.layer()
    made.op("my::op", "my_kernel", [[32, 8]])
    found = asked(made.study(), batch=64)
    (row,) = rows_of(found, "my::op")
    assert row.held
    assert row.whatif_us == row.bound_us == row.estimate_us == 10
    assert found.whatif.held_us == pytest.approx(10)
    assert any("10 " in line or "0.010 ms" in line for line in found.held if "has no model" in line)


def test_what_does_not_bear_the_batch_is_kept_and_told() -> None:
    made = Made()
    made.layer()
    made.op("aten::mul", "vectorized_elementwise_kernel<4, BUnaryFunctor<c10::BFloat16>>", [[4 * WIDE, WIDE], []])
    found = asked(made.study(), batch=320)
    (row,) = rows_of(found, "aten::mul")
    assert row.held
    assert row.whatif_us == row.bound_us
    assert any("do not follow the batch" in line for line in found.held)


def test_prompts_of_another_length() -> None:
    study = decode(sequences=2, queries=512, context=512)
    found = asked(study, prompt=1024)
    assert (found.base.phase, found.whatif.tokens) == ("prefill", 1024)
    products = 2 * 1024 * WEIGHTS
    pairs = (1024 * 1025 / 2) / (512 * 513 / 2)
    attention = 2 * 4 * 2 * 16 * 64 * (512 * 513 / 2)
    norm = 2 * 1024 * WIDE * 8
    assert found.base.flops == pytest.approx(products + attention + norm)
    assert found.whatif.flops == pytest.approx(2 * products + pairs * attention + 2 * norm)


@pytest.mark.parametrize(
    ("shape", "change", "why"),
    [
        ({}, {"prompt": 100}, "--prompt speaks of prefill"),
        ({"sequences": 2, "queries": 512, "context": 512}, {"context": 100}, "--context speaks of decode"),
        ({"sequences": 2, "queries": 512, "context": 512}, {"drafts": 2}, "--spec speaks of decode"),
        ({"sequences": 2, "queries": 512, "context": 512}, {"kv_dtype": "fp8", "batch": 4}, None),
    ],
)
def test_questions_of_another_phase(shape: dict[str, int], change: dict[str, Any], why: str | None) -> None:
    if why is None:
        assert asked(decode(**shape), **change).whatif.sequences == 4
    else:
        with pytest.raises(WhatIfError, match=why):
            asked(decode(**shape), **change)


def test_steps_whose_products_share_no_rows_have_no_batch() -> None:
    made = Made()
    made.linear(32, WIDE, WIDE)
    made.linear(500, WIDE, WIDE)
    made.linear(700, WIDE, WIDE)
    study = made.study()
    with pytest.raises(WhatIfError, match="do not share their rows"):
        asked(study, batch=64)
    with pytest.raises(WhatIfError, match="do not share their rows"):
        asked(made.study(), batch_times=2)
    assert asked(study, on="a100-sxm4-80gb").whatif.sequences is None


def test_rows_alone_can_be_multiplied() -> None:
    made = Made()
    made.linear(500, WIDE, WIDE)
    found = asked(made.study(), batch_times=2)
    assert found.whatif.flops == 2 * found.base.flops
    assert found.whatif.sequences is None
    assert any("1,000 rows (tokens, or images) instead of 500" in line for line in found.held)


# Which dimensions bear the batch: 2 sequences of 300 tokens, to 4 of 700

BATCH = Batch(600, 2, 300, 300, Shape(4, 700, 700))
SCALED = [
    (Category.ELEMENTWISE, "aten::add", [[2, 300, 512], [2, 300, 512], []], [[4, 700, 512], [4, 700, 512], []]),
    (Category.ELEMENTWISE, "aten::mul", [[600, 512], [600, 1]], [[2800, 512], [2800, 1]]),
    (Category.SOFTMAX, "aten::_softmax", [[2, 8, 300, 300], [], []], [[4, 8, 700, 700], [], []]),
    (Category.NORM, "aiter::rmsnorm", [[4800, 64], [4800, 64], [64], []], [[22400, 64], [22400, 64], [64], []]),
    (Category.COPY, "aten::cat", [[[2, 8, 300, 32], [2, 8, 300, 32]], []], [[[4, 8, 700, 32], [4, 8, 700, 32]], []]),
    (Category.ELEMENTWISE, "aten::cos", [[1, 300, 64]], [[1, 700, 64]]),  # of positions, alike for every sequence
    (Category.GEMM, "aten::mm", [[600, 512], [512, 64]], [[2800, 512], [512, 64]]),
    (Category.GEMM, "aten::mm", [[512, 600], [600, 64]], [[512, 2800], [2800, 64]]),  # the gradient of a weight
    (Category.GEMM, "aten::addmm", [[64], [600, 512], [512, 64], [], []], [[64], [2800, 512], [512, 64], [], []]),
    (Category.GEMM, "aten::mm", [[2, 512], [512, 32000]], [[4, 512], [512, 32000]]),  # the head, for the last tokens
    (Category.GEMM, "aten::bmm", [[16, 300, 64], [16, 64, 300]], [[32, 700, 64], [32, 64, 700]]),
    (Category.CONV, "aten::conv2d", [[2, 3, 64, 64], [16, 3, 3, 3]], [[4, 3, 64, 64], [16, 3, 3, 3]]),
    (Category.GEMM, "aten::mm", [[512, 512], [512, 64]], None),
    (Category.ELEMENTWISE, "aten::mul", [[512, 512], []], None),
    (Category.OPTIMIZER, "aten::_fused_adamw_", [[[600, 512]]], None),
    (Category.ELEMENTWISE, "aten::_foreach_mul_", [[[600, 512]], []], None),
]


@pytest.mark.parametrize(("category", "name", "dims", "new"), SCALED)
def test_dimensions_that_bear_the_batch(category: Category, name: str, dims: list[Any], new: list[Any] | None) -> None:
    assert scaled(name, category, dims, None, BATCH) == new


def test_a_matrix_as_tall_as_the_tokens_may_be_a_weight() -> None:
    batch = Batch(512, 2, 256, 256, Shape(4, 256, 256), frozenset((512,)))
    assert scaled("aten::mul", Category.ELEMENTWISE, [[512, 512], []], None, batch) is None
    assert scaled("aten::mul", Category.ELEMENTWISE, [[2, 256, 512], []], None, batch) == [[4, 256, 512], []]
