"""The reading table of the torch.profiler guide, row by row, on slices made by hand."""

from __future__ import annotations

from roofterm.analysis.hints import hints
from roofterm.analysis.study import Study
from roofterm_parsers.profile import Kind, Profile
from tests.build import Build
from tests.unit.made_steps import GEMM


def of(profile: Profile, name: str) -> list[str]:
    """Hints of the first slice of a name."""
    texts = profile.names["text"].gather(profile.slices["name"])
    return hints(Study(profile), int((texts == name).arg_true()[0]))


def one_op(op_us: float, kernel_us: float) -> Profile:
    build = Build()
    op = build.host("aten::add", 0, op_us, external_id=1)
    build.kernel("add_kernel", op_us + 5, kernel_us, launch=build.call(op_us - 5, 4), op=op)
    return build.profile()


def test_self_cpu_far_above_self_cuda_is_overhead_bound():
    profile = one_op(op_us=100, kernel_us=4)
    (hint,) = of(profile, "aten::add")
    assert hint.startswith("Overhead-bound: 100.0 us on the host for 4.000 us on the device (25.00 times)")
    assert of(profile, "add_kernel") == [hint]
    assert of(one_op(op_us=100, kernel_us=80), "aten::add") == []


def test_waiting_for_the_device_is_no_overhead():
    build = Build()
    op = build.host("aten::item", 0, 5000, external_id=1)
    build.kernel("Memcpy DtoH (Device -> Pageable)", 4980, 2, launch=build.call(5, 4990, "cudaMemcpyAsync"), op=op, kind=Kind.COPY, bytes=4)
    assert of(build.profile(), "aten::item") == []


def queried(query: bool) -> Profile:
    build = Build()
    op = build.host("aten::mm", 0, 40, external_id=1)
    if query:
        build.call(10, 2, "cudaOccupancyMaxActiveBlocksPerMultiprocessor")
    build.kernel(GEMM, 50, 30, launch=build.call(20, 5), op=op)
    other = build.host("aten::add", 45, 10, external_id=2)
    build.kernel("add_kernel", 90, 30, launch=build.call(47, 5), op=other)
    return build.profile()


def test_an_occupancy_query_before_a_launch_tells_of_a_heavy_adaptive_kernel():
    for name in ("aten::mm", "cudaLaunchKernel", GEMM, "cudaOccupancyMaxActiveBlocksPerMultiprocessor"):
        (hint,) = of(queried(True), name)
        assert "heavy kernel (GEMM, convolution)" in hint
        assert "no fault" in hint
    assert of(queried(False), GEMM) == []
    assert of(queried(True), "add_kernel") == []


def multiplied(inner: str) -> Profile:
    build = Build()
    build.host("aten::matmul", 0, 60, external_id=1)
    op = build.host(inner, 10, 40, external_id=2)
    build.kernel(GEMM, 80, 50, launch=build.call(30, 5), op=op)
    return build.profile()


def test_matmul_over_bmm_is_a_batched_product():
    for name in ("aten::matmul", "aten::bmm", GEMM):
        (hint,) = of(multiplied("aten::bmm"), name)
        assert "three or more dimensions" in hint
    for name in ("aten::matmul", "aten::mm", GEMM):
        assert of(multiplied("aten::mm"), name) == []


def test_work_of_a_compiled_region_is_told():
    build = Build()
    build.host("Torch-Compiled Region: 1/0", 0, 60, external_id=1)
    op = build.host("triton_poi_fused_add_cos_sin_0", 10, 40, external_id=2)
    build.kernel("triton_poi_fused_add_cos_sin_0", 80, 50, launch=build.call(30, 5, "cuLaunchKernel"), op=op)
    outside = build.host("aten::add", 70, 10, external_id=3)
    build.kernel("add_kernel", 130, 50, launch=build.call(72, 5), op=outside)
    profile = build.profile()
    (hint,) = of(profile, "Torch-Compiled Region: 1/0")
    assert "torch.compile optimised (frame and version 1/0)" in hint
    kernel = int(profile.links["work"][0])
    assert hints(Study(profile), kernel) == [hint]
    assert of(profile, "add_kernel") == []


def copied(same_op: bool) -> Profile:
    build = Build()
    op = build.host("aten::addmm", 0, 60, external_id=1)
    other = op if same_op else build.host("aten::copy_", 70, 20, external_id=2)
    copy = "Memcpy DtoD (Device -> Device)"
    build.kernel(copy, 100, 20, launch=build.call(10 if same_op else 75, 5, "cudaMemcpyAsync"), op=other, kind=Kind.COPY, bytes=64)
    build.kernel(GEMM, 120, 50, launch=build.call(30, 5), op=op)
    return build.profile()


def test_a_copy_within_the_device_before_a_gemm_is_the_bias_of_addmm():
    for name in ("Memcpy DtoD (Device -> Device)", GEMM):
        (hint,) = of(copied(same_op=True), name)
        assert "bias" in hint
        assert "addmm" in hint
        assert of(copied(same_op=False), name) == []


def test_slices_that_the_table_does_not_speak_of_have_no_hints():
    build = Build()
    build.step(0, 0, 1000)
    build.host("forward", 10, 900, Kind.ANNOTATION)
    build.kernel(GEMM, 900, 1, launch=build.call(20, 5))
    profile = build.profile()
    assert of(profile, "ProfilerStep#0") == []
    assert of(profile, "forward") == []
    assert of(profile, GEMM) == []
