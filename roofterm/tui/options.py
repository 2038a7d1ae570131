"""What the command line asks of the explorer."""

from __future__ import annotations

import msgspec

from roofterm.analysis.scope import STEADY, RoofChoice, Scope


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
    mouse: bool = False
    theme: str | None = None
    """dark, light, contrast or ansi; None: what fits the terminal"""
    keys: dict[str, str] = {}
    """action id: keys, from the configuration"""
    debug: bool = False
    """show a fault's traceback after the terminal is restored"""
