"""The roofline over profiles made by hand; roofs of round figures: 100 TFLOP/s bf16, 10 fp32, 1 TB/s, 100 GB/s link."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from roofterm import results
from roofterm.analysis.bounded import bounded
from roofterm.analysis.bounds import LAUNCH_S, compute_peak, roofs_of
from roofterm.analysis.categories import Category
from roofterm.analysis.costed import ITEMS, PIECES
from roofterm.analysis.roofline import coverage, coverage_table, flops_total, level_records, roof_warnings, roofline
from roofterm.analysis.scope import ALL, Scope
from roofterm.analysis.study import Study
from roofterm.analysis.utilisation import WorkSums, mfu, work_by_step, work_of
from roofterm_parsers.profile import Kind, Profile
from tests.build import Build

BF16, FP32 = "c10::BFloat16", "float"
TENSOR_KERNEL = "nvjet_tst_256x128_64x4_v_bz_TNT"
US = 1e-6


def device(**changes: Any) -> results.DeviceInfo:
    figures: dict[str, Any] = {
        "id": 0, "name": "made", "model": None, "kind": "gpu", "units": 100, "memory_bytes": 10**10,
        "peaks": {"bf16": 100e12, "fp32": 10e12, "tf32": 50e12}, "bandwidths": {"hbm": 1e12}, "roofs_from": "vendor",
        "ridge": {}, "notes": [], "links": {"nvlink": 100e9, "pcie": 20e9}, "sources": {"bf16": "vendor", "hbm": "measured"},
    }  # fmt: skip
    return results.DeviceInfo(**{**figures, **changes})


def op(build: Build, name: str, start: float, dims: list[Any], dtype: str = BF16, **facts: Any) -> int:
    types = [dtype if shape else "Scalar" for shape in dims]
    return build.host(name, start, facts.pop("dur", 20), dims=json.dumps(dims), types=json.dumps(types), **facts)


def mm(build: Build, start: float, dur: float, n: int = 1000, kernel: str = TENSOR_KERNEL, dtype: str = BF16) -> int:
    """A square product and its kernel; returns the op."""
    made = op(build, "aten::mm", start, [[n, n], [n, n]], dtype)
    build.kernel(kernel, start + 50, dur, launch=build.call(start + 5, 5), op=made)
    return made


def of(study: Study, roofs: results.DeviceInfo | None, windows: pl.DataFrame | None = None, *more: Any, **options: Any) -> results.Roofline:
    found = bounded(study.profile, study.work, study.facts, roofs)
    return roofline(study.profile, found, study.work, roofs, windows, *more, **options)


def rows_of(profile: Profile, roofs: results.DeviceInfo | None = None, **options: Any) -> results.Roofline:
    study = Study(profile)
    return of(study, roofs or device(), **options)


def only(rows: list[results.RooflineRow]) -> results.RooflineRow:
    assert len(rows) == 1
    return rows[0]


# One product


def test_a_product_against_its_roofs() -> None:
    build = Build()
    mm(build, 0, 40)
    row = only(rows_of(build.profile()).ops)
    assert (row.level, row.name, row.category, row.dtype, row.calls) == ("op", "aten::mm", "gemm", "bf16", 1)
    assert row.flops == row.model_flops == 2e9
    assert row.bytes == {"hbm": 6e6}
    assert row.intensity["hbm"] == pytest.approx(2e9 / 6e6)
    assert row.flops_per_s == pytest.approx(50e12)
    assert row.bytes_per_s["hbm"] == pytest.approx(150e9)
    assert row.time_bound_us == pytest.approx(20)  # 2 GFLOP / 100 TFLOP/s; its bytes would take 6 us
    assert row.headroom_us == row.at_stake_us == pytest.approx(20)
    assert row.pct_of_roof == row.pct_of_peak_flops == pytest.approx(50)
    assert row.pct_of_peak_bw == pytest.approx(15)
    assert (row.bound_by, row.limiter) == ("compute", "latency")
    assert (row.flops_from, row.bytes_from, row.flags) == ("shapes", "shapes", [])
    assert row.shapes == "[[1000, 1000], [1000, 1000]]"


def test_from_60_percent_of_the_roof_on_the_bound_is_the_limiter() -> None:
    build = Build()
    mm(build, 0, 30)
    assert only(rows_of(build.profile()).ops).limiter == "compute"


def test_elementwise_work_of_16_bit_types_is_held_against_the_fp32_vector_peak() -> None:
    build = Build()
    made = op(build, "aten::add", 0, [[10**6], [10**6], []])
    build.kernel("vectorized_elementwise_kernel<4, CUDAFunctor_add<c10::BFloat16>>", 50, 12, launch=build.call(5, 5), op=made)
    row = only(rows_of(build.profile()).ops)
    assert row.bytes == {"hbm": 6e6}
    assert row.bound_by == "hbm"
    assert row.time_bound_us == pytest.approx(6)
    assert row.pct_of_peak_flops == pytest.approx(100 * 1e6 / 12e-6 / 10e12)


PATHS = [
    # type, tensor cores, category: roof
    ("bf16", True, Category.GEMM, "bf16"),
    ("bf16", None, Category.ATTENTION, "bf16"),
    ("bf16", False, Category.GEMM, "fp32"),
    ("tf32", True, Category.GEMM, "tf32"),
    ("fp32", False, Category.GEMM, "fp32"),
    ("fp32", None, Category.GEMM, "fp32"),
    ("fp32", False, Category.NORM, "fp32"),
    ("bf16", False, Category.ELEMENTWISE, "fp32"),
    ("fp8", True, Category.GEMM, None),
    ("int64", False, Category.ELEMENTWISE, None),
    (None, None, Category.GEMM, None),
]


@pytest.mark.parametrize(("dtype", "tensor_core", "category", "roof"), PATHS)
def test_the_peak_fits_type_and_path(dtype: str | None, tensor_core: bool | None, category: Category, roof: str | None) -> None:
    found = compute_peak(device(), dtype, tensor_core, int(category))
    assert (found and found[0]) == roof


def test_matrix_units_of_amd_have_a_roof_for_fp32() -> None:
    amd = device(peaks={"fp32": 81e12, "fp32_matrix": 163e12, "bf16": 1300e12})
    assert compute_peak(amd, "fp32", True, int(Category.GEMM)) == ("fp32_matrix", 163e12)


def test_a_tpu_has_one_peak() -> None:
    tpu = device(kind="tpu", peaks={"bf16": 918e12})
    assert compute_peak(tpu, "fp32", None, int(Category.ELEMENTWISE)) == ("bf16", 918e12)
    # Beside a peak of its own a plane states FLOPs that the compiler has already halved for int8: the vendor's int8 peak is not theirs.
    stated = {"trace": results.RoofSet({"bf16": 946.7e12}, {}, {}, "stated in the profile")}
    tpu = device(kind="tpu", peaks={"bf16": 946.7e12, "int8": 1836e12}, sets=stated)
    assert compute_peak(tpu, "int8", None, int(Category.GEMM)) == ("bf16", 946.7e12)
    assert compute_peak(device(kind="tpu", peaks=tpu.peaks), "int8", None, int(Category.GEMM)) == ("int8", 1836e12)


# What is counted, and once


def nest(build: Build, names: list[str], dims: list[Any], concretes: list[list[str]]) -> int:
    """Ops one inside the other, the last the innermost."""
    made = 0
    for depth, (name, concrete) in enumerate(zip(names, concretes, strict=True)):
        made = op(build, name, depth, dims, FP32, dur=40 - 2 * depth, concrete=json.dumps(concrete))
    return made


def test_a_nest_of_convolutions_counts_once() -> None:
    one, no = "[1, 1]", "[0, 0]"
    convolution = ["", "", "", one, one, one, "False", no, "1"]
    build = Build()
    inner = nest(
        build,
        ["aten::conv2d", "aten::convolution", "aten::_convolution", "aten::cudnn_convolution"],
        [[1, 64, 56, 56], [64, 64, 3, 3]],
        [["", "", "", one, one, one, "1"], convolution, convolution, ["", "", one, one, one, "1"]],
    )
    build.kernel("implicit_convolve_sgemm", 60, 100, launch=build.call(10, 5), op=inner)
    profile = build.profile()
    assert flops_total(Study(profile).bounded().items) == 231211008
    assert only(rows_of(profile).ops).name == "aten::cudnn_convolution"


def test_a_wrapper_that_launches_work_beside_does_not_count_its_product_again() -> None:
    build = Build()
    linear = op(build, "aten::linear", 0, [[1000, 1000], [1000, 1000], [1000]], dur=40)
    inner = op(build, "aten::mm", 10, [[1000, 1000], [1000, 1000]], dur=20)
    build.kernel(TENSOR_KERNEL, 60, 40, launch=build.call(12, 5), op=inner)
    build.kernel("bias_add_kernel", 110, 5, launch=build.call(32, 5), op=linear)
    profile = build.profile()
    assert flops_total(Study(profile).bounded().items) == 2e9


def test_an_op_without_a_cost_gives_its_work_to_the_op_around_it() -> None:
    build = Build()
    op(build, "aten::mm", 0, [[1000, 1000], [1000, 1000]], dur=40)
    inner = build.host("my_backend::dispatch", 5, 20)
    build.kernel(TENSOR_KERNEL, 60, 40, launch=build.call(10, 5), op=inner)
    row = only(rows_of(build.profile()).ops)
    assert (row.name, row.flops) == ("aten::mm", 2e9)


def test_time_of_an_op_is_the_union_of_its_kernels() -> None:
    build = Build()
    made = op(build, "aten::mm", 0, [[1000, 1000], [1000, 1000]])
    call = build.call(5, 5)
    build.kernel(TENSOR_KERNEL, 50, 40, stream=7, launch=call, op=made)
    build.kernel("void splitKreduce_kernel<float>(x)", 80, 30, stream=8, launch=call, op=made)
    profile = build.profile()
    row = only(rows_of(profile).ops)
    assert row.time_us == 60  # 50 to 110
    assert row.flops == 2e9
    study = Study(profile)
    kernels = level_records(profile, bounded(profile, study.work, study.facts, device()), study.facts, device(), "kernel")
    by_name = {kernel.name: kernel for kernel in kernels}
    assert by_name[TENSOR_KERNEL].flops == 2e9
    assert by_name["void splitKreduce_kernel<float>(x)"].flops is None  # a helper: the product is not its work
    assert by_name[TENSOR_KERNEL].op == "aten::mm"


def test_calls_of_one_shape_are_one_row_and_shapes_stay_apart() -> None:
    build = Build()
    for at in range(3):
        mm(build, 200 * at, 40)
    mm(build, 600, 80, n=2000)
    rows = rows_of(build.profile()).ops
    assert [(row.calls, row.time_us, row.flops) for row in rows] == [(3, 120, 6e9), (1, 80, 16e9)]


def test_top_keeps_the_longest_and_0_keeps_all() -> None:
    build = Build()
    for at, n in enumerate((100, 200, 300)):
        mm(build, 200 * at, 10 * (at + 1), n=n)
    assert [row.time_us for row in rows_of(build.profile(), top=2).ops] == [30, 20]
    assert len(rows_of(build.profile(), top=0).ops) == 3


# Copies and collectives


COPIES = [
    # name, bytes at each level, bound by, its time
    ("Memcpy DtoD (Device -> Device)", {"hbm": 2e6}, "hbm", 2),
    ("Memcpy HtoD (Pinned -> Device)", {"hbm": 1e6, "pcie": 1e6}, "pcie", 50),
    ("Memcpy PtoP (Device -> Device)", {"hbm": 1e6, "nvlink": 1e6}, "nvlink", 10),
]


@pytest.mark.parametrize(("name", "sizes", "bound", "time_us"), COPIES)
def test_a_copy_moves_what_the_file_states(name: str, sizes: dict[str, float], bound: str, time_us: float) -> None:
    build = Build()
    made = op(build, "aten::copy_", 0, [[250_000], [250_000], []], FP32)
    build.kernel(name, 50, 100, launch=build.call(5, 5), op=made, kind=Kind.COPY, bytes=1_000_000)
    row = only(rows_of(build.profile()).ops)
    assert (row.bytes, row.bound_by, row.bytes_from) == (sizes, bound, "trace")
    assert row.time_bound_us == pytest.approx(time_us)


def with_collective(profile: Profile, dtype: str, elements: int, ranks: int) -> None:
    """Give the op of the first piece of work the arguments of an all-reduce."""
    row = {"collective": "allreduce", "dtype": dtype, "in_elements": elements, "out_elements": elements, "group_size": ranks}
    profile.collectives = pl.DataFrame([{"slice": int(profile.links["op"][0]), **row}], schema=profile.collectives.schema)


def test_all_reduce_on_8_gpus_against_the_link() -> None:
    build = Build()
    comm = build.host("record_param_comms", 0, 20)
    build.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 50, 200, launch=build.call(5, 5), op=comm)
    profile = build.profile()
    with_collective(profile, "BFloat16", 5 * 10**6, 8)
    row = only(rows_of(profile).ops)
    size = 1e7  # 5 M elements of 2 bytes
    assert row.bytes == {"hbm": 2 * size, "nvlink": size * 2 * 7 / 8}
    assert row.bound_by == "nvlink"
    assert row.time_bound_us == pytest.approx(size * 1.75 / 100e9 / US)
    assert row.category == "communication"


def test_a_group_beyond_one_link_domain_has_no_link_bound() -> None:
    build = Build()
    comm = build.host("record_param_comms", 0, 20)
    build.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 50, 200, launch=build.call(5, 5), op=comm)
    profile = build.profile()
    with_collective(profile, "Float", 8, 64)
    assert set(only(rows_of(profile).ops).bytes) == {"hbm"}


# Above the roof, caches, estimates


def test_above_the_roof_is_kept_flagged_and_warned_of() -> None:
    build = Build()
    mm(build, 0, 40)
    mm(build, 500, 1)
    got = rows_of(build.profile())
    row = only(got.ops)
    assert row.pct_of_roof == pytest.approx(100 * 40 / 41)
    assert row.flags[0].startswith("above-roof: 1 of 2 calls")
    assert "too short" in row.flags[0]
    assert [warning.code for warning in roof_warnings(got.ops)] == ["above-roof"]


def test_work_of_no_length_is_above_every_roof() -> None:
    build = Build()
    mm(build, 0, 0)
    row = only(rows_of(build.profile()).ops)
    assert (row.pct_of_roof, row.flops_per_s) == (None, None)
    assert row.flags[0].startswith("above-roof")


def test_a_working_set_in_the_l2_is_flagged_and_explains_what_lies_above() -> None:
    build = Build()
    made = op(build, "aten::add", 0, [[10**6], [10**6], []], FP32)
    build.kernel("vectorized_elementwise_kernel<4, CUDAFunctor_add<float>>", 50, 10, launch=build.call(5, 5), op=made)
    h100 = device(model="h100-sxm5-80gb")  # 50 MB of L2
    got = rows_of(build.profile(), h100)
    row = only(got.ops)
    assert row.pct_of_roof == pytest.approx(120)
    assert row.flags == ["above-roof: operands came from a cache, not from memory", "cache: the working set fits the L2"]
    assert roof_warnings(got.ops) == []


def test_winograd_may_do_fewer_products_than_counted() -> None:
    build = Build()
    concrete = ["", "", "[1, 1]", "[1, 1]", "[1, 1]", "1"]
    made = op(build, "aten::cudnn_convolution", 0, [[1, 64, 56, 56], [64, 64, 3, 3]], FP32, concrete=json.dumps(concrete))
    build.kernel("cudnn_volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", 50, 15, launch=build.call(5, 5), op=made)
    got = rows_of(build.profile())  # 0.231 GFLOP at 10 TFLOP/s are 23 us
    assert "Winograd" in only(got.ops).flags[0]
    assert roof_warnings(got.ops) == []


def test_scaled_roofs_are_said() -> None:
    build = Build()
    mm(build, 0, 40)
    assert "scaled: MIG 1g.5gb" in only(rows_of(build.profile(), device(partition="MIG 1g.5gb")).ops).flags


# Roofs


def test_roofs_say_their_source_and_which_are_drawn() -> None:
    build = Build()
    mm(build, 0, 40)
    roofs = {(roof.kind, roof.level or roof.dtype): roof for roof in rows_of(build.profile()).roofs}
    assert roofs["compute", "bf16"].source == "vendor"
    assert roofs["memory", "hbm"].source == "measured"
    assert roofs["compute", "bf16"].drawn
    assert not roofs["compute", "fp32"].drawn  # no op computes there
    assert not roofs["memory", "hbm"].drawn  # the only op is bound by compute
    assert roofs["launch", None].value == LAUNCH_S
    assert roofs["launch", None].source == "derived"
    assert roofs_of(device(), 1.5e-6)[-1] == results.Roof("launch", None, None, 1.5e-6, "s", "measured", drawn=True)


def test_an_unknown_device_has_no_roof_and_rates_all_the_same() -> None:
    build = Build()
    mm(build, 0, 40)
    study = Study(build.profile())
    got = of(study, None)
    row = only(got.ops)
    assert row.flops_per_s == pytest.approx(50e12)
    assert (row.bound_by, row.pct_of_roof, row.time_bound_us, row.headroom_us, row.at_stake_us) == (None,) * 5
    assert got.roofs == []


# Levels


def step_profile() -> Profile:
    """Two whole steps of 200 us, each with a product of 40 us and a copy of 20 us that runs under it for 10."""
    build = Build()
    for number in range(2):
        start = 200 * number
        build.step(number, start, 200)
        made = op(build, "aten::mm", start + 1, [[1000, 1000], [1000, 1000]], dur=10)
        build.kernel(TENSOR_KERNEL, start + 50, 40, launch=build.call(start + 2, 5), op=made)
        call = build.call(start + 20, 5, name="cudaMemcpyAsync")
        build.kernel("Memcpy DtoD (Device -> Device)", start + 80, 20, stream=9, launch=call, kind=Kind.COPY, bytes=1_000_000)
    return build.profile()


def test_the_programs_time_is_that_of_its_steps() -> None:
    study = Study(step_profile())
    got = of(study, device(), study.windows, Scope(step="steady"))
    total, busy, average = got.program
    assert (total.step, total.name, total.time_us) == ("Total", "Program", 400)
    assert total.flops == 4e9
    assert total.flops_per_s == pytest.approx(4e9 / 400e-6)
    assert (busy.step, busy.name, busy.time_us) == ("Total", "Busy", 100)  # 50 to 100, twice
    assert (average.step, average.time_us, average.flops) == ("Average", 200, 2e9)
    assert [(row.step, row.time_us, row.flops) for row in got.steps] == [("0", 200, 2e9), ("1", 200, 2e9)]
    # bounds add up: 20 us for each product, 2 us for each copy (1 MB read and written)
    assert total.time_bound_us == pytest.approx(2 * (20 + 2))
    assert total.pct_of_peak_flops == pytest.approx(100 * 40 / 400)
    assert total.pct_of_peak_bw == pytest.approx(100 * 2 * (6 + 2) / 400)


def test_two_devices_of_one_host_take_its_steps_twice() -> None:
    build = Build()
    build.step(0, 0, 200)
    for gpu in range(2):
        made = op(build, "aten::mm", 10 * gpu + 1, [[1000, 1000], [1000, 1000]], dur=9)
        build.kernel(TENSOR_KERNEL, 50, 40, device=gpu, launch=build.call(10 * gpu + 2, 5), op=made)
    study = Study(build.profile())
    got = of(study, device(), study.windows, Scope(step="steady"))
    step = only(got.steps)
    assert (step.time_us, step.time_per_unit_us, step.flops) == (400, 200, 4e9)
    assert got.program[0].pct_of_peak_flops == pytest.approx(100 * 2 * 20 / 400)


def test_many_launches_bound_a_program_by_their_number() -> None:
    build = Build()
    for at in range(10):
        mm(build, 20 * at, 1, n=8)
    total = rows_of(build.profile()).program[0]
    assert total.bound_by == "launch"
    assert total.time_bound_us == pytest.approx(10 * LAUNCH_S / US)


def test_work_under_other_work_is_not_at_stake() -> None:
    got = of(Study(step_profile()), device())
    product, copy = got.ops
    assert product.headroom_us == pytest.approx(80 - 40)
    assert product.at_stake_us == pytest.approx(40 * 60 / 80)  # 10 of its 40 us run under the copy
    assert copy.at_stake_us == pytest.approx((40 - 4) * 20 / 40)


def test_categories_add_up_their_ops() -> None:
    build = Build()
    mm(build, 0, 40)
    mm(build, 200, 80, n=500)
    study = Study(build.profile())
    row = only(level_records(study.profile, bounded(study.profile, study.work, study.facts, device()), study.facts, device(), "category"))
    assert (row.level, row.name, row.time_us, row.flops, row.calls) == ("category", "gemm", 120, 2e9 + 2 * 500**3, 2)


def test_a_category_is_judged_by_the_part_of_it_that_is_known() -> None:
    build = Build()
    mm(build, 0, 40)
    build.kernel(TENSOR_KERNEL, 200, 60)  # launched by nothing in the file
    study = Study(build.profile())
    row = only(level_records(study.profile, bounded(study.profile, study.work, study.facts, device()), study.facts, device(), "category"))
    assert (row.time_us, row.flops) == (100, 2e9)
    assert row.pct_of_roof == pytest.approx(50)
    assert row.headroom_us == pytest.approx(20)
    assert row.flags == ["partial: costs are known for 40 % of this time; rates and shares are of that part"]


def test_coverage_tells_known_from_unknown_and_why() -> None:
    build = Build()
    mm(build, 0, 40)
    made = op(build, "aten::copy_", 200, [[250_000], [250_000], []], FP32)
    build.kernel("elementwise_kernel<direct_copy_kernel_cuda>", 250, 30, launch=build.call(205, 5), op=made)
    build.kernel("my_kernel", 300, 10, launch=build.call(230, 5), op=build.host("my::op", 225, 20))
    build.kernel("graph_kernel", 320, 12, launch=build.call(260, 5, name="cudaGraphLaunch"))
    build.kernel("early_kernel", 340, 8)
    study = Study(build.profile())
    got = of(study, device())
    assert got.coverage == results.Coverage(40, 30, 30, {"graph": 12, "no shapes": 10, "orphan": 8})
    table = coverage_table(bounded(study.profile, study.work, study.facts, device()).items)
    assert {(origin, known): round(pct) for origin, known, _, pct in table.iter_rows()} == {
        ("op", "modelled"): 40,
        ("op", "bytes only"): 30,
        ("no shapes", "unknown"): 10,
        ("graph", "unknown"): 12,
        ("orphan", "unknown"): 8,
    }


def test_coverage_says_which_option_left_no_ops_or_no_shapes() -> None:
    build = Build()
    build.kernel("my_kernel", 10, 10, launch=build.call(2, 5), op=build.host("aten::mm", 0, 8))
    profile = build.profile()
    missing = of(Study(profile), device()).coverage.missing
    assert missing == "FLOPs and bytes need the ops' shapes: record with record_shapes=True"
    build = Build()
    build.kernel("my_kernel", 10, 10)
    missing = of(Study(build.profile()), device()).coverage.missing
    assert missing is not None
    assert "ProfilerActivity.CPU" in missing
    assert coverage(bounded(profile, Study(profile).work, Study(profile).facts, device()).items, ["nsys"]).missing is None


def test_kernels_without_an_op_are_rows_of_their_own() -> None:
    build = Build()
    build.kernel("early_kernel", 0, 8)
    row = only(rows_of(build.profile()).ops)
    assert (row.level, row.name, row.flops, row.bytes, row.bound_by) == ("kernel", "early_kernel", None, {}, None)


def test_a_region_without_a_cost_keeps_the_categories_of_its_kernels_apart() -> None:
    build = Build()
    region = build.host("Torch-Compiled Region: 0/0", 0, 40)
    build.kernel(TENSOR_KERNEL, 50, 30, launch=build.call(5, 5), op=region)
    build.kernel("triton_poi_fused_add_1", 90, 10, launch=build.call(15, 5), op=region)
    rows = rows_of(build.profile()).ops
    assert [(row.name, row.category, row.time_us) for row in rows] == [
        ("Torch-Compiled Region: 0/0", "gemm", 30),
        ("Torch-Compiled Region: 0/0", "fused_elementwise", 10),
    ]


def test_nothing_at_all() -> None:
    build = Build()
    build.host("aten::mm", 0, 10)
    study = Study(build.profile())
    got = of(study, None, scope=ALL)
    assert (got.ops, got.program, got.steps) == ([], [], [])
    assert got.coverage == results.Coverage(None, None, None)
    assert flops_total(study.bounded().items) is None


# Compiled programs


def hlo_profile() -> Profile:
    """An instruction that launches two kernels, executed twice; a container; the two ends of an asynchronous copy."""
    build = Build()
    for start in (0, 100):
        build.kernel("im2col", start, 10)
        build.kernel("Cijk_Ailk_Bljk_BBS_BH_MT64x64x64_MI16x16x16x1_SN", start + 10, 30)
    build.kernel("while.1", 200, 5)
    build.kernel("copy-start.1", 210, 1)
    build.kernel("copy-done.1", 220, 10)
    profile = build.profile()
    name = profile.names["text"].gather(profile.slices["name"]).to_list()
    of = {"im2col": 0, "while.1": 1, "copy-start.1": 2, "copy-done.1": 3}
    profile.hlo = pl.DataFrame({"slice": range(len(name)), "op": [of.get(text, 0) for text in name]}, schema=profile.hlo.schema)
    rows = [
        {"name": "cudnn-conv.1", "category": "custom-call", "framework_op": "jit(f)/conv", "flops": 1e9, "model_flops": 1e9, "bytes": 1e6},
        {"name": "while.1", "category": "while", "flops": 9e9, "model_flops": 9e9, "bytes": 9e6},
        {"name": "copy-start.1", "category": "copy-start", "flops": 0.0, "bytes": 2e6},
        {"name": "copy-done.1", "category": "copy-done", "flops": 0.0, "bytes": 2e6},
    ]
    profile.hlo_ops = pl.DataFrame([{**row, "flops_from": "hlo"} for row in rows], schema=profile.hlo_ops.schema)
    return profile


def test_an_instruction_counts_once_an_execution_however_many_kernels_it_launches() -> None:
    got = {row.name: row for row in rows_of(hlo_profile()).ops}
    conv = got["cudnn-conv.1"]
    assert (conv.calls, conv.flops, conv.bytes, conv.time_us) == (2, 2e9, {"hbm": 2e6}, 80)
    assert (conv.category, conv.flops_from) == ("conv", "hlo")


def test_containers_and_starts_of_asynchronous_ops_have_no_costs() -> None:
    got = {row.name: row for row in rows_of(hlo_profile()).ops}
    assert (got["while.1"].flops, got["while.1"].bytes, got["while.1"].category) == (None, {}, "control")
    assert got["copy-start.1"].bytes == {}
    assert got["copy-done.1"].bytes == {"hbm": 2e6}


def test_infeed_can_be_left_out() -> None:
    build = Build()
    build.kernel("infeed.1", 0, 10)
    mm(build, 100, 40)
    with_it, without = (rows_of(build.profile(), scope=Scope(infeed=infeed)).ops for infeed in (True, False))
    assert len(with_it) == 2
    assert only(without).name == "aten::mm"


# Utilisation


def work_in(profile: Profile) -> WorkSums:
    study = Study(profile)
    return work_of(bounded(profile, study.work, study.facts, device()).items)


def test_mfu_of_a_product_over_a_known_time() -> None:
    build = Build()
    mm(build, 0, 40)
    got = mfu(work_in(build.profile()), 100e-6, 2, 100e12)
    assert got.mfu_pct == got.hfu_pct == pytest.approx(100 * 2e9 / (100e-6 * 2 * 100e12))
    assert not got.at_least


def test_recomputed_forward_work_counts_for_hfu_alone() -> None:
    build = Build()
    mm(build, 0, 40)
    build.host("autograd::engine::evaluate_function: CheckpointFunctionBackward", 200, 60)
    build.host("aten::linear", 205, 40)
    again = op(build, "aten::mm", 210, [[1000, 1000], [1000, 1000]], dur=20)
    build.kernel(TENSOR_KERNEL, 300, 40, launch=build.call(215, 5), op=again)
    got = mfu(work_in(build.profile()), 100e-6, 1, 100e12)
    assert got.mfu_pct == pytest.approx(20)
    assert got.hfu_pct == pytest.approx(40)


def test_a_backward_product_is_no_recomputation() -> None:
    build = Build()
    build.host("autograd::engine::evaluate_function: MmBackward0", 0, 60)
    again = op(build, "aten::mm", 10, [[1000, 1000], [1000, 1000]], dur=20)
    build.kernel(TENSOR_KERNEL, 100, 40, launch=build.call(15, 5), op=again)
    assert mfu(work_in(build.profile()), 100e-6, 1, 100e12).mfu_pct == pytest.approx(20)


def test_mfu_is_a_lower_limit_where_products_are_unknown_and_none_where_all_are() -> None:
    build = Build()
    mm(build, 0, 40)
    build.kernel(TENSOR_KERNEL, 200, 10)
    assert mfu(work_in(build.profile()), 100e-6, 1, 100e12).at_least
    build = Build()
    build.kernel(TENSOR_KERNEL, 0, 10)
    assert mfu(work_in(build.profile()), 100e-6, 1, 100e12).mfu_pct is None
    assert mfu(work_in(build.profile()), 100e-6, 1, None).mfu_pct is None


def test_work_is_told_apart_by_step_and_no_work_is_none() -> None:
    items = pl.DataFrame(
        {
            "step": [2, 0, None, 2],
            "device": [1, 0, 0, 0],
            "category": [int(Category.GEMM), int(Category.ATTENTION), int(Category.GEMM), int(Category.COPY)],
            "time_ps": [30, 50, 1000, 7],
            "flops": [4.0, None, 100.0, None],
            "model_flops": [3.0, None, 100.0, None],
            "whole_flops": [3.5, None, 100.0, None],
            "weight_read": [8.0, None, 100.0, None],
            "kv_read": [None, 16.0, None, None],
        },
        schema_overrides={"step": pl.UInt32, "device": pl.UInt8, "category": pl.UInt8},
    )
    first, none, last = work_by_step(items, 3)
    assert first == WorkSums(
        1, 50, 0, 0, 0, 0, 0, attention_ps=50, attention_known_ps=50, products_ps=0, products_known_ps=0, weight_read=0, kv_read=16
    )
    assert none == WorkSums(*[0] * 13)
    assert last == WorkSums(2, 30, 30, 1, 4, 3, 3.5, 0, 0, products_ps=30, products_known_ps=30, weight_read=8, kv_read=0)
    assert mfu(none, 1.0, 1, 1e12).mfu_pct is None


def test_frames_follow_their_schemas() -> None:
    study = Study(step_profile())
    found = bounded(study.profile, study.work, study.facts, device()).costed
    assert found.items.schema == ITEMS
    assert found.pieces.schema == PIECES
    assert found.pieces["share"].sum() == found.items.height
