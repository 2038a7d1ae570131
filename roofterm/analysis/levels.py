"""Rows of the roofline at each level: program, step, category, op, kernel. All figures of a row are sums of its items'."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.bounds import ABOVE_PCT, AT_ROOF_PCT, PS, RESOURCES, caches_of, level_rates
from roofterm.analysis.categories import TITLES
from roofterm.analysis.costed import LEVELS, Costed
from roofterm.analysis.flags import flags
from roofterm.analysis.lookup import looked_up, rows_by_id, rows_of
from roofterm.analysis.op_roles import ROLE_COLUMNS, ROLES
from roofterm.results import DeviceInfo, RooflineRow
from roofterm_parsers.profile import Profile

US_PS = 1_000_000
"""picoseconds in a microsecond"""

SUMMED = (
    "flops",
    "model_flops",
    "whole_flops",
    *(f"{level}_bytes" for level in LEVELS),
    *(f"{resource}_s" for resource in RESOURCES),
    "bound_s",
)


SHARED = ("flops", "hbm_bytes", *(f"{resource}_s" for resource in RESOURCES), "bound_s")
"""Figures that `with_shares` and tables need."""

TOLD = (
    "signature", "dtype", "roof", "tensor_core", "estimate", "flops_from", "bytes_from", "recomputed", "fast_algorithm", "tick_ps",
    "rate_ps",
)  # fmt: skip
"""What `summed` takes of items beside times and figures."""


def summed(items: pl.DataFrame, by: Sequence[str], figures: Sequence[str] | None = None) -> pl.DataFrame:
    """Items added up by columns; a figure that no item of a group has stays null. `figures`: those asked for, None: all.

    Needs the columns of `bounds.with_bounds`; what it has added up can be added up further. Adds calls, time_ps, rate_ps, exclusive_ps,
    dtype and roof where all agree, and what the flags need.
    """
    figures = figures_of(items) if figures is None else figures
    tally = TALLY_OF_TALLIES if TALLIED in items.columns else TALLY_OF_ITEMS
    unknown = {name: items[name].null_count() for name in figures}
    sums = [_sum(name, unknown[name]) for name in figures if unknown[name] < items.height]
    rows = items.group_by(by, maintain_order=True).agg(
        pl.col("time_ps", "rate_ps").sum(),
        *sums,
        pl.col("exclusive_ps").sum(),
        pl.col("signature").first(),
        *(_same(name) for name in ("dtype", "roof", "tensor_core")),
        estimate=pl.col("estimate").drop_nulls().first(),
        flops_from=pl.col("flops_from").filter(pl.col("flops_from") != "none").first(),
        bytes_from=pl.col("bytes_from").filter(pl.col("bytes_from") != "none").first(),
        recomputed=pl.col("recomputed").all(),
        fast_algorithm=pl.col("fast_algorithm").any(),
        **tally,
    )
    absent = [pl.lit(None, dtype=items.schema[name]).alias(name) for name in figures if unknown[name] == items.height]
    return rows.with_columns(pl.col("flops_from", "bytes_from").cast(pl.String).fill_null("none"), *absent)


def over_roof() -> pl.Expr:
    """Whether an item took less time than its roof allows, beyond rounding."""
    return pl.col("bound_s") * PS > pl.col("rate_ps") * (ABOVE_PCT / 100)


def above_clock() -> pl.Expr:
    """Whether an item lies over its roof by more than a tick of the file's clock."""
    return pl.col("bound_s") * PS > pl.col("rate_ps") + pl.col("tick_ps")


def share_of_roof() -> pl.Expr:
    """The share (percent) of its roof that an item reached; null where it took no time."""
    return pl.when(pl.col("rate_ps") > 0).then(100 * PS * pl.col("bound_s") / pl.col("rate_ps"))


def cost_known() -> pl.Expr:
    """Whether anything is known of what an item cost."""
    return pl.col("flops").is_not_null() | pl.col("hbm_bytes").is_not_null()


TALLIED = "calls"
"""Column of items that have been added up already (`tallies.tallied`): of how many calls each is the sum."""

TALLY_OF_ITEMS = {
    "calls": pl.len(),
    "known_ps": pl.col("rate_ps").filter(cost_known()).sum(),
    "largest_bytes": pl.col("hbm_bytes").max(),
    "above": over_roof().sum(),
    "above_clock": above_clock().sum(),
    "worst_pct": share_of_roof().max(),
}
"""What `summed` takes of single items beside their sums."""

TALLY_OF_TALLIES = {
    "calls": pl.col("calls").sum(),
    "known_ps": pl.col("known_ps").sum(),
    "largest_bytes": pl.col("largest_bytes").max(),
    "above": pl.col("above").sum(),
    "above_clock": pl.col("above_clock").sum(),
    "worst_pct": pl.col("worst_pct").max(),
}
"""The same of items that have been added up already."""


def figures_of(items: pl.DataFrame) -> list[str]:
    """The figures of items that rows are sums of."""
    return [*SUMMED, *(column for column in ROLE_COLUMNS if column in items.columns)]


def _same(name: str) -> pl.Expr:
    """A value on which all of a group agree, else null."""
    return pl.when(pl.col(name).n_unique() == 1).then(pl.col(name).first()).alias(name)


def _sum(name: str, unknown: int) -> pl.Expr:
    """The sum of a figure of which so many values, but not all, are unknown."""
    if unknown == 0:
        return pl.col(name).sum()
    return pl.when(pl.col(name).is_not_null().any()).then(pl.col(name).sum()).alias(name)


def with_shares(rows: pl.DataFrame, seconds: pl.Expr | None = None, more: Sequence[str] = ()) -> pl.DataFrame:
    """Rows of `summed` with utilisations: bound_by, limiter, limit, pct_of_roof, pct_of_peak_flops, pct_of_peak_bw.

    `limit` is bound_by as people are shown it: with ? where the limiter is latency.

    `seconds`: the time that counts, if it is not `rate_ps` (a program's window); `more`: further resources (launch).
    """
    time_s = rows.select(((pl.col("rate_ps") / PS) if seconds is None else seconds).alias("time_s"))["time_s"].to_numpy()
    resources = (*RESOURCES, *more)
    needed = np.array([rows[f"{resource}_s"].to_numpy() for resource in resources], np.float64)
    finite = time_s > 0
    time_s = np.where(finite, time_s, np.nan)
    shares = np.where(np.isnan(needed), -np.inf, 100 * needed / time_s)
    shares[:, ~finite] = -np.inf
    first = shares.argmax(axis=0)
    best = shares.max(axis=0)
    memories = [at for at, resource in enumerate(resources) if resource in LEVELS and resource not in ("link", "pcie")]
    pct_of_roof = 100 * rows["bound_s"].to_numpy() / time_s
    bound = np.where(best > 0, first, len(resources))
    limit = bound + (len(resources) + 1) * ~(pct_of_roof >= AT_ROOF_PCT)
    found = (*resources, None)
    return rows.with_columns(
        _known("pct_of_peak_flops", shares[resources.index("compute")]),
        _known("pct_of_peak_bw", shares[memories].max(axis=0)),
        _known("pct_of_roof", pct_of_roof),
        pl.Series("bound_by", found)[bound],
        pl.Series("limiter", [*found, *(one and "latency" for one in found)])[limit],
        pl.Series("limit", [*found, *(one and f"{one}?" for one in found)])[limit],
    )


def _known(name: str, shares: NDArray[np.float64]) -> pl.Series:
    """Shares, null where there is none."""
    return pl.Series(name, np.where(np.isfinite(shares), shares, np.nan), nan_to_null=True)


def _tick_ps(profile: Profile) -> int:
    """Resolution of the file's times: 1 us where all work lasts whole microseconds (Kineto until 2024), else taken as none."""
    lengths = profile.slices["dur_ps"][profile.links["work"]].to_numpy()
    return US_PS if lengths.size and not (lengths % US_PS).any() else 0


def op_items(profile: Profile, costed: Costed, items: pl.DataFrame, transfers: pl.DataFrame) -> pl.DataFrame:
    """Items with their name as text, the exclusive time of their pieces, and the time over which their bytes moved (`rate_ps`).

    That is their own time, but of the end of an asynchronous op that of the whole transfer (`transfers.TRANSFERS`).
    """
    exclusive = np.zeros(costed.items.height, np.int64)
    np.add.at(exclusive, costed.pieces["item"].to_numpy(), costed.pieces["exclusive_ps"].to_numpy())
    hlo = profile.hlo_ops["name"][items["hlo"]] if profile.hlo_ops.height else pl.Series([None] * items.height, dtype=pl.String)
    # One row a shape: signatures differ in strides and values too.
    shape = profile.signatures["dims"].cast(pl.Categorical).to_physical()[items["signature"]]
    return with_rates(costed, items, transfers).with_columns(
        exclusive_ps=pl.Series(exclusive[items["item"].to_numpy()]),
        tick_ps=pl.col("pieces").cast(pl.Int64) * _tick_ps(profile),
        text=pl.coalesce(pl.Series(hlo), profile.names["text"][items["name"]]),
        shape=pl.Series(shape) if profile.signatures.height else pl.lit(None, dtype=pl.UInt32),
    )


def with_rates(costed: Costed, items: pl.DataFrame, transfers: pl.DataFrame) -> pl.DataFrame:
    """Items with `rate_ps`, of `op_items`."""
    if transfers.height == 0:
        return items.with_columns(rate_ps="time_ps")
    moved = costed.pieces.join(transfers, on="slice", how="inner").group_by("item").agg(pl.col("transfer_ps").max())
    items = items.join(moved, on="item", how="left", maintain_order="left")
    return items.with_columns(rate_ps=pl.max_horizontal("time_ps", "transfer_ps")).drop("transfer_ps")


def op_rows(profile: Profile, items: pl.DataFrame) -> pl.DataFrame:
    """One row for each op and its recorded inputs; work that hangs on no op by its kernel's name. Most time first."""
    items = items.with_columns(
        level=pl.when(pl.col("op").is_null() & pl.col("hlo").is_null()).then(pl.lit("kernel")).otherwise(pl.lit("op"))
    )
    rows = summed(items, ["level", "text", "hlo", "shape", "category", "dtype_key", "path_key"])
    if profile.signatures.height:
        rows = rows.with_columns(shapes=profile.signatures["dims"][rows["signature"]])
    return with_shares(rows).sort("time_ps", descending=True, maintain_order=True)


def kernel_rows(profile: Profile, costed: Costed, items: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    """One row for each kernel and the op that it worked for: the op's costs in the kernel's share. Most time first."""
    figures = figures_of(items)
    others = [name for name in items.columns if name not in ("item", "exclusive_ps", "time_ps", "category", *figures)]
    pieces = kernel_pieces(profile, costed, items, facts, figures, others)
    pieces = pieces.with_columns(op_text=pl.when(pl.col("op").is_not_null()).then("text"))
    rows = summed(pieces, ["kernel", "op_text", "category", "dtype_key", "path_key"]).rename({"kernel": "text"})
    return with_shares(rows).sort("time_ps", descending=True, maintain_order=True)


def kernel_pieces(
    profile: Profile, costed: Costed, items: pl.DataFrame, facts: pl.DataFrame, figures: Sequence[str], kept: Sequence[str] = ()
) -> pl.DataFrame:
    """One row a piece of work: columns of `costed.PIECES`, its time_ps, its kernel's name (kernel), its category, its share of
    its item's `figures`, and what is `kept` of its item's columns."""
    rows = rows_of(rows_by_id(items["item"], costed.items.height), costed.pieces["item"])
    pieces = costed.pieces.filter(pl.Series(rows >= 0)).hstack(
        items.select("category", *figures, *kept, item_ps="time_ps")[rows[rows >= 0]]
    )
    own = looked_up(facts["category"], facts["slice"], profile.slices.height, pieces["slice"])
    share = pl.when(pl.col("share") > 0).then("share")
    return pieces.with_columns(
        *(pl.col(name) * share for name in figures),
        time_ps=pl.col("length_ps"),
        rate_ps=pl.when(pl.col("rate_ps") > pl.col("item_ps")).then("rate_ps").otherwise("length_ps"),
        category=pl.coalesce(own, "category"),
        kernel=profile.names["text"][profile.slices["name"][pieces["slice"]]],
    )


def category_rows(items: pl.DataFrame) -> pl.DataFrame:
    """One row a category, its rates and shares over the time whose costs are known (`rate_s`). Most time first."""
    rows = summed(items, ["category"]).with_columns(rate_s=pl.when(pl.col("known_ps") > 0).then(pl.col("known_ps") / PS))
    return with_shares(rows, pl.col("rate_s")).sort("time_ps", descending=True, maintain_order=True)


def records(rows: pl.DataFrame, level: str, device: DeviceInfo | None, step: str = "Total") -> list[RooflineRow]:
    """Rows as records of the contract. `level` holds where the rows have no column `level`."""
    rates = level_rates(device) if device is not None else {}
    names = {one: rates[one][0] if one in rates else one for one in LEVELS}
    told = flags(rows, device, caches_of(device)).to_list()
    return [_record(row, level, step, names, one) for row, one in zip(rows.iter_rows(named=True), told, strict=True)]


def _record(row: dict[str, object], level: str, step: str, names: dict[str, str], told: list[str]) -> RooflineRow:
    get = row.get
    time_s = _number(get("seconds")) or (_number(get("time_ps")) or 0.0) / PS
    rate_s = _number(get("rate_s")) or _number(get("seconds")) or (_number(get("rate_ps")) or 0.0) / PS
    flops = _number(get("flops"))
    sizes = {names[one]: size for one in LEVELS if (size := _number(get(f"{one}_bytes"))) is not None and (size or one == "hbm")}
    bound_s = _number(get("bound_s"))
    category = get("category")
    bound_by = get("bound_by")
    limiter = get("limiter")
    return RooflineRow(
        level=str(get("level") or level),
        step=str(get("step_name") or step),
        name=str(get("text") or (TITLES[int(category)] if isinstance(category, int) else "")),
        category=TITLES[int(category)] if isinstance(category, int) else None,
        calls=int(_number(get("calls")) or 0),
        time_us=time_s * 1e6,
        time_per_unit_us=_number(get("time_per_unit_us")),
        flops=flops,
        model_flops=_number(get("model_flops")),
        bytes=sizes,
        flops_per_s=flops / rate_s if flops is not None and rate_s > 0 else None,
        bytes_per_s={one: size / rate_s for one, size in sizes.items() if rate_s > 0},
        intensity={one: flops / size for one, size in sizes.items() if flops is not None and size > 0},
        bytes_by_role=_by_role(row),
        bound_by=names.get(str(bound_by), str(bound_by)) if bound_by is not None else None,
        limiter=names.get(str(limiter), str(limiter)) if limiter is not None else None,
        pct_of_peak_flops=_number(get("pct_of_peak_flops")),
        pct_of_peak_bw=_number(get("pct_of_peak_bw")),
        pct_of_roof=_number(get("pct_of_roof")),
        time_bound_us=None if bound_s is None else bound_s * 1e6,
        headroom_us=None if bound_s is None else min(time_s, rate_s - bound_s) * 1e6,
        dtype=_text(get("dtype")),
        flops_from=str(get("flops_from") or "none"),
        bytes_from=str(get("bytes_from") or "none"),
        flags=told,
        shapes=_text(get("shapes")),
        op=_text(get("op_text")),
        at_stake_us=_at_stake_us(row, time_s, rate_s, bound_s),
        module_path=_text(get("path")),
    )


def _by_role(row: dict[str, object]) -> dict[str, dict[str, float]] | None:
    """Bytes of the roles that moved any; None where no item of the row has a known role."""
    if all(row.get(column) is None for column in ROLE_COLUMNS):
        return None
    found = {role: {way: _number(row.get(f"{role}_{way}")) or 0.0 for way in ("read", "write")} for role in ROLES}
    return {role: moved for role, moved in found.items() if any(moved.values())}


def _at_stake_us(row: dict[str, object], time_s: float, rate_s: float, bound_s: float | None) -> float | None:
    """Headroom in the share of time in which nothing else ran: work that something else covers wins nothing when it gets faster."""
    own_ps, exclusive_ps = _number(row.get("time_ps")), _number(row.get("exclusive_ps"))
    if bound_s is None or not own_ps or exclusive_ps is None:
        return None
    return max(0.0, min(time_s, rate_s - bound_s)) * 1e6 * min(1.0, exclusive_ps / own_ps)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _text(value: object) -> str | None:
    return str(value) if isinstance(value, str) and value else None
