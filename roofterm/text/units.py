"""Numbers for people: three or four figures and the unit that fits. Unknown is shown as `--`, never as 0."""

from __future__ import annotations

from math import floor, isfinite, log10

UNKNOWN = "--"

_SI = ("", "k", "M", "G", "T", "P", "E")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_TIMES = ((1e-3, "ns"), (1.0, "us"), (1e3, "ms"), (1e6, "s"))


def si(value: float | None, unit: str = "") -> str:
    """`value` with a decimal prefix: 989.4 T, 3.35 T; with `unit` after a blank: "989.4 TFLOP/s"."""
    if value is None or not isfinite(value):
        return UNKNOWN
    size = abs(value)
    step = 0 if size < 1000 else min(int(floor(log10(size)) // 3), len(_SI) - 1)
    scaled = value / 1000**step
    if abs(scaled) >= 999.95 and step < len(_SI) - 1:
        step, scaled = step + 1, scaled / 1000
    number = figures(scaled) if step or scaled != int(scaled) else str(int(scaled))
    return f"{number} {_SI[step]}{unit}".rstrip() if unit else f"{number}{_SI[step]}"


def duration_us(us: float | None) -> str:
    """A time given in microseconds, in ns, us, ms or s."""
    if us is None or not isfinite(us):
        return UNKNOWN
    if us == 0:
        return "0 us"
    size = abs(us)
    scale, unit = _TIMES[0]
    for candidate, name in _TIMES:
        if size >= candidate * 0.9995:
            scale, unit = candidate, name
    return f"{figures(us / scale)} {unit}"


def bytes_text(count: float | None) -> str:
    """A size in bytes with a binary prefix: 79.1 GiB."""
    if count is None or not isfinite(count):
        return UNKNOWN
    step = 0
    value = float(count)
    while abs(value) >= 1023.95 and step < len(_BINARY) - 1:
        value, step = value / 1024, step + 1
    return f"{int(count)} B" if step == 0 else f"{figures(value)} {_BINARY[step]}"


def pct(share: float | None) -> str:
    """A share given in percent: 87.4%, 0.03%, <0.01%."""
    if share is None or not isfinite(share):
        return UNKNOWN
    size = abs(share)
    if size >= 1000:
        return f"{share:.0f}%"
    if size >= 0.995 or share == 0:
        return f"{share:.1f}%"
    return f"{share:.2f}%" if size >= 0.01 else "<0.01%"


def count(number: int | None) -> str:
    """A count with thousands apart: 1,284."""
    return UNKNOWN if number is None else f"{number:,}"


def figures(value: float) -> str:
    """Three or four significant figures without an exponent: 1234, 98.1, 1.289, 0.034."""
    size = abs(value)
    if size >= 1000:
        return f"{value:.0f}"
    if size >= 100:
        return f"{value:.1f}"
    if size >= 10:
        return f"{value:.2f}" if size < 99.995 else f"{value:.1f}"
    return f"{value:.3f}"
