"""Memory of real recordings against plain Python over the file, of the sample against its maker, of XPlane files against XProf."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from roofterm.analysis.memory import memory_blocks, memory_by_op
from roofterm.analysis.scope import ALL
from roofterm.analysis.study import Study
from roofterm.results import MemoryReport
from roofterm_parsers import open_profile
from tests.reference import reference

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
RECORDED = [
    "traces/torch/tracelens_h100_bert_small.json.gz",
    "traces/torch/tracelens_h100_qwen05b_chat.json.gz",
    "traces/torch/tracelens_h100_timesformer.json.gz",
    "traces/torch/tracelens_mi300x_owlv2.json.gz",
    "traces/torch/tracelens_mi300x_normalization_ops.json.gz",
    "traces/torch/tracelens_mi300x_sglang_graph_capture_bs32.json.gz",
    "traces/torch_cpu/transformer_train_all_flags.pt.trace.json.gz",
]
"""Recorded with profile_memory=True."""

XPLANES = [
    "gpu_mi300x_jax_attention",
    "gpu_mi300x_jax_conv",
    "gpu_mi300x_jax_conv_legacy",
    "gpu_mi300x_jax_elementwise",
    "gpu_mi300x_jax_gemm",
    "gpu_mi355x_jax_te_fused_attn",
    "gpu_v100x8_tf_multiworker",
    "tpu_v6e_inference",
    "tpu_v6e_pallas_matmul",
]
"""All whose allocators recorded something."""

LEAST_BLOCK = 256
"""bytes of the smallest block that XLA's allocator of GPUs gives"""


@cache
def study(name: str) -> Study:
    return Study(open_profile(reference(name)))


def report(name: str) -> MemoryReport:
    found = study(name).memory_report()
    assert found is not None
    return found


@cache
def events(name: str) -> list[dict[str, Any]]:
    document: dict[str, Any] = json.loads(gzip.decompress(reference(name).read_bytes()), parse_float=Decimal)
    found: list[dict[str, Any]] = document["traceEvents"]
    return found


def allocator_events(name: str) -> dict[int, list[dict[str, Any]]]:
    """`[memory]` instants by device type, in order of time."""
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for one in sorted((e for e in events(name) if e.get("name") == "[memory]"), key=lambda e: e["ts"]):
        found[one["args"]["Device Type"]].append(one)
    return found


@pytest.mark.parametrize("name", RECORDED)
def test_peaks_are_those_of_the_file(name: str):
    for kind, mine in allocator_events(name).items():
        (pool,) = [pool for pool in report(name).pools if pool.on_device is (kind != 0)]
        args = [e["args"] for e in mine]
        highest = max(reversed(args), key=lambda a: a["Total Allocated"])
        assert pool.peak_bytes == highest["Total Allocated"]
        assert (pool.allocations, pool.frees) == (sum(a["Bytes"] > 0 for a in args), sum(a["Bytes"] < 0 for a in args))
        assert pool.first_bytes == args[0]["Total Allocated"] - args[0]["Bytes"]
        assert pool.last_bytes == args[-1]["Total Allocated"]
        if kind != 0:
            assert pool.reserved_peak_bytes == max(a["Total Reserved"] for a in args)
            assert pool.reserved_at_peak_bytes == highest["Total Reserved"]


@pytest.mark.parametrize("name", RECORDED)
def test_holders_of_the_peak_are_live_blocks_by_plain_python(name: str):
    """Blocks by address up to the last peak; each for the innermost op on its thread whose interval holds its moment."""
    for kind, mine in allocator_events(name).items():
        peak = max(reversed(range(len(mine))), key=lambda at: mine[at]["args"]["Total Allocated"])
        live: dict[int, dict[str, Any]] = {}
        for one in mine[: peak + 1]:
            if one["args"]["Bytes"] > 0:
                live[one["args"]["Addr"]] = one
            else:
                live.pop(one["args"]["Addr"], None)
        want: dict[str | None, int] = defaultdict(int)
        for block in live.values():
            want[innermost_op(name, block)] += block["args"]["Bytes"]
        number = next(at for at, pool in enumerate(report(name).pools) if pool.on_device is (kind != 0))
        table = memory_by_op(study(name).memory)
        got = {row["op"]: row["peak_bytes"] for row in table.iter_rows(named=True) if row["pool"] == number and row["peak_bytes"]}
        assert got == dict(want)
        assert report(name).pools[number].held_before_bytes == mine[peak]["args"]["Total Allocated"] - sum(want.values())


@cache
def ops_by_thread(name: str) -> dict[Any, list[tuple[Decimal, Decimal, str]]]:
    found: dict[Any, list[tuple[Decimal, Decimal, str]]] = defaultdict(list)
    for e in events(name):
        if e.get("cat") == "cpu_op":
            found[e["pid"], e["tid"]].append((Decimal(e["ts"]), Decimal(e["ts"]) + Decimal(e.get("dur", 0)), e["name"]))
    return found


def innermost_op(name: str, event: dict[str, Any]) -> str | None:
    """The shortest op around the moment on its thread."""
    time = Decimal(event["ts"])
    around = [(end - start, op) for start, end, op in ops_by_thread(name)[event["pid"], event["tid"]] if start <= time <= end]
    return min(around)[1] if around else None


def test_peak_of_the_sample_is_its_makers():
    figures = json.loads((SAMPLES / "transformer_h100_synthetic.expected.json").read_text())
    found = Study(open_profile(SAMPLES / "transformer_h100_synthetic.pt.trace.json.gz")).memory_report()
    assert found is not None
    (pool,) = found.pools
    assert pool.peak_bytes == figures["summary"]["peak_mem_bytes"]
    assert {step.peak_bytes for step in found.steps} == {pool.peak_bytes}


@pytest.mark.parametrize("name", XPLANES)
def test_xplane_allocators_have_xprofs_peaks(name: str):
    """Heap and stack together, and the size of the memory: XProf 2.24.2's memory profile of the same file."""
    answer = json.loads(gzip.decompress(reference(f"oracle/xprof/{name}/memory_profile.json.gz").read_bytes()))
    pools = report(f"traces/xplane/{name}.xplane.pb").pools
    got = {(pool.name if pool.name.count("_") else str(pool.device)): (pool.peak_bytes, pool.capacity_bytes) for pool in pools}
    want = {
        key: (int(one["profileSummary"]["peakStats"]["peakBytesInUse"]), int(one["profileSummary"]["memoryCapacity"]))
        for key, one in answer["memoryProfilePerAllocator"].items()
    }
    assert got == want


@pytest.mark.parametrize("name", XPLANES)
def test_xplane_allocators_are_xprofs_at_their_peaks(name: str):
    """Heap, stack and what is free at the peak, fragmentation, and the highest point of the timeline: XProf 2.24.2.

    The allocator's own peak is the largest that it states; XProf takes that of the file's last event, which may be an earlier one.
    """
    answer = json.loads(gzip.decompress(reference(f"oracle/xprof/{name}/memory_profile.json.gz").read_bytes()))
    found = report(f"traces/xplane/{name}.xplane.pb")
    for number, pool in enumerate(found.pools):
        one = answer["memoryProfilePerAllocator"][pool.name if pool.name.count("_") else str(pool.device)]
        peak = one["profileSummary"]["peakStats"]
        assert pool.peak_bytes is not None
        assert pool.lifetime_peak_bytes is not None
        assert pool.stack_bytes == int(peak["stackReservedBytes"])
        assert pool.peak_bytes - pool.stack_bytes == int(peak["heapAllocatedBytes"])
        assert pool.free_at_peak_bytes == int(peak["freeMemoryBytes"])
        assert pool.fragmentation_pct == pytest.approx(100 * peak["fragmentation"], rel=1e-5)
        assert pool.lifetime_peak_bytes >= int(one["profileSummary"]["peakBytesUsageLifetime"])
        used = [
            sum(int(shot["aggregationStats"][part]) for part in ("stackReservedBytes", "heapAllocatedBytes"))
            for shot in one["sampledTimelineSnapshots"]
        ]
        [curve] = [curve for curve in found.curves if curve.pool == number]
        assert max(curve.used_bytes) == max(used)


@pytest.mark.parametrize("name", XPLANES)
def test_what_lives_at_an_allocators_peak_is_xprofs(name: str):
    """Blocks by size, as asked for and as given, type and shape, and how many are alike; XProf does not know which op they are for.

    XProf leaves out what was allocated before the peak's own step (the TensorFlow trace, the only one with steps). Threads whose
    lines begin apart it puts into another order, so that one smallest block may be held at its peak and freed at ours.
    """
    answer = json.loads(gzip.decompress(reference(f"oracle/xprof/{name}/memory_profile.json.gz").read_bytes()))
    made = study(f"traces/xplane/{name}.xplane.pb")
    for number, pool in enumerate(report(f"traces/xplane/{name}.xplane.pb").pools):
        one = answer["memoryProfilePerAllocator"][pool.name if pool.name.count("_") else str(pool.device)]
        want: Counter[tuple[Any, ...]] = Counter()
        for block in one["activeAllocations"]:
            if int(block["snapshotIndex"]) < 0:
                continue  # what it puts in the place of what it saw nobody ask for
            facts = one["memoryProfileSnapshots"][int(block["snapshotIndex"])]["activityMetadata"]
            known = [None if facts[key] in ("", "INVALID") else facts[key] for key in ("dataType", "tensorShape")]
            want[int(facts["allocationBytes"]), int(facts["requestedBytes"]), *known] += int(block["numOccurrences"])
        table = memory_blocks(made.memory, number)
        got: Counter[tuple[Any, ...]] = Counter()
        for row in table.filter(pl.col("time_ps").is_not_null()).iter_rows(named=True):
            got[row["bytes"], row["requested_bytes"], row["dtype"], row["shape"]] += row["blocks"]
        assert sum(key[0] * blocks for key, blocks in (want - got).items()) <= LEAST_BLOCK
        assert table["held_bytes"].sum() == pool.peak_bytes


def test_a_cold_start_turns_to_the_driver():
    """A100 AlexNet, 43 s before the first work: 24 cudaMalloc and 15 cudaFree in the whole file, none of it in a step."""
    name = "traces/torch/hta_a100_alexnet_critical_path.json.gz"
    got = {one.name: (one.calls, one.total_us, one.calls_per_step) for one in report(name).pressure}
    want: dict[str, tuple[int, float, None]] = {}
    for call in ("cudaMalloc", "cudaFree", "cudaHostAlloc"):
        mine = [e for e in events(name) if e.get("name") == call]
        want[call] = (len(mine), float(sum(e["dur"] for e in mine)), None)
    assert got == want
    assert want["cudaMalloc"][0] == 24


def test_device_memory_of_an_op_is_what_was_allocated_within_its_calls():
    """H100 Qwen: aten::empty and aten::empty_strided call no other op, so self and total are the same."""
    name = "traces/torch/tracelens_h100_qwen05b_chat.json.gz"
    moments = [(Decimal(e["ts"]), e["args"]["Bytes"]) for e in allocator_events(name)[1]]
    table = {row["name"]: row for row in study(name).table("op", ALL).iter_rows(named=True)}
    for op in ("aten::empty", "aten::empty_strided"):
        calls = [(start, end) for thread in ops_by_thread(name).values() for start, end, text in thread if text == op]
        want = sum(size for start, end in calls for time, size in moments if start <= time <= end)
        assert want > 0
        row = table[op]
        assert (row["calls"], row["device_memory_bytes"], row["self_device_memory_bytes"]) == (len(calls), want, want)


def test_the_summarys_peak_is_that_of_the_device_with_the_most_in_use():
    """XProf's memory profile gives 21,492,671,104 bytes of heap and stack for the fullest of the four cores, 16,106,341,504 of heap."""
    profile = open_profile(reference("traces/xplane/tpu_v6e_inference.xplane.pb"))
    assert Study(profile).summary().peak_mem_bytes == 21_492_671_104
