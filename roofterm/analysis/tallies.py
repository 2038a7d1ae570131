"""Items of compiled programs added up before they are made.

A program runs the same instructions step after step: what an execution costs and what bounds it hangs on the instruction alone, only
its time is its own. So one execution of each instruction, step and device is costed, and the times of all are added to it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.bounds import ABOVE_PCT, PS
from roofterm.analysis.costed import Costed, costed
from roofterm.analysis.distinct import Alike, alike
from roofterm.analysis.exclusive import exclusive
from roofterm.analysis.hlo_costs import hlo_of, on_device_clock
from roofterm.analysis.levels import cost_known, figures_of
from roofterm.analysis.lookup import rows_among
from roofterm.analysis.owners import Owners
from roofterm.analysis.transfers import transfers
from roofterm_parsers.occurring import occurring
from roofterm_parsers.profile import Kind, Profile

I64 = NDArray[np.int64]
EXACT = 1 << 53
"""Integers up to this are exact in float64, in which numpy counts."""


def tallied(
    profile: Profile,
    work: pl.DataFrame,
    facts: pl.DataFrame,
    owners: Owners | None,
    bounds: Callable[[Costed, pl.DataFrame], pl.DataFrame],
) -> pl.DataFrame | None:
    """Items of device work added up: one row for each instruction, kernel name, step and device, in the order they ran first.

    None where an item may be more than one execution of an instruction. `work`: schema `work.WORK`; `facts`: schema
    `categories.FACTS`; `bounds` makes of costed work and its transfers the items of `roofline.Bounded`. Their columns are those of
    the items; times and figures are sums, and beside them stand calls, above (calls over their roof), above_clock, worst_pct, known_ps
    and largest_bytes (of one call), which `levels.summed` adds up.
    """
    same = _executions(profile, work)
    if same is None:
        return None
    moved = transfers(profile)
    found = costed(profile, work[same.first], facts, owners)
    items = bounds(found, moved)
    if items.height != same.first.size:
        return None
    place = np.empty(items.height, np.int64)
    place[items["item"].to_numpy()] = np.arange(items.height)
    item = place[found.pieces["item"].to_numpy()][same.of_row]
    return _added_up(items, item, on_device_clock(profile, work), moved)


def _executions(profile: Profile, work: pl.DataFrame) -> Alike | None:
    """Pieces of work that are executions of one instruction in one step on one device; None where the rules of `costed` may join
    pieces to one item: those of a launch, an op, a copy, a collective with arguments, an instruction of several kernels."""
    alone = work.height and profile.hlo.height and not profile.collectives.height and work["slice"].is_sorted()
    if not alone or any(work[column].null_count() < work.height for column in ("launch", "op")):
        return None
    if not (work["kind"].to_numpy() == int(Kind.KERNEL)).all():
        return None
    hlo = hlo_of(profile, work["slice"]).cast(pl.Int64).fill_null(-1).to_numpy() + 1
    name = profile.slices["name"].to_numpy()[work["slice"].to_numpy()]
    step = work["step"].cast(pl.Int64).fill_null(-1).to_numpy() + 1
    sizes = (profile.hlo_ops.height + 1, profile.names.height, profile.steps.height + 1, profile.devices.height)
    same = alike(*zip((hlo, name, step, work["device"].to_numpy()), sizes, strict=True))
    if same is None:
        return None
    pairs = np.unique(np.stack([hlo[same.first], name[same.first]]), axis=1)
    instructions = pairs[0][pairs[0] > 0]
    return same if occurring(instructions).size == instructions.size else None


def _added_up(items: pl.DataFrame, item: I64, work: pl.DataFrame, moved: pl.DataFrame) -> pl.DataFrame:
    """`items`, one execution each, with the sums over all executions. `item`: row of items of each piece of `work`."""
    start, end = work["start_ps"].to_numpy(), work["end_ps"].to_numpy()
    time = np.minimum(work["own_ps"].to_numpy(), end - start)
    rate = time
    if moved.height:
        rows = rows_among(work["slice"], moved["slice"], int(max(work["slice"][-1], moved["slice"].max() or 0)) + 1)
        rate = time.copy()
        np.maximum.at(rate, rows[rows >= 0], moved["transfer_ps"].to_numpy()[rows >= 0])
    count = items.height
    calls = np.bincount(item, minlength=count)
    needed = items["bound_s"].fill_null(np.nan).to_numpy() * PS
    above = needed[item] > rate * (ABOVE_PCT / 100)
    over_clock = needed[item] > rate + items["tick_ps"].to_numpy()[item]
    shortest = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(shortest, item[rate > 0], rate[rate > 0])
    rates = _sums(item, rate, count)
    known = items.select(cost_known()).to_series().to_numpy()
    return items.with_columns(
        pl.Series("time_ps", _sums(item, time, count)),
        pl.Series("rate_ps", rates),
        pl.Series("exclusive_ps", _sums(item, exclusive(work).to_numpy(), count)),
        *(pl.col(figure) * pl.Series(calls) for figure in figures_of(items)),
        calls=pl.Series(calls, dtype=pl.UInt32),
        known_ps=pl.Series(np.where(known, rates, 0)),
        largest_bytes="hbm_bytes",
        above=pl.Series(np.bincount(item[above], minlength=count), dtype=pl.UInt32),
        above_clock=pl.Series(np.bincount(item[over_clock], minlength=count), dtype=pl.UInt32),
        worst_pct=pl.when(pl.Series(shortest < np.iinfo(np.int64).max)).then(100 * PS * pl.col("bound_s") / pl.Series(shortest)),
    )


def _sums(item: I64, values: I64, count: int) -> I64:
    """Exact sums of integers by item."""
    if int(np.abs(values).sum()) < EXACT:
        return np.bincount(item, weights=values, minlength=count).astype(np.int64)
    sums = np.zeros(count, np.int64)
    np.add.at(sums, item, values)
    return sums
