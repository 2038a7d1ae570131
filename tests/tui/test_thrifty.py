"""What is sent of a screen: only what differs, and after it the terminal shows all of it. The terminal here is pyte's."""

from __future__ import annotations

import random

import pyte
import pytest
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.strip import Strip

from roofterm.tui.escape_codes import change, differences
from roofterm.tui.thrifty import Changes, DrawnBefore, TerminalCells, cells_of
from roofterm.tui.widgets.line_widget import LineWidget
from tests.tui.harness import make_app

WIDTH, HEIGHT = 60, 5
STYLES = [
    Style(color="red"),
    Style(color="blue", bold=True),
    Style(color="blue", dim=True, italic=True),
    Style(bgcolor="green"),
    Style(color="red", bgcolor="color(233)", underline=True),
    Style(reverse=True, strike=True),
    Style(color="#102030", bgcolor="#405060"),
    Style(),
]
CONSOLE = Console(force_terminal=True, color_system="256", width=WIDTH)


def line(*pieces: tuple[str, Style]) -> Strip:
    return Strip([Segment(text, style) for text, style in pieces])


def any_line(chance: random.Random) -> Strip:
    """Text of narrow and wide characters in some styles, exactly WIDTH cells; every third ends in blanks."""
    pieces, used = [], 0
    wanted = WIDTH if chance.random() < 0.67 else chance.randint(0, WIDTH - 10)
    while used < wanted:
        text = "".join(chance.choice("ab  ··中") for _ in range(chance.randint(1, 25)))
        pieces.append((text, chance.choice(STYLES)))
        used = line(*pieces).cell_length
    return line(*pieces, (" " * WIDTH, chance.choice(STYLES))).crop(0, WIDTH)


class Terminal:
    """A program's screen, and what it sends of it."""

    def __init__(self) -> None:
        self.screen = pyte.Screen(WIDTH, HEIGHT)
        self.screen.reset_mode(pyte.modes.DECAWM)
        self.stream = pyte.Stream(self.screen)
        self.sent = TerminalCells()

    def whole(self, lines: list[Strip]) -> str:
        return self.show(LayoutUpdate([[one] for one in lines], Region(0, 0, WIDTH, HEIGHT)))

    def part(self, chops: list[dict[int, Strip]], spans: list[tuple[int, int, int]]) -> str:
        return self.show(ChopsUpdate(chops, spans, [[*list(chop)[1:], WIDTH] for chop in chops]))

    def show(self, update: CompositorUpdate) -> str:
        text = Changes(update, self.sent, WIDTH).render_segments(CONSOLE)
        self.stream.feed(text)
        return text

    def cells(self) -> list[list[tuple[object, ...]]]:
        """How each cell looks: the colour and the weight of a blank are not seen, but under a line or in reverse."""
        return [[_looks(self.screen.buffer[y][x]) for x in range(WIDTH)] for y in range(HEIGHT)]


def _looks(cell: pyte.screens.Char) -> tuple[object, ...]:
    drawn = (cell.bg, cell.underscore, cell.strikethrough, cell.reverse)
    seen = cell.data != " " or any(drawn[1:])
    return (cell.data, *drawn, *((cell.fg, cell.bold, cell.italics) if seen else ()))


def as_drawn(lines: list[Strip]) -> list[list[tuple[object, ...]]]:
    """A terminal on which Rich itself has written the lines."""
    terminal = Terminal()
    for y, one in enumerate(lines):
        terminal.stream.feed(f"\x1b[{y + 1};1H{one.render(CONSOLE)}")
    return terminal.cells()


def between_characters(*lines: Strip) -> list[int]:
    """Cells at which all the lines can be cut without halving a wide character."""
    return [at for at, here in enumerate(zip(*(cells_of(one, CONSOLE) for one in lines), strict=True)) if all(char for char, _ in here)]


@pytest.mark.parametrize("seed", range(30))
def test_the_terminal_shows_what_was_drawn_however_little_is_sent(seed):
    """After the changes of ten screens it looks as if Rich had written the last one whole."""
    chance = random.Random(seed)
    terminal = Terminal()
    lines = [any_line(chance) for _ in range(HEIGHT)]
    terminal.whole(lines)
    assert terminal.cells() == as_drawn(lines)
    for _ in range(10):
        spans = []
        for y in chance.sample(range(HEIGHT), 3):
            other = any_line(chance) if chance.random() < 0.5 else lines[y]
            cut = chance.choice(between_characters(lines[y], other))
            lines[y] = Strip.join([lines[y].crop(0, cut), other.crop(cut, WIDTH)])
            spans.append((y, cut, WIDTH))
        middle = chance.choice(between_characters(*lines))
        terminal.part([{0: one.crop(0, middle), middle: one.crop(middle, WIDTH)} if middle else {0: one} for one in lines], spans)
        assert terminal.cells() == as_drawn(lines)


def test_nothing_is_sent_for_what_is_there_already():
    terminal = Terminal()
    lines = [line(("x" * WIDTH, STYLES[0]))] * HEIGHT
    terminal.whole(lines)
    assert terminal.whole(lines) == ""
    assert terminal.part([{0: one} for one in lines], [(y, 0, WIDTH) for y in range(HEIGHT)]) == ""


def test_one_changed_cell_is_all_that_is_sent():
    terminal = Terminal()
    terminal.whole([line(("x" * WIDTH, STYLES[0]))] * HEIGHT)
    changed = line(("x" * 40 + "y" + "x" * 19, STYLES[0]))
    assert terminal.part([{0: changed}] * HEIGHT, [(2, 0, WIDTH)]) == "\x1b[3;41H\x1b[31my\x1b[m"


def test_a_style_is_said_once_and_only_what_changes_of_it():
    terminal = Terminal()
    both = line(("ab ", Style(color="red", bgcolor="blue")), ("cd", Style(color="green", bgcolor="blue")), ("." * 55, STYLES[0]))
    assert terminal.part([{0: both}] * HEIGHT, [(0, 0, 5)]) == "\x1b[1;1H\x1b[31;44mab \x1b[32mcd\x1b[m"


def test_the_colour_of_a_blank_is_nobodys_concern():
    terminal = Terminal()
    terminal.whole([line((" " * WIDTH, Style(color="red")))] * HEIGHT)
    assert terminal.whole([line((" " * WIDTH, Style(color="green", bold=True)))] * HEIGHT) == ""


def test_blanks_at_the_end_are_erased_unless_something_paints_them():
    terminal = Terminal()
    full = line(("x" * WIDTH, Style()))
    terminal.whole([full] * HEIGHT)
    assert terminal.whole([line(("x", Style()), (" " * 59, Style()))] + [full] * 4) == "\x1b[1;2H\x1b[K"
    painted = line(("x", Style()), (" " * 59, Style(bgcolor="blue")))
    assert " " * 59 in terminal.whole([painted] + [full] * 4)


def test_what_is_between_two_changes_is_sent_where_that_is_shorter_than_the_way_past_it():
    terminal = Terminal()
    terminal.whole([line(("." * WIDTH, STYLES[0]))] * HEIGHT)
    near, far = list("." * WIDTH), list("." * WIDTH)
    near[3] = near[6] = far[3] = far[30] = "x"
    assert terminal.part([{0: line(("".join(near), STYLES[0]))}] * HEIGHT, [(0, 0, WIDTH)]) == "\x1b[1;4H\x1b[31mx..x\x1b[m"
    assert terminal.part([{0: line(("".join(far), STYLES[0]))}] * HEIGHT, [(1, 0, WIDTH)]) == "\x1b[2;4H\x1b[31mx\x1b[31Gx\x1b[m"


def test_of_a_terminal_that_is_not_known_everything_asked_for_is_sent():
    terminal = Terminal()
    blank = line((" " * WIDTH, Style()))
    assert terminal.part([{0: blank}] * HEIGHT, [(1, 10, 20)]) == "\x1b[2;11H" + " " * 10


def test_what_is_held_back_is_sent_at_the_end_in_its_last_form():
    terminal = Terminal()
    lines = [line(("x" * WIDTH, STYLES[0]))] * HEIGHT
    terminal.whole(lines)
    terminal.sent.hold()
    assert terminal.whole([line(("y" * WIDTH, STYLES[0]))] * HEIGHT) == ""
    assert terminal.whole([line(("x" * 59 + "z", STYLES[0])), *lines[1:]]) == ""
    terminal.sent.release()
    assert terminal.show(DrawnBefore()) == "\x1b[1;60H\x1b[31mz\x1b[m"


def test_text_whose_width_only_the_terminal_knows_is_sent_as_it_is():
    terminal = Terminal()
    odd = Strip([Segment("e\u0301" + "x" * (WIDTH - 1), STYLES[0])], WIDTH)  # a mark that takes no cell of its own
    for _ in range(2):
        assert "e\u0301" in terminal.part([{0: odd}] * HEIGHT, [(0, 0, WIDTH)])
    plain = line(("x" * WIDTH, STYLES[0]))
    assert "x" * WIDTH in terminal.part([{0: plain}] * HEIGHT, [(0, 0, WIDTH)])


def test_what_follows_such_text_stands_in_its_place():
    terminal = Terminal()
    odd = Strip([Segment("e\u0301abc", STYLES[0])], 4)
    terminal.part([{0: odd, 4: line(("z" * 56, STYLES[0]))}] * HEIGHT, [(0, 0, WIDTH)])
    assert terminal.screen.display[0].endswith("z" * 56)
    assert "abc\x1b[0m\x1b[1;5H" in terminal.part([{0: odd, 4: line(("y" * 56, STYLES[0]))}] * HEIGHT, [(0, 0, WIDTH)])


def test_a_wide_character_is_sent_whole():
    red, blue = STYLES[:2]
    old = cells_of(line(("a中b", red)), CONSOLE)
    new = [*old[:2], ("", change("", "34")), old[3]]
    assert differences(old, new) == [(1, 3)]
    assert differences(cells_of(line(("abcd", red)), CONSOLE), cells_of(line(("a中d", red)), CONSOLE)) == [(1, 3)]
    assert differences(old, cells_of(line(("a中b", blue)), CONSOLE)) == [(0, 4)]


def test_a_wide_character_that_is_half_covered_becomes_a_blank():
    terminal = Terminal()
    wide = line(("中" * (WIDTH // 2), STYLES[0]))
    terminal.whole([wide] * HEIGHT)
    terminal.part([{0: wide.crop(0, 3), 3: line(("abc", STYLES[0])), 6: wide.crop(6, WIDTH)}] * HEIGHT, [(0, 3, 6)])
    assert terminal.screen.display[0].startswith("中 abc中")
    terminal.part([{0: line(("abc", STYLES[0])), 3: wide.crop(3, WIDTH)}] * HEIGHT, [(1, 0, 3)])
    assert terminal.screen.display[1].startswith("abc 中")


class Letters(LineWidget):
    """A line of one letter."""

    letter = "a"

    def render_line(self, y: int) -> Strip:
        return self.strip([(self.letter * self.size.width, self.palette.text)])


class Page(App[None]):
    def compose(self) -> ComposeResult:
        yield Letters()


async def test_textual_gives_the_updates_that_are_read_here():
    """A whole screen first, then a part."""
    app = Page()
    async with app.run_test(size=(WIDTH, HEIGHT)) as pilot:
        await pilot.pause()
        compositor, terminal = app.screen._compositor, Terminal()
        whole = compositor.render_update(full=True)
        assert isinstance(whole, LayoutUpdate)
        assert terminal.show(whole).count("a" * WIDTH) == HEIGHT
        letters = app.query_one(Letters)
        letters.letter = "b"
        letters.refresh(Region(5, 1, 3, 1))
        compositor.update_widgets({letters})
        part = compositor.render_update()
        assert isinstance(part, ChopsUpdate)
        sent = terminal.show(part)
        assert sent.startswith("\x1b[2;6H")
        assert sent.count("bbb") == 1
        assert "a" not in sent


async def test_after_a_resize_nothing_is_taken_to_be_there():
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()

        def sent() -> str:
            whole = app.screen._compositor.render_update(full=True)
            assert isinstance(whole, LayoutUpdate)
            return Changes(whole, app._cells, 80).render_segments(CONSOLE)

        assert "Overview" in sent()
        assert sent() == ""
        await pilot.resize_terminal(70, 24)
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert "Overview" in sent()
