"""Graph launches with their work, and the layers in it, on profiles made by hand; times in us."""

from __future__ import annotations

import numpy as np
import pytest

from roofterm.analysis.graphs import Repetition, graph_replays, repetition, replay_groups, replayed_work
from roofterm_parsers.profile import Profile
from tests.build import US, Build


def codes(text: str) -> np.ndarray:
    return np.array([ord(char) for char in text])


@pytest.mark.parametrize(
    ("text", "start", "length", "times"),
    [
        ("abcabcabc", 0, 3, 3),
        ("xyabcabcabcz", 2, 3, 3),
        ("aaaa", 0, 1, 4),
        ("abab_abab", 0, 2, 2),  # what stands between breaks it
        ("aabaab", 0, 3, 2),
        ("pqabcdabcdabcrs", 2, 4, 2),  # the third stretch is not whole
    ],
)
def test_the_repetition_that_covers_most_is_found(text: str, start: int, length: int, times: int) -> None:
    assert repetition(codes(text)) == Repetition(start, length, times)


def test_of_two_equally_good_repetitions_the_shorter_stretch_is_the_layer() -> None:
    """8 times "ab" is also 4 times "abab"."""
    assert repetition(codes("ab" * 8)) == Repetition(0, 2, 8)


def test_what_never_repeats_has_no_layers() -> None:
    assert repetition(codes("abcdef")) is None
    assert repetition(codes("")) is None


def replay(build: Build, start: float, names: str, call: str = "cudaGraphLaunch", thread: int = 1) -> None:
    launch = build.call(start, 2, call, thread=thread)
    for at, name in enumerate(names):
        build.kernel(name, start + 10 + 2 * at, 1, launch=launch)


def two_models() -> Profile:
    build = Build()
    replay(build, 0, "eababab")
    replay(build, 100, "xyz")
    replay(build, 200, "eababab", "hipGraphLaunch")
    build.kernel("eager", 300, 5, launch=build.call(290, 1))
    return build.profile()


def test_launches_of_the_same_work_share_a_key() -> None:
    replays = graph_replays(two_models())
    assert replays["pieces"].to_list() == [7, 3, 7]
    assert replays["work_key"].to_list() == [0, 1, 0]
    assert replays["start_ps"].to_list() == [0, 100 * US, 200 * US]


def test_a_replay_lasts_from_its_first_piece_to_its_last() -> None:
    """Seven pieces of 1 us, one every 2 us from 10 us on: until 23 us, 7 us busy."""
    first = graph_replays(two_models()).row(0, named=True)
    assert (first["first_ps"], first["last_ps"], first["busy_ps"]) == (10 * US, 23 * US, 7 * US)


def test_a_launch_without_work_in_the_file_has_no_pieces() -> None:
    build = Build()
    build.call(0, 2, "cudaGraphLaunch")
    build.kernel("eager", 300, 5, launch=build.call(290, 1))
    row = graph_replays(build.profile()).row(0, named=True)
    assert (row["pieces"], row["first_ps"], row["busy_ps"]) == (0, None, 0)


def test_a_driver_call_inside_the_runtime_call_is_the_same_launch() -> None:
    build = Build()
    build.call(0, 10, "cudaGraphLaunch")
    inner = build.call(1, 8, "cuGraphLaunch")
    build.kernel("k", 20, 5, launch=inner)
    assert graph_replays(build.profile())["pieces"].to_list() == [1]


def test_layers_are_what_repeats() -> None:
    """e, then three times "ab": the first piece is before the layers."""
    profile = two_models()
    run = replayed_work(profile, graph_replays(profile)["launch"].to_numpy())[0]
    assert repetition(profile.slices["name"].to_numpy()[run]) == Repetition(start=1, length=2, times=3)


def test_the_graph_s_node_numbers_order_pieces_that_ran_beside_each_other() -> None:
    build = Build()
    launch = build.call(0, 2, "cudaGraphLaunch")
    build.kernel("second", 10, 5, stream=7, launch=launch, graph_node=12)
    build.kernel("first", 11, 5, stream=8, launch=launch, graph_node=11)
    profile = build.profile()
    (run,) = replayed_work(profile, graph_replays(profile)["launch"].to_numpy())
    assert profile.names["text"].gather(profile.slices["name"].gather(run)).to_list() == ["first", "second"]


def test_replays_of_a_graph_are_one_record() -> None:
    profile = two_models()
    first, second = replay_groups(profile, [None, "capture.json", None])
    assert (first.launches, first.pieces, first.device_us, first.layers, first.capture) == (2, 7, 7, "3 x 2", None)
    assert (second.launches, second.pieces, second.layers, second.capture) == (1, 3, None, "capture.json")


def test_no_graph_launch_no_replay() -> None:
    build = Build()
    build.kernel("eager", 10, 5, launch=build.call(0, 1))
    profile = build.profile()
    replays = graph_replays(profile)
    assert replays.height == 0
    assert replay_groups(profile, []) == []
