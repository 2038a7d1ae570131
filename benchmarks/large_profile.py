"""A profile of millions of slices and a million kernel names, made in memory: what the explorer is measured on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm_parsers.nesting import nest
from roofterm_parsers.profile import (
    DEVICES,
    KERNELS,
    LINKS,
    MEMORY,
    NAMES,
    OPS,
    RUNTIME,
    SIGNATURES,
    SLICES,
    STEPS,
    TRACKS,
    Kind,
    Profile,
    Source,
    TrackKind,
)

Int64s = NDArray[np.int64]
US = 1_000_000
"""picoseconds"""

THREADS = STREAMS = 2
OP_EVERY_PS = 10 * US
OP_PS = 9 * US
ALLOCATED_AFTER_PS = US
CALL_AFTER_PS, CALL_PS = 2 * US, 5 * US
KERNEL_AFTER_PS = 3 * US
STEP_COUNT = 100
SHAPES = 250
"""of each family"""
CALL = "cudaLaunchKernel"


@dataclass(frozen=True)
class Family:
    """Kernels of a kind, and the op that launches them; {a} and {b} make the names differ."""

    op: str
    kernel: str
    inputs: str
    """dims of its inputs as JSON, by the row m and the column n"""
    types: str
    mean_us: float


BF16 = "c10::BFloat16"
FAMILIES = (
    Family(
        "aten::mm",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize{a}x128x64_cublas_{b}",
        "[[{m},4096],[4096,{n}]]",
        f'["{BF16}","{BF16}"]',
        24,
    ),
    Family("aten::bmm", "nvjet_tst_{a}x64_64x10_1x2_h_bz_coopA_NNT_{b}", "[[32,{m},128],[32,128,{n}]]", f'["{BF16}","{BF16}"]', 12),
    Family(
        "aten::mul",
        "void at::native::vectorized_elementwise_kernel<4, MulFunctor<{a}>, std::array<char*, {b}ul> >(int)",
        "[[{m},{n}],[{m},{n}]]",
        f'["{BF16}","{BF16}"]',
        4,
    ),
    Family(
        "aten::add",
        "void at::native::elementwise_kernel<128, {a}, CUDAFunctor_add<float>, {b}>(int)",
        "[[{m},{n}],[{m},{n}],[]]",
        '["float","float","Scalar"]',
        4,
    ),
    Family(
        "aten::sum",
        "void at::native::reduce_kernel<512, {a}, ReduceOp<float, {b}> >(int)",
        "[[{m},{n}],[],[],[]]",
        '["float","ScalarList","Scalar",""]',
        5,
    ),
    Family(
        "aten::_softmax",
        "void (anonymous namespace)::softmax_warp_forward<float, float, float, {a}, false, {b}>(int)",
        "[[{m},{n}],[],[]]",
        '["float","Scalar","Scalar"]',
        6,
    ),
    Family(
        "aten::copy_",
        "void at::native::unrolled_elementwise_kernel<direct_copy_kernel_cuda_{a}, {b}>(int)",
        "[[{m},{n}],[{m},{n}],[]]",
        f'["float","{BF16}","Scalar"]',
        3,
    ),
    Family("aten::silu", "triton_poi_fused_silu_{a}_mul_{b}", "[[{m},{n}]]", f'["{BF16}"]', 5),
)
"""As PyTorch on Hopper names them."""


def large_profile(slices: int, kernel_names: int) -> Profile:
    """A training run of one GPU: an op, the call in it and the kernel it launches, again and again. The same each time.

    `kernel_names` distinct kernels at most, one for each launch.
    """
    launches = max((slices - STEP_COUNT) // 3, THREADS)
    launch = np.arange(launches)
    family = launch % len(FAMILIES)
    thread = launch // len(FAMILIES) % THREADS
    op_start = _place_in(thread) * OP_EVERY_PS
    kernel_dur = _kernel_durations(family)
    kernel_start = _one_after_the_other(thread, op_start + CALL_AFTER_PS + KERNEL_AFTER_PS, kernel_dur)
    step_start, step_dur = _steps(int(op_start.max()) + OP_EVERY_PS)

    parts = {
        "start_ps": [step_start, op_start, op_start + CALL_AFTER_PS, kernel_start],
        "dur_ps": [step_dur, np.full(launches, OP_PS), np.full(launches, CALL_PS), kernel_dur],
        "track": [np.zeros_like(step_start), thread, thread, THREADS + thread],
        "name": [
            len(FAMILIES) + 1 + np.arange(STEP_COUNT),
            family,
            np.full(launches, len(FAMILIES)),
            _first_kernel() + launch % kernel_names,
        ],
        "kind": [np.full(len(step_start), Kind.STEP), *(np.full(launches, kind) for kind in (Kind.OP, Kind.RUNTIME, Kind.KERNEL))],
    }
    columns = {name: np.concatenate(values) for name, values in parts.items()}
    order = np.lexsort((-columns["dur_ps"], columns["start_ps"], columns["track"]))
    columns = {name: values[order] for name, values in columns.items()}
    ids = np.empty(len(order), np.int64)
    ids[order] = np.arange(len(order))
    step_ids, op_ids, call_ids, kernel_ids = np.split(ids, [STEP_COUNT, STEP_COUNT + launches, STEP_COUNT + 2 * launches])

    profile = Profile(sources=[Source("large.pt.trace.json", "kineto", "plain", "PyTorch profiler (Kineto, CUDA)", events=len(order))])
    profile.slices = _slices(columns)
    profile.names = _names(kernel_names)
    profile.tracks = _tracks()
    profile.signatures = _signatures()
    profile.ops = _by_slice(OPS, op_ids, external_id=launch, signature=family * SHAPES + launch // len(FAMILIES) % SHAPES)
    profile.runtime = _by_slice(RUNTIME, call_ids, correlation=launch, external_id=launch)
    dims = {"grid_x": 1024 + launch % 7, "grid_y": 1, "grid_z": 1, "block_x": 128, "block_y": 1, "block_z": 1}
    profile.kernels = _by_slice(
        KERNELS, kernel_ids, device=0, stream=7 + thread, correlation=launch, external_id=launch, registers=64, **dims
    )
    profile.links = _filled(LINKS, {"work": kernel_ids, "launch": call_ids, "op": op_ids}).sort("work")
    profile.devices = _filled(
        DEVICES, {"source": [0], "id": 0, "name": "NVIDIA H100 80GB HBM3", "kind": "gpu", "worked": True, "units": 132}
    )
    profile.memory = _memory(op_start + ALLOCATED_AFTER_PS, thread)
    numbers = np.arange(STEP_COUNT)
    names = [f"ProfilerStep#{number}" for number in numbers.tolist()]
    profile.steps = _filled(
        STEPS, {"source": 0, "number": numbers, "name": names, "start_ps": step_start, "dur_ps": step_dur, "slice": step_ids}
    )
    return profile


def _place_in(group: Int64s) -> Int64s:
    """How many of its own group come before each."""
    place = np.empty_like(group)
    for value in range(int(group.max()) + 1):
        mine = np.flatnonzero(group == value)
        place[mine] = np.arange(len(mine))
    return place


def _kernel_durations(family: Int64s) -> Int64s:
    """Around the family's mean, between half and one and a half times."""
    mean_ps = np.array([one.mean_us for one in FAMILIES])[family] * US
    spread = (np.arange(len(family)) * 2_654_435_761 % 1_000_003) / 1_000_003
    return np.rint(mean_ps * (0.5 + spread)).astype(np.int64)


def _one_after_the_other(stream: Int64s, ready: Int64s, dur: Int64s) -> Int64s:
    """When each kernel starts: when it is ready and the one before it on its stream has ended."""
    start = np.empty_like(ready)
    for value in range(STREAMS):
        mine = np.flatnonzero(stream == value)
        before = np.concatenate([[0], np.cumsum(dur[mine])[:-1]])
        start[mine] = before + np.maximum.accumulate(ready[mine] - before)
    return start


def _steps(end_ps: int) -> tuple[Int64s, Int64s]:
    edges = np.linspace(0, end_ps // OP_EVERY_PS, STEP_COUNT + 1).astype(np.int64) * OP_EVERY_PS
    return edges[:-1], np.maximum(np.diff(edges), 1)


def _memory(time_ps: Int64s, thread: Int64s) -> pl.DataFrame:
    """An allocation in every op but each fourth, which frees those of the three before it."""
    order = np.argsort(time_ps, kind="stable")
    place = np.arange(len(order))
    size = (1 + place // 4 % 500) * 4096
    change = np.where(place % 4 == 3, -3 * size, size)
    held = np.cumsum(change)
    values = {"time_ps": time_ps[order], "track": thread[order], "bytes": change, "address": 1 + place % 4, "allocated_bytes": held}
    return _filled(MEMORY, {**values, "reserved_bytes": 80 << 30, "device_type": 1, "device_id": 0, "out_of_memory": False})


def _first_kernel() -> int:
    """Row of the first kernel name: before it the ops', the call's and the steps'."""
    return len(FAMILIES) + 1 + STEP_COUNT


def _slices(columns: dict[str, Int64s]) -> pl.DataFrame:
    parent, depth = nest(columns["track"].astype(np.uint32), columns["start_ps"], columns["dur_ps"])
    return _filled(SLICES, {**columns, "parent": parent, "depth": depth, "offset": 0})


def _names(kernel_names: int) -> pl.DataFrame:
    host = [(family.op, "cpu_op") for family in FAMILIES] + [(CALL, "cuda_runtime")]
    host += [(f"ProfilerStep#{number}", "user_annotation") for number in range(STEP_COUNT)]
    number = np.arange(kernel_names)
    kernels = pl.DataFrame({"number": number, "family": number % len(FAMILIES)}).with_columns(
        a=pl.col("number") // 1000 + 1, b=pl.col("number") % 1000
    )
    text = pl.lit(None, pl.String)
    for at, family in enumerate(FAMILIES):
        front, _, rest = family.kernel.partition("{a}")
        middle, _, end = rest.partition("{b}")
        written = pl.concat_str(pl.lit(front), pl.col("a").cast(pl.String), pl.lit(middle), pl.col("b").cast(pl.String), pl.lit(end))
        text = pl.when(pl.col("family") == at).then(written).otherwise(text)
    made = kernels.select(text=text, cat=pl.lit("kernel"))
    return pl.concat([pl.DataFrame(host, schema=dict(NAMES), orient="row"), made.cast(NAMES)])


def _tracks() -> pl.DataFrame:
    threads = [(TrackKind.HOST, 0, "100", str(100 + at), "python", f"thread {100 + at}", None, None, at) for at in range(THREADS)]
    streams = [(TrackKind.DEVICE, 0, "0", str(7 + at), "GPU 0", f"stream {7 + at}", 0, 7 + at, 10 + at) for at in range(STREAMS)]
    return pl.DataFrame([*threads, *streams], schema=dict(TRACKS), orient="row")


def _signatures() -> pl.DataFrame:
    rows = []
    for family in FAMILIES:
        for shape in range(SHAPES):
            m, n = 64 * (1 + shape % 25), 256 * (1 + shape // 25)
            rows.append((family.inputs.replace("{m}", str(m)).replace("{n}", str(n)), family.types, None, None))
    return pl.DataFrame(rows, schema=dict(SIGNATURES), orient="row")


def _by_slice(schema: pl.Schema, ids: Int64s, **values: Any) -> pl.DataFrame:
    return _filled(schema, {"slice": ids, **values}).sort("slice")


def _filled(schema: pl.Schema, values: dict[str, Any]) -> pl.DataFrame:
    """A frame of the schema; a column that no value is given for is null, a single value holds for all rows."""
    height = max(len(value) for value in values.values() if isinstance(value, (np.ndarray, list)))
    columns = []
    for name, kind in schema.items():
        value = values.get(name)
        columns.append(
            pl.Series(name, value) if isinstance(value, (np.ndarray, list)) else pl.repeat(value, height, eager=True).alias(name)
        )
        columns[-1] = columns[-1].cast(kind)
    return pl.DataFrame(columns)
