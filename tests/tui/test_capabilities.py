"""What is believed of a terminal from its environment, and when the explorer is not shown at all."""

from __future__ import annotations

import io

import pytest

from roofterm.tui.capabilities import can_show, probe


class Terminal(io.StringIO):
    def __init__(self, is_terminal: bool = True, encoding: str = "utf-8") -> None:
        super().__init__()
        self._is_terminal = is_terminal
        self._encoding = encoding

    def isatty(self) -> bool:
        return self._is_terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding


SCREEN = Terminal()
UTF8 = {"TERM": "xterm-256color", "LANG": "en_US.UTF-8"}


@pytest.mark.parametrize(
    ("environ", "colour"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "truecolor"),
        ({"TERM": "xterm-direct"}, "truecolor"),
        ({"TERM": "xterm-256color"}, "256"),
        ({"TERM": "tmux-256color"}, "256"),
        ({"TERM": "screen"}, "16"),
        ({"TERM": "linux"}, "16"),
        ({"TERM": "xterm"}, "16"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "1"}, "none"),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, "256"),  # no-color.org: only when not empty
    ],
)
def test_colours(environ, colour):
    assert probe(environ, SCREEN, SCREEN).colour == colour


@pytest.mark.parametrize(
    ("environ", "encoding", "glyphs"),
    [
        (UTF8, "utf-8", "braille"),
        (UTF8, "UTF8", "braille"),
        (UTF8, "ascii", "ascii"),
        (UTF8, "iso8859-1", "ascii"),
        ({"TERM": "linux", "LANG": "C.UTF-8"}, "utf-8", "ascii"),  # the console's font lacks braille
        ({"TERM": "xterm", "LC_ALL": "C", "LANG": "en_US.UTF-8"}, "utf-8", "ascii"),
        ({"TERM": "xterm", "LC_ALL": "C.UTF-8"}, "utf-8", "braille"),
        ({**UTF8, "ROOFTERM_ASCII": "1"}, "utf-8", "ascii"),
    ],
)
def test_glyphs(environ, encoding, glyphs):
    assert probe(environ, SCREEN, Terminal(encoding=encoding)).glyphs == glyphs


def test_options_win():
    found = probe(UTF8, SCREEN, SCREEN, ascii_only=True, no_color=True, mouse=True)
    assert (found.glyphs, found.colour, found.mouse) == ("ascii", "none", True)


def test_mouse_is_left_to_the_terminal():
    assert probe(UTF8, SCREEN, SCREEN).mouse is False


def test_where_it_runs():
    found = probe({**UTF8, "SSH_CONNECTION": "1 2 3 4", "TMUX": "/tmp/tmux"}, SCREEN, SCREEN)
    assert (found.ssh, found.tmux) == (True, True)


@pytest.mark.parametrize(
    ("environ", "stdin", "stdout", "word"),
    [
        (UTF8, Terminal(False), SCREEN, "input"),
        (UTF8, SCREEN, Terminal(False), "output"),
        ({"TERM": "dumb"}, SCREEN, SCREEN, "dumb"),
        ({}, SCREEN, SCREEN, "unset"),
    ],
)
def test_what_cannot_show_it_is_told_why(environ, stdin, stdout, word):
    found = probe(environ, stdin, stdout)
    assert word in (found.refusal or "")
    assert not can_show(found)


def test_a_terminal_can_show_it():
    assert can_show(probe(UTF8, SCREEN, SCREEN))
