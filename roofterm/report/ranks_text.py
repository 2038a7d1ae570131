"""Ranks in the triage report: how far their steps lie apart, who is late and what that costs the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from roofterm.results import RankRow
from roofterm.text.safe import safe_text
from roofterm.text.units import count, duration_us, pct

_LATE_SHOWN = 3


def ranks_lines(rows: Sequence[RankRow]) -> Iterator[str]:
    """What the report says of several ranks or hosts, a sentence at a time; nothing of one alone."""
    if len(rows) < 2:
        return
    each = "a step" if any(row.steps for row in rows) else "in the whole file"
    parts = [_spread("step" if each == "a step" else "work", rows, lambda row: row.step_us)]
    parts += [_spread("compute", rows, lambda row: row.compute_us), _spread("exposed comm", rows, lambda row: row.exposed_comm_us)]
    parts += [_spread("of it waiting for others", rows, lambda row: row.exposed_wait_us)]
    parts += [_spread("idle", rows, lambda row: row.idle_us)]
    yield f"{count(len(rows))}, {each}: {'; '.join(part for part in parts if part)}"
    yield from late_lines(rows)


def late_lines(rows: Sequence[RankRow]) -> Iterator[str]:
    """Who is late and what it costs, the worst first; nothing of one rank alone."""
    if len(rows) < 2:
        return
    each = "a step" if any(row.steps for row in rows) else "in the whole file"
    late = sorted((row for row in rows if row.late), key=lambda row: -(row.kept_waiting_us or 0.0))
    for row in late[:_LATE_SHOWN]:
        yield _late(row, each)
    if len(late) > _LATE_SHOWN:
        yield f"{count(len(late) - _LATE_SHOWN)} more are late: roofterm ranks lists them"


def verdict(rows: Sequence[RankRow]) -> str:
    """Who is late, or that nobody is."""
    return next(late_lines(rows), "no rank is late: none keeps the others waiting for 1 % of a step")


def _late(row: RankRow, each: str) -> str:
    if row.kept_waiting_us is None:
        return f"{called(row)} is late: it computes {duration_us(row.compute_us)} {each}"
    last = f", last of all in {pct(row.last_pct)} of the collectives" if row.last_pct is not None else ""
    return f"{called(row)} is late: it alone keeps the others waiting {duration_us(row.kept_waiting_us)} {each}{last}"


def _spread(title: str, rows: Sequence[RankRow], of: Callable[[RankRow], float | None]) -> str:
    """From the least to the most, and whose they are."""
    known = [(time, row) for row in rows if (time := of(row)) is not None]
    if not known or max(time for time, _ in known) == 0:
        return ""
    (least, first), (most, last) = min(known, key=lambda pair: pair[0]), max(known, key=lambda pair: pair[0])
    if least == most:
        return f"{title} {duration_us(most)}"
    return f"{title} {duration_us(least)} ({called(first)}) to {duration_us(most)} ({called(last)})"


def called(row: RankRow) -> str:
    """A rank by its number, else by its host."""
    return f"rank {row.rank}" if row.rank is not None else safe_text(row.host or "host unknown", 40)
