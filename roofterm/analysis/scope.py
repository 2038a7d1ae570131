"""What part of a profile a result speaks of, and which roofs it is held against: the options of every reading command."""

from __future__ import annotations

import msgspec

from roofterm.hardware.choice import RoofChoice

__all__ = ["ALL", "STEADY", "RoofChoice", "Scope", "ScopeError"]


class Scope(msgspec.Struct, frozen=True):
    """Steps, ranks and window that a result speaks of, and the filter expression."""

    step: str = "all"
    """steady, all, N or A-B"""
    where: str = ""
    """filter expression of contract.md section 2"""
    window_ps: tuple[int, int] | None = None
    rank: int | None = None
    infeed: bool = True
    """count infeed and outfeed"""


ALL = Scope()
STEADY = Scope(step="steady")


class ScopeError(ValueError):
    """A scope that this profile does not have (a step or rank that is not there); the message says what there is."""
