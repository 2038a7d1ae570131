"""A roofline as a picture for a report: rows as circles among their roofs, on log axes, with a legend and the names as tooltips."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, floor, isfinite, log10, sqrt
from typing import NamedTuple
from xml.sax.saxutils import escape

from roofterm.report.roofline_table import main_level
from roofterm.results import Roof, RooflineRow
from roofterm.text.safe import safe_text
from roofterm.text.units import duration_us, pct, si

WIDTH, HEIGHT = 960, 600
LEFT, RIGHT, TOP, BOTTOM = 80, 24, 48, 96
LEAST_RADIUS, MOST_RADIUS = 3.0, 18.0
RUG = 10
"""length of the mark at the left edge that stands for work without FLOPs"""
_NAME = 80
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


class _Axes(NamedTuple):
    """The window in decades: log10 of FLOP/byte and of FLOP/s."""

    x0: int
    x1: int
    y0: int
    y1: int

    def x(self, decades: float) -> float:
        return LEFT + (decades - self.x0) / (self.x1 - self.x0) * (WIDTH - LEFT - RIGHT)

    def y(self, decades: float) -> float:
        return HEIGHT - BOTTOM - (decades - self.y0) / (self.y1 - self.y0) * (HEIGHT - TOP - BOTTOM)


def roofline_svg(
    rows: Sequence[RooflineRow], roofs: Sequence[Roof], title: str, colour: Callable[[str | None], str], path: bool = False
) -> bytes:
    """The picture, as bytes of an SVG file. `colour` gives a category's as #rrggbb; `path` joins the points in their order."""
    points = [row for row in rows if row.flops_per_s and (main_level(row.intensity) or 0) > 0]
    rugs = [row for row in rows if not row.flops_per_s and (main_level(row.bytes_per_s) or 0) > 0]
    compute = [roof for roof in roofs if roof.kind == "compute" and roof.drawn and roof.value > 0]
    memory = [roof for roof in roofs if roof.kind == "memory" and (roof.drawn or roof.level == "hbm") and roof.value > 0]
    axes = _fit(points, compute, memory)
    parts = [*_frame(axes, title), *_roofs(axes, compute, memory), *_joined(axes, points if path else [])]
    parts += _rugs(axes, rugs, colour) + _circles(axes, points, colour)
    parts += _names(axes, points) if path else _legend([*points, *rugs], colour)
    body = "\n".join(parts)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    return f'{head} font-family="sans-serif" font-size="12">\n{body}\n</svg>\n'.encode()


def _fit(points: Sequence[RooflineRow], compute: Sequence[Roof], memory: Sequence[Roof]) -> _Axes:
    """Whole decades around the points, the highest roof and the ridge."""
    xs = [log10(main_level(row.intensity) or 1.0) for row in points]
    ys = [log10(row.flops_per_s or 1.0) for row in points]
    ys += [log10(roof.value) for roof in compute]
    if compute and memory:
        xs.append(log10(max(roof.value for roof in compute) / max(roof.value for roof in memory)))
    xs, ys = [x for x in xs if isfinite(x)] or [0.0, 2.0], [y for y in ys if isfinite(y)] or [9.0, 12.0]
    x0, x1, y0, y1 = floor(min(xs)), ceil(max(xs) + 0.3), floor(min(ys)), ceil(max(ys) + 0.1)
    return _Axes(x0, max(x1, x0 + 2), y0, max(y1, y0 + 2))


def _frame(axes: _Axes, title: str) -> list[str]:
    parts = [f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>', _text(LEFT, 28, title, size=16)]
    for decade in range(axes.x0, axes.x1 + 1):
        x = axes.x(decade)
        parts.append(_line(x, axes.y(axes.y0), x, axes.y(axes.y1), "#e3e7eb"))
        parts.append(_text(x, axes.y(axes.y0) + 18, _decade(decade), anchor="middle"))
    for decade in range(axes.y0, axes.y1 + 1):
        y = axes.y(decade)
        parts.append(_line(axes.x(axes.x0), y, axes.x(axes.x1), y, "#e3e7eb"))
        parts.append(_text(LEFT - 8, y + 4, _decade(decade), anchor="end"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, axes.y(axes.y0) + 36, "FLOP/byte", anchor="middle"))
    parts.append(_text(12, TOP - 6, "FLOP/s"))
    return parts


def _roofs(axes: _Axes, compute: Sequence[Roof], memory: Sequence[Roof]) -> list[str]:
    parts = []
    top = max((log10(roof.value) for roof in compute), default=float(axes.y1))
    steepest = max((log10(roof.value) for roof in memory), default=float("inf"))
    for roof in compute:
        level = log10(roof.value)
        ridge = max(level - steepest, axes.x0)
        parts.append(_line(axes.x(ridge), axes.y(level), axes.x(axes.x1), axes.y(level), "#24292f", 1.5))
        label = f"{si(roof.value, 'FLOP/s')} {roof.dtype} ({roof.source})"
        parts.append(_text(axes.x(axes.x1) - 4, axes.y(level) - 5, label, anchor="end"))
    for roof in memory:
        level = log10(roof.value)
        a, b = max(axes.x0, axes.y0 - level), min(axes.x1, top - level)
        if a >= b:
            continue
        parts.append(_line(axes.x(a), axes.y(a + level), axes.x(b), axes.y(b + level), "#24292f", 1.5))
        at = a + 0.35 * (b - a)
        name = "HBM" if roof.level == "hbm" else roof.level
        parts.append(_text(axes.x(at) - 8, axes.y(at + level) - 6, f"{si(roof.value, 'B/s')} {name} ({roof.source})", anchor="end"))
    return parts


def _circles(axes: _Axes, points: Sequence[RooflineRow], colour: Callable[[str | None], str]) -> list[str]:
    """Areas by time, the longest first so that short ones lie above."""
    longest = max((row.time_us for row in points), default=0.0) or 1.0
    parts = []
    for row in sorted(points, key=lambda one: -one.time_us):
        x, y = axes.x(log10(main_level(row.intensity) or 1.0)), axes.y(log10(row.flops_per_s or 1.0))
        radius = max(LEAST_RADIUS, MOST_RADIUS * sqrt(row.time_us / longest))
        fill = colour(row.category)
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{fill}" fill-opacity="0.55" stroke="{fill}">'
            f"<title>{_tooltip(row)}</title></circle>"
        )
    return parts


def _rugs(axes: _Axes, rows: Sequence[RooflineRow], colour: Callable[[str | None], str]) -> list[str]:
    """Work without FLOPs: at the left edge, as high as its bandwidth reaches there, so that its distance to the roof is right."""
    parts = []
    for row in rows:
        y = axes.y(min(max(log10(main_level(row.bytes_per_s) or 1.0) + axes.x0, axes.y0), axes.y1))
        line = f'<line x1="{LEFT}" y1="{y:.1f}" x2="{LEFT + RUG}" y2="{y:.1f}" stroke="{colour(row.category)}" stroke-width="2">'
        parts.append(f"{line}<title>{_tooltip(row)}</title></line>")
    return parts


def _joined(axes: _Axes, points: Sequence[RooflineRow]) -> list[str]:
    places = [f"{axes.x(log10(main_level(row.intensity) or 1.0)):.1f},{axes.y(log10(row.flops_per_s or 1.0)):.1f}" for row in points]
    if len(places) < 2:
        return []
    return [f'<polyline points="{" ".join(places)}" fill="none" stroke="#57606a" stroke-dasharray="4 3"/>']


def _names(axes: _Axes, points: Sequence[RooflineRow]) -> list[str]:
    """Each point's category beside it: of a path the order counts, not the colour."""
    places = [(axes.x(log10(main_level(row.intensity) or 1.0)), axes.y(log10(row.flops_per_s or 1.0)), row.category) for row in points]
    return [_text(x + LEAST_RADIUS + 4, y + 16, name or "") for x, y, name in places]


def _legend(rows: Sequence[RooflineRow], colour: Callable[[str | None], str]) -> list[str]:
    """The categories, most time first."""
    time: dict[str, float] = {}
    for row in rows:
        time[row.category or "other"] = time.get(row.category or "other", 0.0) + row.time_us
    parts, x = [], float(LEFT)
    for name in sorted(time, key=lambda one: -time[one]):
        wide = 32 + 8 * len(name)
        if x + wide > WIDTH - RIGHT:
            break
        parts.append(f'<circle cx="{x + 6:.0f}" cy="{HEIGHT - 22}" r="6" fill="{colour(name)}" fill-opacity="0.55"/>')
        parts.append(_text(x + 16, HEIGHT - 18, name))
        x += wide
    return parts


def _tooltip(row: RooflineRow) -> str:
    found = [safe_text(row.name, _NAME), duration_us(row.time_us), f"{pct(row.pct_of_roof)} of the roof", f"limit {row.limiter or '--'}"]
    return escape(", ".join(found))


def _decade(decade: int) -> str:
    return f"{10 ** (decade % 3):g}{_PREFIXES[decade // 3]}" if 0 <= decade < 3 * len(_PREFIXES) else f"{10.0**decade:g}"


def _line(x1: float, y1: float, x2: float, y2: float, stroke: str, wide: float = 1.0) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{stroke}" stroke-width="{wide:g}"/>'


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="#24292f">{escape(safe_text(text))}</text>'
