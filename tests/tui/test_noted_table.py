"""Notes beneath the rows of a table: as many as there is room for, and a table like any other where there is none."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from rich.style import Style
from textual.app import App, ComposeResult

from roofterm.tui.widgets.noted_table import NotedTable, fitted
from roofterm.tui.widgets.table_layout import Column

STYLE = Style()


def notes(count: int) -> list[list[tuple[str, Style]]]:
    """A matter of so many lines: the first with a label, those that go on without."""
    return [[(" to do " if at == 0 else "       ", STYLE), (f"line {at},", STYLE)] for at in range(count)]


def texts(lines) -> list[str]:
    return ["".join(text for text, _ in line) for line in lines]


@given(st.lists(st.integers(0, 8), max_size=9), st.integers(0, 30))
def test_all_rows_fit_with_their_notes_or_none_has_any(counts, lines):
    cards = fitted([notes(count) for count in counts], lines, "…")
    assert not cards or sum(1 + len(card) for card in cards) <= lines
    assert cards or not any(counts) or lines < sum(1 + (count > 0) for count in counts)
    for count, card in zip(counts, cards, strict=False):
        kept = [line for line in texts(card) if line]
        assert [line.split("line")[0] for line in kept] == [line.split("line")[0] for line in texts(notes(count))[: len(kept)]]


def test_what_goes_on_is_marked_as_cut():
    """5 lines for one row: itself, three of its notes, an empty one."""
    ((*told, last, apart),) = fitted([notes(4)], 5, "…")
    assert texts([*told, last]) == [" to do line 0,", "       line 1,", "       line 2 …"]
    assert apart == []


def test_first_rows_get_the_lines_that_are_left():
    """7 lines for two rows: one more than both can have."""
    assert [len(card) for card in fitted([notes(2), notes(2)], 5, "…")] == [2, 1]


class Bare(App[None]):
    def __init__(self, rows: int, name: str = "row") -> None:
        super().__init__()
        self.rows, self.named = rows, name

    def compose(self) -> ComposeResult:
        yield NotedTable("t", lambda row, width: [[(f" note {row}", STYLE)]], "nothing", lambda width: [[("instead", STYLE)]])

    def on_mount(self) -> None:
        frame = pl.DataFrame({"name": [f"{self.named}{row}" for row in range(self.rows)], "a": list(range(self.rows))})
        columns = (Column("name", "name", 24, str, 0, left=True), Column("a", "a", 5, str, 0))
        self.table.show(frame, columns, range(self.rows))

    @property
    def table(self) -> NotedTable:
        return self.query_one(NotedTable)

    def lines(self) -> list[str]:
        return ["".join(segment.text for segment in self.table.render_line(y)).strip() for y in range(self.table.size.height)]


async def test_notes_stand_below_their_rows_and_the_cursor_steps_over_them():
    app = Bare(2)
    async with app.run_test(size=(40, 9)):
        app.table.move(0, 1)
        assert [line.split()[0] for line in app.lines() if line][1:] == ["row0", "note", ">row1", "note"]
        assert [app.table._row_at(app.table._line_of(row) + below) for row in (0, 1) for below in (0, 1)] == [0, 0, 1, 1]


async def test_without_room_it_is_a_table_that_scrolls():
    app = Bare(20)
    async with app.run_test(size=(40, 9)):
        app.table.end(1)
        assert not any("note" in line for line in app.lines())
        assert app.lines()[-1].startswith(">row19")


async def test_a_long_name_goes_on_below():
    app = Bare(1, "a name of many words that no line of forty cells has any room for ")
    async with app.run_test(size=(40, 9)):
        told = " ".join(line.removeprefix(">") for line in app.lines()[1:5])
        assert "…" not in told
        assert all(word in told for word in app.named.split())


async def test_a_name_too_long_for_its_room_is_marked_as_cut():
    app = Bare(1, "word " * 90)
    async with app.run_test(size=(40, 7)):
        assert any(line.endswith("…") for line in app.lines())


async def test_a_table_that_was_scrolled_shows_all_once_there_is_room():
    app = Bare(5)
    async with app.run_test(size=(40, 4)) as pilot:
        app.table.end(1)
        assert app.lines()[-1].startswith(">row4")
        await pilot.resize_terminal(40, 24)
        await pilot.pause()
        assert [line.split()[0] for line in app.lines() if line][1:3] == ["row0", "note"]
        assert ">row4" in "\n".join(app.lines())


async def test_without_rows_it_tells_something_else():
    app = Bare(0)
    async with app.run_test(size=(40, 9)):
        assert [line for line in app.lines() if line] == ["nothing", "instead"]
