"""`ops --by collective`: collectives by name, group and size, with their rates against the link and what of them is exposed.

Rates are those of nccl-tests (doc/PERFORMANCE.md; reference/kineto.md 2.3): algorithm bandwidth is message over time, bus
bandwidth that times the factor of the collective, so that it can be held against the link of one device. From one rank the
time of a call includes waiting for the others: the rates are lower limits, and the row says so.
"""

from __future__ import annotations

import polars as pl

from roofterm.analysis.bounds import AT_ROOF_PCT, level_rates
from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.collective_calls import inside_link_domain
from roofterm.analysis.costed import LINK_DOMAIN
from roofterm.results import TABLES, DeviceInfo

LATENCY_S = 20e-6
"""A message that the link would carry in less than this is bound by latency: small all-reduces over the eight devices of a node
take 10 to 30 us whatever their size (nccl-tests over NVLink and xGMI)."""

SMALL_BYTES = 32 * 1024
"""Up to here a message is bound by latency over any network (the size at which nccl-tests measures latency)."""

LINK_DOMAINS = {"gb200": 72, "gb300": 72}
"""Devices behind one NVLink switch, by model, where it is not a board of eight."""

US_PS = 1e6
PS_PER_S = 1e12


def collective_table(calls: pl.DataFrame, matched: pl.DataFrame, device: DeviceInfo | None) -> pl.DataFrame:
    """One row a kind, group, size and type: columns `results.TABLES["collective"]`, most total time first; times in us.

    `calls` is of schema `collective_calls.CALLS`, whole or a part; `matched` of schema `matching.MATCHED`.
    """
    rates = level_rates(device) if device is not None else {}
    link = rates["link"][1] if "link" in rates else None
    domain = LINK_DOMAINS.get(device.model or "", LINK_DOMAIN) if device is not None else LINK_DOMAIN
    meetings = matched.select("slice", "participants", "wait_ps", "transfer_ps")
    rows = calls.join(meetings, on="slice", how="left", maintain_order="left")
    rows = rows.with_columns(length_ps=pl.col("end_ps") - pl.col("start_ps"), inside=_inside(calls, domain))
    table = rows.group_by("kind", "group", "group_size", "message_bytes", "dtype", maintain_order=True).agg(*_aggregates())
    seconds = pl.coalesce(pl.when("all_matched").then("transfer_ps"), "length_ps") / PS_PER_S
    moved = pl.when(seconds > 0).then(pl.col("calls") / seconds)
    table = table.with_columns(algo_bw=pl.col("message_bytes") * moved, bus_bw=pl.col("wire_bytes") * moved)
    wire_s = pl.col("wire_bytes") / link if link else pl.lit(None, pl.Float64)
    table = table.with_columns(
        pct_of_link=pl.when("inside").then(100 * pl.col("bus_bw") / link) if link else pl.lit(None, pl.Float64),
        latency_bound=pl.when(pl.col("message_bytes") <= SMALL_BYTES).then(True).when("inside").then(wire_s < LATENCY_S),
    )
    return _finished(table.with_columns(note=_notes(table)))


def _inside(calls: pl.DataFrame, domain: int) -> pl.Series:
    groups = calls.select("group_size", "ranks").unique()
    known = {(size, ranks): inside_link_domain(size, ranks, domain) for size, ranks in groups.iter_rows()}
    return pl.Series([known[row] for row in calls.select("group_size", "ranks").iter_rows()], dtype=pl.Boolean)


def _aggregates() -> list[pl.Expr]:
    length = pl.col("length_ps")
    met = pl.col("participants").is_not_null()
    return [
        pl.len().cast(pl.Int64).alias("calls"),
        pl.col("collective", "library").first(),
        length.sum(),
        length.mean().alias("mean_ps"),
        length.min().alias("min_ps"),
        length.max().alias("max_ps"),
        length.quantile(0.5, "linear").alias("p50_ps"),
        length.quantile(0.99, "linear").alias("p99_ps"),
        pl.col("exposed_ps", "hidden_ps").sum(),
        pl.when(met.any()).then(pl.col("wait_ps").sum()).alias("wait_ps"),
        pl.when(met.any()).then(pl.col("transfer_ps").sum()).alias("transfer_ps"),
        met.all().alias("all_matched"),
        pl.col("participants").min(),
        pl.col("wire_bytes").first(),
        pl.col("inside").drop_nulls().all().alias("inside"),
        pl.col("inside").is_null().all().alias("unknown_group"),
        pl.col("slice").first().alias("first"),
    ]


def _notes(table: pl.DataFrame) -> pl.Series:
    notes = []
    for row in table.iter_rows(named=True):
        said = []
        size, seen = row["group_size"], row["participants"]
        if row["message_bytes"] is None:
            said.append("the file does not tell the message's size")
        elif not row["all_matched"]:
            said.append("not matched over its ranks: waiting is in it, so rates are lower limits")
        elif size is not None and seen < size:
            said.append(f"{seen} of {size} ranks seen: rates are lower limits")
        if row["unknown_group"]:
            said.append("group unknown")
        elif not row["inside"]:
            said.append("the group reaches beyond one link domain")
        notes.append("; ".join(said) or None)
    return pl.Series("note", notes, dtype=pl.String)


def _finished(table: pl.DataFrame) -> pl.DataFrame:
    whole = int(table["length_ps"].sum()) if table.height else 0
    times = {name: f"{name.removesuffix('_ps')}_us" for name in table.columns if name.endswith("_ps")} | {"length_ps": "total_us"}
    table = table.with_columns(pl.Series(us, table[ps].cast(pl.Float64).to_numpy() / US_PS).fill_nan(None) for ps, us in times.items())
    bound = pl.when("latency_bound").then(pl.lit("latency")).when(pl.col("pct_of_link").is_not_null()).then(pl.lit("link"))
    fills = pl.col("pct_of_link") >= AT_ROOF_PCT
    table = table.with_columns(
        name="kind",
        category=pl.lit(Category.COMMUNICATION.title),
        self_us="total_us",
        device_us="total_us",
        pct=100 * pl.col("total_us") * US_PS / whole if whole else pl.lit(None, pl.Float64),
        bound_by=bound,
        limiter=pl.when(fills).then(bound).when(bound.is_not_null()).then(pl.lit("latency")),
        limit=pl.when(fills | (bound == "latency")).then(bound).otherwise(bound + "?"),
        pct_of_roof="pct_of_link",
        **{name: pl.lit(None, pl.Float64) for name in ("host_us", "flops", "bytes")},
    )
    order = ["total_us", "name", "message_bytes"]
    return table.sort(order, descending=[True, False, True], maintain_order=True).select(TABLES["collective"])
