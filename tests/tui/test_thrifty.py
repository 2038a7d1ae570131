"""What is sent of a screen: only what differs, and after it the terminal shows all of it. The terminal here is pyte's."""

from __future__ import annotations

import random

import pyte
import pytest
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.strip import Strip

from roofterm.tui.thrifty import SPARED_CELLS, PartUpdate, ThriftyCompositor, WholeUpdate, cells_of, differences
from roofterm.tui.widgets.line_widget import LineWidget

WIDTH, HEIGHT = 60, 5
STYLES = [Style(color="red"), Style(color="blue"), Style(bgcolor="green"), Style()]
CONSOLE = Console(force_terminal=True, color_system="256", width=WIDTH)


def line(*pieces: tuple[str, Style]) -> Strip:
    return Strip([Segment(text, style) for text, style in pieces])


def any_line(chance: random.Random) -> Strip:
    """Text of narrow and wide characters in some styles, exactly WIDTH cells."""
    pieces, used = [], 0
    while used < WIDTH:
        text = "".join(chance.choice("ab  ··中") for _ in range(chance.randint(1, 25)))
        pieces.append((text, chance.choice(STYLES)))
        used = line(*pieces).cell_length
    return line(*pieces).crop(0, WIDTH)


def between_characters(*lines: Strip) -> list[int]:
    """Cells at which all the lines can be cut without halving a wide character."""
    return [at for at, here in enumerate(zip(*map(cells_of, lines), strict=True)) if all(char for char, _ in here)]


class Terminal:
    """A program's screen, and what it sends of it."""

    def __init__(self) -> None:
        self.screen = pyte.Screen(WIDTH, HEIGHT)
        self.stream = pyte.Stream(self.screen)
        self.sent: dict = {}

    def whole(self, lines: list[Strip]) -> str:
        return self._show(WholeUpdate(lines, LayoutUpdate([[one] for one in lines], Region(0, 0, WIDTH, HEIGHT)), self.sent))

    def part(self, chops: list[dict], spans: list[tuple[int, int, int]]) -> str:
        ends = [[*list(chop)[1:], WIDTH] for chop in chops]
        return self._show(PartUpdate(ChopsUpdate(chops, spans, ends), self.sent, WIDTH))

    def _show(self, update) -> str:
        text = update.render_segments(CONSOLE)
        self.stream.feed(text.replace("\n", ""))
        return text

    def cells(self) -> list[list[tuple[str, str, str]]]:
        return [[(cell.data, cell.fg, cell.bg) for cell in (self.screen.buffer[y][x] for x in range(WIDTH))] for y in range(HEIGHT)]


@pytest.mark.parametrize("seed", range(20))
def test_the_terminal_shows_what_was_drawn_however_little_is_sent(seed):
    """A terminal that is sent the changes of ten screens looks as one that is sent the last screen whole."""
    chance = random.Random(seed)
    terminal = Terminal()
    lines = [any_line(chance) for _ in range(HEIGHT)]
    terminal.whole(lines)
    for _ in range(10):
        spans = []
        for y in chance.sample(range(HEIGHT), 3):
            other = any_line(chance) if chance.random() < 0.5 else lines[y]
            cut = chance.choice(between_characters(lines[y], other))
            lines[y] = Strip.join([lines[y].crop(0, cut), other.crop(cut, WIDTH)])
            spans.append((y, cut, WIDTH))
        middle = chance.choice(between_characters(*lines))
        terminal.part([{0: one.crop(0, middle), middle: one.crop(middle, WIDTH)} if middle else {0: one} for one in lines], spans)
    fresh = Terminal()
    fresh.whole(lines)
    assert terminal.cells() == fresh.cells()


def test_nothing_is_sent_for_what_is_there_already():
    terminal = Terminal()
    lines = [line(("x" * WIDTH, STYLES[0]))] * HEIGHT
    terminal.whole(lines)
    assert terminal.part([{0: one} for one in lines], [(y, 0, WIDTH) for y in range(HEIGHT)]) == ""


def test_one_changed_cell_is_all_that_is_sent():
    terminal = Terminal()
    terminal.whole([line(("x" * WIDTH, STYLES[0]))] * HEIGHT)
    changed = line(("x" * 40 + "y" + "x" * 19, STYLES[0]))
    sent = terminal.part([{0: changed}] * HEIGHT, [(2, 0, WIDTH)])
    assert sent == f"\x1b[3;41H{line(('y', STYLES[0])).render(CONSOLE)}"


def test_of_a_terminal_that_is_not_known_everything_asked_for_is_sent():
    terminal = Terminal()
    blank = line((" " * WIDTH, Style()))
    sent = terminal.part([{0: blank}] * HEIGHT, [(1, 10, 20)])
    assert sent == f"\x1b[2;11H{blank.crop(10, 20).render(CONSOLE)}"


def test_text_whose_width_only_the_terminal_knows_is_sent_as_it_is():
    terminal = Terminal()
    odd = Strip([Segment("e\u0301" + "x" * (WIDTH - 1), STYLES[0])], WIDTH)  # a mark that takes no cell of its own
    for _ in range(2):
        assert "e\u0301" in terminal.part([{0: odd}] * HEIGHT, [(0, 0, WIDTH)])


def test_nothing_is_known_of_a_whole_line_with_such_text():
    terminal = Terminal()
    odd = Strip([Segment("e\u0301" + "x" * (WIDTH - 1), STYLES[0])], WIDTH)
    terminal.whole([odd] * HEIGHT)
    plain = line(("x" * WIDTH, STYLES[0]))
    assert "x" * WIDTH in terminal.part([{0: plain}] * HEIGHT, [(0, 0, WIDTH)])


def test_differences_that_lie_near_each_other_are_sent_together():
    old = cells_of(line(("." * WIDTH, STYLES[0])))

    def differ(*places: int) -> list[tuple[int, int]]:
        new = list(old)
        for place in places:
            new[place] = ("x", STYLES[0])
        return list(differences(old, new))

    assert differ() == []
    assert differ(3) == [(3, 4)]
    assert differ(3, 3 + SPARED_CELLS) == [(3, 4 + SPARED_CELLS)]
    assert differ(3, 4 + SPARED_CELLS) == [(3, 4), (4 + SPARED_CELLS, 5 + SPARED_CELLS)]


def test_a_wide_character_is_sent_whole():
    red, blue = STYLES[:2]
    old, new = cells_of(line(("a中b", red))), cells_of(line(("a中b", red)))
    new[2] = ("", blue)
    assert list(differences(old, new)) == [(1, 3)]
    assert list(differences(cells_of(line(("abcd", red))), cells_of(line(("a中d", red))))) == [(1, 3)]


class Letters(LineWidget):
    """A line of one letter."""

    letter = "a"

    def render_line(self, y: int) -> Strip:
        return self.strip([(self.letter * self.size.width, self.palette.text)])


class Page(App[None]):
    def compose(self) -> ComposeResult:
        yield Letters()

    def on_mount(self) -> None:
        self.screen._compositor = ThriftyCompositor()


async def test_textual_takes_its_updates():
    """The compositor in its place: a whole screen first, then a part, told from what was sent."""
    app = Page()
    async with app.run_test(size=(WIDTH, HEIGHT)) as pilot:
        await pilot.pause()
        compositor = app.screen._compositor
        whole = compositor.render_update(full=True)
        assert isinstance(whole, WholeUpdate)
        assert "a" * WIDTH in whole.render_segments(CONSOLE)
        letters = app.query_one(Letters)
        letters.letter = "b"
        letters.refresh(Region(5, 1, 3, 1))
        compositor.update_widgets({letters})
        part = compositor.render_update()
        assert isinstance(part, PartUpdate)
        sent = part.render_segments(CONSOLE)
        assert sent.startswith("\x1b[2;6H")
        assert sent.count("bbb") == 1
        assert "a" not in sent


async def test_after_a_resize_nothing_is_taken_to_be_there():
    app = Page()
    async with app.run_test(size=(WIDTH, HEIGHT)) as pilot:
        await pilot.pause()
        compositor = app.screen._compositor
        letters = app.query_one(Letters)

        def sent() -> str:
            letters.refresh(Region(0, 1, 4, 1))
            compositor.update_widgets({letters})
            part = compositor.render_update()
            assert isinstance(part, PartUpdate)
            return part.render_segments(CONSOLE)

        whole = compositor.render_update(full=True)
        assert isinstance(whole, WholeUpdate)
        whole.render_segments(CONSOLE)
        assert sent() == ""
        await pilot.resize_terminal(WIDTH - 10, HEIGHT)
        await pilot.resize_terminal(WIDTH, HEIGHT)
        await pilot.pause()
        assert "aaaa" in sent()
