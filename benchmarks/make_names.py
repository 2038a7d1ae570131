"""Write a Kineto trace in which no two kernels have the same name, as autotuning, code generators and long template lists bring about.

    python -m benchmarks.make_names KERNELS OUT.json.gz

About 310 bytes a kernel and its launch. The same bytes each time.
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Iterator
from pathlib import Path

FAMILIES = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, {a}ul> >"
    "(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, {a}ul>)",
    "_ZN2at6native27unrolled_elementwise_kernelIZZZNS0_19silu_forward_kernelERNS_18TensorIteratorBaseEENKUlvE_clEvE{a}EEviT_",
    "triton_poi_fused_add_mul_silu_{a}",
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_{a}x128_32x5_tn_align8>(cutlass_80_params_{a})",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x{a}x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
    "Cijk_Alik_Bljk_BBS_BH_MT128x128x{a}_MI32x32x8x1_SN_1LDSB1_APM1",
    "void reduce_kernel<512, ReduceOp<float, MeanOps<float, float, float, {a}>, unsigned int, float, 4> >(ReduceOp<float>)",
    "ampere_bf16_s16816gemm_bf16_128x{a}_ldg8_f2f_stages_32x5_tn",
)
"""{a} makes the names differ."""

KERNELS_AN_OP = 10
HEAD = (
    '{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85017624576, '
    '"computeMajor": 9, "computeMinor": 0, "numSms": 132}], "displayTimeUnit": "ms", "baseTimeNanoseconds": 1790857026000000000, '
    '"traceEvents": [\n'
)


def blocks(kernels: int) -> Iterator[str]:
    """Pieces of a trace: ops of ten launches each, and what they launched, one kernel after the other."""
    yield HEAD
    for op in range(0, kernels, KERNELS_AN_OP):
        start = 10.0 * op
        yield (
            f'{{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 7, "tid": 7, "ts": {start:.3f}, "dur": 99.000, '
            f'"args": {{"External id": {op + 1}, "Input Dims": [[4096, 1024], [4096, 1024], []], '
            f'"Input type": ["c10::BFloat16", "c10::BFloat16", "Scalar"]}}}},\n'
        )
        for at in range(op, min(op + KERNELS_AN_OP, kernels)):
            name, took = FAMILIES[at % len(FAMILIES)].format(a=at), 5 + at % 4
            yield (
                f'{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": {10 * at + 1}.000, '
                f'"dur": 4.000, "args": {{"External id": {op + 1}, "correlation": {at + 1}}}}},\n'
                f'{{"ph": "X", "cat": "kernel", "name": "{name}", "pid": 0, "tid": 7, "ts": {10 * at + 8}.000, "dur": {took}.000, '
                f'"args": {{"External id": {op + 1}, "device": 0, "stream": 7, "correlation": {at + 1}, "grid": [{at % 300 + 1}, 1, 1], '
                f'"block": [128, 1, 1]}}}},\n'
            )
    yield '{"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "ts": 0.000, "args": {"name": "python3"}}\n]}\n'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", type=int)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    with args.out.open("wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=3, mtime=0) as packed:
        for block in blocks(args.kernels):
            packed.write(block.encode())


if __name__ == "__main__":
    main()
