"""What part of a profile a result speaks of, and which roofs it is held against: the options of every reading command."""

from __future__ import annotations

import msgspec


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


class RoofChoice(msgspec.Struct, frozen=True):
    """Whose peaks to use."""

    device: str | None = None
    """name or id from the hardware table instead of the profile's own device"""
    roofs: str | None = None
    """measured, vendor or trace; None: the best known"""
    peaks: dict[str, float] = {}
    """dtype: FLOP/s, given by the user"""
    bandwidths: dict[str, float] = {}
    """level: bytes/s, given by the user"""


ALL = Scope()
STEADY = Scope(step="steady")
