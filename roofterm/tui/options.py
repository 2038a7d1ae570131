"""What the command line asks of the explorer."""

from __future__ import annotations

from typing import Literal

import msgspec

from roofterm.analysis.scope import STEADY, RoofChoice, Scope
from roofterm.tui.capabilities import Colour, GlyphSet

ThemeName = Literal["dark", "light", "contrast", "colorblind", "ansi"]


class Options(msgspec.Struct, frozen=True):
    """Defaults are what `roofterm PATH` alone means."""

    scope: Scope = STEADY
    roofs: RoofChoice = RoofChoice()
    top: int = 1000
    """ops of the roofline"""
    cache: bool = True
    capture: str | None = None
    """trace of the graphs' capture, or a folder of them; None: `capture_traces/` beside the profile"""
    ascii_only: bool = False
    no_color: bool = False
    glyphs: GlyphSet | None = None
    """in spite of the probe"""
    colour: Colour | None = None
    """in spite of the probe"""
    mouse: bool = False
    theme: str | None = None
    """a `ThemeName`; None: what fits the terminal"""
    start: str = "overview"
    """the screen to begin with"""
    restore: bool = True
    """bring back where the profile was left, and keep where it is left now"""
    keys: dict[str, str] = {}
    """action id: keys, from the configuration"""
    debug: bool = False
    """show a fault's traceback after the terminal is restored"""
