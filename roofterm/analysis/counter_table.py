"""`ops --by counter`: the series of counters that a profile recorded, hardware's and others, by what they counted for."""

from __future__ import annotations

import polars as pl

from roofterm.analysis.selection import Selection
from roofterm.analysis.tables import finished
from roofterm_parsers.profile import Profile


def counter_table(profile: Profile, part: Selection, window_ps: tuple[int, int] | None, rank: int | None) -> pl.DataFrame:
    """One row a series: columns of `results.TABLES["counter"]`, by what was counted for, then by name.

    Of a part of the profile the samples taken in its steps or window, and of its rank. Values are as the file has them: the name
    tells the unit, if anything does.
    """
    counters = profile.counters.drop_nulls("value")
    if rank is not None:
        mine = [row for row, source in enumerate(profile.sources) if source.rank == rank]
        counters = counters.filter(pl.col("source").is_in(mine))
    if window_ps is not None:
        counters = counters.filter(pl.col("time_ps").is_between(*window_ps, closed="left"))
    if part.slices is not None and part.windows.height and window_ps is None:
        spans = part.windows.select("host_start_ps", "host_end_ps").unique().rows()
        inside = [pl.col("time_ps").is_between(start, end, closed="left") for start, end in spans]
        counters = counters.filter(pl.any_horizontal(inside))
    value = pl.col("value")
    table = (
        counters.sort("time_ps")
        .group_by("series", "process", maintain_order=True)
        .agg(
            calls=pl.len().cast(pl.Int64),
            value_mean=value.mean(),
            value_min=value.min(),
            value_max=value.max(),
            value_last=value.last(),
            value_sum=value.sum(),
        )
    )
    table = table.rename({"series": "name", "process": "counted_for"}).with_columns(self_us=pl.lit(None, pl.Float64))
    return finished(table, "counter", most="name").sort("counted_for", "name", nulls_last=True, maintain_order=True)
