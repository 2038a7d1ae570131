"""A window of time as a person writes it."""

from __future__ import annotations

from roofterm.analysis.scope import ScopeError

_SCALES_PS = {"": 10**12, "s": 10**12, "ms": 10**9, "us": 10**6, "ns": 10**3}


def parse_window(text: str) -> tuple[int, int]:
    """Picoseconds of "10ms..25ms", from the profile's start; a time without a unit is in seconds. Raises ScopeError."""
    first, dots, last = text.partition("..")
    if not dots:
        raise ScopeError("write A..B, such as 10ms..25ms")
    start, end = parse_time(first), parse_time(last)
    if end <= start:
        raise ScopeError("the end must lie after the start")
    return start, end


def parse_time(text: str) -> int:
    """Picoseconds of "10ms", "8us", "0.5s" or plain seconds. Raises ScopeError."""
    written = text.strip()
    number = written.rstrip("smun")
    try:
        return round(float(number) * _SCALES_PS[written[len(number) :]])
    except (ValueError, KeyError, OverflowError):
        raise ScopeError(f"{written or 'nothing'} is no time; write for example 10ms") from None


def window_text(window_ps: tuple[int, int]) -> str:
    """The same window written so that `parse_window` gives it again, to the nanosecond."""
    return "..".join(f"{edge / 1e9:.6f}".rstrip("0").rstrip(".") + "ms" for edge in window_ps)
