"""Write the synthetic JAX-on-GPU sample and the figures that must be found in it. The same files each time.

python make_xplane_gpu.py            # beside this script
python make_xplane_gpu.py FOLDER     # elsewhere

Five steps of one decoder layer, bf16, 4,096 tokens, data parallel, written as if from an H100; no H100 was measured. The work is
of the kinds that XLA makes on GPUs: a cuBLASLt call and a legacy cuBLAS call, a Triton GEMM fusion, cuDNN attention, loop and
input fusions, an all-reduce by NCCL on a stream of its own, the batch's copy. The HLO of the program lies in the file; what the
calls compute follows from their shapes alone. The third step waits 20 ms for its batch.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.xspace import Hlo, Plane, Ref, Signed, dot_dims, metadata_plane, space

NAME = "decoder_gpu_synthetic"
PEAK, BANDWIDTH = 989.4e12, 3.35232e12
TOKENS, WIDTH, HIDDEN, HEADS = 4096, 4096, 14336, 32
HEAD = WIDTH // HEADS
STEPS, LATE_STEP, PROGRAM = 5, 2, 41
START_NS = 1_761_000_000_000_000_000
US, BF16 = 1_000_000, 2
MODULE = "jit_train_step"


@dataclass(frozen=True, slots=True)
class Kernel:
    """A launch of an instruction. Costs are the instruction's; where it launches several kernels, they share the time."""

    op: str
    names: tuple[str, ...]
    framework: str
    grid: tuple[int, int, int]
    block: int
    flops: int
    bytes: int
    registers: int = 168
    shared: int = 0
    stream: int = 21


def matrix(rows: int, columns: int) -> str:
    return f"bf16[{rows},{columns}]"


def gemm_config() -> bytes:
    numbers = {"lhs_contracting_dimensions": ["1"], "rhs_contracting_dimensions": ["0"]}
    return json.dumps({"gemm_backend_config": {"dot_dimension_numbers": numbers, "beta": 0, "alpha_real": 1}}).encode()


def attention_config() -> bytes:
    numbers = {"lhs_contracting_dimensions": ["3"], "rhs_contracting_dimensions": ["3"]}
    scores = {"element_type": "BF16", "dimensions": ["1", str(HEADS), str(TOKENS), str(TOKENS)]}
    config = {"bmm1_dot_dimension_numbers": numbers, "intermediate_tensor_shape": scores, "mask_type": "CAUSAL"}
    return json.dumps({"cudnn_fmha_backend_config": config}).encode()


def program() -> Hlo:
    hlo = Hlo(MODULE, PROGRAM)
    add = hlo.computation("add")
    hlo.op("a.left", "parameter", "bf16[]", parameter=0)
    hlo.op("a.right", "parameter", "bf16[]", parameter=1)
    hlo.op("a.sum", "add", "bf16[]", ("a.left", "a.right"))
    up = hlo.computation("gemm_fusion_dot_computation")
    hlo.op("g.x", "parameter", matrix(TOKENS, WIDTH), parameter=0)
    hlo.op("g.w", "parameter", matrix(WIDTH, HIDDEN), parameter=1)
    hlo.op("g.dot", "dot", matrix(TOKENS, HIDDEN), ("g.x", "g.w"), dot=dot_dims((1,), (0,)))
    swiglu = hlo.computation("fused_multiply")
    hlo.op("m.x", "parameter", matrix(TOKENS, HIDDEN), parameter=0)
    hlo.op("m.y", "parameter", matrix(TOKENS, HIDDEN), parameter=1)
    hlo.op("m.product", "multiply", matrix(TOKENS, HIDDEN), ("m.x", "m.y"))
    norm = hlo.computation("fused_reduce")
    hlo.op("r.x", "parameter", matrix(TOKENS, WIDTH), parameter=0)
    hlo.op("r.square", "multiply", matrix(TOKENS, WIDTH), ("r.x", "r.x"))
    hlo.op("r.zero", "constant", "bf16[]")
    hlo.op("r.sums", "reduce", f"bf16[{TOKENS}]", ("r.square", "r.zero"), calls=(add,), dimensions=(1,))
    hlo.computation("main")
    heads = f"bf16[1,{HEADS},{TOKENS},{HEAD}]"
    weights = {"w.qkv": matrix(WIDTH, 3 * WIDTH), "w.up": matrix(WIDTH, HIDDEN), "w.down": matrix(HIDDEN, WIDTH)}
    for number, (name, shape) in enumerate(
        {"x": matrix(TOKENS, WIDTH), **weights, "q": heads, "k": heads, "v": heads, "gate": matrix(TOKENS, HIDDEN)}.items()
    ):
        hlo.op(name, "parameter", shape, parameter=number)
    at: dict[str, Any] = {"source": ("train.py", 57)}
    hlo.op(
        "input_reduce_fusion",
        "fusion",
        f"bf16[{TOKENS}]",
        ("x",),
        calls=(norm,),
        kind="kInput",
        op_name="jit(train_step)/norm/reduce_sum",
        **at,
    )
    lt: dict[str, Any] = {"target": "__cublas$lt$matmul", "config": gemm_config(), "op_name": "jit(train_step)/qkv/dot_general", **at}
    hlo.op("cublas-lt-matmul.1", "custom-call", f"({matrix(TOKENS, 3 * WIDTH)}, s8[33554432])", ("x", "w.qkv"), **lt)
    fmha: dict[str, Any] = {
        "target": "__cudnn$fmhaSoftmax",
        "config": attention_config(),
        "op_name": "jit(train_step)/attention/dot_product_attention",
        **at,
    }
    hlo.op("custom-call.7", "custom-call", f"({heads}, u8[0])", ("q", "k", "v"), **fmha)
    triton: dict[str, Any] = {
        "kind": "kCustom",
        "config": b'{"fusion_backend_config":{"kind":"__triton_gemm"}}',
        "op_name": "jit(train_step)/mlp/up/dot_general",
        **at,
    }
    hlo.op("gemm_fusion_dot.3", "fusion", matrix(TOKENS, HIDDEN), ("x", "w.up"), calls=(up,), **triton)
    hlo.op(
        "loop_multiply_fusion",
        "fusion",
        matrix(TOKENS, HIDDEN),
        ("gemm_fusion_dot.3", "gate"),
        calls=(swiglu,),
        kind="kLoop",
        op_name="jit(train_step)/mlp/mul",
        **at,
    )
    legacy: dict[str, Any] = {"target": "__cublas$gemm", "config": gemm_config(), "op_name": "jit(train_step)/mlp/down/dot_general", **at}
    hlo.op("cublas-gemm.2", "custom-call", f"({matrix(TOKENS, WIDTH)}, s8[33554432])", ("loop_multiply_fusion", "w.down"), **legacy)
    groups: dict[str, Any] = {"calls": (add,), "groups": (tuple(range(8)),), "op_name": "jit(train_step)/psum", **at}
    hlo.op("all-reduce-start.1", "all-reduce-start", matrix(WIDTH, HIDDEN), ("w.up",), **groups)
    return hlo


def elements(*shape: int) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def gemm(op: str, names: tuple[str, ...], framework: str, m: int, k: int, n: int) -> Kernel:
    """2 m n k FLOPs; each matrix moves once."""
    traffic = BF16 * (m * k + k * n + m * n)
    return Kernel(op, names, framework, (n // 128, m // 128, 1), 384, 2 * m * k * n, traffic, shared=180_000)


PAIRS = TOKENS * (TOKENS + 1) // 2
NVJET = "nvjet_tst_256x128_64x4_1x2_h_bz_coopA_NTN"
KERNELS = (
    # A product and an addition for each element; one sum of a row's elements takes one addition less.
    Kernel("input_reduce_fusion", ("input_reduce_fusion",), "norm/reduce_sum", (TOKENS, 1, 1), 256,
           TOKENS * WIDTH + TOKENS * (WIDTH - 1), BF16 * (TOKENS * WIDTH + TOKENS), registers=32),
    gemm("cublas-lt-matmul.1", (NVJET,), "qkv/dot_general", TOKENS, WIDTH, 3 * WIDTH),
    # Scores and their product with the values, over the pairs that a causal mask leaves.
    Kernel("custom-call.7", ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_6_64x128x128_4x1x1_kernel0_0",),
           "attention/dot_product_attention", (TOKENS // 128, HEADS, 1), 384, 4 * PAIRS * WIDTH, 4 * BF16 * TOKENS * WIDTH, shared=231_424),
    gemm("gemm_fusion_dot.3", ("gemm_fusion_dot_3",), "mlp/up/dot_general", TOKENS, WIDTH, HIDDEN),
    Kernel("loop_multiply_fusion", ("loop_multiply_fusion",), "mlp/mul", (elements(TOKENS, HIDDEN) // 512, 1, 1), 128,
           elements(TOKENS, HIDDEN), 3 * BF16 * elements(TOKENS, HIDDEN), registers=32),
    gemm("cublas-gemm.2", ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_nn_n_tilesize128x128x64_execute_kernel__5x_cublas",
                           "splitKreduce_kernel"), "mlp/down/dot_general", TOKENS, HIDDEN, WIDTH),
    Kernel("all-reduce-start.1", ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",), "psum", (24, 1, 1), 544,
           WIDTH * HIDDEN, 2 * BF16 * WIDTH * HIDDEN, registers=96, stream=33),
)  # fmt: skip


@dataclass(slots=True)
class Run:
    """Host thread and streams, with what was put on them."""

    host: Plane
    gpu: Plane
    random: Random
    now: int = 0
    correlation: int = 4000
    free: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    """end of each stream's last work, ps"""
    calls: list[bytes] = field(default_factory=list)
    streams: dict[int, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    totals: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0]))
    """by instruction: executions, kernels, ps"""
    copied: list[int] = field(default_factory=lambda: [0, 0, 0])
    """copies, bytes, ps"""

    def launch(self, kernel: Kernel) -> None:
        share = self.random.uniform(0.62, 0.74)
        whole = max(kernel.flops / (PEAK * share), kernel.bytes / (BANDWIDTH * self.random.uniform(0.72, 0.88)))
        if kernel.stream == 33:
            whole = kernel.bytes / 2 * 7 / 8 * 2 / 360e9  # a ring of eight over NVLink
        lengths = [whole] if len(kernel.names) == 1 else [whole * 0.97, whole * 0.03]
        self.totals[kernel.op][0] += 1
        for name, seconds in zip(kernel.names, lengths, strict=True):
            self.work(kernel, name, round(seconds * 1e6) * US)

    def work(self, kernel: Kernel, name: str, length: int) -> None:
        self.correlation += 1
        own = {"correlation_id": self.correlation, "hlo_op": Ref(kernel.op), "hlo_module": Ref(MODULE), "program_id": Signed(PROGRAM)}
        own |= {"name": Ref(f"jit(train_step)/{kernel.framework}"), "tf_op": Ref("XlaModule:")}
        self.calls.append(self.host.event("cuLaunchKernelEx", self.now, 3 * US, **own))
        start = max(self.now + 6 * US, self.free[kernel.stream] + US)
        grid = ",".join(str(size) for size in kernel.grid)
        details = f"regs:{kernel.registers} static_shared:0 dynamic_shared:{kernel.shared} grid:{grid} block:{kernel.block},1,1 occ_pct:25"
        self.streams[kernel.stream].append(self.gpu.event(name, start, length, kernel_details=Ref(details), **own))
        self.free[kernel.stream] = start + length
        self.now += 5 * US
        self.totals[kernel.op][1] += 1
        self.totals[kernel.op][2] += length

    def copy(self, size: int) -> None:
        self.correlation += 1
        own = {"correlation_id": self.correlation, "memcpy_details": Ref(f"kind_src:pinned kind_dst:device size:{size} dest:0 async:1")}
        self.calls.append(self.host.event("cuMemcpyHtoDAsync_v2", self.now, 4 * US, **own))
        start, length = max(self.now + 6 * US, self.free[19] + US), round(size / 50e9 * 1e6) * US
        self.streams[19].append(self.gpu.event("MemcpyH2D", start, length, **own))
        self.free[19] = start + length
        self.now += 6 * US
        self.copied = [self.copied[0] + 1, self.copied[1] + size, self.copied[2] + length]


def main(folder: Path) -> None:
    gpu = Plane("/device:GPU:0", id=2, stats=card())
    host = Plane("/host:CPU", id=1)
    run = Run(host, gpu, Random(90))
    steps = [one_step(run, number) for number in range(STEPS)]
    for stream, kind in ((19, "MemcpyH2D"), (21, "Compute"), (33, "Compute")):
        gpu.line(f"Stream #{stream}({kind})", run.streams[stream], id=stream, start_ns=0)
    host.line("python", sorted_by_start(run.calls), id=900, start_ns=0)
    environment = Plane(
        "Task Environment", id=9, stats={"profile_start_time": START_NS, "synthetic": "not recorded: written by make_xplane_gpu.py"}
    )
    data = space(metadata_plane(program()), gpu, host, environment, host="synthetic-gpu")
    (folder / f"{NAME}.xplane.pb").write_bytes(data)
    figures = {"made_by": "bookkeeping of samples/make_xplane_gpu.py", **books(run, steps)}
    (folder / f"{NAME}.expected.json").write_text(json.dumps(figures, indent=1) + "\n")


def card() -> dict[str, Any]:
    return {
        "device_vendor": "Nvidia",
        "gpu_device_name": "NVIDIA H100 80GB HBM3",
        "clock_rate": 1_980_000,
        "core_count": 132,
        "memory_bandwidth": int(BANDWIDTH),
        "memory_size": 85_017_624_576,
        "compute_cap_major": 9,
        "compute_cap_minor": 0,
    }


def one_step(run: Run, number: int) -> tuple[int, int]:
    """Start and end on the host, which waits for the device at the end of each step."""
    start, place = run.now, len(run.calls)
    run.now += 100 * US
    waited = (20_000 if number == LATE_STEP else 300) * US
    run.calls.append(run.host.event("next_batch", run.now, waited))
    run.now += waited
    run.copy(TOKENS * 8)
    called = run.now
    for kernel in KERNELS:
        run.launch(kernel)
    run.calls.append(run.host.event("PjitFunction(train_step)", called - US, run.now - called + 2 * US))
    end = max(run.free.values()) + 30 * US
    run.calls.append(run.host.event("block_until_ready", run.now + 10 * US, end - run.now - 10 * US))
    run.calls.insert(place, run.host.event("train", start, end - start, step_num=Signed(number), _r=Signed(1)))
    run.now = end + 40 * US
    return start, end


def sorted_by_start(events: list[bytes]) -> list[bytes]:
    """As profilers write them; an event's offset is its second field."""
    return sorted(events, key=offset_of)


def offset_of(event: bytes) -> int:
    at = 1
    while event[at] & 128:
        at += 1
    at += 2
    value = shift = 0
    while True:
        value |= (event[at] & 127) << shift
        if event[at] < 128:
            return value
        at, shift = at + 1, shift + 7


def books(run: Run, steps: list[tuple[int, int]]) -> dict[str, Any]:
    known = {kernel.op: kernel for kernel in KERNELS}
    return {
        "steps": [{"name": f"train {i}", "dur_us": (end - start) / US} for i, (start, end) in enumerate(steps)],
        "ops": {
            op: {
                "executions": executions,
                "kernels": kernels,
                "device_us": ps / US,
                "flops": known[op].flops * executions,
                "bytes": known[op].bytes * executions,
            }
            for op, (executions, kernels, ps) in run.totals.items()
        },
        "copies": {"count": run.copied[0], "bytes": run.copied[1], "device_us": run.copied[2] / US},
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent)
