"""What tables keep between keys: the indexes of the frames shown last, prepared in the background; and no late answer is drawn."""

from __future__ import annotations

from threading import Event

import polars as pl

from roofterm.analysis.filters import parse
from roofterm.analysis.scope import ALL
from roofterm.tui import row_book
from roofterm.tui.row_book import LARGE_ROWS, MOST_FRAMES, RowBook
from roofterm.tui.rows import table_rows
from roofterm.tui.screens import ops
from tests.tui.harness import explorer, settled, the_explorer


def frame_of(rows: int) -> pl.DataFrame:
    return pl.DataFrame({"name": [f"n{row * 7919 % rows}" for row in range(rows)], "a": range(rows)})


def test_a_frame_keeps_its_index_until_others_were_asked_for_later():
    book = RowBook()
    frames = [frame_of(3) for _ in range(MOST_FRAMES + 1)]
    first = book.index(frames[0])
    for frame in frames[1:MOST_FRAMES]:
        book.index(frame)
    assert book.index(frames[0]) is first  # asked for again: the second one has now waited longest
    second = book.index(frames[1])
    book.index(frames[0])
    for frame in frames[2:]:
        book.index(frame)
    assert book.index(frames[0]) is first
    assert book.index(frames[1]) is not second


def test_orders_of_a_large_frame_are_prepared_in_the_background(monkeypatch):
    book, large, small = RowBook(), frame_of(LARGE_ROWS), frame_of(LARGE_ROWS - 1)
    for frame in (small, large):
        book.prepare(frame, ["name", "a"])
    assert book._preparing is not None
    book._preparing.join()
    assert book.index(large).missing(["name", "a"]) == []
    assert book.index(small).missing(["name", "a"]) == ["name", "a"]
    monkeypatch.setattr(row_book, "Thread", None)  # nothing is left to prepare: no thread is started
    book.prepare(large, ["a", "name"])


async def test_a_late_answer_is_not_drawn_over_a_newer_one(monkeypatch):
    """The first letter's answer comes after the second letter was typed: only the second one's is shown."""
    asked, late = [], Event()
    real = table_rows

    def slow(study, by, scope, wanted, *rest):
        asked.append(wanted.text)
        if wanted.text == "n":
            late.wait(5)
        return real(study, by, scope, wanted, *rest)

    async with explorer((80, 24), "3") as pilot:
        monkeypatch.setattr(ops, "table_rows", slow)
        shown: list[int] = []
        table = the_explorer(pilot).page.query_one("#ops-table")
        draw = table.show  # type: ignore[attr-defined]
        monkeypatch.setattr(table, "show", lambda *given: shown.append(len(given[2])) or draw(*given))  # type: ignore[func-returns-value]
        await pilot.press("slash", "n")
        while not asked:
            await pilot.pause(0.01)
        await pilot.press("v", "j")
        await pilot.pause(0.05)
        assert shown == []
        late.set()
        await settled(pilot)
        everything = real(the_explorer(pilot).opened.study, "kernel", ALL, parse("nvj"), None)
        assert asked == ["n", "nvj"]  # nobody waited for "nv" any more when its turn came
        assert shown == [len(everything.order)]
