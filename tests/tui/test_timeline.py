"""The timeline's widget: small screens worked out by hand, and its keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.strip import Strip

from roofterm.tui.themes import palette
from roofterm.tui.widgets.glyphs import CategoryKey, Look
from roofterm.tui.widgets.lanes import Lanes, telling_lane
from roofterm.tui.widgets.raster import Lane
from roofterm.tui.widgets.timeline import SliceHighlighted, SliceSelected, Step, TimelineView, WindowMarked
from roofterm.tui.widgets.timeline_place import Place
from roofterm_parsers.profile import Kind, TrackKind
from tests.unit.small_profile import STREAM, THREAD, Slice, Track, profile_of

GEMM, NORM, OP = 0, 1, 2
KEY = CategoryKey(("gemm", "norm", "op"), ("g", "n", "o"), ("green", "yellow", "blue"))
ASCII = Look("ascii", colour=False)

KEYS = {
    "left": "move(-1 0)",
    "right": "move(1 0)",
    "up": "move(0 -1)",
    "down": "move(0 1)",
    "pagedown": "page(1)",
    "pageup": "page(-1)",
    "g": "end(-1)",
    "G": "end(1)",
    "plus": "zoom(1)",
    "minus": "zoom(-1)",
    "0": "zoom(0)",
    "h": "pan(-1)",
    "l": "pan(1)",
    "n": "same(1)",
    "N": "same(-1)",
    "u": "launch()",
    "w": "gap(1)",
    "W": "gap(-1)",
    "right_square_bracket": "step(1)",
    "left_square_bracket": "step(-1)",
    "less_than_sign": "mark_window(from)",
    "greater_than_sign": "mark_window(to)",
    "space": "fold()",
    "enter": "select()",
}

# 200 ns: over 20 cells ten nanoseconds a cell.
STREAM_SLICES = [
    Slice(0, 0, 100, "matmul", category=GEMM),
    Slice(0, 150, 5, "layer_norm", category=NORM),
    Slice(0, 160, 40, "matmul", category=GEMM),
]


class Counted(TimelineView):
    drawn = 0

    def render_line(self, y: int) -> Strip:
        self.drawn += 1
        return super().render_line(y)


class Shown(App[None]):
    def __init__(
        self,
        tracks: Sequence[Track] = (STREAM,),
        slices: Sequence[Slice] = STREAM_SLICES,
        look: Look = ASCII,
        steps: Sequence[Step] = (),
        links: Sequence[tuple[int, int]] = (),
    ) -> None:
        super().__init__()
        self.lanes = Lanes.build(*profile_of(tracks, slices, links))
        self.steps = steps
        self.look = look
        self.palette = palette("dark" if look.colour else "ansi")
        self.highlighted: list[int | None] = []
        self.selected: list[int | None] = []
        self.marked: list[tuple[int, int] | None] = []

    def compose(self) -> ComposeResult:
        yield Counted(KEY)

    @property
    def view(self) -> Counted:
        return self.query_one(Counted)

    def on_mount(self) -> None:
        for key, call in KEYS.items():
            self.bind(key, f"do('{call}')")
        self.view.focus()
        self.view.show(self.lanes, self.steps)

    def action_do(self, call: str) -> None:
        name, _, arguments = call.rstrip(")").partition("(")
        getattr(self.view, name)(*(a if a.isalpha() else int(a) for a in arguments.split()))

    def on_slice_highlighted(self, message: SliceHighlighted) -> None:
        self.highlighted.append(message.slice_id)

    def on_slice_selected(self, message: SliceSelected) -> None:
        self.selected.append(message.slice_id)

    def on_window_marked(self, message: WindowMarked) -> None:
        self.marked.append(message.window_ps)


async def press(pilot: Pilot[None], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
    await pilot.pause()


def screen(app: Shown) -> list[str]:
    return [app.view.render_line(y).text for y in range(app.view.size.height)]


async def test_a_stream_as_worked_out_by_hand() -> None:
    """Labels take 10 cells and a blank, so that 31 columns leave 20 cells.

    The first matmul fills cells 0 to 9 and is named; 100..150 is idle; the norm fills half of cell 15; the second matmul
    fills 16 to 19, too few for its name. Busy: full, then nothing, then half (5 of 10), then full.
    """
    app = Shown()
    async with app.run_test(size=(31, 8)):
        lines = screen(app)
    assert lines[1] == "  busy %   ##########.....5####"
    assert lines[2] == "  GPU0 s7  |g matmul .....ngggg"
    assert lines[6] == "           ^0 ns     |100 ns   "


async def test_in_colour_bars_have_their_letter_or_name_in_front() -> None:
    app = Shown(look=Look())
    async with app.run_test(size=(31, 10)):
        lines = screen(app)
        styles = {s.text: s.style for s in app.view.render_line(2) if s.style is not None}
    assert lines[1] == "  busy %   ██████████     ▄████"
    assert lines[2] == "  GPU0 s7  matmul         ng   "
    assert styles["n"].bgcolor is not None  # half of a cell is enough to be painted
    assert styles["g   "].bgcolor == styles["atmul    "].bgcolor != styles["n"].bgcolor


async def test_the_detail_tells_the_whole_name_and_exact_times() -> None:
    app = Shown(slices=[Slice(0, 0, 100, "k" * 40, category=NORM), Slice(0, 100.5, 80.25, "next")])
    async with app.run_test(size=(70, 12)) as pilot:
        assert f" [n] {'k' * 40}" in screen(app)[-2]
        await press(pilot, "right")
        assert "80.25 ns from 100.5 ns" in screen(app)[-1]


async def test_right_and_left_go_from_slice_to_slice() -> None:
    app = Shown()
    async with app.run_test(size=(31, 8)) as pilot:
        await press(pilot, "right", "right", "right", "left", "left", "left", "enter")
    assert app.highlighted == [0, 1, 2, 1, 0]
    assert app.selected == [0]


async def test_a_run_of_tiny_slices_is_passed_a_cell_at_a_time() -> None:
    app = Shown(slices=[Slice(0, at, 1, f"s{at}") for at in range(200)])
    async with app.run_test(size=(31, 8)) as pilot:
        await press(pilot, "right", "right")
        # 10 slices a cell: the cursor is in the third one, on its first slice (all are equally long).
        assert app.view.slice_id == 20


async def test_zoom_stops_at_a_nanosecond_a_cell_and_fit_shows_all() -> None:
    app = Shown()
    async with app.run_test(size=(31, 8)) as pilot:
        place = app.view.place
        assert place is not None
        await press(pilot, "right", *["plus"] * 8)
        assert place.span_ps == 20_000
        assert place.start_ps <= 150_000 < place.start_ps + place.span_ps
        await press(pilot, "0")
        assert (place.start_ps, place.span_ps) == (0, 200_000)
        await press(pilot, "minus")
        assert (place.start_ps, place.span_ps) == (0, 200_000)


async def test_zoom_keeps_the_cursor_where_it_is_on_the_screen() -> None:
    app = Shown(slices=[Slice(0, 0, 10_000, "a"), Slice(0, 10_000, 90_000, "b")])
    async with app.run_test(size=(31, 8)) as pilot:
        place = app.view.place
        assert place is not None
        await press(pilot, "right")
        assert place.column == 2  # 10 of 100 us over 20 cells
        await press(pilot, "plus", "plus")
        assert place.column == 2
        assert place.cursor_ps == 10_000_000


async def test_pan_moves_by_a_quarter_and_stops_at_the_ends() -> None:
    app = Shown()
    async with app.run_test(size=(31, 8)) as pilot:
        place = app.view.place
        assert place is not None
        await press(pilot, "plus", "l")
        assert (place.start_ps, place.span_ps) == (25_000, 100_000)
        await press(pilot, *["l"] * 9)
        assert place.start_ps == 100_000
        await press(pilot, *["h"] * 9)
        assert place.start_ps == 0


async def test_moving_the_cursor_draws_its_own_lines_only() -> None:
    app = Shown([STREAM, Track(TrackKind.DEVICE, "stream 20", device=0, stream=20)], [*STREAM_SLICES, Slice(1, 0, 50, "x")])
    async with app.run_test(size=(80, 20)) as pilot:
        await pilot.pause()
        app.view.drawn = 0
        await press(pilot, "right")
        assert 0 < app.view.drawn <= 4  # its lane, the axis, two lines about it
        app.view.drawn = 0
        await press(pilot, "down")
        assert 0 < app.view.drawn <= 4  # both lanes, two lines about it


HOST_AND_DEVICE = (
    [THREAD, STREAM],
    [
        Slice(0, 0, 100, "step", Kind.ANNOTATION, OP),
        Slice(0, 10, 30, "aten::mm", Kind.OP, OP),
        Slice(0, 20, 5, "cudaLaunchKernel", Kind.RUNTIME, OP),
        Slice(1, 30, 10, "matmul", category=GEMM),
        Slice(1, 90, 100, "norm", category=NORM),
        Slice(1, 200, 20, "matmul", category=GEMM),
    ],
)


async def test_a_kernel_leads_to_its_launch_in_the_opened_thread_and_back() -> None:
    tracks, slices = HOST_AND_DEVICE
    app = Shown(tracks, slices, links=[(3, 2)])
    async with app.run_test(size=(80, 16)) as pilot:
        place = app.view.place
        assert place is not None
        assert place.rows == [(0, 0), (1, 0)]
        assert app.view.slice_id == 3  # it opens on the first work
        await press(pilot, "u")
        assert app.view.slice_id == 2
        assert place.rows == [(0, 0), (1, 0), (1, 1), (1, 2)]
        assert place.rows[place.row] == (1, 2)
        assert "cudaLaunchKernel" in "\n".join(screen(app))
        await press(pilot, "u")
        assert app.view.slice_id == 3


async def test_folding_a_thread_keeps_the_cursor_on_it() -> None:
    tracks, slices = HOST_AND_DEVICE
    app = Shown(tracks, slices)
    async with app.run_test(size=(80, 16)) as pilot:
        place = app.view.place
        assert place is not None
        await press(pilot, "space")
        assert place.rows == [(0, 0), (1, 0)]  # a stream has nothing to open
        await press(pilot, "down", "space", "down", "down")
        assert place.rows[place.row] == (1, 2)
        assert [line[:2] for line in screen(app)[2:4]] == ["  ", "- "]
        await press(pilot, "space")
        assert place.rows[place.row] == (1, 0)
        assert screen(app)[3][:2] == "+ "


async def test_the_same_name_is_followed_over_time() -> None:
    tracks, slices = HOST_AND_DEVICE
    app = Shown(tracks, slices)
    async with app.run_test(size=(80, 16)) as pilot:
        assert app.view.slice_id == 3
        await press(pilot, "n")
        assert app.view.slice_id == 5
        await press(pilot, "n")
        assert app.view.slice_id == 5
        await press(pilot, "N")
        assert app.view.slice_id == 3


async def test_the_longest_gap_comes_first_then_the_next() -> None:
    tracks, slices = HOST_AND_DEVICE
    app = Shown(tracks, slices)
    async with app.run_test(size=(80, 16)) as pilot:
        place = app.view.place
        assert place is not None
        await press(pilot, "w")  # 40..90, then 190..200
        assert place.cursor_ps == 40_000
        assert place.start_ps <= 40_000
        assert place.start_ps + place.span_ps >= 90_000
        await press(pilot, "w")
        assert place.cursor_ps == 190_000
        await press(pilot, "w", "W")
        assert place.cursor_ps == 40_000


async def test_steps_set_the_window_and_the_axis_counts_from_them() -> None:
    steps = [(0, 100_000, "ProfilerStep#7"), (100_000, 200_000, "ProfilerStep#8")]
    app = Shown(steps=steps)
    async with app.run_test(size=(31, 10)) as pilot:
        assert screen(app)[1] == "  steps    |7        |8        "
        await press(pilot, "right_square_bracket")
        place = app.view.place
        assert place is not None
        assert place.start_ps <= 100_000
        assert place.start_ps + place.span_ps >= 200_000
        assert place.span_ps <= 110_000
        assert "|0 ns" in screen(app)[-3] or "^0 ns" in screen(app)[-3]
        await press(pilot, "right_square_bracket")
        assert place.step_name() == "ProfilerStep#8"
        await press(pilot, "left_square_bracket")
        assert place.step_name() == "ProfilerStep#7"


async def test_marks_make_a_window_of_whole_cells() -> None:
    app = Shown()
    async with app.run_test(size=(31, 8)) as pilot:
        await press(pilot, "right", "less_than_sign", "right", "greater_than_sign")
        assert app.marked == [(150_000, 170_000)]  # from the cell of 150 ns to the end of the cell of 160 ns
        assert screen(app)[6][11:] == "|0 ns     |100 [^   "  # the cursor stands on the end mark
        await press(pilot, "left", "left", "greater_than_sign")
        assert app.marked == [(150_000, 170_000)]  # an end before the beginning begins anew


async def test_a_slice_is_revealed_at_a_size_that_can_be_seen() -> None:
    slices = [Slice(0, 0, 10**6, "long"), Slice(0, 2 * 10**6, 3, "short"), Slice(0, 3 * 10**6, 10**6, "last")]
    app = Shown(slices=slices)
    async with app.run_test(size=(80, 16)) as pilot:
        app.view.reveal(1)
        await pilot.pause()
        place = app.view.place
        assert place is not None
        assert app.view.slice_id == 1
        assert place.window.cell(2 * 10**9 + 2_999) > place.window.cell(2 * 10**9)
        assert place.cursor_ps == 2 * 10**9


async def test_a_revealed_slice_keeps_the_cursor_beside_a_longer_one_in_its_cell() -> None:
    """At 20 cells of 10 ns, slice 1 (3 ns) shares its cell with slice 2 (6 ns)."""
    slices = [Slice(0, 0, 30, "a"), Slice(0, 50, 3, "short"), Slice(0, 53, 6, "long"), Slice(0, 150, 50, "b")]
    app = Shown(slices=slices)
    async with app.run_test(size=(40, 12)) as pilot:
        app.view.reveal(1)
        await pilot.pause()
        assert app.view.slice_id == 1
        await press(pilot, "0")
        assert app.view.slice_id == 1
        await pilot.resize_terminal(60, 14)
        await pilot.pause()
        assert app.view.slice_id == 1
        await press(pilot, "right")
        assert app.view.slice_id in (2, 3)


async def test_lanes_scroll_with_the_cursor_and_the_busy_line_stays() -> None:
    tracks = [Track(TrackKind.DEVICE, f"stream {n}", device=0, stream=n) for n in range(30)]
    app = Shown(tracks, [Slice(n, 0, 10, "k") for n in range(30)])
    async with app.run_test(size=(60, 12)) as pilot:
        await press(pilot, "G")
        lines = screen(app)
        assert "busy %" in lines[1]
        assert lines[8].startswith("  GPU0 s29 ")
        await press(pilot, "g")
        assert screen(app)[2].startswith("  GPU0 s0 ")


@pytest.mark.parametrize(
    ("tracks", "slices"),
    [
        ([THREAD], []),
        ([STREAM], [Slice(0, 0, 0, "instant")]),
        ([STREAM], [Slice(0, 5, 1, "one")]),
        HOST_AND_DEVICE,
        ([STREAM], [Slice(0, 0, 1, "a"), Slice(0, 10**9 * 3600, 1, "b")]),
    ],
    ids=["none", "empty slice", "one", "host and device", "an hour"],
)
@pytest.mark.parametrize("look", [Look(), ASCII, Look("ascii")], ids=["braille", "plain", "ascii"])
async def test_any_profile_can_be_shown_and_every_key_pressed(tracks: list[Track], slices: list[Slice], look: Look) -> None:
    app = Shown(tracks, slices, look, steps=[(0, 50_000, "step 1"), (50_000, 90_000, "step 2")])
    async with app.run_test(size=(80, 20)) as pilot:
        await press(pilot, *KEYS)
        for line in screen(app):
            assert len(line) == 80
            assert not look.ascii or line.isascii()


@pytest.mark.parametrize("size", [(60, 12), (80, 20), (200, 60), (20, 5), (9, 3), (1, 1)])
async def test_it_fits_any_size(size: tuple[int, int]) -> None:
    tracks, slices = HOST_AND_DEVICE
    app = Shown(tracks, slices)
    async with app.run_test(size=size) as pilot:
        await press(pilot, "down", "space", "plus")
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert all(len(line) == 80 for line in screen(app))


async def test_without_colour_every_segment_has_a_style_and_every_cell_its_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = Shown(look=Look("braille", colour=False))
    async with app.run_test(size=(31, 10)) as pilot:
        await press(pilot, "right")
        assert all(segment.style is not None for y in range(10) for segment in app.view.render_line(y))
        assert screen(app)[2][11:] == "▏g matmul ·····ngggg"


async def test_names_from_a_file_cannot_break_the_line() -> None:
    name = "\x1b[31mred\u202e 日本語 " + "x" * 300
    app = Shown([STREAM, Track(TrackKind.HOST, name)], [Slice(0, 0, 100, name), Slice(1, 0, 100, name, Kind.OP)], look=Look())
    async with app.run_test(size=(60, 12)) as pilot:
        await press(pilot, "down")
        strips = [app.view.render_line(y) for y in range(12)]
        assert all(strip.cell_length == 60 for strip in strips)
        assert not any("\x1b" in strip.text or "\u202e" in strip.text for strip in strips)


async def test_other_lanes_keep_the_window_and_the_cursor() -> None:
    app = Shown()
    async with app.run_test(size=(31, 8)) as pilot:
        await press(pilot, "right", "plus")
        place = app.view.place
        assert place is not None
        before = place.start_ps, place.span_ps, place.cursor_ps
        app.view.show(Lanes.build(*profile_of([STREAM], STREAM_SLICES[1:])), keep_window=True)
        await pilot.pause()
        place = app.view.place
        assert place is not None
        assert (place.start_ps, place.span_ps, place.cursor_ps) == before


def test_a_folded_thread_shows_the_outermost_lane_that_tells_its_time_apart() -> None:
    """One frame of 1,000 ns holds ten of 90: the ten stand for the thread. Five of 10 hold too little of it."""
    first, last = np.array([0], np.int64), np.array([1000], np.int64)
    wrapper = Lane.of(first, last, np.array([0], np.uint32), np.array([1], np.uint8))
    starts = np.arange(10, dtype=np.int64) * 100
    ten = Lane.of(starts, starts + 90, np.arange(10, dtype=np.uint32), np.ones(10, np.uint8))
    few = Lane.of(starts[:5], starts[:5] + 10, np.arange(5, dtype=np.uint32), np.ones(5, np.uint8))
    assert telling_lane([wrapper, ten]) == 1
    assert telling_lane([wrapper, few, ten]) == 2
    assert telling_lane([wrapper, few]) == 0
    assert telling_lane([]) == 0


def test_a_view_that_is_laid_out_later_still_opens_on_the_first_work() -> None:
    """Shown before it has a size it knows one cell; the cursor must not fall back to the window's start meanwhile."""
    lanes = Lanes.build(*profile_of((STREAM, THREAD), [Slice(1, 0, 200, "aten::mm", Kind.OP), Slice(0, 150, 20, "matmul")]))
    place = Place.at_start(lanes, (), 1, 1)
    place.resize(1, 1)
    place.resize(20, 4)
    assert (place.cursor_ps - lanes.begin_ps, place.column) == (150_000, 15)
