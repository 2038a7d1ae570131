"""How odd things in a trace are read: one rule each, held on traces made here, so that whole kinds are handled and not single files.

The rules are those of the reference's nasty/README.md, under "How odd things are read".
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import roofterm_parsers as rp
from roofterm_parsers.nesting import self_times
from roofterm_parsers.profile import WORK_KINDS, Kind
from tests.made_files import event, kineto, xla_json, xspace

US = 1_000_000  # picoseconds


@pytest.fixture
def opened(tmp_path: Path):
    """Opens bytes, or a list of events, as a file of the given name."""

    def open_it(content: bytes | list[dict[str, Any]], name: str = "trace.json") -> rp.Profile:
        data = content if isinstance(content, bytes) else json.dumps({"traceEvents": content}).encode()
        (tmp_path / name).write_bytes(data)
        profile = rp.open_profile(tmp_path / name, cache=False)
        profile.check()
        return profile

    return open_it


def x(name: str, ts: Any, dur: Any = 10, tid: Any = 1, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": tid, **more}


def be(phase: str, ts: float, name: str = "a", tid: int = 1) -> dict[str, Any]:
    return {"ph": phase, "name": name, "ts": ts, "pid": 1, "tid": tid}


def lengths_us(profile: rp.Profile) -> dict[str, list[float]]:
    """Name: lengths, in the order of the frame."""
    texts = profile.names["text"].gather(profile.slices["name"])
    found: dict[str, list[float]] = {}
    for text, dur_ps in zip(texts, profile.slices["dur_ps"], strict=True):
        found.setdefault(text, []).append(dur_ps / US)
    return found


def self_us(profile: rp.Profile) -> dict[str, float]:
    slices = profile.slices
    own = self_times(slices["parent"].to_numpy(), slices["start_ps"].to_numpy(), slices["dur_ps"].to_numpy()) / US
    return dict(zip(profile.names["text"].gather(slices["name"]), own.tolist(), strict=True))


def work(profile: rp.Profile) -> list[str]:
    rows = profile.slices.filter(pl.col("kind").is_in([int(kind) for kind in WORK_KINDS]))
    return sorted(profile.names["text"].gather(rows["name"]))


# Rule 1: recover what can be recovered; refuse only if nothing on the time axis is left


@pytest.mark.parametrize(
    "only",
    [
        x("a", 1),
        {"ph": "i", "name": "a", "ts": 1, "pid": 1, "tid": 1, "s": "t"},
        {"ph": "C", "name": "c", "ts": 1, "pid": 1, "args": {"v": 3}},
    ],
)
def test_one_event_on_the_time_axis_is_enough(opened, only: dict[str, Any]) -> None:
    profile = opened([only])
    assert profile.slices.height + profile.instants.height + profile.counters.height == 1


@pytest.mark.parametrize(
    "events", [[], [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "p"}}], [{}], [x("a", None)], [be("E", 5)]]
)
def test_without_an_event_on_the_time_axis_it_is_refused(opened, events: list[dict[str, Any]]) -> None:
    with pytest.raises(rp.ProfileError, match=r"trace\.json.*(no event|nothing)"):
        opened(events)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9, 0.99])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_of_a_cut_file_every_whole_event_is_kept(opened, share: float, pack) -> None:
    whole = json.dumps({"traceEvents": [x(f"op {i}", 100 * i) for i in range(300)]}).encode()
    cut = whole[: int(len(whole) * share)]
    profile = opened(cut)
    assert profile.slices.height == cut.count(b"}")
    assert profile.warnings


# Rule 2: damage is told with a count, habits of real writers are not


def as_list(*events: dict[str, Any]) -> bytes:
    return b"[" + b",\n".join(json.dumps(event).encode() for event in events)


@pytest.mark.parametrize(
    "text",
    [
        as_list(x("a", 1), x("b", 20)),
        as_list(x("a", 1), x("b", 20)) + b",\n",
        as_list(x("a", 1), x("b", 20)) + b",]",
        b"\xef\xbb\xbf" + as_list(x("a", 1), x("b", 20)) + b"]",
        as_list(x("a", 1), x("b", 20), {}) + b"]",
        as_list(x("a", "1.000"), x("b", "20.5")) + b"]",
        b'{"traceEvents": ' + as_list(x("a", 1), x("b", 20)) + b',],"displayTimeUnit": "ms",}',
    ],
)
def test_habits_of_real_writers_give_no_warning(opened, text: bytes) -> None:
    profile = opened(text)
    assert profile.slices.height == 2
    assert profile.warnings == []


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (b"[," + as_list(x("a", 1), x("b", 20))[1:] + b"]", 2),
        (as_list(x("a", 1), x("b", 20))[:-9], 1),
        (as_list(x("a", 1), x("b", 20), x("c", 40)).replace(b'"name": "b"', b'"name": "b" quoted""') + b"]", 2),
        (as_list(x("a", 1), x("b", 20)).replace(b'"b"', b'"b\xff\xfe"') + b"]", 2),
    ],
)
def test_damage_is_told(opened, text: bytes, kept: int) -> None:
    profile = opened(text)
    assert profile.slices.height >= kept
    assert profile.warnings
    assert all(warning.count >= 1 for warning in profile.warnings)


# Rule 3: ts and dur are microseconds, whatever displayTimeUnit says; numeric text is a number


@pytest.mark.parametrize("unit", ["ms", "ns", None])
@pytest.mark.parametrize(("ts", "dur"), [(1000.5, 13.25), ("1000.5", "13.25"), (" 1000.5 ", "1.325e1")])
def test_times_are_microseconds(opened, unit: str | None, ts: Any, dur: Any) -> None:
    events = [x("first", 1000, 1), x("a", ts, dur)]
    profile = opened(json.dumps({"traceEvents": events, **({"displayTimeUnit": unit} if unit else {})}).encode())
    assert lengths_us(profile) == {"first": [1], "a": [13.25]}
    assert profile.slices["start_ps"].to_list() == [0, 500_000]


def test_times_are_exact_to_the_nanosecond_far_from_zero(opened) -> None:
    """Kineto of spring 2024: 16 digits and three decimals, of which a double keeps a quarter of a microsecond."""
    event_of = '{"ph":"X","name":"a","pid":1,"tid":1,"ts":%s,"dur":%s}'
    text = f"[{event_of % ('1712195495519689.047', '0.003')},{event_of % ('1712195495519689.051', '1')}]".encode()
    profile = opened(text)
    assert profile.slices["start_ps"].to_list() == [0, 4000]
    assert profile.slices["dur_ps"].to_list() == [3000, US]


# Rule 4: no ts, no event; no dur, no length


@pytest.mark.parametrize("ts", [None, "abc", [], {}, True, ""])
def test_an_event_without_a_usable_time_is_dropped_and_counted(opened, ts: Any) -> None:
    profile = opened([x("good", 5), x("bad", ts)])
    assert list(lengths_us(profile)) == ["good"]
    assert profile.warnings


@pytest.mark.parametrize("dur", [None, -5, "abc", math.inf, math.nan, -math.inf, [], {}])
def test_an_event_without_a_usable_length_has_none(opened, dur: Any) -> None:
    assert lengths_us(opened([x("good", 5), x("bad", 50, dur)])) == {"good": [10], "bad": [0]}


def test_an_event_whose_length_is_absent_has_none(opened) -> None:
    bad = x("bad", 50)
    del bad["dur"]
    assert lengths_us(opened([x("good", 5), bad])) == {"good": [10], "bad": [0]}


@pytest.mark.parametrize("end", [b'"ts": 1234', b'"ts": 1234, "dur": 55'])
def test_a_number_cut_by_the_end_is_no_number(opened, end: bytes) -> None:
    text = as_list(x("good", 5)) + b',\n{"ph": "X", "name": "cut", "pid": 1, "tid": 1, ' + end
    assert list(lengths_us(opened(text))) == ["good"]


# Rule 5: events with neither time nor length, far from the others, are put on no axis


def test_events_at_zero_do_not_stretch_a_trace_of_today(opened) -> None:
    now = 1_731_000_000_000_000
    profile = opened([x("a", now), x("lost", 0, 0), x("lost", 0, 0), x("b", now + 100)])
    ends = profile.slices["start_ps"] + profile.slices["dur_ps"]
    kept = lengths_us(profile)
    assert (kept["a"], kept["b"]) == ([10], [10])
    on_axis = profile.slices.filter(pl.col("dur_ps") > 0)
    assert on_axis["start_ps"].to_list() == [0, 100 * US]
    assert ends.max() == 110 * US
    assert any(warning.count == 2 for warning in profile.warnings)


def test_events_at_zero_belong_to_a_trace_that_starts_there(opened) -> None:
    profile = opened([x("a", 0, 0), x("b", 50)])
    assert lengths_us(profile) == {"a": [0], "b": [10]}
    assert profile.warnings == []


# Rule 6: begin and end


def test_an_end_closes_the_innermost_begin_whatever_its_name(opened) -> None:
    profile = opened([be("B", 0, "outer"), be("B", 10, "inner"), be("E", 30, "any"), be("E", 100, "other")])
    assert lengths_us(profile) == {"outer": [100], "inner": [20]}


def test_an_end_without_a_begin_is_dropped_and_counted(opened) -> None:
    profile = opened([be("E", 5), be("B", 10), be("E", 30)])
    assert lengths_us(profile) == {"a": [20]}
    assert profile.warnings


def test_a_begin_without_an_end_lasts_as_long_as_its_thread(opened) -> None:
    profile = opened([be("B", 0, "open"), x("late", 50, 30), x("elsewhere", 500, 1, tid=2)])
    assert lengths_us(profile)["open"] == [80]
    assert profile.warnings


def test_begin_and_end_are_matched_within_their_thread(opened) -> None:
    profile = opened([be("B", 0, "one", tid=1), be("B", 5, "two", tid=2), be("E", 20, tid=1), be("E", 45, tid=2)])
    assert lengths_us(profile) == {"one": [20], "two": [40]}


def test_events_are_in_order_of_time_then_length_then_file(opened) -> None:
    profile = opened([x("short", 0, 10), x("late", 5, 1), x("long", 0, 50), x("twin", 0, 10)])
    assert profile.names["text"].gather(profile.slices["name"]).to_list() == ["long", "short", "twin", "late"]


# Rule 7: a child that sticks out ends with its parent


@pytest.mark.parametrize("out", [1, 30, 10_000])
def test_self_time_is_never_negative(opened, out: int) -> None:
    own = self_us(opened([x("parent", 0, 100), x("child", 60, 40 + out), x("grandchild", 70, 30 + out)]))
    assert own == {"parent": 60, "child": 10, "grandchild": 30}


# Rule 8: work is kernels, copies and sets only


def test_projections_and_derived_rows_are_no_work(opened) -> None:
    args = {"device": 0, "stream": 7, "correlation": 1}
    profile = opened(
        [
            {**event("gemm", "kernel", 10, 40, 0, 7), "args": args},
            event("ProfilerStep#1", "gpu_user_annotation", 9, 60, 0, 7),
            {**event("PyTorch Profiler (0)", "Trace", 0, 100, 0, 0), "pid": "Spans", "tid": "PyTorch Profiler"},
            {**event("Stream Sync", "cuda_sync", 55, 5, 0, 7), "args": args},
        ]
    )
    assert work(profile) == ["gemm"]


def test_xla_modules_and_other_derived_lines_are_no_work(opened) -> None:
    def line(tid: int, name: str) -> dict[str, Any]:
        return {"ph": "M", "pid": 3, "tid": tid, "name": "thread_name", "args": {"name": name}}

    events = json.loads(xla_json(2))["traceEvents"]
    derived = [line(9, "XLA Modules"), line(10, "Steps"), line(11, "Framework Ops"), line(12, "Source code")]
    shown = [{"ph": "X", "pid": 3, "tid": tid, "name": "jit_f(7)", "ts": 0, "dur": 15} for tid in (9, 10, 11, 12)]
    profile = opened(json.dumps({"metadata": {"highres-ticks": True}, "traceEvents": [*events[:-1], *derived, *shown, {}]}).encode())
    assert work(profile) == ["fusion.0", "fusion.1"]


# Rule 10: launches


def launch(ts: float, correlation: Any, name: str = "cudaLaunchKernel") -> dict[str, Any]:
    return {**event(name, "cuda_runtime", ts, 5, 77, 77), "args": {"correlation": correlation}}


def kernel(ts: float, correlation: Any, **args: Any) -> dict[str, Any]:
    return {**event(f"k{ts}", "kernel", ts, 4, 0, 7), "args": {"device": 0, "stream": 7, "correlation": correlation, **args}}


def launch_of(profile: rp.Profile) -> dict[str, float | None]:
    """Kernel: time of its launch in the file (us), the first event being at 0."""
    starts = profile.slices["start_ps"]
    names = profile.names["text"].gather(profile.slices["name"])
    return {names[work]: None if launch is None else starts[launch] / US for work, launch, _ in profile.links.rows()}


def test_a_kernel_belongs_to_the_launch_with_its_correlation(opened) -> None:
    profile = opened([launch(0, 1), launch(10, 2), kernel(20, 2), kernel(30, 1), kernel(40, 3)])
    assert launch_of(profile) == {"k20": 10, "k30": 0, "k40": None}


def test_one_graph_launch_owns_many_kernels(opened) -> None:
    profile = opened([launch(0, 9, "cudaGraphLaunch"), *(kernel(20 + 10 * i, 9) for i in range(5))])
    assert set(launch_of(profile).values()) == {0}


def test_correlations_beyond_a_double_and_beyond_64_bits_stay_apart(opened) -> None:
    ids = [2**53, 2**53 + 1, 2**64 + 3, 2**64 + 4]
    profile = opened([*(launch(10 * i, one) for i, one in enumerate(ids)), *(kernel(100 + 10 * i, one) for i, one in enumerate(ids))])
    assert launch_of(profile) == {"k100": 0, "k110": 10, "k120": 20, "k130": 30}


def test_ranks_merged_into_one_file_keep_their_launches_apart(opened) -> None:
    def of(rank: int, events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**one, "pid": f"[TP0{rank}] {one['pid']}"} for one in events]

    profile = opened([*of(0, [launch(0, 5), kernel(20, 5)]), *of(1, [launch(10, 5), kernel(30, 5)])])
    assert launch_of(profile) == {"k20": 0, "k30": 10}


# Rule 11: steps


def test_steps_are_the_distinct_numbers_of_the_host(opened) -> None:
    steps = [event(f"ProfilerStep#{i}", "user_annotation", 100 * i, 90, 77, tid) for i in (3, 4) for tid in (77, 78)]
    shown_again = [event(f"ProfilerStep#{i}", "gpu_user_annotation", 100 * i, 80, 0, 7) for i in (3, 4, 5)]
    profile = opened([*steps, *shown_again])
    assert profile.steps["number"].to_list() == [3, 4]
    assert profile.steps["name"].to_list() == ["ProfilerStep#3", "ProfilerStep#4"]


# Rule 13: content decides the format, not the name


@pytest.mark.parametrize("name", ["a.json", "a.json.gz", "a.pb", "a.xplane.pb", "a", "a.zip", "a.log"])
def test_a_name_decides_nothing(opened, name: str) -> None:
    assert opened(kineto(), name).sources[0].format == "kineto"
    assert opened(gzip.compress(kineto()), name).sources[0].container == "gzip"
    assert opened(xspace(), name).sources[0].format == "xplane"
    assert opened(gzip.compress(xspace()), name).sources[0].format == "xplane"


def test_step_markers_and_kernels_have_their_kinds(opened) -> None:
    kinds = opened(kineto()).slices["kind"].to_list()
    assert sorted(kinds) == sorted([Kind.STEP, Kind.RUNTIME, Kind.RUNTIME, Kind.KERNEL, Kind.KERNEL])
