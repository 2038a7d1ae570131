"""Links between work, launches and ops, rule by rule, and look-ups against a plain search."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from roofterm_parsers.linking import NONE, Ids, Lookup
from tests.unit.chrome_traces import call, kernel, opened, texts_of, x


def op(name: str, ts: float, dur: float, external: int, **more: Any) -> dict[str, Any]:
    tid = more.pop("tid", 1)
    return x(name, ts, dur, tid=tid, **{"External id": external, **more})


def links(events: list[dict[str, Any]]) -> list[tuple[str | None, str | None, str | None]]:
    profile = opened(events)
    return list(zip(*(texts_of(profile, profile.links[column]) for column in ("work", "launch", "op")), strict=True))


def test_the_op_is_the_innermost_around_the_launch() -> None:
    events = [op("aten::linear", 0, 50, 1), op("aten::addmm", 5, 40, 2), call("cudaLaunchKernel", 10, 5, 7), kernel("gemm", 30, 9, 7)]
    assert links(events) == [("gemm", "cudaLaunchKernel", "aten::addmm")]


def test_python_frames_and_annotations_between_op_and_launch_are_no_ops() -> None:
    events = [
        op("aten::mm", 0, 50, 1),
        x("backward.py(3): f", 2, 40, cat="python_function"),
        x("range", 4, 30, cat="user_annotation"),
        call("cudaLaunchKernel", 10, 5, 7),
        kernel("gemm", 30, 9, 7),
    ]
    assert links(events) == [("gemm", "cudaLaunchKernel", "aten::mm")]


def test_without_an_op_around_it_a_launch_belongs_to_the_op_that_its_external_id_names() -> None:
    events = [op("aten::mm", 0, 50, 3, tid=1), call("cudaLaunchKernel", 10, 5, 7, tid=99, **{"External id": 3}), kernel("gemm", 30, 9, 7)]
    assert links(events) == [("gemm", "cudaLaunchKernel", "aten::mm")]


def test_an_external_id_of_the_kernel_alone_serves_too() -> None:
    events = [op("aten::mm", 0, 50, 3, tid=1), call("cudaLaunchKernel", 10, 5, 7, tid=99), kernel("gemm", 30, 9, 7, **{"External id": 3})]
    assert links(events) == [("gemm", "cudaLaunchKernel", "aten::mm")]


def test_an_external_id_that_is_the_launch_s_own_correlation_matches_no_op_by_chance() -> None:
    # until 2024 launches outside any op carried their correlation id as External id
    events = [
        op("aten::unrelated", 1000, 50, 7),
        call("cudaLaunchKernel", 10, 5, 7, tid=99, **{"External id": 7}),
        kernel("gemm", 30, 9, 7, **{"External id": 7}),
    ]
    assert links(events) == [("gemm", "cudaLaunchKernel", None)]


def test_where_no_call_is_recorded_the_external_id_of_the_work_tells_the_op() -> None:
    assert links([op("aten::mm", 0, 50, 3), kernel("gemm", 30, 9, **{"External id": 3})]) == [("gemm", None, "aten::mm")]


def test_waits_of_the_device_are_never_joined() -> None:
    wait = x("Stream Sync", 20, 5, cat="cuda_sync", pid=0, tid=7, correlation=7, **{"External id": 7})
    events = [op("aten::mm", 0, 50, 7), wait, call("cudaLaunchKernel", 10, 5, 8), kernel("gemm", 30, 9, 8)]
    assert links(events) == [("gemm", "cudaLaunchKernel", "aten::mm")]
    assert opened(events).waits["correlation"].to_list() == [7]


def test_copies_and_sets_are_linked_like_kernels() -> None:
    copy = x("Memcpy HtoD (Pinned -> Device)", 20, 5, cat="gpu_memcpy", pid=0, tid=7, correlation=3)
    clear = x("Memset (Device)", 30, 5, cat="gpu_memset", pid=0, tid=7, correlation=4)
    events = [op("aten::copy_", 0, 9, 1), call("cudaMemcpyAsync", 2, 3, 3), call("cudaMemsetAsync", 12, 3, 4), copy, clear]
    assert links(events) == [
        ("Memcpy HtoD (Pinned -> Device)", "cudaMemcpyAsync", "aten::copy_"),
        ("Memset (Device)", "cudaMemsetAsync", None),
    ]


def test_of_two_calls_with_one_correlation_the_first_is_the_launch() -> None:
    events = [call("cuLaunchKernel", 6, 2, 7), call("cudaLaunchKernel", 5, 9, 7), kernel("k", 20, 5, 7)]
    assert links(events) == [("k", "cudaLaunchKernel", None)]


def test_a_backward_op_finds_the_innermost_forward_op_of_its_number() -> None:
    events = [
        op("aten::linear", 0, 30, 1, **{"Sequence number": 5, "Fwd thread id": 0}),
        op("aten::addmm", 5, 20, 2, **{"Sequence number": 5, "Fwd thread id": 0}),
        op("aten::relu", 40, 20, 3, **{"Sequence number": 6, "Fwd thread id": 0}),
        op("AddmmBackward0", 100, 30, 4, tid=2, **{"Sequence number": 5, "Fwd thread id": 1}),
        op("AccumulateGrad", 140, 30, 5, tid=2, **{"Sequence number": 99, "Fwd thread id": 1}),
    ]
    profile = opened(events)
    assert texts_of(profile, profile.backward["backward"]) == ["AddmmBackward0"]
    assert texts_of(profile, profile.backward["forward"]) == ["aten::addmm"]
    assert profile.ops["forward_thread"].to_list() == [None, None, None, 1, 1]


@pytest.mark.parametrize("ids", [range(20), [-(1 << 62), 5, 5 + 10**12, (1 << 63) - 1]], ids=["dense", "sparse"])
def test_a_look_up_finds_what_a_search_finds(ids: Any) -> None:
    rng = random.Random(3)
    for _ in range(300):
        slices = rng.sample(range(100), rng.randint(0, 30))
        key = np.array([rng.randint(0, 5) for _ in range(100)], np.int64)
        held = [(rng.randrange(3), rng.choice(ids)) for _ in slices]
        lookup = Lookup(Ids(np.array(slices, np.int64), *np.array(held, np.int64).reshape(-1, 2).T), key)
        asked = [(rng.randrange(4), rng.choice([*ids, 3, 99, -7])) for _ in range(20)]
        found = lookup(Ids(np.arange(20), *np.array(asked, np.int64).T)).tolist()
        for pair, got in zip(asked, found, strict=True):
            matching = [(int(key[s]), s) for s, own in zip(slices, held, strict=True) if own == pair]
            assert got == (min(matching)[1] if matching else NONE)
