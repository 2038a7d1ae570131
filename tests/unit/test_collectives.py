"""Collectives: how they are recognised, their rates by hand, and what of them is exposed."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from roofterm.analysis.collective_calls import CALLS, inside_link_domain
from roofterm.analysis.collectives import collective_table
from roofterm.analysis.matching import MATCHED
from roofterm.analysis.scope import ALL
from roofterm.analysis.study import Study
from roofterm.results import TABLES, DeviceInfo
from roofterm_parsers.profile import FRAMES, Profile
from tests.build import Build

NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
NOTHING_MATCHED = pl.DataFrame(schema=MATCHED)


def device(links: dict[str, float] | None = None) -> DeviceInfo:
    return DeviceInfo(
        0, "NVIDIA H100 80GB HBM3", "h100-sxm5-80gb", "gpu", 132, None, {}, {}, "vendor", {}, [], links=links or {"nvlink": 450e9}
    )


def call(**facts: Any) -> dict[str, Any]:
    """A call of 1 ms from 0 on, of which nothing is hidden."""
    row: dict[str, Any] = {name: None for name in CALLS} | {"slice": 0, "source": 0, "device": 0, "start_ps": 0, "end_ps": 10**9}
    row |= {"kind": "all_reduce", "collective": "allreduce", "library": "nccl", "evidence": "args", "exposed_ps": 10**9, "hidden_ps": 0}
    return row | facts


def table_of(*calls: dict[str, Any], matched: pl.DataFrame = NOTHING_MATCHED, info: DeviceInfo | None = None) -> list[dict[str, Any]]:
    table = collective_table(pl.DataFrame(calls, schema=CALLS), matched, info or device())
    assert tuple(table.columns) == TABLES["collective"]
    return table.rows(named=True)


def with_collective(profile: Profile, at: int, **facts: Any) -> Profile:
    """The profile with recorded arguments of a collective on a slice."""
    row = {name: None for name in FRAMES["collectives"]} | {"slice": at} | facts
    profile.collectives = pl.concat([profile.collectives, pl.DataFrame([row], schema=FRAMES["collectives"])])
    return profile


def calls_of(profile: Profile) -> list[dict[str, Any]]:
    frame = Study(profile).collective_calls
    assert frame.schema == CALLS
    return frame.rows(named=True)


# Rates


def test_rates_of_an_all_reduce():
    """1 GB in 5 ms: 200 GB/s, over the link 2 x 7/8 of it: 350 GB/s, 77.8 % of 450."""
    (row,) = table_of(call(group_size=8, message_bytes=1e9, wire_bytes=1.75e9, end_ps=5 * 10**9))
    assert row["algo_bw"] == pytest.approx(200e9)
    assert row["bus_bw"] == pytest.approx(350e9)
    assert row["pct_of_link"] == pytest.approx(100 * 350 / 450)
    assert (row["latency_bound"], row["bound_by"]) == (False, "link")
    assert row["note"] == "not matched over its ranks: waiting is in it, so rates are lower limits"


def test_matched_calls_count_by_their_transfers():
    """Two of two ranks seen: the one waits 4 ms, the transfer takes 1 ms on both; so 1 GB/ms each."""
    calls = [
        call(slice=0, device=0, end_ps=5 * 10**9, group_size=2, message_bytes=1e9, wire_bytes=1e9),
        call(slice=1, device=1, start_ps=4 * 10**9, end_ps=5 * 10**9, group_size=2, message_bytes=1e9, wire_bytes=1e9),
    ]
    met = {
        "match": 0,
        "participants": 2,
        "transfer_ps": 10**9,
        "exposed_wait_ps": 0,
        "exposed_transfer_ps": 0,
        "lead_ps": 0,
        "end_spread_ps": 0,
    }
    rows = [
        {"slice": 0, "wait_ps": 4 * 10**9, "is_last": False, "meets": True, **met},
        {"slice": 1, "wait_ps": 0, "is_last": True, "meets": True, **met},
    ]
    (row,) = table_of(*calls, matched=pl.DataFrame(rows, schema=MATCHED))
    assert (row["calls"], row["total_us"], row["wait_us"], row["transfer_us"]) == (2, 6000, 4000, 2000)
    assert row["bus_bw"] == pytest.approx(1e12)
    assert row["note"] is None


def test_a_group_over_several_nodes_is_held_against_no_link():
    (row,) = table_of(call(group_size=16, message_bytes=1e9, wire_bytes=1.875e9))
    assert (row["bus_bw"], row["pct_of_link"], row["latency_bound"]) == (1.875e12, None, None)
    assert "beyond one link domain" in row["note"]


def test_a_small_message_is_bound_by_latency():
    """1 MiB x 1.75 takes 4 us over 450 GB/s: less than the 20 us that any small all-reduce takes."""
    (row,) = table_of(call(group_size=8, message_bytes=float(2**20), wire_bytes=1.75 * 2**20))
    assert (row["latency_bound"], row["bound_by"]) == (True, "latency")


def test_unknown_size_and_unknown_link_give_no_rate():
    (row,) = table_of(call(group_size=8))
    assert (row["algo_bw"], row["bus_bw"], row["pct_of_link"], row["latency_bound"]) == (None, None, None, None)
    assert row["note"] == "the file does not tell the message's size"
    (row,) = table_of(call(group_size=8, message_bytes=1e9, wire_bytes=1.75e9), info=device(links={"pcie": 63e9}))
    assert (row["pct_of_link"], row["latency_bound"], row["bound_by"]) == (None, None, None)


def test_rows_are_one_a_kind_group_and_size():
    calls = [
        call(slice=at, message_bytes=size, group_size=8, group=group)
        for at, (size, group) in enumerate([(8.0, "tp"), (8.0, "dp"), (16.0, "tp")])
    ]
    calls.append(call(slice=3, message_bytes=8.0, group_size=8, group="tp"))
    rows = table_of(*calls)
    assert [(row["group"], row["message_bytes"], row["calls"], row["pct"]) for row in rows] == [
        ("tp", 8, 2, 50),
        ("tp", 16, 1, 25),
        ("dp", 8, 1, 25),
    ]


@pytest.mark.parametrize(
    ("size", "ranks", "inside"),
    [
        (8, None, True),
        (9, None, False),
        (None, None, None),
        (4, "[4, 5, 6, 7]", True),
        (2, "[0, 8]", False),
        (2, "[7, 8]", False),
        (2, "not a list", True),
    ],
)
def test_link_domains_of_eight(size: int | None, ranks: str | None, inside: bool | None):
    assert inside_link_domain(size, ranks, 8) is inside


# What is exposed


def test_exposed_time_belongs_to_the_collective_that_began_first():
    """Collectives from 0 to 60 and 40 to 100, compute from 20 to 50: the first hides 30 of 60, the second nothing of its last 40."""
    build = Build()
    build.kernel(NCCL, 0, 60, stream=20)
    build.kernel(NCCL, 40, 60, stream=21)
    build.kernel("gemm", 20, 30)
    first, second = calls_of(build.profile())
    assert (first["exposed_ps"], first["hidden_ps"]) == (30_000_000, 30_000_000)
    assert (second["exposed_ps"], second["hidden_ps"]) == (40_000_000, 0)


def test_a_collective_inside_another_has_no_time_of_its_own():
    build = Build()
    build.kernel(NCCL, 0, 60, stream=20)
    build.kernel(NCCL, 10, 20, stream=21)
    assert [(row["exposed_ps"], row["hidden_ps"]) for row in calls_of(build.profile())] == [(60_000_000, 0), (0, 0)]


# What it is


def test_arguments_on_the_kernel_come_first():
    """A kernel that is named AllReduce but says reduce_scatter, of 8 x 1,000 BFloat16 in and 1,000 out."""
    build = Build()
    build.kernel(NCCL, 0, 60)
    profile = build.profile()
    facts = {"collective": "_reduce_scatter_base", "group": "5", "group_description": "fsdp", "group_size": 8, "ranks": "[0,1,2,3,4,5,6,7]"}
    profile = with_collective(profile, 0, dtype="BFloat16", in_elements=8000, out_elements=1000, sequence=17, **facts)
    (row,) = calls_of(profile)
    assert (row["kind"], row["collective"], row["evidence"]) == ("reduce_scatter", "_reduce_scatter_base", "args")
    assert (row["dtype"], row["message_bytes"], row["wire_bytes"]) == ("bf16", 16000, 14000)
    assert (row["group"], row["group_size"], row["sequence"], row["library"]) == ("fsdp", 8, 17, "nccl")


def test_arguments_of_the_op_around_the_launch_count_for_its_kernel():
    build = Build()
    op = build.host("record_param_comms", 0, 20)
    build.kernel("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", 30, 60, launch=build.call(5, 5), op=op)
    profile = build.profile()
    at = profile.slices["name"].to_list().index(profile.names["text"].to_list().index("record_param_comms"))
    profile = with_collective(profile, at, collective="broadcast", dtype="Long", in_elements=20, out_elements=20, group_size=8)
    (row,) = calls_of(profile)
    assert (row["kind"], row["message_bytes"], row["wire_bytes"], row["library"]) == ("broadcast", 160, 160, "rccl")


def test_without_arguments_the_op_names_kind_and_buffers():
    """torch 2.1: record_param_comms has the input alone, c10d::alltoall_base_ output and input; the larger buffer counts."""
    build = Build()
    build.host("c10d::alltoall_base_", 0, 40, dims="[[382],[419],[],[]]", types='["unsigned char","unsigned char","",""]')
    op = build.host("record_param_comms", 1, 30, dims="[[419],[],[]]", types='["unsigned char","Scalar","Scalar"]')
    build.kernel("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)", 50, 60, launch=build.call(5, 5), op=op)
    (row,) = calls_of(build.profile())
    assert (row["kind"], row["collective"], row["evidence"]) == ("all_to_all", "c10d::alltoall_base_", "op")
    assert (row["message_bytes"], row["dtype"], row["wire_bytes"]) == (419, "int8", None)


def test_one_group_without_a_name_is_the_world():
    """A job of eight that names no process group: all take part, so that the factor of all-to-all is 7/8."""
    build = Build()
    op = build.host("c10d::alltoall_base_", 0, 40, dims="[[800],[800]]", types='["float","float"]')
    build.kernel("ncclKernel_SendRecv", 50, 60, launch=build.call(5, 5), op=op)
    profile = build.profile()
    (source,) = profile.sources
    profile.sources = [type(source)(**{name: getattr(source, name) for name in source.__struct_fields__} | {"world_size": 8})]
    (row,) = calls_of(profile)
    assert (row["group_size"], row["message_bytes"], row["wire_bytes"]) == (8, 3200, 2800)


@pytest.mark.parametrize(
    ("name", "kind", "library"),
    [
        (NCCL, "all_reduce", "nccl"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", "reduce_scatter", "nccl"),
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "send_recv", "nccl"),
        ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", "other", "rccl"),
        ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)", "all_reduce", "custom all-reduce"),
        ("void trtllm_allreduce_fusion_kernel_oneshot_lamport<1>()", "all_reduce", "custom all-reduce"),
        ("void two_shot_all_reduce_kernel<c10::BFloat16, 16, 8>(unsigned long)", "all_reduce", "symmetric memory"),
        ("multimem_all_reduce_kernel<c10::BFloat16, 16>", "all_reduce", "symmetric memory"),
        ("mscclKernel_Sum_half_LL_false", "other", "msccl"),
        ("void deep_ep::intranode::dispatch<8, 768, 8192>(int4*)", "all_to_all", "deep_ep"),
        ("void deep_ep::internode_ll::combine<true, 7168>(void*)", "all_to_all", "deep_ep"),
        ("nvshmemi_transfer_rma_put", "other", "nvshmem"),
    ],
)
def test_what_a_name_alone_tells(name: str, kind: str, library: str):
    build = Build()
    build.kernel(name, 0, 60)
    (row,) = calls_of(build.profile())
    assert (row["kind"], row["library"], row["evidence"], row["message_bytes"]) == (kind, library, "name", None)


@pytest.mark.parametrize(
    ("name", "text", "kind", "message", "size"),
    [
        ("all-reduce.1", "%all-reduce.1 = f32[5,1024]{1,0} all-reduce(f32[5,1024] %x), replica_groups=[4,2]<=[8]", "all_reduce", 20480, 2),
        (
            "all-gather.3",
            "%all-gather.3 = bf16[8,128]{1,0} all-gather(bf16[1,128] %x), replica_groups={{0,1,2,3,4,5,6,7}}",
            "all_gather",
            2048,
            8,
        ),
        (
            "reduce-scatter.2",
            "%reduce-scatter.2 = f32[16]{0} reduce-scatter(f32[64] %x), replica_groups={{0,1,2,3}}",
            "reduce_scatter",
            256,
            4,
        ),
        (
            "all-reduce-start.1",
            "%all-reduce-start.1 = f32[16]{0} all-reduce-start(f32[16] %x), replica_groups={{0,1}}",
            "all_reduce",
            None,
            2,
        ),
        ("all-to-all.7", "%all-to-all.7 = u8[4096]{0} all-to-all(u8[4096] %x)", "all_to_all", 4096, None),
    ],
)
def test_xla_instructions_tell_by_their_text(name: str, text: str, kind: str, message: float | None, size: int | None):
    build = Build(format="xplane", device_name="TPU v6 lite", device_kind="tpu")
    build.kernel(name, 0, 60)
    profile = build.profile()
    profile.hlo = pl.DataFrame([{"slice": 0, "op": 0}], schema=FRAMES["hlo"])
    row = {column: None for column in FRAMES["hlo_ops"]} | {"name": name, "category": name.split(".", maxsplit=1)[0], "text": text}
    profile.hlo_ops = pl.DataFrame([row], schema=FRAMES["hlo_ops"])
    (found,) = calls_of(profile)
    assert (found["kind"], found["message_bytes"], found["group_size"], found["library"]) == (kind, message, size, "xla")


def test_no_collectives_give_an_empty_table():
    build = Build()
    build.kernel("gemm", 0, 10)
    table = Study(build.profile()).table("collective", ALL)
    assert (table.height, tuple(table.columns)) == (0, TABLES["collective"])
