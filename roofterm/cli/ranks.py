"""`roofterm ranks PATH...`: one row a rank or host, the late ones marked."""

from __future__ import annotations

import msgspec
import polars as pl

from roofterm.analysis.study import Study
from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE
from roofterm.cli.loading import load
from roofterm.cli.selecting import roofs_of
from roofterm.cli.tabular import answer
from roofterm.report.columns import RANK_COLUMNS
from roofterm.results import RankRow


def run(args: Arguments) -> int:
    study = Study(load(args), roofs_of(args))
    rows = study.ranks()
    answer(
        args, ranks_frame(rows), RANK_COLUMNS, {"schema": "roofterm.ranks/1", "notes": notes(study, rows)}, most=0, notes=notes(study, rows)
    )
    return DONE


def ranks_frame(rows: list[RankRow]) -> pl.DataFrame:
    """Rank rows as a frame, its columns in the order of the record."""
    kinds = {"host": pl.String, "path": pl.String, "late": pl.Boolean} | dict.fromkeys(("rank", "devices", "steps"), pl.Int64)
    schema = {name: kinds.get(name, pl.Float64) for name in RankRow.__struct_fields__}
    return pl.DataFrame([msgspec.structs.asdict(row) for row in rows], schema=schema)


def notes(study: Study, rows: list[RankRow]) -> list[str]:
    """What a reader must know of the figures."""
    said = []
    if len(rows) == 1:
        said.append("one rank alone: name a folder or several files to compare ranks")
    elif study.matched_calls.height == 0:
        said.append("no collective could be matched over the ranks: late is who computes much longer than the others")
    elif study.matched_calls.height < study.collective_calls.height:
        left = study.collective_calls.height - study.matched_calls.height
        said.append(f"{left} of {study.collective_calls.height} collectives could not be matched over the ranks")
    if any(row.steps == 0 for row in rows):
        said.append("no steps: the times are those of the whole file")
    apart = study.matched_calls.filter(~pl.col("meets")).height
    if apart:
        said.append(f"{apart} matched calls never ran at the same time: the ranks' clocks disagree, and waits are doubtful")
    return said
