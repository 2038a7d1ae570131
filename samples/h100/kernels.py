"""What work costs on the card: each function gives the kernel that a library would launch for it, with its length.

Lengths follow from the card's roofs: GEMMs reach 60 to 75 % of the bf16 peak, attention 45 to 55 %, kernels that stream
memory 70 to 90 % of the bandwidth, and nothing is shorter than two microseconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

from h100.card import BANDWIDTH, PEAK_BF16, UNITS

FLOOR_NS = 2000
"""what the smallest kernel takes"""


@dataclass(frozen=True, slots=True)
class Kernel:
    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    shared_bytes: int
    dur_ns: int
    flops: int = 0
    """executed: 2 per multiply-add, visible pairs only"""
    role: str = "other"
    """gemm, attention forward, attention backward, collective or other"""
    by_driver: bool = False
    """launched by cuLaunchKernelEx and not by cudaLaunchKernel"""


def gemm(rng: Random, m: int, n: int, k: int, layout: str) -> Kernel:
    """bf16 GEMM [m, k] x [k, n] as cuBLASLt runs it; layout is the last part of the kernel's name."""
    flops = 2 * m * n * k
    wide = n >= 4096 and m >= 4096
    tile = "128x256_64x4_1x2_h_bz_coopA" if wide else "192x128_64x5_2x1_v_bz_coopB"
    share = (0.735 if k >= 8192 else 0.705) if wide else 0.62
    return Kernel(
        name=f"nvjet_tst_{tile}_{layout}",
        grid=(UNITS, 1, 1),
        block=(384, 1, 1),
        registers=168,
        shared_bytes=219136,
        dur_ns=_jitter(rng, flops / (share * PEAK_BF16), 0.02),
        flops=flops,
        role="gemm",
        by_driver=True,
    )


def attention_forward(rng: Random, batch: int, heads: int, length: int, width: int) -> Kernel:
    """Causal flash attention: length (length + 1) / 2 pairs, 4 FLOPs a pair and element of a head."""
    flops = 4 * batch * heads * width * (length * (length + 1) // 2)
    traits = "128, 128, 64, 4, false, false, cutlass::bfloat16_t"
    return Kernel(
        name=f"void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<{traits}, "
        f"pytorch_flash::Flash_kernel_traits<128, 128, 64, 4, cutlass::bfloat16_t> >, false, true, false, false, true, true, false, "
        "false>(pytorch_flash::Flash_fwd_params)",
        grid=(math.ceil(length / 128), batch, heads),
        block=(128, 1, 1),
        registers=255,
        shared_bytes=65536,
        dur_ns=_jitter(rng, flops / (0.52 * PEAK_BF16), 0.02),
        flops=flops,
        role="attention forward",
    )


def attention_backward(rng: Random, batch: int, heads: int, length: int, width: int) -> Kernel:
    """Five products where the forward has two: 2.5 times its FLOPs."""
    flops = 10 * batch * heads * width * (length * (length + 1) // 2)
    traits = "128, 64, 128, 8, 2, 4, 2, false, false, cutlass::bfloat16_t"
    return Kernel(
        name="void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<pytorch_flash::Flash_bwd_kernel_traits<"
        f"{traits}, pytorch_flash::Flash_kernel_traits<128, 64, 128, 8, cutlass::bfloat16_t> >, false, true, false, false, true, true, "
        "false>(pytorch_flash::Flash_bwd_params)",
        grid=(math.ceil(length / 128), batch, heads),
        block=(256, 1, 1),
        registers=255,
        shared_bytes=147456,
        dur_ns=_jitter(rng, flops / (0.53 * PEAK_BF16), 0.02),
        flops=flops,
        role="attention backward",
    )


def streaming(rng: Random, name: str, elements: int, moved_bytes: int, share: float = 0.86, registers: int = 28) -> Kernel:
    """A kernel that reads and writes memory once, one thread for four elements."""
    return Kernel(
        name=name,
        grid=(max(1, math.ceil(elements / 512)), 1, 1),
        block=(128, 1, 1),
        registers=registers,
        shared_bytes=0,
        dur_ns=max(FLOOR_NS + int(800 * rng.random()), _jitter(rng, moved_bytes / (share * BANDWIDTH), 0.03)),
    )


def by_rows(rng: Random, name: str, rows: int, moved_bytes: int, share: float = 0.8, threads: int = 512, shared_bytes: int = 256) -> Kernel:
    """A kernel with one block for each row: norms, softmax, gathers."""
    return Kernel(
        name=name,
        grid=(rows, 1, 1),
        block=(threads, 1, 1),
        registers=40,
        shared_bytes=shared_bytes,
        dur_ns=max(FLOOR_NS + int(800 * rng.random()), _jitter(rng, moved_bytes / (share * BANDWIDTH), 0.03)),
    )


def small(rng: Random, name: str, blocks: int = 1, threads: int = 128) -> Kernel:
    """A kernel that is over before it has begun: 2 to 4 us whatever it does."""
    return Kernel(name, (blocks, 1, 1), (threads, 1, 1), 24, 0, FLOOR_NS + int(2000 * rng.random()))


def over_tensor_lists(rng: Random, name: str, elements: int, bytes_per_element: int, share: float = 0.85) -> list[Kernel]:
    """`multi_tensor_apply`: 65,536 elements a block, at most 320 blocks a launch."""
    blocks = math.ceil(elements / 65536)
    launches = []
    for first in range(0, blocks, 320):
        taken = min(320, blocks - first)
        length = taken * 65536 * bytes_per_element / (share * BANDWIDTH)
        launches.append(Kernel(name, (taken, 1, 1), (512, 1, 1), 48, 0, max(FLOOR_NS, _jitter(rng, length, 0.03))))
    return launches


def all_reduce_ns(message_bytes: int, ranks: int) -> int:
    """Length of an all-reduce once all have come: 350 GB/s of bus bandwidth, whose factor is 2 (n - 1) / n, and 18 us to start."""
    return 18_000 + int(message_bytes * 2 * (ranks - 1) / ranks / 350e9 * 1e9)


def _jitter(rng: Random, seconds: float, share: float) -> int:
    return int(seconds * 1e9 * (1 + share * (2 * rng.random() - 1)))
