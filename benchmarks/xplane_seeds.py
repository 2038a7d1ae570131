"""Small XPlane profiles that `make_xplane` makes large: built by hand, in the layouts of real ones."""

from __future__ import annotations

from tests.xspace import Plane, Ref, breakdown, space, tpu_plane

CATEGORIES = ("convolution fusion", "loop fusion", "custom-call", "data formatting", "all-reduce", "copy", "non-fusion elementwise")
PROGRAM = 4242
READ, WRITE = 1, 2
HBM, VMEM = 1, 3

CORES, STEPS, LAYERS = 4, 5, 96
HOST_THREADS = 3

RUNS, POOL = 100, 40
"""of `serving`: runs of its program on each core, and threads of its host"""


def uniform(ops: int = 3000, per_step: int = 5000) -> bytes:
    """One step of one core; every op event carries the same stats, in the same order. A host thread beside it."""
    core = tpu_plane()
    known = [
        _op(
            core,
            f"{CATEGORIES[i % len(CATEGORIES)].split()[0]}.{i}",
            CATEGORIES[i % len(CATEGORIES)],
            i,
            (i * 7919) % 2**34,
            (i * 104729) % 2**28,
        )
        for i in range(ops)
    ]
    at, events = 1_000_000, []
    for i in range(per_step):
        dur = 20_000 + i * 2_654_435_761 % 4_000_000
        events.append(core.event(known[i * 7 % ops], at, dur, device_offset_ps=at, device_duration_ps=dur))
        at += dur + 1250
    core.line("Steps", [core.event("train", 1_000_000, at - 1_000_000, group_id=0)], id=1)
    core.line("XLA Modules", [core.event(f"jit_step({PROGRAM})", 1_000_000, at - 1_000_000, run_id=1)], id=2)
    core.line("XLA Ops", events, id=3)
    host = Plane("/host:CPU", id=1)
    calls = [host.event(f"$file.py:{i % 50} call_{i % 50}", i * 9_000, 5_000 + i % 777) for i in range(per_step // 20)]
    host.line("python", calls, id=9)
    return space(core, host, host="worker-0")


def training() -> bytes:
    """Five steps on four cores: loops with ops inside, collectives, custom calls with costs of their own, copies beside them."""
    cores = [_training_core(number) for number in range(CORES)]
    return space(*cores, _training_host(), host="worker-0")


def _training_core(number: int) -> Plane:
    core = tpu_plane(
        number,
        has_megacore=0,
        has_merged_vmem=1,
        peak_vmem_rd_bw_gigabytes_per_second=2000.0,
        peak_vmem_wr_bw_gigabytes_per_second=1500.0,
    )
    loop = _op(core, "while.1", "while", 1, 0, 0)
    layer = [
        _op(
            core,
            f"{CATEGORIES[i % len(CATEGORIES)].split()[0]}.{i}",
            CATEGORIES[i % len(CATEGORIES)],
            i + 2,
            2 ** (24 + i % 9),
            2 ** (20 + i % 6),
        )
        for i in range(14)
    ]
    pull, push = _op(core, "copy-start.3", "copy", 90, 0, 2**20), _op(core, "copy-done.3", "async-done", 91, 0, 2**20)
    steps, modules, ops, beside = [], [], [], []
    at = 5_353_251_593_250 + number * 17_000
    for step in range(STEPS):
        began, inside = at, []
        for turn in range(LAYERS):
            for place, op in enumerate(layer):
                dur = 310_000 + (place * 977_331 + turn * 12_347 + step * 777) % 9_000_000
                inside.append(_timed(core, op, at, dur, place, turn))
                at += dur + 1_172
            if turn % 4 == 0:
                beside.append(core.event(push, began, at - began, hlo_op="copy-done.3", flow=616_168_039 + turn, id=turn))
        ops += [core.event(loop, began, at - began, device_offset_ps=began - 14_617_000, device_duration_ps=at - began), *inside]
        for move in (pull, push):
            ops.append(core.event(move, at, 78_000, device_offset_ps=at - 14_617_000, device_duration_ps=78_000))
            at += 80_000
        steps.append(core.event("train", began, at - began, group_id=step))
        modules.append(core.event(f"jit_step({PROGRAM})", began, at - began, run_id=step + 1, replica_id=number, queue_id=0, core_type=0))
        at += 2_000_000_000
    for number_, (name, events) in enumerate((("Steps", steps), ("XLA Modules", modules), ("XLA Ops", ops), ("Async XLA Ops", beside)), 1):
        core.line(name, events, id=number_)
    return core


def _timed(core: Plane, op: int, at: int, dur: int, place: int, turn: int) -> bytes:
    """An op's event with what its category says beyond its times."""
    times = {"device_offset_ps": at - 14_617_000, "device_duration_ps": dur}
    category = CATEGORIES[place % len(CATEGORIES)]
    if category == "custom-call":
        return core.event(op, at, dur, **times, flops=2**26 + turn, bytes_accessed=2**21)
    if category == "all-reduce":
        return core.event(op, at, dur, **times, all_reduce_unique_id=65_537 + turn)
    return core.event(op, at, dur, **times)


def _op(core: Plane, name: str, category: str, symbol: int, flops: int, size: int) -> int:
    shape = "bf16[8,2048,4096]{2,1,0:T(8,128)(2,1)}"
    text = f"%{name} = {shape} fusion({shape} %p.{symbol}), kind=kOutput, calls=%fused.{symbol}"
    return core.op(
        text,
        name,
        hlo_category=Ref(category),
        program_id=PROGRAM,
        symbol_id=symbol + 1,
        flops=flops,
        model_flops=flops,
        bytes_accessed=size,
        memory_access_breakdown=breakdown((READ, HBM, size // 2), (WRITE, HBM, size // 4), (READ, VMEM, size // 4)),
        tf_op=f"jit(step)/jit(main)/transformer/layer_{symbol % 32}/mlp/dot_general:",
        source=f"/app/model.py:{symbol}",
    )


def _training_host() -> Plane:
    host = Plane("/host:CPU", id=1)
    for thread in range(HOST_THREADS):
        events, at = [], 5_353_000_000_000
        for i in range(STEPS * 60):
            name = ("PjitFunction(step)", "ExecuteHelper", "BufferFromHostBuffer", "$train.py:31 step")[i % 4]
            stats = ({}, {"queue_id": i % 2}, {"size": 4 * i, "device": "TPU:0"}, {"_ct": 12, "_p": 90_000 + i})[i % 4]
            events.append(host.event(name, at, 1_000_000 + i * 911, **stats))
            at += 40_000_000
        host.line(f"thread {thread}", events, id=700 + thread)
    return host


def serving() -> bytes:
    """Runs of one program on four cores that mark no step; more than half of all events are those of a host with many threads."""
    return space(*(_serving_core(number) for number in range(CORES)), _serving_host(), host="worker-0")


def _serving_core(number: int) -> Plane:
    core = tpu_plane(number, has_megacore=0, has_merged_vmem=1)
    pull, push = _op(core, "copy-start.3", "copy-start", 90, 0, 0), _op(core, "copy-done.3", "copy-done", 91, 0, 2**20)
    between = [_op(core, f"fusion.{i}", CATEGORIES[i % 2], i + 2, 2 ** (24 + i), 2 ** (20 + i % 6)) for i in range(7)]
    modules, ops, beside, traced = [], [], [], []
    at = 5_353_251_593_250 + number * 17_000
    for turn in range(RUNS):
        began = at
        for place, op in enumerate([pull, *between, push] * 2):
            dur = 78_000 + (place * 977_331 + turn * 12_347) % 3_000_000
            ops.append(core.event(op, at, dur, device_offset_ps=at - 14_617_000, device_duration_ps=dur))
            at += dur + 1_172
        beside += [core.event(push, began + i * 500, 3_000_000, hlo_op="copy-done.3", flow=616_168_039 + turn, id=turn) for i in range(3)]
        traced.append(core.event("barrier-cores", began, 9_000))
        modules.append(
            core.event(f"jit_serve({PROGRAM})", began, at - began, run_id=turn + 1, replica_id=number, queue_id=0, _ct=13, _c=turn)
        )
        at += 700_000
    for number_, (name, events) in enumerate(
        (("XLA Modules", modules), ("XLA Ops", ops), ("Async XLA Ops", beside), ("XLA TraceMe", traced)), 1
    ):
        core.line(name, events, id=number_)
    return core


_SERVING_CALLS: tuple[tuple[str, dict[str, int]], ...] = (
    ("DCE", {}),
    ("Wait for donation holds", {}),
    ("LoadProgram", {}),
    ("MapDmaBuffer", {"size": 1 << 20}),
    ("DeferredAllocator::Allocate", {"_pt": 9, "_p": 70_000}),
    ("DoEnqueueProgram", {"run_id": 1, "queue_id": 0, "device_ordinal": 2, "core_type": 1, "_pt": 13, "_p": 70_001}),
    (
        "MemoryAllocation",
        {"index_on_host": 1, "bytes_allocated": 1 << 30, "bytes_available": 1 << 34, "allocation_bytes": 4096, "addr": 1 << 40},
    ),
    ("Execute=>IssueSequence", {"_ct": 9, "_c": 70_000}),
    ("MemoryDeallocation", {"index_on_host": 1, "bytes_allocated": 1 << 29, "bytes_available": 1 << 35, "addr": 1 << 40}),
    ("$server.py:31 serve", {}),
    ("backend_compile", {}),  # no step is marked that it could lie in
)


def _serving_host() -> Plane:
    host = Plane("/host:CPU", id=1)
    for thread in range(POOL):
        events, at = [], 5_353_000_000_000 + thread * 1_000
        for i in range(RUNS * 3):
            name, stats = _SERVING_CALLS[(i * 7 + i // 5 + thread) % len(_SERVING_CALLS)]
            varied = {stat: value + i if stat in ("_p", "_c", "addr", "run_id") else value for stat, value in stats.items()}
            events.append(host.event(name, at, 400_000 + i * 911, **varied))
            at += 4_000_000
        host.line(f"pool/{thread}", events, id=700 + thread)
    return host
