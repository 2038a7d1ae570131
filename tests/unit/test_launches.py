"""The launch path on profiles made by hand; times in us."""

from __future__ import annotations

import polars as pl
import pytest

from roofterm.analysis.launches import launch_path, launches, queue_lengths
from roofterm.analysis.scope import ALL
from roofterm.analysis.study import Study
from roofterm_parsers.profile import LAUNCHES, Kind, Profile
from tests.build import US, Build


def launched(build: Build) -> pl.DataFrame:
    profile = build.profile()
    return launches(profile, Study(profile).work)


def test_delay_lasts_from_the_end_of_the_call_until_the_work_starts() -> None:
    build = Build()
    build.kernel("late", 25, 10, launch=build.call(10, 5))
    assert launched(build)["delay_ps"].to_list() == [10 * US]


def test_work_that_starts_before_the_call_returns_waits_for_nothing() -> None:
    build = Build()
    build.kernel("at once", 12, 10, launch=build.call(10, 5))
    assert launched(build)["delay_ps"].to_list() == [0]


def test_work_before_its_call_is_a_fault_of_the_clocks_and_no_delay() -> None:
    build = Build()
    build.kernel("early", 8, 10, launch=build.call(10, 5))
    build.kernel("late", 40, 10, launch=build.call(20, 5))
    assert launched(build)["delay_ps"].to_list() == [None, 15 * US]
    profile = build.profile()
    path = launch_path(profile, Study(profile).work, 0)
    assert path is not None
    assert (path.clock_faults, path.delay_mean_us, path.delay_max_us) == (1, 15, 15)


def test_a_graph_launch_is_delayed_until_the_first_of_its_kernels() -> None:
    build = Build()
    call = build.call(0, 10, "cudaGraphLaunch")
    for start in (60, 30, 90):
        build.kernel("k", start, 5, launch=call)
    assert launched(build).select("delay_ps", "pieces", "graph").rows() == [(20 * US, 3, True)]


def three_ahead() -> Build:
    """Three kernels of 20 us launched at 0, 5 and 10 us, that start at 4, 24 and 44 us."""
    build = Build()
    for number in range(3):
        build.kernel("k", 4 + 20 * number, 20, launch=build.call(5 * number, 2))
    return build


def test_a_queue_grows_with_each_launch_and_shrinks_with_each_start() -> None:
    profile = three_ahead().profile()
    queue = queue_lengths(profile, Study(profile).work)
    assert queue["time_ps"].to_list() == [at * US for at in (0, 4, 5, 10, 24, 44)]
    assert queue["length"].to_list() == [1, 0, 1, 2, 1, 0]


def test_each_stream_has_a_queue_of_its_own() -> None:
    build = Build()
    build.kernel("a", 10, 5, stream=7, launch=build.call(0, 1))
    build.kernel("b", 10, 5, stream=20, launch=build.call(2, 1))
    profile = build.profile()
    queue = queue_lengths(profile, Study(profile).work)
    assert queue.select("stream", "length").rows() == [(7, 1), (7, 0), (20, 1), (20, 0)]


def test_a_launch_and_a_start_at_the_same_time_leave_no_queue_below_nothing() -> None:
    build = Build()
    build.kernel("k", 5, 5, launch=build.call(5, 1))
    profile = build.profile()
    assert queue_lengths(profile, Study(profile).work)["length"].to_list() == [1, 0]


def test_the_figures_of_a_launch_path() -> None:
    """Calls end at 2, 7 and 12, the kernels start at 4, 24 and 44: delays of 2, 17 and 32 us. The first and second launches
    find nothing waiting, the third one kernel. Lengths 1, 0, 1, 2, 1, 0 are 5/6 on average."""
    profile = three_ahead().profile()
    path = launch_path(profile, Study(profile).work, 0)
    assert path is not None
    assert (path.launches, path.launches_per_step, path.kernels, path.mean_kernel_us) == (3, None, 3, 20)
    assert (path.delay_mean_us, path.delay_p50_us, path.delay_max_us) == (17, 17, 32)
    assert path.queue_max == 2
    assert path.queue_mean == pytest.approx(5 / 6)
    assert path.found_empty_pct == pytest.approx(100 * 2 / 3)


def test_kernels_under_10_us_are_counted_with_their_share_of_time() -> None:
    build = Build()
    for start, length in ((10, 9.999), (30, 10), (50, 30)):
        build.kernel("k", start, length, launch=build.call(start - 5, 1))
    build.kernel("Memcpy HtoD", 90, 1, kind=Kind.COPY, launch=build.call(85, 1))
    profile = build.profile()
    path = launch_path(profile, Study(profile).work, 0)
    assert path is not None
    assert (path.kernels, path.short_kernels) == (3, 1)
    assert path.short_kernels_pct == pytest.approx(100 / 3)
    assert path.short_time_pct == pytest.approx(100 * 9.999 / 49.999)


def test_launches_per_step_are_those_of_the_steps_that_launched() -> None:
    build = Build()
    for number in range(2):
        build.step(number, 100 * number, 100)
        for at in (10, 30):
            build.kernel("k", 100 * number + at + 5, 10, launch=build.call(100 * number + at, 1))
    build.kernel("before", 0, 1, launch=build.call(-5, 1))
    path = Study(build.profile()).launch_path(ALL)
    assert path is not None
    assert (path.launches, path.launches_per_step) == (5, 2)


def test_work_without_a_call_is_an_orphan_if_the_file_has_calls() -> None:
    build = Build()
    build.kernel("before the window", 0, 5)
    build.kernel("k", 20, 5, launch=build.call(10, 1))
    path = Study(build.profile()).launch_path(ALL)
    assert path is not None
    assert path.orphans == 1


def test_a_file_without_calls_has_no_orphans_but_unknown_ones() -> None:
    build = Build()
    build.kernel("k", 0, 5)
    path = Study(build.profile()).launch_path(ALL)
    assert path is not None
    assert (path.launches, path.orphans, path.found_empty_pct) == (0, None, None)


def test_graph_launches_are_counted_with_what_they_replay() -> None:
    build = Build()
    call = build.call(0, 10, "hipGraphLaunch")
    for start in range(20, 50, 10):
        build.kernel("k", start, 5, launch=call)
    build.kernel("k", 60, 5, launch=build.call(15, 2))
    path = Study(build.profile()).launch_path(ALL)
    assert path is not None
    assert (path.launches, path.graph_launches, path.graph_pieces) == (2, 1, 3)


def silent(profile: Profile) -> int:
    path = launch_path(profile, Study(profile).work, 0)
    assert path is not None
    return path.silent_calls


def test_launches_without_work_are_captured_or_lost() -> None:
    build = Build()
    build.kernel("k", 20, 5, launch=build.call(10, 1))
    build.call(30, 1, "cudaLaunchKernelExC")
    build.call(40, 3, "cudaLaunchKernel")
    build.call(41, 1, "cuLaunchKernel")  # the same launch, as the driver sees it
    build.call(50, 1, "cudaFuncGetAttributes")
    assert silent(build.profile()) == 2


def test_calls_that_name_their_kernels_are_counted_by_their_table() -> None:
    build = Build()
    build.kernel("k", 20, 5, launch=build.call(10, 1))
    profile = build.profile()
    profile.launches = pl.DataFrame({name: pl.Series([0, 0], dtype=pl.Int64).cast(kind) for name, kind in LAUNCHES.items()})
    assert silent(profile) == 2


def test_no_device_work_no_launch_path() -> None:
    build = Build()
    build.host("aten::mm", 0, 10)
    assert Study(build.profile()).launch_path(ALL) is None
