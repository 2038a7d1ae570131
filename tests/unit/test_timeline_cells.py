"""Lines of a timeline: what may never be hidden, and how many styles a line may have."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.style import Style

from roofterm.tui.widgets.cell_runs import bytes_a_run, overlaid, runs, strips
from roofterm.tui.widgets.glyphs import CategoryKey, Look
from roofterm.tui.widgets.lanes import Lanes
from roofterm.tui.widgets.raster import Pieces, Window
from roofterm.tui.widgets.timeline_cells import IDLE, NEUTRAL, busy_cells, lane_cells, step_cells
from tests.unit.small_profile import STREAM, Slice, profile_of

KEY = CategoryKey(("gemm", "norm", "copy"), ("g", "n", "y"), ("green", "yellow", "cyan"))
LOOKS = [Look(), Look("ascii"), Look("ascii", colour=False), Look("braille", colour=False)]


def lane_of(slices: list[Slice], window: Window, look: Look) -> tuple[str, np.ndarray]:
    lanes = Lanes.build(*profile_of([STREAM], slices))
    chars, style = lane_cells(lanes.groups[0].rows, lanes, window, KEY, look)
    return "".join(map(chr, chars[0].tolist())), style[0]


def busy(parts: list[tuple[int, int]], window: Window, look: Look) -> str:
    start, end = (np.array(column, np.int64) for column in zip(*parts, strict=True))
    return "".join(map(chr, busy_cells([Pieces.of(start, end)], window, look).tolist()))


def test_a_gap_of_one_picosecond_in_a_second_shows() -> None:
    whole = Window(0, 2 * 10**12, 2)
    assert busy([(0, 2 * 10**12)], whole, Look("ascii")) == "##"
    assert busy([(0, 5), (6, 2 * 10**12)], whole, Look("ascii")) == "9#"
    assert busy([(0, 5), (6, 2 * 10**12)], whole, Look()) == "▇█"


def test_work_of_one_picosecond_in_a_second_shows() -> None:
    assert busy([(0, 1)], Window(0, 2 * 10**12, 2), Look("ascii")) == "0."
    assert busy([(0, 1)], Window(0, 2 * 10**12, 2), Look()) == "▁ "


def test_devices_are_averaged_and_one_idle_device_is_not_hidden() -> None:
    one = Pieces.of(np.array([0], np.int64), np.array([100], np.int64))
    none = Pieces.of(np.array([100], np.int64), np.array([200], np.int64))
    line = busy_cells([one, none], Window(0, 200, 2), Look("ascii"))
    assert "".join(map(chr, line.tolist())) == "55"


slices = st.lists(
    st.builds(lambda s, d, c: Slice(0, s, d, "k", category=c), st.integers(0, 400), st.integers(0, 80), st.integers(0, 2)), min_size=1
)


@settings(max_examples=60, deadline=None)
@given(slices, st.integers(0, 300), st.integers(1, 400), st.integers(1, 60), st.sampled_from(LOOKS))
def test_no_slice_is_lost_in_any_look(some: list[Slice], start_ns: int, span_ns: int, cells: int, look: Look) -> None:
    """A cell that a slice touches is painted or has another character than an idle one, and no other cell is or has."""
    window = Window(start_ns * 1000, span_ns * 1000, cells)
    text, style = lane_of(some, window, look)
    idle = "." if look.ascii else " " if look.colour else "·"
    edges = window.edges().tolist()
    for cell, (begin, end) in enumerate(pairwise(edges)):
        painted = style[cell] > NEUTRAL and style[cell] % 2 == 0
        if end > begin:
            assert (painted or text[cell] != idle) == any(touches(s, begin, end) for s in some)


def touches(one: Slice, begin_ps: int, end_ps: int) -> bool:
    start, end = one.start_ns * 1000, (one.start_ns + one.dur_ns) * 1000
    return start < end_ps and (end > begin_ps or start == end >= begin_ps)


def test_a_crowded_line_keeps_its_letters_and_gives_up_colours() -> None:
    some = [Slice(0, at * 10, 10, "k", category=at % 3) for at in range(60)]
    text, style = lane_of(some, Window(0, 600_000, 60), Look())
    assert text == "gny" * 20
    assert runs(style[None, :]) <= 12
    calm = [Slice(0, at * 200, 200, "k", category=at) for at in range(3)]
    _, style = lane_of(calm, Window(0, 600_000, 60), Look())
    assert runs(style[None, :]) == 3
    assert not {IDLE, NEUTRAL} & set(style.tolist())


def test_a_bar_ends_in_part_of_a_cell() -> None:
    """1000 ps a cell: 0..4250 fills a quarter of the fifth cell, two eighths; 7750..12000 begins with a quarter of the eighth."""
    text, _ = lane_of([Slice(0, 0, 4.25, "", category=0), Slice(0, 7.75, 4.25, "", category=1)], Window(0, 12_000, 12), Look())
    assert text == "g   ▍  ▐n   "


def test_without_colour_no_style_differs_but_idle() -> None:
    some = [Slice(0, at * 20, 10, "k", category=at % 3) for at in range(6)]
    text, style = lane_of(some, Window(0, 120_000, 12), Look("ascii", colour=False))
    assert text == "g.n.y.g.n.y."
    assert set(style.tolist()) == {IDLE, NEUTRAL}


def test_step_names_shrink_to_their_number() -> None:
    steps = [(0, 100, "ProfilerStep#7"), (100, 120, "ProfilerStep#8"), (120, 200, "ProfilerStep#100")]
    assert step_cells(steps, Window(0, 200, 40), Look("ascii")) == "|ProfilerStep#7     |8  |100            "
    assert step_cells(steps, Window(50, 100, 10), Look("ascii")) == "7    |8|  "
    assert step_cells([], Window(0, 10, 3), Look()) == "   "


def test_every_segment_of_a_strip_has_a_style() -> None:
    styles = {0: Style(), 1: Style(color="red")}
    chars = np.array([[ord(c) for c in "aabb"]], np.uint32)
    strip = strips(chars, np.array([[0, 0, 1, 1]], np.uint16), styles)[0]
    assert [(s.text, s.style) for s in strip] == [("aa", styles[0]), ("bb", styles[1])]
    assert overlaid(strip, 1, "X", styles[1]).text == "aXbb"
    assert overlaid(strip, 3, "XY", styles[1]).text == "aabX"


@pytest.mark.parametrize(("colours", "most"), [("standard", 10), ("256", 16), ("truecolor", 24)])
def test_the_cost_of_a_run_is_that_of_its_escape_codes(colours: str, most: int) -> None:
    assert 4 < bytes_a_run(Style(color="#c9d1d9"), colours) <= most
