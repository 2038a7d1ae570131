"""The roofline's widget under its keys: which point is highlighted, what is drawn anew, what is said about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pytest
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.pilot import Pilot

from roofterm.results import Roof, RooflineRow
from roofterm.tui.themes import palette
from roofterm.tui.widgets.glyphs import Look
from roofterm.tui.widgets.plot_adapter import PlotSpec
from roofterm.tui.widgets.roofline_view import PointHighlighted, PointSelected, RooflineView
from tests.unit.roofline_rows import KEY, compute, memory, row

KEYS = {
    "left": "move(-1, 0)",
    "right": "move(1, 0)",
    "up": "move(0, -1)",
    "down": "move(0, 1)",
    "n": "next(1)",
    "N": "next(-1)",
    "g": "end(-1)",
    "G": "end(1)",
    "plus": "zoom(1)",
    "minus": "zoom(-1)",
    "0": "zoom(0)",
    "L": "pan(1, 0)",
    "K": "pan(0, 1)",
    "x": "toggle_roofs()",
    "v": "next_memory()",
    "enter": "select()",
}

ROOFS = [compute(1e15), compute(67e12, "fp32"), memory(3e12), memory(12e12, "l2"), Roof("launch", None, None, 4.5e-6, "s", "measured")]

# Of three points the left one lies low, the right one high; the middle one has most time.
ROWS = [
    row("left", intensity=1.0, flops_per_s=1e11, time_us=10),
    row("middle", intensity=10.0, flops_per_s=1e12, time_us=30, category="norm"),
    row("right", intensity=1000.0, flops_per_s=5e14, time_us=20),
    row("edge", bytes_per_s=1e12, time_us=5, category="copy"),
    row("nowhere", time_us=99),
]


class Recorded(RooflineView):
    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.asked: list[Region] = []
        """what was asked to be drawn anew"""

    def refresh(self, *regions: Region, **settings: Any) -> Self:
        self.asked += regions
        return super().refresh(*regions, **settings)


class Shown(App[None]):
    def __init__(self, rows: Sequence[RooflineRow] = ROWS, look: Look | None = None, theme: str = "dark") -> None:
        super().__init__()
        self.rows = rows
        self.look = look or Look()
        self.palette = palette(theme)
        self.highlighted: list[int] = []
        self.selected: list[int] = []

    def compose(self) -> ComposeResult:
        yield Recorded(KEY)

    @property
    def view(self) -> Recorded:
        return self.query_one(Recorded)

    def on_mount(self) -> None:
        for key, call in KEYS.items():
            self.bind(key, f"do('{call.replace(', ', ' ')}')")
        self.view.focus()
        self.view.show(self.rows, ROOFS, "covers 71.2%")

    def action_do(self, call: str) -> None:
        name, _, arguments = call.rstrip(")").partition("(")
        getattr(self.view, name)(*(int(a) for a in arguments.split()))

    def on_point_highlighted(self, message: PointHighlighted) -> None:
        self.highlighted.append(message.row)

    def on_point_selected(self, message: PointSelected) -> None:
        self.selected.append(message.row)


async def press(pilot: Pilot[None], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
    await settled(pilot)


async def settled(pilot: Pilot[None]) -> None:
    await pilot.pause()
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


def screen(app: Shown) -> list[str]:
    view = app.view
    return [view.render_line(y).text for y in range(view.size.height)]


async def test_the_cursor_begins_at_most_time_and_goes_on_by_time() -> None:
    app = Shown()
    async with app.run_test(size=(80, 20)) as pilot:
        await settled(pilot)
        await press(pilot, "n", "n", "n", "n", "N", "g", "G")
    # By time: middle 30, right 20, left 10, edge 5; beyond the last it stays.
    assert app.highlighted == [1, 2, 0, 3, 0, 1, 3]


async def test_arrows_go_to_the_nearest_point_in_their_direction() -> None:
    app = Shown(ROWS[:3])
    async with app.run_test(size=(80, 20)) as pilot:
        await settled(pilot)
        await press(pilot, "right", "right", "left", "left", "up", "right", "down")
        assert app.highlighted == [1, 2, 1, 0, 1, 2, 1]
        await press(pilot, "enter")
    assert app.selected == [1]


async def test_what_is_highlighted_is_said_and_bracketed() -> None:
    app = Shown()
    async with app.run_test(size=(80, 20)) as pilot:
        await settled(pilot)
        lines = screen(app)
        assert lines[0].startswith(" covers 71.2%")
        assert "3 points · 1 ▸ bytes only · 1 time only" in lines[0]
        assert sum("[n]" in line for line in lines) == 2
        assert "middle" in lines[-2]
        assert "norm bf16  1x  30.00 us  1/4" in lines[-2]
        assert "10 FLOP/B  1.000 TFLOP/s" in lines[-1]


async def test_moving_the_cursor_draws_its_own_lines_only() -> None:
    app = Shown()
    async with app.run_test(size=(80, 20)) as pilot:
        await settled(pilot)
        app.view.asked = []
        await press(pilot, "n")
        points = [region for region in app.view.asked if region.y < 17]
        assert [region.size for region in points] == [(3, 1)] * 2  # the point it left and the one it reached
        told = [region for region in app.view.asked if region.y >= 17]
        assert [region.y for region in told] == [18, 19]  # two lines about it, as far as they differ
        assert told[1].x > 4


async def test_a_point_on_the_plots_left_edge_is_bracketed_on_both_sides() -> None:
    app = Shown()
    async with app.run_test(size=(80, 20)) as pilot:
        await settled(pilot)
        await press(pilot, "G")  # the one with bytes only
        assert app.highlighted[-1] == 3
        (line,) = [line for line in screen(app)[1:-2] if "[m]" in line]
        assert app.view.grid is not None
        assert line.index("[m]") == app.view.grid.left - 1


async def test_zoom_keeps_the_cursor_in_its_cell_and_fit_shows_everything() -> None:
    app = Shown()
    async with app.run_test(size=(80, 20)) as pilot:
        await settled(pilot)
        fitted = app.view.view
        grid = app.view.grid
        assert grid is not None
        before = grid.cell(1.0, 12.0)
        await press(pilot, "plus", "plus", "plus", "plus")
        assert app.view.grid is not None
        assert app.view.view.x1 - app.view.view.x0 == pytest.approx((fitted.x1 - fitted.x0) * 0.7**4)
        assert np.subtract(app.view.grid.cell(1.0, 12.0), before).tolist() in ([0, 0], [1, 0], [-1, 0], [0, 1], [0, -1])
        assert app.view.grid.outside > 0
        await press(pilot, "0")
        assert app.view.view == fitted
        assert app.view.grid.outside == 0


async def test_nobody_writes_out_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker without a description is described by its arguments: of a thousand points that takes longer than drawing them."""
    monkeypatch.setattr(PlotSpec, "__repr__", lambda self: pytest.fail("written out"))
    app = Shown()
    async with app.run_test(size=(80, 20)) as pilot:
        await settled(pilot)
        await press(pilot, "plus", "0")
        assert app.view.grid is not None


async def test_a_point_beyond_the_window_is_brought_into_it() -> None:
    app = Shown()
    async with app.run_test(size=(80, 20)) as pilot:
        await settled(pilot)
        await press(pilot, *["plus"] * 6, "n")
        assert app.view.view.x0 < 3 < app.view.view.x1
        assert sum("[g]" in line for line in screen(app)) == 2


async def test_a_row_without_a_place_is_told_about_and_moves_nothing() -> None:
    app = Shown()
    async with app.run_test(size=(80, 20)) as pilot:
        await settled(pilot)
        window = app.view.view
        app.view.highlight(4)
        await settled(pilot)
        assert app.view.view == window
        assert "nowhere" in screen(app)[-2]
        assert "no place on the plot" in screen(app)[-1]
        await press(pilot, "plus", "n")
        assert app.highlighted == [1, 4, 1]


async def test_a_filter_that_lets_nothing_through_says_so() -> None:
    app = Shown()
    async with app.run_test(size=(80, 20)) as pilot:
        await settled(pilot)
        app.view.limit(np.zeros(5, np.bool_))
        await settled(pilot)
        assert screen(app)[-2].strip() == "no op passes the filter"


@pytest.mark.parametrize("key", ["plus", "minus", "L", "K"])
async def test_no_number_of_zooms_or_pans_breaks_the_axes(key: str) -> None:
    app = Shown()
    async with app.run_test(size=(80, 20)) as pilot:
        await settled(pilot)
        for _ in range(600):
            app.action_do(KEYS[key].replace(", ", " "))
        await settled(pilot)
        assert app.view.view.x1 > app.view.view.x0
        assert "no op" not in "".join(screen(app))


async def test_pan_moves_by_a_fifth() -> None:
    app = Shown()
    async with app.run_test(size=(80, 20)) as pilot:
        await settled(pilot)
        view = app.view.view
        await press(pilot, "L", "K")
        assert app.view.view.x0 == pytest.approx(view.x0 + (view.x1 - view.x0) / 5)
        assert app.view.view.y0 == pytest.approx(view.y0 + (view.y1 - view.y0) / 5)


async def test_roofs_in_turn_are_those_that_bind_all_and_none() -> None:
    app = Shown()
    async with app.run_test(size=(120, 24)) as pilot:
        await settled(pilot)
        assert "12TB/s L2" not in "\n".join(screen(app))
        await press(pilot, "x")
        assert "12TB/s L2" in "\n".join(screen(app))
        assert "67T fp32" in "\n".join(screen(app))
        await press(pilot, "x")
        assert "TB/s" not in "\n".join(screen(app)[1:-2])
        await press(pilot, "x")
        assert "3TB/s HBM" in "\n".join(screen(app))


async def test_a_limit_hides_points_and_moves_the_cursor_off_them() -> None:
    app = Shown()
    async with app.run_test(size=(80, 20)) as pilot:
        await settled(pilot)
        window = app.view.view
        app.view.limit(np.array([True, False, False, True, True]))
        await settled(pilot)
        assert app.highlighted == [1, 0]
        assert app.view.view == window
        assert app.view.grid is not None
        assert set(app.view.grid.owner[app.view.grid.owner >= 0].tolist()) == {0, 3}


async def test_another_memory_moves_the_points() -> None:
    rows = [with_intensity(ROWS[0], {"hbm": 1.0, "l2": 0.1}), ROWS[1]]
    app = Shown(rows)
    async with app.run_test(size=(80, 20)) as pilot:
        await settled(pilot)
        assert app.view.points.x.tolist() == [0.0, 1.0]
        await press(pilot, "v")
        assert app.view.memory == "l2"
        assert app.view.points.x.tolist() == pytest.approx([-1.0, np.nan], nan_ok=True)


def with_intensity(one: RooflineRow, intensity: dict[str, float]) -> RooflineRow:
    changed = row(one.name, intensity=1.0, flops_per_s=one.flops_per_s, time_us=one.time_us)
    changed.intensity = intensity
    return changed


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [ROWS[0]],
        [ROWS[4]],
        [ROWS[3]],
        [ROWS[0]] * 5,
        [row(intensity=1e-200, flops_per_s=1e-200), row(intensity=1e200, flops_per_s=1e200)],
    ],
    ids=["none", "one", "no place", "edge alone", "all equal", "huge range"],
)
@pytest.mark.parametrize("look", [Look(), Look("quadrant"), Look("ascii", colour=False)], ids=["braille", "quadrant", "ascii"])
async def test_any_rows_can_be_shown_and_every_key_pressed(rows: list[RooflineRow], look: Look) -> None:
    app = Shown(rows, look)
    async with app.run_test(size=(80, 20)) as pilot:
        await settled(pilot)
        await press(pilot, *KEYS)
        for line in screen(app):
            assert len(line) == 80
            assert not look.ascii or line.isascii()
    assert set(app.highlighted) <= set(range(len(rows)))


@pytest.mark.parametrize("size", [(60, 12), (80, 20), (200, 60), (20, 6), (5, 3), (1, 1)])
async def test_it_fits_any_size(size: tuple[int, int]) -> None:
    app = Shown()
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await press(pilot, "n", "plus", "x")
        await pilot.resize_terminal(80, 24)
        await settled(pilot)
        assert all(len(line) == 80 for line in screen(app))
        assert app.view.grid is not None
        assert app.view.grid.chars.shape[1] == 80


async def test_without_colour_every_segment_still_has_a_style(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = Shown(look=Look("braille", colour=False), theme="ansi")
    async with app.run_test(size=(80, 20)) as pilot:
        await settled(pilot)
        await press(pilot, "n", "plus")
        assert all(segment.style is not None for y in range(20) for segment in app.view.render_line(y))
        letters = [c for line in screen(app)[1:15] for c in line if c in "gnm"]
        assert letters  # no category by colour alone


async def test_names_from_a_file_cannot_break_the_line() -> None:
    app = Shown([row("\x1b[31mred\u202e 日本語 " + "x" * 300, intensity=1.0, flops_per_s=1e11)])
    async with app.run_test(size=(80, 20)) as pilot:
        await settled(pilot)
        strips = [app.view.render_line(y) for y in range(20)]
        assert all(strip.cell_length == 80 for strip in strips)
        assert not any("\x1b" in strip.text or "\u202e" in strip.text for strip in strips)


async def test_an_older_plot_does_not_overwrite_a_newer_one() -> None:
    app = Shown()
    async with app.run_test(size=(80, 20)) as pilot:
        await settled(pilot)
        for _ in range(5):
            app.view.zoom(1)
        await settled(pilot)
        assert app.view.grid is not None
        assert app.view.grid.view == app.view.view
