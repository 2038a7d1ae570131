"""The tests on one device. Each takes the box, the time by which it must end and the progress function, and gives its details."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from .box import Box, spread
from .figures import sizes_of
from .node import free_bytes, llc_bytes

MIB = 1 << 20

MOVES = {"copy": 2, "triad": 3, "read": 1, "write": 1}
"""Arrays that each bandwidth test moves (STREAM's count: no write-allocate)."""


def launch(box: Box, until: float, progress: Callable[..., None]) -> dict[str, Any]:
    """Host cost of one eager op, spacing of back-to-back tiny ops, round trip, and a node of a replayed graph."""
    x = box.torch.zeros(1, device=box.device)

    def tiny() -> None:
        x.add_(1)

    for _ in range(100):
        tiny()
    box.sync()
    found = {"spacing": box.time(tiny, until, most=40)}
    enqueue, trips = [], []
    for _ in range(10):
        begin = time.perf_counter()
        for _ in range(200):
            tiny()
        enqueue.append((time.perf_counter() - begin) / 200)
        box.sync()
    for _ in range(100):
        begin = time.perf_counter()
        tiny()
        box.sync()
        trips.append(time.perf_counter() - begin)
    found["enqueue"] = {"best_s": min(enqueue), "median_s": statistics.median(enqueue), "spread": spread(enqueue), "samples": len(enqueue)}
    found["round_trip"] = {"best_s": min(trips), "median_s": statistics.median(trips), "spread": spread(trips), "samples": len(trips)}
    graph = _graph(box, tiny, 100)
    if graph is not None:
        node = box.time(graph, until, most=40)
        found["graph_node"] = {**node, "best_s": node["best_s"] / 100, "median_s": node["median_s"] / 100}
    progress("launch", found["spacing"]["best_s"], "s")
    return found


def bandwidth(box: Box, until: float, progress: Callable[..., None]) -> dict[str, Any]:
    """Main memory: copy, triad, read (a sum) and write (a fill) over arrays far beyond the last cache."""
    last = max(llc_bytes(box), 32 * MIB)
    size = int(min(max(4 * last, 256 * MIB), 2 << 30, free_bytes(box) // 8)) // 4 * 4
    a, b, c = (box.ones(size // 4) for _ in range(3))
    torch = box.torch
    calls: dict[str, Callable[[], Any]] = {
        "copy": lambda: c.copy_(a),
        "triad": lambda: torch.add(a, b, alpha=3.0, out=c),
        "read": a.sum,
        "write": lambda: c.fill_(1.0),
    }
    found: dict[str, Any] = {}
    begin = time.perf_counter()
    for number, (name, call) in enumerate(calls.items(), 1):
        timed = box.time(call, begin + (until - begin) * number / len(calls))
        found[name] = {**timed, "per_s": MOVES[name] * size / timed["best_s"], "array_bytes": size}
        progress(f"bandwidth {name}", found[name]["per_s"], "B/s")
    return found


def caches(box: Box, until: float, progress: Callable[..., None]) -> dict[str, Any]:
    """Bytes/s by working set, from what fits in a cache to what does not; launches within a graph where there are graphs."""
    last = llc_bytes(box)
    size, most = (MIB if box.accelerator else 64 << 10), 4 * last
    sizes = []
    while size <= most:
        sizes.append(size)
        size *= 2
    found: dict[str, Any] = {"llc_bytes": last, "on_device": box.accelerator, "sweep": []}
    begin = time.perf_counter()
    for number, working_set in enumerate(sizes, 1):
        a, c = box.ones(working_set // 8), box.ones(working_set // 8)
        box.torch.add(a, 1.0, out=c)

        def pass_over(a: Any = a, c: Any = c) -> None:
            box.torch.add(a, 1.0, out=c)

        repeats = 50
        graph = _graph(box, pass_over, repeats) if box.accelerator and working_set <= last else None
        timed = box.time(graph or pass_over, begin + (until - begin) * number / len(sizes), most=60)
        seconds = timed["best_s"] / (repeats if graph else 1)
        found["sweep"].append({"working_set": working_set, "per_s": working_set / seconds, "seconds": seconds, "spread": timed["spread"]})
    progress("caches", max(point["per_s"] for point in found["sweep"]), "B/s")
    return found


def gemm(box: Box, until: float, progress: Callable[..., None]) -> dict[str, Any]:
    """FLOP/s of square matrix products by dtype, each at growing sizes; int8 counts operations."""
    sizes = (1024, 2048, 4096, 8192, 12288, 16384) if box.accelerator else (512, 1024, 2048)
    dtypes = ("bf16", "fp16", "fp8", "int8", "tf32", "fp32", "fp64") if box.accelerator else ("fp32", "bf16", "fp64", "fp16", "int8")
    found: dict[str, Any] = {}
    for number, dtype in enumerate(dtypes):
        begin = time.perf_counter()
        # What a slow dtype overran is taken from the ones after it, and what a quick one left is theirs.
        end = begin + (until - begin) / (len(dtypes) - number)
        # The first two are measured even so: a result without a peak is none.
        if end <= begin and number > 1:
            break
        if dtype == "tf32" and not _has_tf32(box):
            found[dtype] = {"error": "no tf32 on this device"}
            continue
        try:
            found[dtype] = _gemm_sizes(box, dtype, sizes, end)
        except (RuntimeError, NotImplementedError, AttributeError, TypeError) as error:
            found[dtype] = {"error": f"{type(error).__name__}: {error}"[:200]}
            continue
        if found[dtype]:
            found[dtype]["path"] = _path(box, dtype)
            progress(f"gemm {dtype}", max(size["per_s"] for size in sizes_of(found[dtype])), "FLOP/s")
    return found


def pcie(box: Box, until: float, progress: Callable[..., None]) -> dict[str, Any]:
    """Copies of 256 MiB between the host and the device, from pinned and pageable memory."""
    size = 256 * MIB
    torch = box.torch
    pinned, pageable = torch.empty(size, dtype=torch.uint8).pin_memory(), torch.empty(size, dtype=torch.uint8)
    there = torch.empty(size, dtype=torch.uint8, device=box.device)
    calls: dict[str, Callable[[], Any]] = {
        "h2d_pinned": lambda: there.copy_(pinned, non_blocking=True),
        "d2h_pinned": lambda: pinned.copy_(there, non_blocking=True),
        "h2d_pageable": lambda: there.copy_(pageable),
        "d2h_pageable": lambda: pageable.copy_(there),
    }
    found: dict[str, Any] = {}
    begin = time.perf_counter()
    for number, (name, call) in enumerate(calls.items(), 1):
        timed = box.time(call, begin + (until - begin) * number / len(calls), most=20)
        found[name] = {**timed, "per_s": size / timed["best_s"]}
        progress(f"pcie {name}", found[name]["per_s"], "B/s")
    return found


def _has_tf32(box: Box) -> bool:
    return box.kind == "cuda" and (bool(box.hip) or (box.capability() or (0, 0)) >= (8, 0))


def _gemm_sizes(box: Box, dtype: str, sizes: tuple[int, ...], end: float) -> dict[str, Any]:
    found: dict[str, Any] = {}
    begin = time.perf_counter()
    rate = 0.0
    for number, size in enumerate(sizes, 1):
        work = 2 * size**3
        # A size that would not fit in time or memory is not begun; the first always is.
        if rate and (time.perf_counter() + 4 * work / rate > end or 24 * size**2 > free_bytes(box)):
            break
        call = _product(box, dtype, size)
        timed = box.time(call, begin + (end - begin) * number / len(sizes), sample_s=0.04 if box.accelerator else None, most=80)
        rate = work / timed["best_s"]
        found[str(size)] = {**timed, "per_s": rate}
    return found


def _product(box: Box, dtype: str, size: int) -> Callable[[], Any]:
    """A call that multiplies two matrices, the second transposed (the layout that all dtypes support)."""
    torch = box.torch
    if box.kind == "cuda" and dtype in ("tf32", "fp32"):
        torch.set_float32_matmul_precision("high" if dtype == "tf32" else "highest")
    if dtype == "int8":
        left = torch.randint(-8, 8, (size, size), dtype=torch.int8, device=box.device)
        right = torch.randint(-8, 8, (size, size), dtype=torch.int8, device=box.device).t()
        return lambda: torch._int_mm(left, right)
    a, b = (torch.randn(size, size, device=box.device) for _ in range(2))
    if dtype == "fp8":
        kind = torch.float8_e4m3fnuz if box.gfx().startswith("gfx94") else torch.float8_e4m3fn
        left, right, scale = a.to(kind), b.to(kind).t(), torch.ones((), device=box.device)
        return lambda: torch._scaled_mm(left, right, scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16, use_fast_accum=True)
    kind = {"fp64": torch.float64, "fp16": torch.float16, "bf16": torch.bfloat16}.get(dtype, torch.float32)
    left, right = a.to(kind), b.to(kind).t()
    out = torch.empty(size, size, device=box.device, dtype=kind)
    return lambda: torch.mm(left, right, out=out)


def _path(box: Box, dtype: str) -> str:
    """The peak that a library's GEMM of this dtype is held against: matrix units take fp32 and fp64 where they can."""
    matrix = box.gfx() in ("gfx90a", "gfx942", "gfx950")
    if dtype == "fp64" and (matrix or (not box.hip and box.kind == "cuda" and box.capability() in ((8, 0), (9, 0), (10, 0)))):
        return "fp64_tensor"
    if dtype == "fp32" and (matrix or box.gfx() == "gfx908"):
        return "fp32_matrix"
    return dtype


def _graph(box: Box, call: Callable[[], Any], repeats: int) -> Callable[[], Any] | None:
    """A replay of `repeats` calls recorded in a graph, so that launches do not count; None where there are no graphs."""
    if box.kind != "cuda":
        return None
    torch = box.torch
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call()
        stream.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(repeats):
                call()
    replay: Callable[[], Any] = graph.replay
    return replay
