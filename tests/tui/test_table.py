"""The virtual table: which columns fit, what is drawn, how the cursor moves, and how little is sent for a move."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from textual.app import App, ComposeResult

from roofterm.tui.state import Sort
from roofterm.tui.widgets.table import VirtualTable
from roofterm.tui.widgets.table_layout import Column, most_skipped, place


def column(key: str, width: int, priority: int, **settings) -> Column:
    return Column(key, key, width, str, priority, **settings)


COLUMNS = (column("name", 24, 0, left=True), column("a", 9, 2), column("b", 9, 0), column("c", 9, 1), column("d", 9, 3))


def shown(width: int, skipped: int = 0) -> list[str]:
    return [placed.column.key for placed in place(COLUMNS, width, skipped, name_width=200, least_name=24)]


@pytest.mark.parametrize(
    ("width", "keys"),
    [
        (34, ["name", "b"]),  # 24 + one column and its gap
        (44, ["name", "b", "c"]),  # the next important ones come, in the table's order
        (54 * 2, ["name", "a", "b", "c", "d"]),
    ],
)
def test_columns_give_way_by_priority(width, keys):
    assert shown(width) == keys


def test_passed_by_columns_make_room_for_the_later_ones():
    assert shown(44, skipped=1) == ["name", "b", "c"]
    assert shown(44, skipped=2) == ["name", "c", "d"]
    assert most_skipped(COLUMNS, 44) == 2


def test_columns_never_leave_the_width():
    for width in range(10, 200):
        placed = place(COLUMNS, width, 0, name_width=60)
        assert placed[-1].x + placed[-1].width <= width
        assert [p.x for p in placed] == sorted(p.x for p in placed)


class Bare(App[None]):
    def __init__(self, frame: pl.DataFrame, columns=COLUMNS, order=None) -> None:
        super().__init__()
        self.frame, self.columns = frame, columns
        self.order = np.arange(frame.height) if order is None else order

    def compose(self) -> ComposeResult:
        yield VirtualTable("t", "nothing")

    def on_mount(self) -> None:
        self.table.show(self.frame, self.columns, self.order, Sort("b"))

    @property
    def table(self) -> VirtualTable:
        return self.query_one(VirtualTable)

    def lines(self) -> list[str]:
        return ["".join(s.text for s in self.table.render_line(y)) for y in range(self.table.size.height)]


def numbered(rows: int) -> pl.DataFrame:
    return pl.DataFrame({"name": [f"row{n}" for n in range(rows)], **{key: list(range(rows)) for key in "abcd"}})


async def test_header_marks_the_sorted_column_and_rows_follow_the_order():
    app = Bare(numbered(5), order=np.array([4, 2, 0]))
    async with app.run_test(size=(60, 8)):
        header, *rows = app.lines()
        assert "b▼" in header
        assert [row.split()[0].lstrip(">") for row in rows[:3]] == ["row4", "row2", "row0"]
        assert rows[3].strip() == ""


async def test_unknown_is_two_dashes_and_never_zero():
    frame = pl.DataFrame({"name": ["x"], "a": [None], "b": [0], "c": [1], "d": [2]}, schema_overrides={"a": pl.Int64})
    app = Bare(frame)
    async with app.run_test(size=(90, 4)):
        assert app.lines()[1].split()[1:] == ["--", "0", "1", "2"]


async def test_text_from_the_file_stays_on_its_line_and_in_its_cells():
    names = ["a\nb", "[bold]x[/bold]", "\x1b[31mred", "\u202eright", "e\u0301", "中文" * 40]
    app = Bare(numbered(6).with_columns(name=pl.Series(names)))
    async with app.run_test(size=(70, 8)):
        lines = [app.table.render_line(y) for y in range(8)]
        assert {strip.cell_length for strip in lines} == {70}
        text = app.lines()
        assert "a b" in text[1]
        assert "[bold]x[/bold]" in text[2]
        assert r"\x1b[31mred" in text[3]
        assert r"\u202eright" in text[4]
        assert "…" in text[6]


async def test_cursor_moves_and_the_view_follows():
    app = Bare(numbered(100))
    async with app.run_test(size=(60, 11)) as pilot:
        table = app.table  # ten rows below the header
        table.move(0, 9)
        assert (table.cursor, table.top) == (9, 0)
        table.move(0, 1)
        assert (table.cursor, table.top) == (10, 1)
        table.page(1.0)
        assert table.cursor == 19
        table.end(1)
        assert (table.cursor, table.top) == (99, 90)
        table.move(0, 1)
        assert table.cursor == 99
        table.end(-1)
        assert (table.cursor, table.top) == (0, 0)
        await pilot.pause()
        assert app.lines()[1].startswith((">", " "))


async def test_a_move_within_the_view_draws_two_lines():
    app = Bare(numbered(100))
    async with app.run_test(size=(60, 11)) as pilot:
        await pilot.pause()
        drawn: list[int] = []
        draw = app.table.render_line
        app.table.render_line = lambda y: drawn.append(y) or draw(y)  # type: ignore[func-returns-value,method-assign]
        app.table.move(0, 1)
        await pilot.pause()
        assert sorted(drawn) == [1, 2]


async def test_a_million_rows_format_only_what_is_seen():
    app = Bare(numbered(1_000_000))
    async with app.run_test(size=(60, 11)) as pilot:
        app.table.end(1)
        await pilot.pause()
        assert app.lines()[10].split()[0].lstrip(">") == "row999999"
        assert len(app.table._visible()) == 10


async def test_empty_says_why():
    app = Bare(numbered(3), order=np.array([], np.int64))
    async with app.run_test(size=(60, 8)):
        assert any("nothing" in line for line in app.lines())


async def test_columns_are_reached_by_scrolling_and_the_name_stays():
    app = Bare(numbered(3))
    async with app.run_test(size=(48, 6)):
        assert app.lines()[0].split() == ["name", "b▼", "c"]
        app.table.move(2, 0)
        assert app.lines()[0].split()[:3] == ["name", "c", "d"]
        assert app.lines()[1].split()[0].lstrip(">") == "row0"
        app.table.move(9, 0)
        app.table.move(-9, 0)
        assert app.lines()[0].split() == ["name", "b▼", "c"]
