"""The costs and bounds of device work, each worked out when it is asked for: what rooflines and tables are sums of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm import results
from roofterm.analysis.bounds import with_bounds
from roofterm.analysis.cache_traffic import with_cache
from roofterm.analysis.costed import Costed, costed
from roofterm.analysis.exclusive import exclusive
from roofterm.analysis.hlo_costs import on_device_clock
from roofterm.analysis.levels import op_items
from roofterm.analysis.owners import Owners
from roofterm.analysis.tallies import tallied
from roofterm.analysis.traffic import with_roles
from roofterm.analysis.transfers import transfers
from roofterm_parsers.profile import Profile


class Items(NamedTuple):
    """Costed work, and its items held against a device."""

    costed: Costed
    items: pl.DataFrame
    """schema `costed.ITEMS` with the columns of `bounds.with_bounds`, `levels.op_items` and `traffic.with_roles`"""


@dataclass(frozen=True)
class Bounded:
    """A profile's items held against a device: everything that the rows of all levels are sums of, each made when it is asked for."""

    make: Callable[[], Items]
    tally: Callable[[], pl.DataFrame | None] = lambda: None

    @cached_property
    def made(self) -> Items:
        return self.make()

    @property
    def is_made(self) -> bool:
        return "made" in self.__dict__

    @property
    def costed(self) -> Costed:
        return self.made.costed

    @property
    def items(self) -> pl.DataFrame:
        """Every item."""
        return self.made.items

    @cached_property
    def tallies(self) -> pl.DataFrame:
        """Items for sums: those alike added up already where that can be (`tallies.tallied`), else as they are."""
        found = self.tally()
        return self.items if found is None else found


def bounded(
    profile: Profile,
    work: pl.DataFrame,
    facts: pl.DataFrame,
    device: results.DeviceInfo | None,
    batches: pl.DataFrame | None = None,
    owners: Owners | None = None,
    whole: Bounded | None = None,
) -> Bounded:
    """Costs and bounds of device work. `work`: schema `work.WORK`; `facts`: schema `categories.FACTS`; `batches`: what an
    engine's annotations tell of each row of `profile.steps`, columns of `iterations.ITERATIONS` from `phase` on; `owners`:
    those of the whole profile's work, if they are known; `whole`: the bounds of more, of which this is a part."""

    def bounds(found: Costed, moved: pl.DataFrame) -> pl.DataFrame:
        items = with_roles(profile, op_items(profile, found, found.items, moved))
        if batches is not None:
            items = with_cache(profile, items, batches)
        items = with_bounds(items, device)
        return items.with_columns(dtype_key="dtype", path_key="tensor_core")

    def make() -> Items:
        part = bounded_part(profile, whole, work) if whole is not None and whole.is_made else None
        if part is not None:
            return part
        found = costed(profile, work, facts, owners)
        return Items(found, bounds(found, transfers(profile)))

    def tally() -> pl.DataFrame | None:
        if batches is not None and batches["context_tokens"].null_count() < batches.height:
            return None  # bytes of a cache hang on the step, and on what else runs in it
        return tallied(profile, work, facts, owners, bounds)

    return Bounded(make, tally)


def bounded_part(profile: Profile, whole: Bounded, work: pl.DataFrame) -> Items | None:
    """The costs and bounds of a part of the work that `whole` tells of; None where items lie in it with a part of their pieces, or
    where a part may count otherwise than the whole (runs of instructions with several kernels)."""
    several = (whole.costed.items["pieces"] > 1) & whole.costed.items["hlo"].is_not_null()
    if work.height == 0 or several.any():
        return None
    inside = np.zeros(profile.slices.height, np.bool_)
    inside[work["slice"].to_numpy()] = True
    mine = inside[whole.costed.pieces["slice"].to_numpy()]
    item = whole.costed.pieces["item"].to_numpy()
    pieces = np.bincount(item[mine], minlength=whole.costed.items.height)
    taken = pieces > 0
    if mine.sum() != work.height or np.any(taken & (pieces != whole.costed.items["pieces"].to_numpy())):
        return None
    alone = exclusive(on_device_clock(profile, work))
    number = np.cumsum(taken) - 1
    held = np.zeros(int(taken.sum()), np.int64)
    np.add.at(held, number[item[mine]], alone.to_numpy())

    def renumbered(frame: pl.DataFrame, rows: NDArray[np.bool_]) -> pl.DataFrame:
        kept = frame.filter(pl.Series(rows))
        return kept.with_columns(item=pl.Series(number[kept["item"].to_numpy()], dtype=pl.UInt32))

    found = Costed(renumbered(whole.costed.items, taken), renumbered(whole.costed.pieces, mine).with_columns(alone))
    items = renumbered(whole.items, taken[whole.items["item"].to_numpy()])
    return Items(found, items.with_columns(exclusive_ps=pl.Series(held[items["item"].to_numpy()])))
