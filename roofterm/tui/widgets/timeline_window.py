"""Moving and zooming a timeline's window: integers only, pure."""

from __future__ import annotations

from dataclasses import dataclass

CELL_PS = 1000
"""A cell is never shorter than a nanosecond."""


@dataclass(frozen=True)
class Extent:
    """All that there is to see."""

    begin_ps: int
    end_ps: int

    @property
    def span_ps(self) -> int:
        return max(self.end_ps - self.begin_ps, 1)


def clamped(start_ps: int, span_ps: int, extent: Extent, cells: int) -> tuple[int, int]:
    """(start, span) no shorter than `CELL_PS` a cell, no longer than the extent, and inside of it where it fits."""
    least = CELL_PS * max(cells, 1)
    span = max(min(span_ps, max(extent.span_ps, least)), least)
    latest = max(extent.end_ps - span, extent.begin_ps)
    return min(max(start_ps, extent.begin_ps), latest), span


def zoomed(start_ps: int, span_ps: int, at_ps: int, closer: bool, extent: Extent, cells: int) -> tuple[int, int]:
    """Half or twice the span, with `at_ps` staying in its place."""
    span = max(span_ps // 2, 1) if closer else span_ps * 2
    _, span = clamped(start_ps, span, extent, cells)
    return clamped(at_ps - (at_ps - start_ps) * span // max(span_ps, 1), span, extent, cells)


def around(begin_ps: int, end_ps: int, extent: Extent, cells: int, margin: float = 0.05) -> tuple[int, int]:
    """A window with a stretch of time in it and some room on both sides."""
    room = int((end_ps - begin_ps) * margin)
    return clamped(begin_ps - room, end_ps - begin_ps + 2 * room, extent, cells)


def in_sight(begin_ps: int, end_ps: int, start_ps: int, span_ps: int, extent: Extent, cells: int) -> tuple[int, int]:
    """The window that shows a slice: the same if it can be seen there as more than a sliver, else one around its middle."""
    length = end_ps - begin_ps
    if length * cells < span_ps or length > span_ps:  # under a cell, or wider than the window
        span = max(length * 8, 1)
        return clamped(begin_ps + length // 2 - span // 2, span, extent, cells)
    if begin_ps >= start_ps and end_ps <= start_ps + span_ps:
        return start_ps, span_ps
    return clamped(begin_ps + length // 2 - span_ps // 2, span_ps, extent, cells)
