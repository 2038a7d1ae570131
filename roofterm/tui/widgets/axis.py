"""Ticks and their labels: decades for the roofline's log axes, exact picoseconds for the timeline's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, floor, log10

_PREFIX = {0: "", 1: "k", 2: "M", 3: "G", 4: "T", 5: "P", 6: "E"}
_UNITS_PS = ((1, "ps"), (10**3, "ns"), (10**6, "us"), (10**9, "ms"), (10**12, "s"))
_DECADES = 3
"""decades in sight from which an axis has ticks at decades alone"""
_DISTINCT = 10_000
"""steps from the zero after which labels count from a base of their own"""
_EDGE = 1e-9
"""a tick this close outside of the window counts as on its edge"""


def engineering(value: float) -> str:
    """A positive value in few characters: 0.01, 0.1, 1, 20, 1k, 2.5M, 10G, 100T, 1P; 1e-5 and 1e24 beyond."""
    if not 0.00095 <= value < 1e21:
        mantissa, _, exponent = f"{value:.3g}".partition("e") if "e" in f"{value:.3g}" else f"{value:.2e}".partition("e")
        short = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        return f"{short}e{int(exponent)}"
    step = max(0, min(floor(log10(value) / 3 + _EDGE), max(_PREFIX)))
    if value / 1000**step >= 999.95 and step < max(_PREFIX):
        step += 1
    return f"{value / 1000**step:.4g}{_PREFIX[step]}"


def log_ticks(low: float, high: float, most: int) -> list[tuple[float, str]]:
    """At most `most` ticks of a log axis from `low` to `high` (log10 of the values), as (log10 of the value, label).

    Decades, every second or third one if they crowd; 1-2-5 within few decades; even steps within less than one.
    """
    if not high > low or most < 1:
        return []
    first, last = ceil(low - _EDGE), floor(high + _EDGE)
    decades = last - first + 1
    if decades >= _DECADES or (decades > 1 and most < 2 * _DECADES):
        stride = max(1, next((s for s in (1, 2, 3, 6, 12, 24) if decades <= s * most), ceil(decades / most)))
        return [(float(e), engineering(10.0**e)) for e in range(first, last + 1) if e % stride == 0][:most]
    fine = [(log10(m) + e, m * 10.0**e) for e in range(floor(low), ceil(high) + 1) for m in (1, 2, 5)]
    inside = [(at, engineering(value)) for at, value in fine if low - _EDGE <= at <= high + _EDGE]
    if 2 <= len(inside) <= most:
        return inside
    if len(inside) > most:
        return inside[:: ceil(len(inside) / most)]
    return _even_ticks(low, high, most)


def _even_ticks(low: float, high: float, most: int) -> list[tuple[float, str]]:
    bottom, top = 10.0**low, 10.0**high
    step = _nice_at_least((top - bottom) / most)
    first = ceil(bottom / step - _EDGE)
    values = [n * step for n in range(first, floor(top / step + _EDGE) + 1)][:most]
    ticks = [(log10(value), f"{value / scale:.10g}{prefix}") for value in values for scale, prefix in [_scale(top)]]
    return ticks or [((low + high) / 2, engineering(10 ** ((low + high) / 2)))]


def _scale(value: float) -> tuple[float, str]:
    step = max(0, min(floor(log10(value) / 3 + _EDGE), max(_PREFIX)))
    return 1000.0**step, _PREFIX[step]


def _nice_at_least(value: float) -> float:
    decade = 10.0 ** floor(log10(value))
    return next(m * decade for m in (1, 2, 5, 10) if m * decade >= value * (1 - _EDGE))


@dataclass(frozen=True)
class TimeAxis:
    """`ticks` are (cell, label); with `base` the labels count from there, and it stands at the axis's left end."""

    ticks: list[tuple[int, str]]
    base: str
    step_ps: int


def time_ticks(start_ps: int, span_ps: int, cells: int, zero_ps: int = 0, apart: int = 3) -> TimeAxis:
    """Ticks at 1-2-5 steps of a window of `span_ps` from `start_ps` over `cells` cells, in times since `zero_ps`.

    A tick stands in the cell that holds its time, labels are at least `apart` cells from each other. Deep in a long
    profile the labels count from a base ("+200 ns" from "12.345 ms"), else they would be all alike.
    """
    if cells < 1 or span_ps < 1:
        return TimeAxis([], "", 1)
    for step in _steps_from(max(span_ps // cells, 1)):
        axis = _time_axis(start_ps, span_ps, cells, zero_ps, step)
        widest = max((len(label) for _, label in axis.ticks), default=0)
        if step * cells >= (widest + apart) * span_ps:
            return axis
    raise AssertionError("steps have no end")


def _steps_from(smallest: int) -> Iterator[int]:
    decade = 10 ** (len(str(smallest)) - 1)
    while True:
        yield from (m * decade for m in (1, 2, 5) if m * decade >= smallest)
        decade *= 10


def _time_axis(start_ps: int, span_ps: int, cells: int, zero_ps: int, step: int) -> TimeAxis:
    begin, end = start_ps - zero_ps, start_ps - zero_ps + span_ps
    first = -(-begin // step) * step
    times = range(first, end, step)
    largest = max(abs(begin), abs(end))
    if largest < step * _DISTINCT:
        unit, name = _unit(largest)
        labels = [f"{_in_unit(t, unit, step)} {name}" for t in times]
        base = ""
    else:
        unit, name = _unit(max(span_ps, step))
        labels = [f"+{_in_unit(t - first, unit, step)} {name}" for t in times]
        base = exact_time(first)
    return TimeAxis([((t - begin) * cells // span_ps, label) for t, label in zip(times, labels, strict=True)], base, step)


def _unit(size_ps: int) -> tuple[int, str]:
    return next(((unit, name) for unit, name in reversed(_UNITS_PS) if size_ps >= unit), _UNITS_PS[0])


def _in_unit(time_ps: int, unit: int, step: int) -> str:
    """A time in a unit with as many decimals as the step between ticks needs; integers all the way."""
    decimals = 0
    while step % (unit // 10**decimals if 10**decimals <= unit else 1) and 10**decimals < unit:
        decimals += 1
    whole, part = divmod(abs(time_ps), unit)
    sign = "-" if time_ps < 0 else ""
    return f"{sign}{whole}" if not decimals else f"{sign}{whole}.{part * 10**decimals // unit:0{decimals}d}"


def exact_time(time_ps: int) -> str:
    """A time to the last picosecond in its largest unit, without trailing zeros: 12.345678 ms, 0 ps is 0 us."""
    if time_ps == 0:
        return "0 us"
    unit, name = _unit(abs(time_ps))
    whole, part = divmod(abs(time_ps), unit)
    digits = len(str(unit)) - 1
    decimals = f"{part:0{digits}d}".rstrip("0") if digits else ""
    return f"{'-' if time_ps < 0 else ''}{whole}{'.' if decimals else ''}{decimals} {name}"
