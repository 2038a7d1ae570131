"""Events of all phases, odd types and ids: what becomes a slice, a mark, a counter, an arrow, and on which track."""

from __future__ import annotations

import polars as pl

from roofterm_parsers.profile import Kind, TrackKind
from tests.unit.chrome_traces import US, codes, kernel, kinds, named, opened, self_us, spans, track_kinds, x


def b(name: str, ts: float, tid: int = 1) -> dict[str, object]:
    return {"ph": "B", "pid": 1, "tid": tid, "ts": ts, "name": name}


def e(ts: float, tid: int = 1, name: str = "") -> dict[str, object]:
    return {"ph": "E", "pid": 1, "tid": tid, "ts": ts, "name": name}


def test_an_end_closes_the_innermost_open_begin_whatever_its_name() -> None:
    profile = opened([b("outer", 10), b("inner", 20), e(50, name="outer"), e(80)])
    assert spans(profile) == [("outer", 0, 70 * US), ("inner", 10 * US, 30 * US)]
    assert profile.warnings == []


def test_an_end_on_an_empty_stack_is_dropped_and_counted() -> None:
    profile = opened([e(0), b("a", 1), e(3), e(4)])
    assert spans(profile) == [("a", 0, 2 * US)]
    assert codes(profile) == {"unmatched": 2}


def test_a_begin_that_never_ends_lasts_to_the_last_time_of_its_thread() -> None:
    events = [
        b("open", 100, 2),
        b("other", 120, 2),
        e(130, 2),
        {"ph": "i", "pid": 1, "tid": 2, "ts": 210, "name": "end"},
        b("else", 0, 3),
        e(999, 3),
    ]
    profile = opened(events)
    assert ("open", 100 * US, 110 * US) in spans(profile)
    assert codes(profile) == {"unmatched": 1}


def test_the_last_time_of_a_thread_may_be_the_end_of_a_slice() -> None:
    assert ("open", 0, 50 * US) in spans(opened([b("open", 10), x("a", 20, 40)]))


def test_begin_and_end_at_one_time_keep_the_order_of_the_file() -> None:
    profile = opened([b("a", 0), e(10), b("b", 10), e(20), b("z", 20), e(20), b("c", 20), e(25)])
    assert self_us(profile) == {"a": 10, "b": 10, "z": 0, "c": 5}
    assert profile.warnings == []


def test_begins_and_ends_are_taken_in_order_of_time_not_of_the_file() -> None:
    assert spans(opened([e(30), b("late", 20), e(10), b("early", 0)])) == [("early", 0, 10 * US), ("late", 20 * US, 10 * US)]


def test_the_longer_of_two_that_start_together_is_the_parent() -> None:
    profile = opened([x("leaf", 15, 20), x("twin", 80, 20), x("child", 0, 45), x("parent", 0, 100)])
    assert self_us(profile) == {"parent": 35, "child": 25, "leaf": 20, "twin": 20}


def test_of_equal_slices_the_first_in_the_file_is_the_parent() -> None:
    profile = opened([x("first", 0, 10), x("second", 0, 10)])
    assert named(profile).select("text", "depth").rows() == [("first", 0), ("second", 1)]


def test_a_child_that_sticks_out_ends_with_its_parent() -> None:
    assert self_us(opened([x("parent", 0, 10), x("child", 6, 10), x("next", 12, 3)])) == {"parent": 6, "child": 4, "next": 3}


def test_other_phases_are_no_slices() -> None:
    profile = opened(
        [
            x("alpha", 100, 50),
            {"ph": "b", "cat": "net", "name": "req", "id": "0x1", "pid": 1, "tid": 1, "ts": 105},
            {"ph": "n", "cat": "net", "name": "hop", "id": "0x1", "pid": 1, "tid": 1, "ts": 106},
            {"ph": "e", "cat": "net", "name": "req", "id": "0x1", "pid": 1, "tid": 1, "ts": 900},
            {"ph": "C", "name": "queue", "ts": 101, "args": {"len": 3}},
            {"ph": "C", "name": "queue", "ts": 102, "args": {"len": "4", "note": "text"}},
            {"ph": "i", "name": "mark", "pid": 1, "tid": 1, "ts": 103, "s": "g"},
            {"ph": "s", "id": 7, "name": "f", "cat": "f", "pid": 1, "tid": 1, "ts": 104},
            {"ph": "t", "id": 7, "name": "f", "cat": "f", "pid": 1, "tid": 1, "ts": 107},
            {"ph": "f", "id": 7, "bp": "e", "name": "f", "cat": "f", "pid": 1, "tid": 1, "ts": 108},
            {"ph": "f", "id": "0xab", "bp": "e", "name": "f", "cat": "f", "pid": 1, "tid": 1, "ts": 109},
        ]
    )
    assert profile.slices.height == 1
    assert profile.counters.select("time_ps", "series", "value").rows() == [(1 * US, "queue len", 3.0), (2 * US, "queue len", 4.0)]
    assert profile.names["text"].gather(profile.instants["name"]).to_list() == ["mark", "req", "hop", "req"]
    assert profile.flows.select("id", "cat", "phase").rows() == [("7", "f", 0), ("7", "f", 1), ("7", "f", 2), ("0xab", "f", 2)]
    assert profile.warnings == []


def test_a_lone_value_of_a_counter_goes_by_the_counter_s_name() -> None:
    profile = opened([{"ph": "C", "name": "temperature", "pid": "GPU 0", "ts": 1, "args": {"": 55}}, x("a", 0, 5)])
    assert profile.counters.select("process", "series", "value").rows() == [("GPU 0", "temperature", 55.0)]


def test_events_of_odd_types_are_kept_with_stand_ins() -> None:
    profile = opened(
        [
            {"ph": "X", "ts": 10, "dur": 1, "pid": 1, "tid": 1, "name": None},
            {"ph": "X", "ts": 20, "dur": 1, "pid": 1, "tid": 1, "name": 17},
            {"ph": "X", "ts": 30, "dur": 1, "pid": 1, "tid": 1, "name": "argtext", "args": "hello"},
            {"ph": "X", "ts": 40, "dur": 1, "pid": 1, "tid": 1, "name": "arglist", "args": [1, 2]},
            {"ph": "X", "name": "noids", "ts": 60, "dur": 1},
            {"ph": "X", "ts": 70, "dur": 1, "pid": 1.0, "tid": True, "name": "catlist", "cat": ["a", "b"]},
            {"ph": "X", "ts": 80, "dur": 1, "pid": 1, "tid": 1, "name": {"x": 1}},
        ]
    )
    names = [name for name, _, _ in spans(profile)]
    assert names == ["(no name)", "17", "argtext", "arglist", "noids", "catlist", '{"x": 1}']
    assert dict(named(profile).select("text", "cat").rows())["catlist"] == "a,b"


def test_ids_of_64_bits_and_signs_are_threads_of_their_own() -> None:
    profile = opened(
        [
            x("a", 0, 10, tid=9007199254740992),
            x("b", 0, 10, tid=9007199254740993),
            x("c", 0, 10, tid=-5),
            x("d", 0, 10, pid=7168000000),
            x("e", 0, 10, tid=1 << 70),
        ]
    )
    assert profile.tracks.height == 5
    assert set(profile.tracks["thread"]) == {"9007199254740992", "9007199254740993", "-5", "1", str(1 << 70)}


def test_a_number_and_its_text_are_one_thread() -> None:
    assert opened([x("a", 0, 5, tid=25738), x("b", 10, 5, tid="25738")]).tracks.height == 1


def test_the_class_of_a_track_is_told_by_category_and_never_by_process() -> None:
    # a container's first process has the number of a device
    profile = opened(
        [
            x("aten::mm", 0, 9, pid=0, tid=7),
            kernel("k", 20, 5),
            x("ProfilerStep#1", 0, 99, cat="gpu_user_annotation", pid=0, tid=7),
            x("Stream Sync", 1, 2, cat="cuda_sync", pid=0, tid=7),
            x("PyTorch Profiler (0)", 0, 99, cat="Trace", pid="Spans", tid="PyTorch Profiler"),
        ]
    )
    assert track_kinds(profile) == {
        "aten::mm": TrackKind.HOST,
        "k": TrackKind.DEVICE,
        "ProfilerStep#1": TrackKind.DEVICE_OTHER,
        "Stream Sync": TrackKind.DEVICE_OTHER,
        "PyTorch Profiler (0)": TrackKind.PROFILER,
    }
    assert profile.tracks.filter(pl.col("process") == "0").height == 3


def test_names_and_order_of_threads_come_from_metadata() -> None:
    def meta(kind: str, pid: int, tid: int, **args: object) -> dict[str, object]:
        return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "ts": 0, "args": args}

    profile = opened(
        [
            x("a", 0, 1, pid=5, tid=2),
            x("b", 0, 1, pid=5, tid=1),
            meta("process_name", 5, 0, name="python"),
            meta("thread_name", 5, 2, name="main "),
            meta("thread_sort_index", 5, 2, sort_index=0),
            meta("thread_sort_index", 5, 1, sort_index=3),
        ]
    )
    assert profile.tracks.select("thread", "process_name", "thread_name", "sort").rows() == [
        ("2", "python", "main", 0),
        ("1", "python", None, 1),
    ]


def test_categories_of_all_eras_mean_the_same() -> None:
    eras = [
        ("cpu_op", Kind.OP),
        ("Operator", Kind.OP),
        ("user_annotation", Kind.ANNOTATION),
        ("gpu_user_annotation", Kind.DEVICE_ANNOTATION),
        ("gpu_user_Annotation", Kind.DEVICE_ANNOTATION),
        ("kernel", Kind.KERNEL),
        ("Kernel", Kind.KERNEL),
        ("gpu_memcpy", Kind.COPY),
        ("Memcpy", Kind.COPY),
        ("gpu_memset", Kind.MEMSET),
        ("Memset", Kind.MEMSET),
        ("cuda_runtime", Kind.RUNTIME),
        ("cuda_driver", Kind.RUNTIME),
        ("Runtime", Kind.RUNTIME),
        ("xpu_runtime", Kind.RUNTIME),
        ("mtia_runtime", Kind.RUNTIME),
        ("privateuse1_driver", Kind.RUNTIME),
        ("cuda_sync", Kind.DEVICE_WAIT),
        ("python_function", Kind.PYTHON),
        ("overhead", Kind.OVERHEAD),
        ("Trace", Kind.OVERHEAD),
        ("cuda_profiler_range", Kind.COUNTED),
        ("disabled-by-default-v8", Kind.OTHER),
        ("", Kind.OTHER),
    ]
    profile = opened([x(f"e{i}", i, 1, cat=cat) for i, (cat, _) in enumerate(eras)])
    assert kinds(profile) == {f"e{i}": kind for i, (_, kind) in enumerate(eras)}


def test_calls_that_wait_for_the_device_are_told_by_name() -> None:
    profile = opened(
        [x(name, i, 1, cat="cuda_runtime") for i, name in enumerate(["cudaLaunchKernel", "cudaDeviceSynchronize", "hipStreamSynchronize"])]
    )
    assert kinds(profile) == {"cudaLaunchKernel": Kind.RUNTIME, "cudaDeviceSynchronize": Kind.SYNC, "hipStreamSynchronize": Kind.SYNC}


def test_steps_are_the_distinct_numbers_on_the_host() -> None:
    profile = opened(
        [
            x("ProfilerStep#10", 0, 200, cat="user_annotation", tid=1),
            x("ProfilerStep#10", 3, 190, cat="user_annotation", tid=2),
            x("ProfilerStep#9", 300, 50, cat="Operator", tid=1),
            x("ProfilerStep#10", 20, 500, cat="gpu_user_annotation", pid=0, tid=7),
            x("ProfilerStep#x", 0, 1, cat="user_annotation"),
        ]
    )
    assert profile.steps.select("number", "name", "start_ps", "dur_ps").rows() == [
        (10, "ProfilerStep#10", 0, 200 * US),
        (9, "ProfilerStep#9", 300 * US, 50 * US),
    ]
    assert kinds(profile)["ProfilerStep#9"] == Kind.STEP
