"""What tables say of FLOPs, bytes and roofs where the costs of a part of a row alone are known; roofs: 100 TFLOP/s bf16, 1 TB/s."""

from __future__ import annotations

from typing import Any

import pytest

from roofterm.analysis.scope import RoofChoice
from roofterm.analysis.study import Study
from tests.build import Build
from tests.unit.test_roofline import TENSOR_KERNEL, mm, op

ROOFS = RoofChoice(peaks={"bf16": 100e12}, bandwidths={"hbm": 1e12})
FLOPS, BYTES = 2e9, 6e6
"""of a product of 1000 x 1000 bf16: 2 x 1000^3, and three matrices of 10^6 elements of 2 bytes; it takes at least 20 us"""


def products(*unknown_us: float, device: str = "NVIDIA H100 80GB HBM3") -> Study:
    """A product of 40 us with its shapes, and others without, each by a launch in an op of the same name."""
    build = Build(device_name=device)
    mm(build, 0, 40)
    for at, dur in enumerate(unknown_us, 1):
        made = build.host("aten::mm", 1000 * at, 20)
        build.kernel(TENSOR_KERNEL, 1000 * at + 50, dur, launch=build.call(1000 * at + 5, 5), op=made)
    return Study(build.profile(), ROOFS)


def row_of(study: Study, by: str, name: str) -> dict[str, Any]:
    return next(row for row in study.table(by).iter_rows(named=True) if row["name"] == name)


TABLES = [("kernel", TENSOR_KERNEL), ("op", "aten::mm"), ("category", "gemm")]


@pytest.mark.parametrize(("by", "name"), TABLES, ids=[by for by, _ in TABLES])
def test_shares_are_of_the_time_whose_costs_are_known(by: str, name: str):
    row = row_of(products(10), by, name)
    assert row["device_us"] == 50
    assert (row["flops"], row["bytes"]) == (FLOPS, BYTES)
    assert row["pct_of_roof"] == pytest.approx(100 * 20 / 40)  # of the 40 us that are known, not of 50
    assert row["flags"] == ["partial: costs are known for 80 % of this time; rates and shares are of that part"]


@pytest.mark.parametrize(("by", "name"), TABLES, ids=[by for by, _ in TABLES])
def test_a_small_part_says_nothing_of_what_bounds_the_row(by: str, name: str):
    row = row_of(products(4000, 3960), by, name)
    assert (row["flops"], row["bytes"]) == (FLOPS, BYTES)
    assert (row["bound_by"], row["pct_of_roof"], row["limiter"], row["limit"]) == (None, None, None, None)
    assert row["flags"] == ["partial: costs are known for less than 1 % of this time; rates and shares are of that part"]  # 40 of 8,000 us


def test_a_row_whose_costs_are_all_known_says_nothing_of_parts():
    row = row_of(products(), "kernel", TENSOR_KERNEL)
    assert (row["pct_of_roof"], row["flags"]) == (pytest.approx(50), [])


def test_work_on_an_unknown_device_is_counted_all_the_same():
    study = products(device="an accelerator that nobody knows")
    study.roofs = RoofChoice()
    row = row_of(study, "kernel", TENSOR_KERNEL)
    assert (row["flops"], row["bytes"], row["pct_of_roof"], row["bound_by"]) == (FLOPS, BYTES, None, None)


def test_a_kernel_that_helps_an_op_whose_costs_are_known_is_no_unknown_time():
    """A split product: 40 us on tensor cores, to which all of its costs fall, and 10 us that add the parts up."""
    build = Build()
    made = op(build, "aten::mm", 0, [[1000, 1000], [1000, 1000]], dur=30)
    build.kernel(TENSOR_KERNEL, 100, 40, launch=build.call(5, 5), op=made)
    build.kernel("void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>(int)", 150, 10, launch=build.call(12, 5), op=made)
    study = Study(build.profile(), ROOFS)
    for by, name in (("category", "gemm"), ("op", "aten::mm")):
        row = row_of(study, by, name)
        assert (row["device_us"], row["flops"], row["flags"]) == (50, FLOPS, [])
        assert row["pct_of_roof"] == pytest.approx(100 * 20 / 50)
