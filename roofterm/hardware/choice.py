"""Which roofs a person wants the devices to be held against."""

from __future__ import annotations

import msgspec


class RoofChoice(msgspec.Struct, frozen=True):
    """Whose peaks to use."""

    device: str | None = None
    """name or id from the hardware table (or config.toml) instead of the profile's own device"""
    roofs: str | None = None
    """measured, vendor or trace; None: the best known"""
    peaks: dict[str, float] = {}
    """dtype: FLOP/s, given by the user"""
    bandwidths: dict[str, float] = {}
    """level: bytes/s, given by the user"""
