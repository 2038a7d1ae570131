"""Device work with its costs: items (an op's call with all the work it launched) and the pieces they consist of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from roofterm.analysis.categories import FACTS, Category
from roofterm.analysis.categories.kinds import TENSOR_CATEGORIES
from roofterm.analysis.costs import collective_cost
from roofterm.analysis.hlo_costs import hlo_items, on_device_clock
from roofterm.analysis.owners import NO_COST, find_owners
from roofterm_parsers.profile import Kind, Profile

LEVELS = ("hbm", "vmem_read", "vmem_write", "cmem_read", "cmem_write", "link", "pcie")
"""Where bytes move: memories of the device, its link to other devices, the bus to the host."""

LINK_DOMAIN = 8
"""Largest group that is taken to sit behind one link domain (NVLink, xGMI): larger ones have no link bound."""

ORIGINS = ("op", "no shapes", "no op", "graph", "orphan")
"""What an item hangs on: an op with recorded inputs; one without; a launch outside any op; a graph launch; no launch."""

ITEMS = pl.Schema(
    {
        "item": pl.UInt32(),
        "op": pl.UInt32(),  # slice of the op that owns it; null: none
        "name": pl.UInt32(),  # row of names: the op's, or the kernel's where there is no op
        "hlo": pl.UInt32(),  # row of hlo_ops
        "signature": pl.UInt32(),
        "device": pl.UInt16(),
        "step": pl.UInt32(),
        "category": pl.UInt8(),
        "dtype": pl.String(),
        "tensor_core": pl.Boolean(),
        "flops": pl.Float64(),  # null: unknown
        "model_flops": pl.Float64(),
        "whole_flops": pl.Float64(),  # model_flops, causal attention counted whole
        **{f"{level}_bytes": pl.Float64() for level in LEVELS},
        "estimate": pl.String(),  # why a figure is a bound; null: exact
        "flops_from": pl.Enum(("trace", "shapes", "hlo", "none")),
        "bytes_from": pl.Enum(("trace", "shapes", "hlo", "none")),
        "time_ps": pl.Int64(),  # union of its pieces
        "start_ps": pl.Int64(),
        "end_ps": pl.Int64(),
        "pieces": pl.UInt32(),
        "origin": pl.Enum(ORIGINS),
        "recomputed": pl.Boolean(),
        "fast_algorithm": pl.Boolean(),  # a kernel of it is named for Winograd or FFT: fewer products than counted
    }
)

PIECES = pl.Schema(
    {
        "slice": pl.UInt32(),
        "item": pl.UInt32(),
        "length_ps": pl.Int64(),
        "share": pl.Float64(),  # of the item's costs, by time among the pieces that did its main work
        "exclusive_ps": pl.Int64(),  # time in which nothing else ran on the device
    }
)


class Costed(NamedTuple):
    items: pl.DataFrame
    """schema `ITEMS`"""
    pieces: pl.DataFrame
    """schema `PIECES`, one row a piece of work"""


def costed(profile: Profile, work: pl.DataFrame, facts: pl.DataFrame) -> Costed:
    """Items and pieces of device work. `work`: schema `work.WORK`, whole or a part; `facts`: schema `categories.FACTS`."""
    if work.height == 0:
        return Costed(pl.DataFrame(schema=ITEMS), pl.DataFrame(schema=PIECES))
    pieces = _pieces(profile, on_device_clock(profile, work), facts)
    pieces, by_op = _with_owners(profile, pieces)
    pieces, by_hlo = hlo_items(profile, pieces)
    pieces = _numbered(pieces)
    items = _items(pieces)
    items = items.with_columns(op_name=profile.slices["name"].gather(items["owner"]))
    items = items.join(by_op, on="cost", how="left", maintain_order="left").join(by_hlo, on="hlo_cost", how="left", maintain_order="left")
    items = _with_copies(profile, pieces, items)
    items = _with_collectives(profile, pieces, items)
    items = _decided(items)
    return Costed(items.select(list(ITEMS)).cast(ITEMS), _shares(pieces, items))


def _pieces(profile: Profile, work: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    pieces = work.join(facts.select(list(FACTS)), on="slice", how="left", maintain_order="left").with_columns(
        pl.col("category").fill_null(int(Category.OTHER)), kernel_name=profile.slices["name"].gather(work["slice"])
    )
    launch_name = profile.slices["name"].gather(pieces["launch"])
    graphs = profile.names["text"].str.contains(r"GraphLaunch").arg_true()
    fast = profile.names["text"].str.contains(r"(?i)winograd|fft").arg_true()
    return pieces.with_columns(
        graph=launch_name.is_in(graphs.implode()).fill_null(False),
        fast_algorithm=pl.col("kernel_name").is_in(fast.implode()),
        exclusive_ps=_exclusive(work),
    )


def _with_owners(profile: Profile, pieces: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Pieces with the op that owns each; the costs as a frame keyed by `cost`."""
    owners = find_owners(profile, pieces)
    frame = pl.DataFrame(
        {
            "op": owners.op,
            "owner": owners.owner,
            "cost": owners.cost,
            "recomputed": owners.recomputed,
        },
        schema={"op": pl.UInt32, "owner": pl.UInt32, "cost": pl.Int64, "recomputed": pl.Boolean},
    ).with_columns(pl.when(pl.col("cost") == NO_COST).then(None).otherwise("cost").alias("cost"))
    costs = pl.DataFrame(
        {
            "cost": range(len(owners.costs)),
            "cost_category": [int(cost.category) for cost in owners.costs],
            "cost_dtype": [None if (cost.dtype or "").endswith("byte") else cost.dtype for cost in owners.costs],
            "flops": [cost.flops for cost in owners.costs],
            "model_flops": [cost.model_flops for cost in owners.costs],
            "whole_flops": [cost.whole_flops for cost in owners.costs],
            "op_bytes": [cost.bytes for cost in owners.costs],
            "estimate": [cost.estimate for cost in owners.costs],
        },
        schema={
            "cost": pl.Int64,
            "cost_category": pl.UInt8,
            "cost_dtype": pl.String,
            "flops": pl.Float64,
            "model_flops": pl.Float64,
            "whole_flops": pl.Float64,
            "op_bytes": pl.Float64,
            "estimate": pl.String,
        },
        strict=False,
    )
    signatures = profile.ops.select(owner="slice", signature="signature").unique("owner", keep="first")
    pieces = pieces.join(frame, on="op", how="left", maintain_order="left")
    return pieces.join(signatures, on="owner", how="left", maintain_order="left"), costs


def _numbered(pieces: pl.DataFrame) -> pl.DataFrame:
    """Pieces with the item of each: those of one owner on one device; without an owner, every piece is its own.

    Work of an op without a cost (a compiled region, a custom op) is an item for each category of it: nothing tells that it
    is all of one kind. An op of a captured graph runs once in every replay.
    """
    by_hlo = pl.col("hlo_instance").is_not_null()
    alone = pl.col("owner").is_null() & ~by_hlo
    key = pl.struct(
        pl.when(alone).then(pl.col("slice")).otherwise(None),
        pl.when(~by_hlo).then("owner"),
        pl.when(pl.col("cost").is_null() & ~by_hlo).then("category"),
        "hlo_instance",
        "device",
        pl.when(pl.col("graph") & pl.col("owner").is_not_null()).then("launch"),
    )
    return pieces.with_columns(item=(key.rank("dense") - 1).cast(pl.UInt32)).sort("item", "start_ps", maintain_order=True)


def _items(pieces: pl.DataFrame) -> pl.DataFrame:
    """One row an item: what its pieces say together; category and type are those of its main piece."""
    own = pl.col("end_ps") - pl.col("start_ps")
    reach = pl.col("end_ps").cum_max().shift(1).over("item", order_by="start_ps")
    fresh = pl.max_horizontal(pl.col("end_ps") - pl.max_horizontal(pl.col("start_ps"), reach), pl.lit(0, dtype=pl.Int64))
    several = pieces.filter(pl.len().over("item") > 1).with_columns(fresh=fresh).group_by("item").agg(union_ps=pl.col("fresh").sum())
    nested = pl.col("own_ps") < own
    main = pieces.with_columns(
        main=(pl.col("category").is_in([int(c) for c in TENSOR_CATEGORIES]).cast(pl.Int64) * 2 + pl.col("tensor_core").fill_null(False)),
        length=own,
    ).sort("item", "main", "length", descending=[False, True, True])
    first = main.group_by("item", maintain_order=True).agg(
        pl.col("category", "dtype", "tensor_core", "kernel_name").first(),
    )
    grouped = pieces.group_by("item", maintain_order=True).agg(
        pl.col("owner", "cost", "hlo", "hlo_cost", "signature", "device", "recomputed").first(),
        pl.col("step").drop_nulls().first(),
        start_ps=pl.col("start_ps").min(),
        end_ps=pl.col("end_ps").max(),
        own_ps=pl.when(nested).then("own_ps").otherwise(own).sum(),
        pieces=pl.len().cast(pl.UInt32),
        op=pl.col("op").first(),
        launched=pl.col("launch").is_not_null().any(),
        graph=pl.col("graph").any(),
        fast_algorithm=pl.col("fast_algorithm").any(),
        only_copies=(pl.col("kind") != int(Kind.KERNEL)).all(),
    )
    items = grouped.join(first, on="item", how="left", maintain_order="left").join(several, on="item", how="left", maintain_order="left")
    return items.with_columns(time_ps=pl.coalesce("union_ps", "own_ps"))


def _with_copies(profile: Profile, pieces: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    """Bytes of items that consist of copies and sets alone, as the file states them: memory to memory moves them twice."""
    moved = pieces.filter(pl.col("kind") != int(Kind.KERNEL)).join(
        profile.copies.select("slice", "bytes").unique("slice", keep="first"), on="slice", how="inner"
    )
    text = profile.names["text"].gather(moved["kernel_name"])
    moved = moved.with_columns(
        host=text.str.contains(r"(?i)HtoD|DtoH|H2D|D2H|HostTo|ToHost"),
        peer=text.str.contains(r"(?i)PtoP|P2P"),
        twice=text.str.contains(r"(?i)DtoD|D2D|DeviceToDevice"),
    )
    size = pl.col("bytes").cast(pl.Float64)
    sums = moved.group_by("item").agg(
        copy_hbm=(size * pl.when("twice").then(2).otherwise(1)).sum(),
        copy_pcie=size.filter("host").sum(),
        copy_link=size.filter("peer").sum(),
        known=pl.col("bytes").is_not_null().all(),
    )
    items = items.join(sums, on="item", how="left", maintain_order="left")
    stated = pl.col("only_copies") & pl.col("known").fill_null(False)
    return items.with_columns(
        stated=stated,
        hbm_bytes=pl.when(stated).then("copy_hbm"),
        pcie_bytes=pl.when(stated & (pl.col("copy_pcie") > 0)).then("copy_pcie"),
        link_bytes=pl.when(stated & (pl.col("copy_link") > 0)).then("copy_link"),
    )


def _with_collectives(profile: Profile, pieces: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    """Bytes of collectives by their recorded arguments, on the kernel or on the op around its launch."""
    known = profile.collectives.unique("slice", keep="first")
    if known.height == 0:
        return items.with_columns(collective_bytes=pl.lit(None, dtype=pl.Float64))
    candidates = pieces.filter(pl.col("category") == int(Category.COMMUNICATION)).select("item", "slice", "op")
    found = pl.concat([candidates.select("item", slice="slice"), candidates.select("item", slice="op")]).join(
        known, on="slice", how="inner"
    )
    found = found.unique("item", keep="first")
    arguments = ["collective", "dtype", "in_elements", "out_elements", "group_size"]
    distinct = found.select(arguments).unique()
    costs = [collective_cost(*row) for row in distinct.iter_rows()]
    distinct = distinct.with_columns(
        collective_bytes=pl.Series([None if c is None else (c.read_bytes or 0) + (c.write_bytes or 0) for c in costs], dtype=pl.Float64),
        wire=pl.Series([None if c is None else c.wire_bytes for c in costs], dtype=pl.Float64),
    )
    found = found.join(distinct, on=arguments, how="left", nulls_equal=True)
    inside = pl.col("group_size") <= LINK_DOMAIN
    found = found.select("item", "collective_bytes", wire=pl.when(inside).then("wire"))
    items = items.join(found, on="item", how="left", maintain_order="left")
    return items.with_columns(link_bytes=pl.coalesce("link_bytes", "wire"))


def _decided(items: pl.DataFrame) -> pl.DataFrame:
    """Final names, categories, figures and their origins."""
    items = items.with_columns(
        hbm_bytes=pl.coalesce("hbm_bytes", "collective_bytes", "hlo_hbm_bytes", "op_bytes"),
        flops=pl.coalesce(pl.when("only_copies").then(0.0), "hlo_flops", "flops"),
        model_flops=pl.coalesce(pl.when("only_copies").then(0.0), "hlo_model_flops", "model_flops"),
        whole_flops=pl.coalesce(pl.when("only_copies").then(0.0), "hlo_model_flops", "whole_flops"),
        estimate=pl.when(pl.col("stated") | pl.col("collective_bytes").is_not_null()).then(None).otherwise("estimate"),
    )
    from_file = pl.col("stated") | pl.col("collective_bytes").is_not_null()
    from_hlo = pl.col("hlo_from").is_not_null()
    bytes_known = pl.any_horizontal(pl.col(f"{level}_bytes").is_not_null() for level in LEVELS)
    recomputed = pl.col("recomputed").fill_null(False)
    origin = (
        pl.when(pl.col("signature").is_not_null() | pl.col("hlo").is_not_null() | pl.col("stated"))
        .then(pl.lit("op"))
        .when(pl.col("graph"))
        .then(pl.lit("graph"))
        .when(~pl.col("launched"))
        .then(pl.lit("orphan"))
        .when(pl.col("op").is_null())
        .then(pl.lit("no op"))
        .otherwise(pl.lit("no shapes"))
    )
    return items.with_columns(
        op=pl.coalesce("owner", "op"),
        name=pl.coalesce("op_name", "kernel_name"),
        category=pl.when(pl.col("cost").is_not_null() & ~pl.col("only_copies"))
        .then(pl.coalesce("cost_category", "category"))
        .otherwise("category"),
        dtype=pl.coalesce(pl.col("dtype").cast(pl.String), "cost_dtype"),
        model_flops=pl.when(recomputed).then(0.0).otherwise("model_flops"),
        whole_flops=pl.when(recomputed).then(0.0).otherwise("whole_flops"),
        recomputed=recomputed,
        flops_from=pl.when(pl.col("flops").is_null()).then(pl.lit("none")).when(from_hlo).then("hlo_from").otherwise(pl.lit("shapes")),
        bytes_from=pl.when(~bytes_known)
        .then(pl.lit("none"))
        .when(from_file)
        .then(pl.lit("trace"))
        .when(from_hlo)
        .then("hlo_from")
        .otherwise(pl.lit("shapes")),
        origin=origin,
    )


def _shares(pieces: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    """How an item's costs fall on its pieces: by time, on those that did its main work (not on helpers such as split-K sums)."""
    item = pieces["item"].to_numpy()
    count = items.height
    same = pieces["category"].to_numpy() == items["category"].to_numpy()[item]
    on_tensor = items["tensor_core"].fill_null(False).to_numpy()[item]
    worked = same & (pieces["tensor_core"].fill_null(True).to_numpy() | ~on_tensor)
    has_worked, has_same = (np.bincount(item, weights=mask, minlength=count)[item] > 0 for mask in (worked, same))
    main = np.where(has_worked, worked, np.where(has_same, same, True))
    # A share is a ratio: lengths may go through float here.
    weight = main * (pieces["end_ps"] - pieces["start_ps"]).to_numpy().astype(np.float64)
    total = np.bincount(item, weights=weight, minlength=count)[item]
    even = main / np.bincount(item, weights=main, minlength=count)[item]
    share = np.where(total > 0, weight / np.where(total > 0, total, 1.0), even)
    pieces = pieces.with_columns(share=pl.Series(share), length_ps=pl.col("end_ps") - pl.col("start_ps"))
    return pieces.select(list(PIECES)).cast(PIECES).sort("slice")


def _exclusive(work: pl.DataFrame) -> pl.Series:
    """Time (ps) of each piece in which no other piece ran on its device."""
    start, end = work["start_ps"].to_numpy(), work["end_ps"].to_numpy()
    device = work["device"].to_numpy()
    exclusive = np.zeros(start.size, np.int64)
    for number in np.unique(device):
        rows = np.flatnonzero((device == number) & (end > start))
        if rows.size == 0:
            continue
        times = np.concatenate((start[rows], end[rows]))
        change = np.concatenate((np.ones(rows.size, np.int64), -np.ones(rows.size, np.int64)))
        which = np.concatenate((rows, rows)) * change
        order = np.argsort(times, kind="stable")
        times = times[order]
        running, sum_of_rows = np.cumsum(change[order])[:-1], np.cumsum(which[order])[:-1]
        length = np.diff(times)
        alone = (running == 1) & (length > 0)
        np.add.at(exclusive, sum_of_rows[alone], length[alone])
    return pl.Series("exclusive_ps", exclusive)
