"""The profiler's own tree, on examples worked out by hand from torch/autograd/profiler_util.py."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from roofterm.analysis.profiler_tree import function_tree, holders, profiler_events, top_level_memory
from roofterm.analysis.work import device_work
from roofterm_parsers.profile import Kind, Profile
from tests.build import US, Build


def events(profile: Profile) -> dict[str, dict[str, float]]:
    """The events by name (names are distinct in these tests), times in us."""
    none = pl.DataFrame(schema={"slice": pl.UInt32, "work_class": pl.UInt8})
    found = profiler_events(profile, device_work(profile, profile.slices["dur_ps"].to_numpy(), none))
    names = profile.names["text"].gather(profile.slices["name"].gather(found["slice"]))
    return {
        name: {k: v / US if k.endswith("_ps") else v for k, v in row.items()}
        for name, row in zip(names, found.iter_rows(named=True), strict=True)
    }


def test_self_time_is_less_the_children():
    build = Build()
    build.host("outer", 0, 100)
    build.host("a", 10, 30)
    build.host("b", 50, 20)
    build.host("inner", 15, 10)
    got = events(build.profile())
    assert {n: e["self_ps"] for n, e in got.items()} == {"outer": 50, "a": 20, "b": 20, "inner": 10}


def test_a_partial_overlap_has_no_parent():
    build = Build()
    build.host("outer", 0, 100)
    build.host("sticks out", 90, 20)
    build.host("after", 105, 2)
    got = events(build.profile())
    # "sticks out" ends after "outer": both are roots; the stack then holds only "sticks out", parent of "after".
    assert {n: e["self_ps"] for n, e in got.items()} == {"outer": 100, "sticks out": 18, "after": 2}


def test_an_only_child_of_the_same_name_is_merged_away():
    build = Build()
    build.host("div", 0, 100)
    build.host("div", 10, 80)
    build.host("fill", 20, 30)
    got = events(build.profile())
    assert {n: e["self_ps"] for n, e in got.items()} == {"div": 70, "fill": 30}


def test_chains_of_the_same_name_merge_to_one():
    build = Build()
    for depth in range(4):
        build.host("to", depth, 100 - 2 * depth)
    build.host("copy", 10, 5)
    none = pl.DataFrame(schema={"slice": pl.UInt32, "work_class": pl.UInt8})
    profile = build.profile()
    found = profiler_events(profile, device_work(profile, np.zeros(0, np.int64), none))
    assert found.height == 2
    assert found["self_ps"].to_list() == [95 * US, 5 * US]


def test_same_name_children_that_are_not_alone_stay():
    build = Build()
    build.host("f", 0, 100)
    build.host("f", 10, 10)
    build.host("g", 30, 10)
    none = pl.DataFrame(schema={"slice": pl.UInt32, "work_class": pl.UInt8})
    profile = build.profile()
    assert profiler_events(profile, device_work(profile, np.zeros(0, np.int64), none)).height == 3


def test_self_time_can_be_negative():
    """Two children that overlap each other partly, both inside the parent: their sum exceeds it."""
    build = Build()
    build.host("outer", 0, 100)
    build.host("a", 0, 70)
    build.host("b", 30, 70)
    got = events(build.profile())
    # "b" sticks out of "a" but lies in "outer": 100 - 70 - 70.
    assert got["outer"]["self_ps"] == -40


def test_device_time_goes_to_the_launching_op_and_up():
    build = Build()
    build.host("linear", 0, 100)
    op = build.host("addmm", 10, 50)
    build.kernel("gemm", 200, 40, launch=build.call(20, 5), op=op)
    build.kernel("bias", 240, 10, launch=build.call(30, 5, name="cudaLaunchKernelExC"), op=op)
    got = events(build.profile())
    assert (got["addmm"]["self_device_ps"], got["addmm"]["device_ps"]) == (50, 50)
    assert (got["linear"]["self_device_ps"], got["linear"]["device_ps"]) == (0, 50)


def test_memory_counts_every_event_in_the_interval_ends_included():
    build = Build()
    build.host("outer", 0, 100)
    build.host("inner", 10, 40)
    build.memory(10, 1000, 1000, device_type=0)
    build.memory(50, -400, 600, device_type=0, thread=1)
    build.memory(70, 64, 664, device_type=0)
    build.memory(20, 4096, 4096, device_type=1)
    build.memory(300, 32, 696, device_type=0)
    profile = build.profile()
    got = events(profile)
    assert (got["inner"]["memory_bytes"], got["outer"]["memory_bytes"]) == (600, 664)
    assert got["outer"]["self_memory_bytes"] == 64
    assert got["inner"]["device_memory_bytes"] == 4096
    none = pl.DataFrame(schema={"slice": pl.UInt32, "work_class": pl.UInt8})
    found = profiler_events(profile, device_work(profile, np.zeros(0, np.int64), none))
    assert top_level_memory(profile, found) == (1, 32, 0)


def test_device_slices_and_hidden_names_are_no_events():
    build = Build()
    build.host("aten::is_leaf", 0, 10)
    build.kernel("k", 0, 10)
    build.host("shown", 20, 10, kind=Kind.PYTHON)
    assert set(events(build.profile())) == {"shown"}


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=40))
def test_holders_are_what_the_profilers_walk_over_a_thread_finds(slices: list[tuple[int, int]]):
    slices = sorted(slices, key=lambda one: (one[0], -one[1]))
    walked: list[int] = []
    stack: list[tuple[int, int]] = []
    for row, (start, length) in enumerate(slices):
        while stack and (start >= stack[-1][1] or start + length > stack[-1][1]):
            stack.pop()
        walked.append(stack[-1][0] if stack else -1)
        stack.append((row, start + length))
    starts = np.array([start for start, _ in slices], np.int64)
    assert holders(starts, starts + np.array([length for _, length in slices], np.int64)).tolist() == walked


def test_all_self_time_is_that_of_the_events_after_merging():
    build = Build()
    build.host("div", 0, 100)
    build.host("div", 10, 80)
    build.host("sticks out", 95, 20)
    got = events(build.profile())
    assert function_tree(build.profile()).self_ps / US == sum(event["self_ps"] for event in got.values()) == 120
