"""What a reader must know of the figures of ranks, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from roofterm.report.ranks_text import late_lines
from roofterm.results import RankGroup, RankRow
from roofterm.text.units import count, duration_us

if TYPE_CHECKING:
    from roofterm.analysis.study import Study


def rank_notes(study: Study, rows: list[RankRow]) -> list[str]:
    """What a reader must know of the figures: who is late, how well the clocks agree, what could not be matched."""
    said = list(late_lines(rows))
    made, met = study.collective_calls.height, study.matched_calls.height
    if len(rows) == 1:
        said.append("one rank alone: name a folder or several files to compare ranks")
    elif met == 0:
        said.append("no collective could be matched over the ranks: late is who computes much longer than the others")
    elif met < made:
        said.append(f"{count(made - met)} of {count(made)} collectives could not be matched over the ranks")
    if any(row.steps == 0 for row in rows):
        said.append("no steps: the times are those of the whole file")
    said += _unequal(study.rank_groups())
    said += clock_notes(study)
    apart = study.order_matched.filter(~pl.col("meets")).height
    if apart:
        said.append(f"of those, {count(apart)} fit by their order but never ran at the same time: calls are missing, or a clock is off")
    said += [warning.message for warning in study.profile.warnings if warning.code in ("missing_ranks", "left_out", "rank", "clock")]
    return said


def _unequal(groups: list[RankGroup]) -> list[str]:
    return [
        f"unequal calls in group {group.name or 'without a name'}: its ranks made {count(group.least_calls)} to {count(group.most_calls)}"
        for group in groups
        if group.least_calls != group.most_calls
    ]


def clock_notes(study: Study) -> list[str]:
    """How well the files' clocks agree, and which were moved."""
    clocks = study.clocks
    if clocks is None or clocks.residual_us is None:
        return []
    left = f"collectives end within {duration_us(clocks.residual_us)} of each other (median of {count(clocks.meetings)})"
    if not clocks.moved_us:
        told = "clocks agree by wall-clock time" if clocks.told_by == "wall clock" else "clocks are the files'"
        return [f"{told}: {left}"]
    moved = "; ".join(f"{path.rsplit('/', 1)[-1]} by {duration_us(by)}" for path, by in clocks.moved_us.items())
    return [f"clocks aligned by collectives, moved: {moved}; now {left}"]
