"""Findings about the device's own work: each fires on a loop that has the fault and is silent on the same loop without it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from roofterm_parsers.profile import Kind, Profile
from tests.build import Build
from tests.unit.made_steps import GEMM, STEP, Piece, ahead, findings, healthy, launched, with_flags

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int)"
MUL = "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<c10::BFloat16, MulFunctor<float> > >(int)"
GELU = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&)>(int)"
SOFTMAX = "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16, float, c10::BFloat16>(c10::BFloat16*)"
SGEMM = "ampere_sgemm_128x64_tn"


def lengths(pieces: Iterable[Piece]) -> float:
    return sum(dur for _, _, dur in pieces)


def test_products_on_the_vector_units_are_found():
    sick = [(SGEMM, "aten::mm", 300.0)] * 10 + [(GEMM, "aten::mm", 300.0)] * 10
    found = findings(ahead(sick))["gemms-off-tensor-cores"]
    # 3,000 us on the vector units of an H100 (66.9 TFLOP/s in fp32) that has 989.4 TFLOP/s on its tensor cores.
    assert found.evidence["off_tensor_cores_us"] == pytest.approx(3000)
    assert found.time_at_stake_us == pytest.approx(3000 * (1 - 66.9 / 989.4), rel=1e-3)
    assert found.share_of_step_pct == pytest.approx(100 * 3000 * (1 - 66.9 / 989.4) / lengths(sick), rel=5e-3)
    assert "TF32" in found.advice


@pytest.mark.parametrize(
    ("name", "op"),
    [(GEMM, "aten::mm"), ("void cublasLt::splitKreduce_kernel<32, 16, int, float>", "aten::mm"), ("gemv2T_kernel_val", "aten::mv")],
)
def test_products_on_tensor_cores_and_helpers_are_no_fault(name: str, op: str):
    assert "gemms-off-tensor-cores" not in findings(ahead([(name, op, 300.0)] * 20))


def test_a_device_without_tensor_cores_is_not_blamed():
    pieces = [("maxwell_sgemm_128x64_tn", "aten::mm", 300.0)] * 20
    assert "gemms-off-tensor-cores" not in findings(ahead(pieces, build=Build(device_name="Quadro GP100")))


def test_time_of_the_device_is_not_at_stake_where_it_waits_for_the_host():
    """The same products, but each is launched only when the one before has ended: faster ones would only lengthen the gaps."""
    build = Build()
    for number in range(2):
        start = number * 8000.0
        build.step(number, start, 8000)
        for row in range(20):
            launched(build, SGEMM, start + row * 400, start + row * 400 + 6, 300)
    found = findings(build.profile())["gemms-off-tensor-cores"]
    assert found.evidence["device_time_saved_us"] == pytest.approx(20 * 300 * (1 - 66.9 / 989.4), rel=1e-3)
    assert found.time_at_stake_us == 0
    assert found.severity == "info"
    assert "only when the device no longer waits for the host" in found.advice


def products(k: int, dur: float = 500.0) -> Profile:
    shape = {"dims": f"[[4096,{k}],[{k},4096]]", "types": '["c10::BFloat16","c10::BFloat16"]'}
    return ahead([(GEMM, "aten::mm", dur)] * 10, shape=shape)


def test_misaligned_products_are_held_against_half_of_the_roof():
    # 2 * 4096 * 4097 * 4096 FLOPs at 989.4 TFLOP/s take 138.94 us of 500: 27.79 % of the roof; at half of it 277.9 us.
    found = findings(products(4097))["misaligned-gemms"]
    bound = 2 * 4096 * 4097 * 4096 / 989.4e12 * 1e6
    assert found.time_at_stake_us == pytest.approx(10 * (500 - 2 * bound), rel=2e-3)
    assert found.evidence["worst_shape"] == "4096 x 4097 x 4096"
    assert "misaligned-gemms" not in findings(products(4096))
    assert "misaligned-gemms" not in findings(products(4097, dur=200.0))  # reaches more than half of the roof as it is


def test_underfilled_kernels_are_those_with_fewer_blocks_than_units():
    sick = ahead(
        [(ADD, "aten::add", 330.0), (GEMM, "aten::mm", 330.0)] * 10, grid_x=33, grid_y=1, grid_z=1, block_x=256, block_y=1, block_z=1
    )
    # 33 blocks on 132 units: three quarters of the time of all kernels.
    found = findings(sick)["underfilled-kernels"]
    assert found.time_at_stake_us == pytest.approx(0.75 * 20 * 330, rel=1e-3)
    full = ahead([(GEMM, "aten::mm", 330.0)] * 20, grid_x=132, grid_y=1, grid_z=1, block_x=256, block_y=1, block_z=1)
    assert "underfilled-kernels" not in findings(full)


def test_the_last_wave_counts_where_registers_tell_how_many_blocks_fit():
    def waves(registers: int | None) -> Profile:
        grid: dict[str, Any] = {"grid_x": 300, "grid_y": 1, "grid_z": 1, "block_x": 512, "block_y": 1, "block_z": 1}
        return ahead([(GEMM, "aten::mm", 330.0)] * 20, registers=registers, **grid)

    # 512 threads of 64 registers take half of a unit's 65,536: two blocks fit on each of 132 units. 300 blocks take two waves of 264.
    found = findings(waves(64))["underfilled-kernels"]
    assert found.evidence["worst_waves"] == pytest.approx(300 / 264)
    assert found.time_at_stake_us == pytest.approx(20 * 330 * (1 - 300 / 528), rel=1e-3)
    assert "underfilled-kernels" not in findings(waves(32))  # four blocks fit, so all run at once
    assert "underfilled-kernels" not in findings(waves(None))


def test_chains_of_memory_bound_kernels_are_found():
    sick = [(GEMM, "aten::mm", 200.0), (ADD, "aten::add", 100.0), (MUL, "aten::mul", 100.0), (GELU, "aten::gelu", 100.0)] * 8
    found = findings(ahead(sick))["memory-bound-chains"]
    # Of each chain of three kernels the longest remains: 200 of 300 us, eight times.
    assert found.time_at_stake_us == pytest.approx(8 * 200)
    assert found.evidence["chains"] == 8


@pytest.mark.parametrize(
    "pieces",
    [
        [(GEMM, "aten::mm", 200.0), (ADD, "aten::add", 100.0)] * 8,  # single ones
        [(GEMM, "aten::mm", 200.0), ("triton_poi_fused_add_mul_0", "aten::add", 100.0), ("triton_poi_fused_gelu_1", "aten::gelu", 100.0)]
        * 8,
        [(GEMM, "aten::mm", 200.0), (ADD, "aten::add", 3.0), (MUL, "aten::mul", 3.0)] * 8,  # bound by their launch
        [(GEMM, "aten::mm", 200.0), (ADD, "aten::add", 100.0), (MUL, "aten::mul", 8.0)] * 8,  # of different sizes
    ],
)
def test_what_is_no_chain(pieces: list[Piece]):
    assert "memory-bound-chains" not in findings(ahead(pieces))


def test_attention_made_of_products_claims_what_stands_between_them():
    sick = [
        (GEMM, "aten::bmm", 100.0),
        (MUL, "aten::mul", 50.0),
        (SOFTMAX, "aten::_softmax", 200.0),
        (GEMM, "aten::bmm", 100.0),
        (GEMM, "aten::mm", 100.0),
    ] * 6
    found = findings(ahead(sick))
    assert found["attention-not-flash"].time_at_stake_us == pytest.approx(6 * 250)
    assert found["attention-not-flash"].evidence["attentions"] == 6
    assert "memory-bound-chains" not in found  # scale and softmax are claimed once


def test_a_softmax_at_the_end_and_fused_attention_are_no_such_attention():
    loss = [(GEMM, "aten::mm", 100.0), (SOFTMAX, "aten::_log_softmax", 200.0), (GEMM, "aten::mm", 100.0)] * 6
    assert "attention-not-flash" not in findings(ahead(loss))
    flash = [("void pytorch_flash::flash_fwd_kernel<64, 128>", "aten::_flash_attention_forward", 300.0)] * 6
    assert "attention-not-flash" not in findings(ahead(flash))


def test_layout_changes_are_their_time_alone():
    name = "void cudnn::ops::nchwToNhwcKernel<__half, __half, float, false, true>"
    found = findings(ahead([(GEMM, "aten::mm", 300.0), (name, "aten::cudnn_convolution", 50.0)] * 10))["layout-changes"]
    assert found.time_at_stake_us == pytest.approx(500)
    assert "layout-changes" not in findings(ahead([(GEMM, "aten::mm", 300.0)] * 10))


def optimizing(kernel: str, gap: float) -> Profile:
    """A step of 5 ms of products, then 60 updates of 5 us, each launched `gap` us after the one before has ended."""
    build = Build()
    length = 5050 + 60 * (5 + gap) + 20
    for number in range(3):
        start = number * length
        build.step(number, start, length)
        for row in range(25):
            launched(build, GEMM, start + 9 * row, start + 50 + 200 * row, 200)
        build.host("Optimizer.step#SGD.step", start + 5040, 60 * (5 + gap) + 20, Kind.ANNOTATION)
        for row in range(60):
            at = start + 5050 + gap + row * (5 + gap)
            build.kernel(kernel, at, 5, launch=build.call(at - 4, 4))
    return build.profile()


def test_an_optimizer_that_loops_claims_the_gaps_and_a_third_of_its_time():
    found = findings(optimizing(ADD, gap=20))["optimizer-unfused"]
    # The host launches in the gaps, so the updates' own time is not waited for: 60 gaps of 20 us.
    assert found.time_at_stake_us == pytest.approx(60 * 20)
    assert found.evidence["kernels"] == 60
    fused = "void at::native::multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata<4>, FusedAdamMathFunctor<float, 4> >"
    assert "optimizer-unfused" not in findings(optimizing(fused, gap=20))
    assert "optimizer-unfused" not in findings(healthy().profile())


def varying(last: float) -> Profile:
    build = Build()
    host = at = 0.0
    for number, dur in enumerate([100.0, 100.0, 100.0, last]):
        build.step(number, host, 270)
        for _ in range(30):
            launched(build, GEMM, host, at + 6, dur, grid_x=132, grid_y=1, grid_z=1, block_x=384)
            host, at = host + 9, at + dur
    return build.profile()


def test_kernels_that_vary_over_the_steps_are_found():
    found = findings(varying(140.0))["kernel-variance"]
    # 30 kernels of 140 us in one of four steps against a median of 100: 1,200 us, 300 a step.
    assert found.time_at_stake_us == pytest.approx(300)
    assert found.evidence["slowest_step"] == "ProfilerStep#3"
    assert "kernel-variance" not in findings(varying(104.0))


HTOD, PINNED, DTOD = "Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pinned -> Device)", "Memcpy DtoD (Device -> Device)"


def copying(name: str, dur: float, count: int, size: int) -> Profile:
    """Steps that begin with copies, alone on the device, and go on with 6 ms of products."""
    return ahead([(name, "aten::copy_", dur)] * count + [(GEMM, "aten::mm", 300.0)] * 20, bytes=size)


def test_pageable_and_small_copies_are_found():
    found = findings(copying(HTOD, 500, 1, 1 << 20))["copies"]
    assert found.time_at_stake_us == pytest.approx(500)
    assert "pinned" in found.advice
    # 40 copies of 4 us. In the first step the device is not yet behind and waits for each launch: nothing is won there.
    found = findings(copying(DTOD, 4, 40, 512))["copies"]
    assert found.time_at_stake_us == pytest.approx(160 * 2 / 3)
    assert found.evidence["small"] == 40
    assert "Join" in found.advice


@pytest.mark.parametrize(("name", "dur", "count", "size"), [(PINNED, 200, 1, 1 << 20), (DTOD, 4, 10, 512), (HTOD, 20, 1, 4096)])
def test_pinned_few_and_short_copies_are_no_fault(name: str, dur: float, count: int, size: int):
    assert "copies" not in findings(copying(name, dur, count, size))


def test_a_copy_beside_compute_is_no_fault():
    build = healthy()
    for number in range(4):
        call = build.call(number * STEP + 400, 2, "cudaMemcpyAsync")
        build.kernel(HTOD, number * STEP + 1000, 5000, stream=9, launch=call, kind=Kind.COPY, bytes=1 << 24)
    assert "copies" not in findings(build.profile())


def biased(same_op: bool) -> Profile:
    build = Build()
    host = at = 0.0
    for number in range(3):
        build.step(number, host, 12 * 30)
        for _ in range(12):
            op = build.host("aten::addmm", host, 12, external_id=1)
            other = op if same_op else build.host("aten::copy_", host + 14, 8, external_id=2)
            begin = host + (1 if same_op else 15)
            build.kernel(DTOD, at + 30, 40, launch=build.call(begin, 2, "cudaMemcpyAsync"), op=other, kind=Kind.COPY, bytes=1 << 24)
            build.kernel(GEMM, at + 70, 360, launch=build.call(host + 5, 3), op=op)
            host, at = host + 30, at + 400
    return build.profile()


def test_a_bias_copy_before_each_gemm_is_found():
    found = findings(biased(same_op=True))["dtod-before-gemm"]
    assert found.time_at_stake_us == pytest.approx(12 * 40)
    assert found.evidence["op"] == "aten::addmm"
    assert "dtod-before-gemm" not in findings(biased(same_op=False))


def test_findings_of_the_device_keep_their_severity_under_the_profilers_flags():
    pieces = [(GEMM, "aten::mm", 200.0), (ADD, "aten::add", 100.0), (MUL, "aten::mul", 100.0)] * 8
    assert findings(with_flags(ahead(pieces), with_stack=1))["memory-bound-chains"].severity == "high"


def test_work_launched_before_the_window_counts_for_the_step_in_which_it_runs():
    build = Build()
    for row in range(20):
        build.kernel(SGEMM, 10 + row * 100, 100)
    host, at = 0.0, 2010.0
    build.step(0, 0, 300)
    for _ in range(20):
        launched(build, GEMM, host, at, 100)
        host, at = host + 9, at + 100
    build.step(1, 300, 300)
    for _ in range(40):
        launched(build, GEMM, host + 120, at, 100)
        host, at = host + 5, at + 100
    # The first window starts when the orphans have ended, so it holds the 20 products of the tensor cores alone.
    assert "gemms-off-tensor-cores" not in findings(build.profile())


def test_a_handful_of_kernels_is_too_few_to_speak_of():
    assert "gemms-off-tensor-cores" not in findings(ahead([(SGEMM, "aten::mm", 300.0)] * 3, steps=3))
    assert "gemms-off-tensor-cores" in findings(ahead([(SGEMM, "aten::mm", 300.0)] * 4, steps=3))
