"""The class of each piece of device work that is not told by its kind alone: collectives, waits for the host, waits for copies."""

from __future__ import annotations

import polars as pl

from roofterm.analysis.categories import Category
from roofterm.analysis.lookup import looked_up
from roofterm.analysis.work import WorkClass
from roofterm_parsers.profile import Profile

AWAITED_COPIES = ("copy-start", "copy-done", "async-start", "async-update", "async-done")
"""HLO categories of the two ends of what moves data beside a core's own work: at `done` the core waits until it has arrived.

XProf counts `copy-done` as compute and busy, and of these leaves `async-done` alone out of the duty cycle.
"""

_BY_CATEGORY = {int(Category.COMMUNICATION): int(WorkClass.COMMUNICATION), int(Category.HOST_IO): int(WorkClass.WAITING)}


def work_classes(profile: Profile, facts: pl.DataFrame) -> pl.DataFrame:
    """`slice, work_class` (`WorkClass`) of the pieces whose kind does not tell it. `facts`: schema `categories.FACTS`.

    Waiting for an asynchronous copy is no compute: the core does nothing, and the time is that of the copy (definitions.md,
    breakdown: compute before communication before copy).
    """
    awaited = profile.hlo_ops["category"].str.to_lowercase().is_in(AWAITED_COPIES).fill_null(False)
    by_category = pl.col("category").replace_strict(_BY_CATEGORY, default=None, return_dtype=pl.UInt8)
    if awaited.any():
        op = looked_up(profile.hlo["op"], profile.hlo["slice"], profile.slices.height, facts["slice"])
        facts = facts.with_columns(awaited=awaited.gather(op))
        copies = pl.when(pl.col("awaited").fill_null(False)).then(pl.lit(int(WorkClass.COPY), pl.UInt8))
        by_category = pl.coalesce(by_category, copies)
    return facts.select("slice", work_class=by_category).drop_nulls()
