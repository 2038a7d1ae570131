"""Device work with its costs: items (an op's call with all the work it launched) and the pieces they consist of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from roofterm.analysis.categories import FACTS, Category
from roofterm.analysis.categories.kinds import TENSOR_CATEGORIES
from roofterm.analysis.costs import collective_cost
from roofterm.analysis.exclusive import exclusive
from roofterm.analysis.hlo_costs import HLO_COSTS, hlo_items, on_device_clock
from roofterm.analysis.lookup import ABSENT, I64, index_of, rows_among, rows_by_id, rows_of, taken
from roofterm.analysis.owners import NO_COST, NO_SIGNATURE, Owners, find_owners
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


def costed(profile: Profile, work: pl.DataFrame, facts: pl.DataFrame, owners: Owners | None = None) -> Costed:
    """Items and pieces of device work. `work`: schema `work.WORK`, whole or a part; `facts`: schema `categories.FACTS`;
    `owners`: those of all ops that launched `work`, if they are known."""
    if work.height == 0:
        return Costed(pl.DataFrame(schema=ITEMS), pl.DataFrame(schema=PIECES))
    pieces = _pieces(profile, on_device_clock(profile, work), facts)
    owners = find_owners(profile, work, facts) if owners is None else owners
    pieces = _with_owners(pieces, owners)
    pieces, by_hlo = _with_hlo(profile, pieces)
    pieces = _numbered(pieces)
    items = _items(pieces)
    items = items.with_columns(*_costs_of_ops(owners, items), *_costs_of_hlo(profile, by_hlo, items))
    items = items.with_columns(op_name=profile.slices["name"][items["owner"]])
    items = _with_copies(profile, pieces, items)
    items = _with_collectives(profile, pieces, items)
    items = _decided(items)
    return Costed(items.select(pl.col(name).cast(kind) for name, kind in ITEMS.items()), _shares(pieces, items))


def _pieces(profile: Profile, work: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    """Work with the columns of `FACTS`, and: kernel_name (row of names), graph, fast_algorithm, exclusive_ps."""
    texts, name = profile.names["text"], profile.slices["name"]
    rows = index_of(rows_among(facts["slice"], work["slice"], profile.slices.height))
    kernel_name = name[work["slice"]]
    launch = work["launch"]
    graph = texts.str.contains(r"GraphLaunch").to_numpy()[name.to_numpy()[launch.fill_null(0).to_numpy()]] & launch.is_not_null().to_numpy()
    return work.with_columns(
        *(taken(facts[column], rows) for column in FACTS if column not in ("slice", "category")),
        taken(facts["category"], rows).fill_null(int(Category.OTHER)),
        exclusive(work),
        kernel_name=kernel_name,
        graph=pl.Series(graph),
        fast_algorithm=texts.str.contains(r"(?i)winograd|fft")[kernel_name],
    )


def _with_owners(pieces: pl.DataFrame, owners: Owners) -> pl.DataFrame:
    """Pieces with the op that owns each (owner), the row of its costs (cost), its signature, and whether it is recomputed."""
    rows = owners.rows_of(pieces["op"])
    cost, signature = np.append(owners.cost, NO_COST)[rows], np.append(owners.signature, NO_SIGNATURE)[rows]
    return pieces.with_columns(
        owner=taken(pl.Series(owners.owner), rows),
        cost=pl.Series(cost).set(pl.Series(cost == NO_COST), None),
        signature=pl.Series(signature).set(pl.Series(signature == NO_SIGNATURE), None).cast(pl.UInt32),
        recomputed=taken(pl.Series(owners.recomputed), rows),
    )


def _with_hlo(profile: Profile, pieces: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What `hlo_items` gives, which has nothing to say where the profile holds no compiled program."""
    if profile.hlo.height:
        return hlo_items(profile, pieces)
    nothing = pl.lit(None, dtype=pl.UInt32)
    return pieces.with_columns(hlo=nothing, hlo_instance=nothing, hlo_cost=nothing), pl.DataFrame(schema=HLO_COSTS)


def _costs_of_ops(owners: Owners, items: pl.DataFrame) -> list[pl.Series]:
    """What the owners of items cost: columns of them, null where an owner has no cost."""
    costs = owners.costs
    told: dict[str, tuple[pl.DataType | type[pl.DataType], list[object]]] = {
        "cost_category": (pl.UInt8, [int(cost.category) for cost in costs]),
        "cost_dtype": (pl.String, [None if (cost.dtype or "").endswith("byte") else cost.dtype for cost in costs]),
        "flops": (pl.Float64, [cost.flops for cost in costs]),
        "model_flops": (pl.Float64, [cost.model_flops for cost in costs]),
        "whole_flops": (pl.Float64, [cost.whole_flops for cost in costs]),
        "op_bytes": (pl.Float64, [cost.bytes for cost in costs]),
        "estimate": (pl.String, [cost.estimate for cost in costs]),
    }
    rows = index_of(items["cost"].fill_null(ABSENT).to_numpy())
    return [taken(pl.Series(name, values, dtype=kind, strict=False), rows) for name, (kind, values) in told.items()]


def _costs_of_hlo(profile: Profile, costs: pl.DataFrame, items: pl.DataFrame) -> list[pl.Series]:
    """What the compiler counted for items: columns of `hlo_costs.HLO_COSTS`."""
    rows = index_of(rows_of(rows_by_id(costs["hlo_cost"], profile.hlo_ops.height), items["hlo_cost"]))
    return [taken(costs[name], rows) for name in HLO_COSTS if name != "hlo_cost"]


def _numbered(pieces: pl.DataFrame) -> pl.DataFrame:
    """Pieces with the item of each, in order of item and start: those of one owner on one device; without an owner, every piece
    is its own.

    Work of an op without a cost (a compiled region, a custom op) is an item for each category of it: nothing tells that it
    is all of one kind. An op of a captured graph runs once in every replay.
    """
    owned, by_hlo = pieces["owner"].is_not_null().to_numpy(), pieces["hlo_instance"].is_not_null().to_numpy()
    device, start = pieces["device"].to_numpy().astype(np.int64), pieces["start_ps"].to_numpy()
    kind = np.where(pieces["cost"].is_null().to_numpy(), pieces["category"].to_numpy().astype(np.int64) + 1, 0)
    # Numbers of 32 bits, 8 for the category, 16 for the device; instances of instructions first, then ops, then the rest.
    instance = pieces["hlo_instance"].fill_null(0).to_numpy().astype(np.int64)
    of_op = (1 << 58) | (pieces["owner"].fill_null(0).to_numpy().astype(np.int64) << 24) | (kind << 16)
    alone = (2 << 58) | (pieces["slice"].to_numpy().astype(np.int64) << 16)
    key = np.where(by_hlo, instance << 16, np.where(owned, of_op, alone)) | device
    replay = np.where(pieces["graph"].to_numpy() & owned, pieces["launch"].fill_null(0).to_numpy().astype(np.int64) + 1, 0)
    order = np.lexsort((start, replay, key)) if replay.any() else np.argsort(key, kind="stable")
    key, replay, start = key[order], replay[order], start[order]
    fresh = np.concatenate(([True], (key[1:] != key[:-1]) | (replay[1:] != replay[:-1])))
    if np.any((start[1:] < start[:-1]) & ~fresh[1:]):
        again = np.lexsort((start, np.cumsum(fresh)))
        order = order[again]
    return pieces[order].with_columns(item=pl.Series(np.cumsum(fresh) - 1).cast(pl.UInt32))


def _items(pieces: pl.DataFrame) -> pl.DataFrame:
    """One row an item: what its pieces say together; category and type are those of its main piece."""
    item = pieces["item"].to_numpy()
    first = np.flatnonzero(np.concatenate(([True], item[1:] != item[:-1])))
    count = np.diff(np.append(first, item.size))
    start, end = pieces["start_ps"].to_numpy(), pieces["end_ps"].to_numpy()
    own = np.minimum(pieces["own_ps"].to_numpy(), end - start)
    time = np.add.reduceat(own, first)
    main = first.copy()
    several = np.flatnonzero(count > 1)
    if several.size:
        mine = np.flatnonzero(np.repeat(count > 1, count))
        begins = np.cumsum(count[several]) - count[several]
        number = np.repeat(np.arange(several.size), count[several])
        time[several] = np.add.reduceat(_fresh(number, start[mine], end[mine]), begins)
        tensor = np.isin(pieces["category"].to_numpy()[mine], [int(c) for c in TENSOR_CATEGORIES])
        weight = 2 * tensor + pieces["tensor_core"][mine].fill_null(False).to_numpy()
        main[several] = mine[np.lexsort((start[mine] - end[mine], -weight, number))[begins]]
    place = np.where(pieces["step"].is_null().to_numpy(), item.size, np.arange(item.size))
    stepped = np.minimum.reduceat(place, first)
    firsts = ("item", "owner", "cost", "hlo", "hlo_cost", "signature", "device", "recomputed", "op")
    return pl.DataFrame(
        [
            *(pieces[name][first] for name in firsts),
            *(pieces[name][main] for name in ("category", "dtype", "tensor_core", "kernel_name")),
            taken(pieces["step"], np.where(stepped < item.size, stepped, ABSENT)),
            pl.Series("start_ps", start[first]),
            pl.Series("end_ps", np.maximum.reduceat(end, first)),
            pl.Series("time_ps", time),
            pl.Series("pieces", count, dtype=pl.UInt32),
            pl.Series("launched", np.logical_or.reduceat(pieces["launch"].is_not_null().to_numpy(), first)),
            pl.Series("graph", np.logical_or.reduceat(pieces["graph"].to_numpy(), first)),
            pl.Series("fast_algorithm", np.logical_or.reduceat(pieces["fast_algorithm"].to_numpy(), first)),
            pl.Series("only_copies", np.logical_and.reduceat(pieces["kind"].to_numpy() != int(Kind.KERNEL), first)),
        ]
    )


def _fresh(item: I64, start: I64, end: I64) -> I64:
    """What of each piece no earlier piece of its item covers, ps; pieces in order of item and start."""
    # The latest end up to each piece within its item, by the ends' ranks: times themselves are too large to shift by item.
    ends, rank = np.unique(end, return_inverse=True)
    above = item * ends.size
    reach = ends[np.maximum.accumulate(above + rank) - above]
    covered = np.concatenate((start[:1], np.where(item[1:] == item[:-1], reach[:-1], start[1:])))
    fresh: I64 = np.maximum(end - np.maximum(start, covered), 0)
    return fresh


def _with_copies(profile: Profile, pieces: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    """Bytes of items that consist of copies and sets alone, as the file states them: memory to memory moves them twice."""
    if not items["only_copies"].any():
        unknown = pl.lit(None, dtype=pl.Float64)
        return items.with_columns(stated=pl.lit(False), hbm_bytes=unknown, pcie_bytes=unknown, link_bytes=unknown)
    moved = pieces.filter(pl.col("kind") != int(Kind.KERNEL)).join(
        profile.copies.select("slice", "bytes").unique("slice", keep="first"), on="slice", how="inner"
    )
    text = profile.names["text"][moved["kernel_name"]]
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
    ordered = pieces[np.argsort(pieces["slice"].to_numpy())]
    return ordered.select(pl.col(name).cast(kind) for name, kind in PIECES.items())
