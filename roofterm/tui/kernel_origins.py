"""Where the runs of a kernel come from in a program that XLA compiled: instructions, lines of source, the function that was called."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from roofterm.analysis.dispatch import launching_op
from roofterm.text.units import UNKNOWN, count
from roofterm.tui.widgets.detail import Fact

if TYPE_CHECKING:
    from roofterm.analysis.study import Study

MOST = 5
"""instructions that are named, those with most time first"""


def compiled_from(study: Study, kernel: str) -> list[Fact]:
    """Of each instruction that the kernel runs: line of source, framework op and program; then what launched it, of its first run."""
    profile = study.profile
    name = (profile.names["text"] == kernel).arg_true()
    runs = profile.hlo.select("slice", "op").with_columns(
        name=profile.slices["name"].gather(profile.hlo["slice"]), dur_ps=profile.slices["dur_ps"].gather(profile.hlo["slice"])
    )
    mine = runs.filter(pl.col("name").is_in(name.implode()))
    if not mine.height:
        return []
    facts = [Fact("Compiled from")]
    by_op = mine.group_by("op").agg(calls=pl.len(), dur_ps=pl.col("dur_ps").sum()).sort("dur_ps", "op", descending=[True, False])
    for op, calls, _ in by_op.head(MOST).iter_rows():
        row = profile.hlo_ops.row(op, named=True)
        told = [row["source"], row["framework_op"], row["program"], f"{count(calls)} times"]
        facts.append(Fact(row["name"] or UNKNOWN, " \N{MIDDLE DOT} ".join(str(one) for one in told if one)))
    if by_op.height > MOST:
        facts.append(Fact("and", f"{count(by_op.height - MOST)} more"))
    launching = launching_op(study, int(mine["slice"][0]))
    if launching is not None:
        facts.append(Fact("launched by", str(profile.names["text"][int(profile.slices["name"][launching])]), "of its first run"))
    return facts
