"""What the terminal can show, probed once, before Textual starts: it neither refuses a dumb terminal nor a non-UTF-8 one.

Imports nothing heavy, so that a command can ask whether to start the explorer or to print the report.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import IO, Literal

import msgspec

Colour = Literal["none", "16", "256", "truecolor"]
GlyphSet = Literal["braille", "quadrant", "ascii"]

_SIXTEEN = ("linux", "xterm", "screen", "vt100", "vt220", "ansi", "cons25")
"""Values of TERM, without a suffix, that promise 16 colours at most."""


class Capabilities(msgspec.Struct, frozen=True):
    """What can be drawn here. `refusal` says why the explorer cannot be shown, in words for a person."""

    colour: Colour = "256"
    glyphs: GlyphSet = "braille"
    mouse: bool = False
    ssh: bool = False
    tmux: bool = False
    refusal: str | None = None


def can_show(capabilities: Capabilities | None = None) -> bool:
    """Whether the explorer can be shown on this process's terminal; if not, the text report is printed."""
    return (capabilities or probe()).refusal is None


def probe(
    environ: Mapping[str, str] | None = None,
    stdin: IO[str] | None = None,
    stdout: IO[str] | None = None,
    *,
    ascii_only: bool = False,
    no_color: bool = False,
    mouse: bool = False,
    glyphs: GlyphSet | None = None,
    colour: Colour | None = None,
) -> Capabilities:
    """Look at the environment and at both ends of the terminal; the options of the command line win.

    `glyphs` and `colour` are the user's own word on what the environment does not tell: NO_COLOR and a terminal that does not
    read UTF-8 win over them.
    """
    env = os.environ if environ is None else environ
    source = sys.stdin if stdin is None else stdin
    screen = sys.stdout if stdout is None else stdout
    return Capabilities(
        colour="none" if no_color or env.get("NO_COLOR") else colour or _colour(env),
        glyphs="ascii" if ascii_only or env.get("ROOFTERM_ASCII") or not _writes_utf8(screen) else glyphs or _glyphs(env),
        mouse=mouse,
        ssh=bool(env.get("SSH_CONNECTION") or env.get("SSH_TTY")),
        tmux=bool(env.get("TMUX") or env.get("STY")),
        refusal=_refusal(env, source, screen),
    )


def _refusal(env: Mapping[str, str], source: IO[str], screen: IO[str]) -> str | None:
    if not _is_terminal(source):
        return "standard input is no terminal"
    if not _is_terminal(screen):
        return "standard output is no terminal"
    term = env.get("TERM", "")
    if term in ("", "dumb", "unknown"):
        return f"TERM={term or 'unset'} cannot move its cursor"
    return None


def _is_terminal(stream: IO[str]) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):  # closed or replaced
        return False


def _colour(env: Mapping[str, str]) -> Colour:
    if env.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return "truecolor"
    term = env.get("TERM", "").lower()
    if term.endswith(("-direct", "-truecolor")):
        return "truecolor"
    if term.endswith("-256color") or term.startswith(("kitty", "alacritty", "wezterm", "foot", "ghostty")):
        return "256"
    return "16" if term.split("-")[0] in _SIXTEEN else "256"


def _writes_utf8(screen: IO[str]) -> bool:
    return (getattr(screen, "encoding", None) or "").lower().replace("-", "").replace("_", "") == "utf8"


def _glyphs(env: Mapping[str, str]) -> GlyphSet:
    if env.get("TERM", "") == "linux":  # the console's font has block elements and no braille
        return "ascii"
    locale = next((env[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if env.get(name)), "")
    # Python itself writes UTF-8 under the C locale; whether the terminal reads it nobody says.
    return "ascii" if locale in ("C", "POSIX") else "braille"
