"""The class of each piece of device work that is not told by its kind alone: collectives, waits for the host, waits for copies."""

from __future__ import annotations

import numpy as np
import polars as pl

from roofterm.analysis.categories import Category
from roofterm.analysis.lookup import codes_by_id
from roofterm.analysis.work import WorkClass
from roofterm_parsers.profile import Profile

AWAITED_COPIES = ("copy-start", "copy-done", "async-start", "async-update", "async-done")
"""HLO categories of the two ends of what moves data beside a core's own work: at `done` the core waits until it has arrived.

XProf counts `copy-done` as compute and busy, and of these leaves `async-done` alone out of the duty cycle.
"""

NO_CLASS = 255
CLASSES = pl.Schema({"slice": pl.UInt32(), "work_class": pl.UInt8()})
_BY_CATEGORY = {int(Category.COMMUNICATION): int(WorkClass.COMMUNICATION), int(Category.HOST_IO): int(WorkClass.WAITING)}


def work_classes(profile: Profile, facts: pl.DataFrame) -> pl.DataFrame:
    """`slice, work_class` (`WorkClass`) of the pieces whose kind does not tell it. `facts`: schema `categories.FACTS`.

    Waiting for an asynchronous copy is no compute: the core does nothing, and the time is that of the copy (definitions.md,
    breakdown: compute before communication before copy).
    """
    known = np.full(256, NO_CLASS, np.uint8)
    for category, work_class in _BY_CATEGORY.items():
        known[category] = work_class
    classes = known[facts["category"].fill_null(int(Category.OTHER)).to_numpy()]
    awaited = profile.hlo_ops["category"].str.to_lowercase().is_in(AWAITED_COPIES).fill_null(False)
    if awaited.any():
        op = codes_by_id(profile.hlo["op"], profile.hlo["slice"], profile.slices.height)[facts["slice"].to_numpy()]
        classes[(classes == NO_CLASS) & np.append(awaited.to_numpy(), False)[op]] = int(WorkClass.COPY)
    told = classes != NO_CLASS
    return pl.DataFrame({"slice": facts["slice"].to_numpy()[told], "work_class": classes[told]}, schema=CLASSES)
