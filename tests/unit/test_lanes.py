"""Which lanes a profile gives, what each holds, and where a slice is to be found."""

from __future__ import annotations

import numpy as np

from roofterm.tui.widgets.glyphs import CategoryKey
from roofterm.tui.widgets.lanes import Lanes
from roofterm.tui.widgets.raster import Lane, Window, busy_ps
from roofterm_parsers.profile import Kind, Source, TrackKind
from tests.unit.small_profile import STREAM, THREAD, Slice, Track, profile_of

GEMM, COMM, OP = 0, 1, 2


def owners(lane: Lane, until_ns: int) -> list[int | None]:
    """The slice shown in each nanosecond."""
    found = []
    for at in range(until_ns):
        hit = lane.hit(at * 1000, (at + 1) * 1000)
        found.append(hit.slice if hit else None)
    return found


def test_devices_come_first_then_threads_and_empty_tracks_are_left_out() -> None:
    tracks = [
        THREAD,
        Track(TrackKind.PROFILER, "Traces"),
        Track(TrackKind.HOST, "idle"),
        STREAM,
        Track(TrackKind.DEVICE_OTHER, "annotations", device=0),
        Track(TrackKind.DEVICE, "stream 20", device=0, stream=20),
    ]
    slices = [Slice(track, 0, 5, f"s{track}", Kind.OP if track < 3 else Kind.KERNEL) for track in (0, 1, 3, 4, 5)]
    lanes = Lanes.build(*profile_of(tracks, slices))
    assert [g.label for g in lanes.groups] == ["GPU0 stream 7", "GPU0 stream 20", "GPU0 annotations", "main", "Traces"]


def test_each_of_several_devices_has_its_busy_time_above_its_streams() -> None:
    tracks = [STREAM, Track(TrackKind.DEVICE, "stream 20", device=0, stream=20), Track(TrackKind.DEVICE, "stream 7", device=1, stream=7)]
    slices = [Slice(0, 0, 10, "a"), Slice(1, 5, 10, "b"), Slice(2, 30, 10, "c")]
    lanes = Lanes.build(*profile_of(tracks, slices))
    assert [g.label for g in lanes.groups] == ["GPU0 busy", "GPU0 stream 7", "GPU0 stream 20", "GPU1 busy", "GPU1 stream 7"]
    edges = Window(0, 40_000, 4).edges()
    # Device 0: 0..10 and 5..15 together are 0..15.
    assert [busy_ps(parts, edges).tolist() for parts in lanes.busy] == [[10_000, 5_000, 0, 0], [0, 0, 0, 10_000]]


def test_what_is_no_work_does_not_make_a_device_busy() -> None:
    tracks = [STREAM, Track(TrackKind.DEVICE_OTHER, "annotations", device=0)]
    slices = [Slice(0, 0, 10, "kernel"), Slice(0, 20, 10, "wait", Kind.DEVICE_WAIT), Slice(1, 0, 40, "step", Kind.DEVICE_ANNOTATION)]
    lanes = Lanes.build(*profile_of(tracks, slices))
    assert busy_ps(lanes.busy[0], Window(0, 40_000, 4).edges()).tolist() == [10_000, 0, 0, 0]


def test_a_stream_shows_the_innermost_slice() -> None:
    """A loop of 0..20 with two bodies, as XLA writes it: the loop is seen only between them."""
    slices = [Slice(0, 0, 20, "while"), Slice(0, 2, 6, "body"), Slice(0, 10, 8, "body")]
    lanes = Lanes.build(*profile_of([STREAM], slices))
    assert owners(lanes.groups[0].rows[0], 21) == [0] * 2 + [1] * 6 + [0] * 2 + [2] * 8 + [0] * 2 + [None]


def test_an_overlap_on_a_stream_loses_no_time() -> None:
    """0..10 and 5..15 on one stream: the second shows from 5 on, though it sticks out of the first."""
    lanes = Lanes.build(*profile_of([STREAM], [Slice(0, 0, 10, "a"), Slice(0, 5, 10, "b")]))
    assert owners(lanes.groups[0].rows[0], 16) == [0] * 5 + [1] * 10 + [None]


def test_a_thread_folds_to_its_outermost_level() -> None:
    slices = [Slice(0, 0, 20, "outer", Kind.OP), Slice(0, 5, 10, "inner", Kind.OP), Slice(0, 30, 5, "later", Kind.OP)]
    group = Lanes.build(*profile_of([THREAD], slices)).groups[0]
    assert group.folds
    assert owners(group.rows[0], 36) == [0] * 20 + [None] * 10 + [2] * 5 + [None]
    assert owners(group.rows[1], 16) == [None] * 5 + [1] * 10 + [None]


def test_a_slice_is_found_in_its_lane() -> None:
    tracks = [THREAD, STREAM]
    slices = [Slice(0, 0, 20, "outer", Kind.OP), Slice(0, 5, 10, "inner", Kind.OP), Slice(1, 0, 5, "k"), Slice(1, 1, 2, "nested")]
    lanes = Lanes.build(*profile_of(tracks, slices))
    assert [lanes.place(slice_id) for slice_id in range(4)] == [(1, 0), (1, 1), (0, 0), (0, 0)]


def test_collectives_among_other_work_get_a_lane_of_their_own() -> None:
    slices = [Slice(0, 0, 10, "gemm"), Slice(0, 10, 10, "nccl", category=COMM)]
    profile, category = profile_of([STREAM], slices)
    lanes = Lanes.build(profile, category, collective=category == COMM)
    assert [g.label for g in lanes.groups] == ["GPU0 stream 7", "GPU0 collectives"]
    assert owners(lanes.groups[1].rows[0], 21) == [None] * 10 + [1] * 10 + [None]
    alone, category = profile_of([STREAM], slices[1:])
    assert [g.label for g in Lanes.build(alone, category, collective=category == COMM).groups] == ["GPU0 stream 7"]


def test_a_filter_leaves_out_slices_and_the_lanes_without_any() -> None:
    tracks = [STREAM, THREAD]
    slices = [Slice(0, 0, 5, "a"), Slice(0, 5, 5, "b"), Slice(1, 0, 20, "outer", Kind.OP), Slice(1, 5, 5, "inner", Kind.OP)]
    profile, category = profile_of(tracks, slices)
    lanes = Lanes.build(profile, category, keep=np.array([False, True, False, False]))
    assert [g.label for g in lanes.groups] == ["GPU0 stream 7"]
    assert owners(lanes.groups[0].rows[0], 10) == [None] * 5 + [1] * 5
    inner = Lanes.build(profile, category, keep=np.array([False, False, False, True]))
    assert inner.place(3) == (0, 0)  # the only lane that is left, though it shows the second depth
    assert inner.groups[0].depths == [1]
    # Filtered or not, the device is as busy as it was.
    assert busy_ps(inner.busy[0], Window(0, 10_000, 1).edges()).tolist() == [10_000]


def test_slices_of_one_name_come_in_order_of_time_over_all_lanes() -> None:
    tracks = [STREAM, Track(TrackKind.DEVICE, "stream 20", device=0, stream=20)]
    slices = [Slice(0, 50, 5, "k"), Slice(0, 0, 5, "k"), Slice(0, 10, 5, "x"), Slice(1, 20, 5, "k")]
    lanes = Lanes.build(*profile_of(tracks, slices))
    assert [int(lanes.start_ps[i]) // 1000 for i in lanes.same_name(0)] == [0, 20, 50]


def test_labels_tell_ranks_processes_and_ranges_apart() -> None:
    tracks = [
        STREAM,
        Track(TrackKind.DEVICE_OTHER, "stream 7", device=0, stream=7),
        Track(TrackKind.HOST, "main", process="41"),
        Track(TrackKind.HOST, "main", process="42"),
        Track(TrackKind.HOST, "loader", process="42"),
    ]
    profile, category = profile_of(tracks, [Slice(t, 0, 5, "s") for t in range(5)])
    assert [g.label for g in Lanes.build(profile, category).groups] == [
        "GPU0 stream 7",
        "GPU0 stream 7 ranges",
        "41 main",
        "42 main",
        "loader",
    ]
    profile.sources = [Source("a", "kineto", "plain", rank=3), Source("b", "kineto", "plain", rank=4)]
    assert Lanes.build(profile, category).groups[0].label == "r3 GPU0 stream 7"


def test_work_and_its_launch_lead_to_one_another() -> None:
    tracks = [THREAD, STREAM]
    slices = [Slice(0, 0, 2, "launch", Kind.RUNTIME), Slice(0, 5, 2, "other", Kind.RUNTIME), Slice(1, 3, 4, "k")]
    lanes = Lanes.build(*profile_of(tracks, slices, links=[(2, 0)]))
    assert lanes.linked(2) == 0
    assert lanes.linked(0) == 2
    assert lanes.linked(1) is None


def test_what_lies_before_the_zero_does_not_stretch_the_axis() -> None:
    lanes = Lanes.build(*profile_of([STREAM], [Slice(0, -(10**9), 0, "zero time stamp"), Slice(0, 0, 10, "k")]))
    assert (lanes.begin_ps, lanes.end_ps) == (0, 10_000)


def test_a_profile_without_slices_has_no_lanes() -> None:
    assert Lanes.build(*profile_of([THREAD], [])).empty()


def test_a_category_without_a_letter_gets_a_capital_of_its_name() -> None:
    key = CategoryKey(("gemm", "op", "overhead", "sync", "step"), ("g", ".", ".", ".", "."), ("green",) * 5)
    assert [key.letter(code) for code in range(6)] == ["g", "O", "V", "S", "T", "?"]
