"""The `ops --by` tables (contract.md section 4): frames with the columns of `results.TABLES`, most total time first."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.hlo_costs import on_device_clock
from roofterm.analysis.lookup import joined, rows_by_id, rows_of, taken
from roofterm.analysis.profiler_tree import TopMemory
from roofterm.analysis.steps import US
from roofterm.results import TABLES
from roofterm_parsers.profile import Kind, Profile, TrackKind

HOST_KINDS = (Kind.OP, Kind.ANNOTATION, Kind.STEP, Kind.RUNTIME, Kind.SYNC, Kind.PYTHON, Kind.OTHER)

MANY_NAMES = 20_000
"""From so many names on what is usual of each is found by sorting all: a group's own mode takes microseconds"""

_USUAL = ("registers", "shared_bytes", "limited_by", "evidence")

_INSTANCE = r"_\d+\b"
"""Number of an instance of a module: Linear_22"""

_TYPES: dict[str, pl.DataType | type[pl.DataType]] = {
    "name": pl.String,
    "category": pl.String,
    "calls": pl.Int64,
    "dtype": pl.String,
    "bound_by": pl.String,
    "limiter": pl.String,
    "limit": pl.String,
    "stream_ids": pl.List(pl.Int64),
    "grid": pl.String,
    "block": pl.String,
    "tensor_core": pl.Boolean,
    "launched_by": pl.String,
    "short_name": pl.String,
    "shapes": pl.String,
    "is_backward": pl.Boolean,
    "memory_bytes": pl.Int64,
    "self_memory_bytes": pl.Int64,
    "device_memory_bytes": pl.Int64,
    "self_device_memory_bytes": pl.Int64,
    "stack": pl.String,
    "module_path": pl.String,
    "flags": pl.List(pl.String),
    "registers": pl.Int64,
    "shared_bytes": pl.Int64,
    "limited_by": pl.String,
    "evidence": pl.String,
    "launched_from": pl.String,
    "program": pl.String,
    "hlo_category": pl.String,
    "source": pl.String,
    "tf_op": pl.String,
    "long_name": pl.String,
    "side": pl.String,
    "counted_for": pl.String,
    "op_type": pl.String,
}


def kernel_table(profile: Profile, work: pl.DataFrame, facts: pl.DataFrame, filled: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """Device work by name: kernels, copies and memsets.

    `work` is of schema `work.WORK`; `places`, row for row with it, of schema `launch_places.PLACES`; `facts` has for each work slice
    `slice, category, dtype, tensor_core, evidence` (as text or categories of it, and flags); `filled` is of schema
    `occupancy.OCCUPANCY`. Total is the sum of lengths; self leaves out nested ops (TPU). `short_name` is null: what shows rows fills
    it in (`with_short_names`).
    """
    rows, size, texts = _pieces(profile, work), profile.slices.height, profile.names["text"]
    code = pl.DataFrame({"text": texts}).with_row_index("code").select(pl.col("code").first().over("text"))["code"]
    launches = profile.kernels.select("slice", *_SIZES, "registers", "shared_bytes")
    fill = filled.select("slice", "occupancy_pct", "waves", "tail_pct", "limited_by")
    for known in (facts, launches, fill):
        rows = joined(rows, work["slice"], known, "slice", size)
    rows = rows.with_columns(
        places["module_path"],
        places["launched_from"],
        code=code[profile.slices["name"][work["slice"]]],
        stream=profile.tracks["stream"][rows["track"]],
        launched_by=code[profile.slices["name"][work["op"]]],
    )
    table = rows.group_by("code", maintain_order=True).agg(
        *aggregates(),
        category=pl.col("category").drop_nulls().first().cast(pl.String),
        dtype=pl.col("dtype").drop_nulls().first().cast(pl.String),
        tensor_core=pl.col("tensor_core").drop_nulls().first(),
        stream_ids=pl.col("stream").drop_nulls().unique().sort(),
        occupancy_pct=_weighted("occupancy_pct"),
        waves=_weighted("waves"),
        tail_pct=_weighted("tail_pct"),
        **({name: _usual(name) for name in _USUAL} if profile.names.height < MANY_NAMES else {}),
    )
    if profile.names.height >= MANY_NAMES:
        for name in _USUAL:
            table = table.join(_most_frequent(rows, name), on="code", how="left", maintain_order="left")
    table = table.with_columns(pl.col("limited_by", "evidence").cast(pl.String), name=texts[table["code"]])
    told = rows.filter(pl.col("launch").is_not_null() | pl.col("op").is_not_null())
    launchers = _longest(rows.drop_nulls("launched_by"), "launched_by", texts)
    for found in (_shape(rows, "grid"), _shape(rows, "block"), launchers, _common_modules(told), _longest(told, "launched_from")):
        table = table.join(found, on="code", how="left", maintain_order="left")
    return finished(table.with_columns(device_ps=pl.col("total_ps")), "kernel", most="self_us")


def category_table(profile: Profile, work: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    """Device work by category."""
    rows = joined(_pieces(profile, work), work["slice"], facts.select("slice", "category"), "slice", profile.slices.height)
    table = rows.group_by(pl.col("category").alias("name"), maintain_order=True).agg(*aggregates())
    table = table.with_columns(pl.col("name").cast(pl.String))
    return finished(table.with_columns(device_ps=pl.col("total_ps"), category=pl.col("name")), "category", most="self_us")


def profiler_op_table(
    profile: Profile, events: pl.DataFrame, flops: pl.Series, top_memory: TopMemory, split: pl.Series | None = None
) -> pl.DataFrame:
    """Host rows as `key_averages()` has them, of events of schema `profiler_tree.EVENTS`.

    `flops` are the profiler's own, one value an event; `top_memory` what its row `[memory]` holds; `split`: what splits rows of one
    name (`op_groups.split_by`), row for row with the events. Self times are the profiler's (may be negative).
    """
    names, size = _event_names(profile), profile.slices.height
    at = rows_of(rows_by_id(profile.ops["slice"], size), events["slice"])
    rows = events.with_columns(
        names["code"][profile.slices["name"][events["slice"]]],
        taken(profile.ops["forward_thread"].is_not_null(), at).alias("backward"),
        kind=profile.slices["kind"][events["slice"]],
        length_ps="dur_ps",
        own_ps="self_ps",
        flops=flops,
    )
    keys = ["code"]
    if split is not None:
        rows = rows.with_columns(split)
        keys.append(split.name)
    table = rows.group_by(keys, maintain_order=True).agg(
        *aggregates(),
        category=_host_category(pl.col("kind").first()),
        host_ps=pl.col("length_ps").sum(),
        device_ps=pl.col("device_ps").sum(),
        self_device_ps=pl.col("self_device_ps").sum(),
        flops=pl.col("flops").sum().cast(pl.Float64),
        memory_bytes=pl.col("memory_bytes").sum(),
        self_memory_bytes=pl.col("self_memory_bytes").sum(),
        device_memory_bytes=pl.col("device_memory_bytes").sum(),
        self_device_memory_bytes=pl.col("self_device_memory_bytes").sum(),
        is_backward=pl.col("backward").any(),
    )
    table = table.with_columns(names["name"][table["code"]], names["annotation"][table["code"]]).drop("code")
    if top_memory.calls:
        table = pl.concat([table, _memory_row(table, top_memory)], how="diagonal_relaxed")
    return finished(table, "op", share_of="self_us", most="total_us")


def _event_names(profile: Profile) -> pl.DataFrame:
    """What the profiler calls events of each name, row for row with `profile.names`: name, annotation, and code, the first row
    that has the same of both."""
    text = pl.col("text")
    return profile.names.select(
        name=pl.when(text.str.starts_with("ProfilerStep#")).then(pl.lit("ProfilerStep*")).otherwise(text),
        annotation=pl.col("cat").str.to_lowercase() == "user_annotation",
        code=pl.int_range(pl.len(), dtype=pl.UInt32),
    ).with_columns(pl.col("code").first().over("name", "annotation"))


def host_op_table(profile: Profile, slices: pl.DataFrame, self_ps: pl.Series) -> pl.DataFrame:
    """Host slices by name with slice self time (`self_ps`, row for row): for profiles that PyTorch did not write."""
    rows = slices.with_columns(own_ps=self_ps, length_ps="dur_ps").filter(pl.Series(host_op_slices(profile, slices), dtype=pl.Boolean))
    rows = rows.with_columns(name=profile.names["text"][rows["name"]])
    table = rows.group_by("name", maintain_order=True).agg(
        *aggregates(), category=_host_category(pl.col("kind").first()), host_ps=pl.col("length_ps").sum()
    )
    return finished(table, "op", share_of="self_us", most="total_us")


def host_op_slices(profile: Profile, slices: pl.DataFrame) -> NDArray[np.bool_]:
    """Which of `slices` are rows of the host's table: ops, ranges, calls and frames on host threads."""
    on_host = (profile.tracks["kind"] == int(TrackKind.HOST)).to_numpy()
    counted = np.isin(np.arange(256), [int(kind) for kind in HOST_KINDS])
    taken: NDArray[np.bool_] = on_host[slices["track"].to_numpy()] & counted[slices["kind"].to_numpy()]
    return taken


def work_with_names(profile: Profile, work: pl.DataFrame) -> pl.DataFrame:
    """Pieces of work with their name, track and length_ps, by the device's own clock where a file has it, as XProf counts."""
    return _pieces(profile, work).with_columns(name=profile.names["text"][profile.slices["name"][work["slice"]]])


def _pieces(profile: Profile, work: pl.DataFrame) -> pl.DataFrame:
    work = on_device_clock(profile, work)
    return work.with_columns(track=profile.slices["track"][work["slice"]], length_ps=pl.col("end_ps") - pl.col("start_ps"))


def aggregates() -> list[pl.Expr]:
    """What every table says of a row's times, in ps: of pieces with length_ps and own_ps."""
    length = pl.col("length_ps")
    return [
        pl.len().cast(pl.Int64).alias("calls"),
        length.sum().alias("total_ps"),
        pl.col("own_ps").sum().alias("self_ps"),
        length.mean().alias("mean_ps"),
        length.min().alias("min_ps"),
        length.max().alias("max_ps"),
        length.quantile(0.5, "linear").alias("p50_ps"),
        length.quantile(0.99, "linear").alias("p99_ps"),
    ]


def finished(table: pl.DataFrame, by: str, most: str, share_of: str = "self_us", kept: Sequence[str] = ()) -> pl.DataFrame:
    """The table in its columns (`results.TABLES`) and those that are `kept`, times in us, most of a time first, with shares of one.

    Of device work both are self time: where ops nest on a line (TPU), a loop would have what it holds once more; elsewhere it is
    the total.
    """
    table = table.with_columns(_microseconds(table[name]) for name in table.columns if name.endswith("_ps"))
    whole = table[share_of].sum() if table.height else 0
    table = table.with_columns(pct=(100 * pl.col(share_of) / whole) if whole else pl.lit(None, pl.Float64))
    missing = [_nothing(name) for name in TABLES[by] if name not in table.columns]
    table = table.with_columns(*missing).select(*TABLES[by], *kept)
    return table.sort([most, "name"], descending=[True, False], maintain_order=True)


def _nothing(name: str) -> pl.Expr:
    """A column that the table does not know: null, but no doubts."""
    kind = _TYPES.get(name, pl.Float64)
    return pl.lit([] if name == "flags" else None, kind).alias(name)


def _microseconds(times: pl.Series) -> pl.Series:
    """Picoseconds as microseconds, rounded once (a frame's own division multiplies by the inverse)."""
    values = times.cast(pl.Float64).to_numpy() / US
    return pl.Series(times.name.removesuffix("_ps") + "_us", values, nan_to_null=True)


_SIZES = tuple(f"{prefix}_{axis}" for prefix in ("grid", "block") for axis in "xyz")


def _shape(rows: pl.DataFrame, prefix: str) -> pl.DataFrame:
    """For each name (code) the most frequent launch dimension, as "x,y,z"; none where no kernel of the name has one."""
    axes = [f"{prefix}_{axis}" for axis in "xyz"]
    counts = rows.select("code", *axes).drop_nulls().group_by("code", *axes).len()
    counts = counts.select("code", "len", pl.concat_str([pl.col(axis).cast(pl.String) for axis in axes], separator=",").alias(prefix))
    return counts.sort(["len", prefix], descending=[True, False]).unique("code", keep="first").select("code", prefix)


def _weighted(column: str) -> pl.Expr:
    """Mean weighted by length, over the kernels that have a value."""
    known = pl.col(column).is_not_null()
    weight = pl.col("length_ps").filter(known)
    return (pl.col(column).filter(known).cast(pl.Float64) * weight).sum() / pl.when(weight.sum() > 0).then(weight.sum())


def _usual(column: str) -> pl.Expr:
    """The most frequent value; null where no row of the name has one."""
    return pl.col(column).drop_nulls().mode().sort().first()


def _most_frequent(rows: pl.DataFrame, column: str) -> pl.DataFrame:
    """`_usual` of each name (code), of all at once."""
    counts = rows.select("code", column).drop_nulls().group_by("code", column).len()
    return counts.sort(["len", column], descending=[True, False]).unique("code", keep="first").select("code", column)


def _longest(rows: pl.DataFrame, column: str, texts: pl.Series | None = None) -> pl.DataFrame:
    """For each name (code) the value of a text column (or row of `texts`) under which most of its time was launched; null where most
    was under none."""
    sums = rows.group_by("code", column).agg(pl.col("length_ps").sum())
    if texts is not None:
        sums = sums.with_columns(texts[sums[column]].alias(column))
    return sums.sort(["length_ps", column], descending=[True, False], nulls_last=True).unique("code", keep="first").select("code", column)


def _common_modules(rows: pl.DataFrame) -> pl.DataFrame:
    """For each name (code) the modules that most of its time was launched in: those of one kind as one, with * where their numbers differ.

    Net_0/Layer_0/Linear_2 and Net_0/Layer_1/Linear_5 are Net_0/Layer_*/Linear_*.
    """
    kinds = rows.select("code", "module_path", "length_ps", kind=pl.col("module_path").str.replace_all(_INSTANCE, "_*"))
    most = _longest(kinds, "kind")
    paths = kinds.join(most, on=["code", "kind"], how="semi", nulls_equal=True).drop_nulls("module_path")
    of_name = paths.group_by("code", maintain_order=True).agg(pl.col("module_path").unique())
    shared = [_shared_path(found) for found in of_name["module_path"].to_list()]
    return of_name.select("code", module_path=pl.Series(shared, dtype=pl.String))


def _shared_path(paths: Sequence[str]) -> str:
    """Paths that differ in numbers of instances alone as one."""
    parts = zip(*(path.split("/") for path in paths), strict=True)
    return "/".join(same[0] if len(set(same)) == 1 else re.sub(_INSTANCE, "_*", same[0]) for same in parts)


def _names_of(profile: Profile, slices: pl.Series) -> pl.Series:
    """Names of slices by id, null for null."""
    return profile.names["text"][profile.slices["name"][slices]]


def _host_category(kind: pl.Expr) -> pl.Expr:
    return kind.replace_strict({int(k): k.name.lower() for k in Kind}, return_dtype=pl.String)


def _memory_row(table: pl.DataFrame, memory: TopMemory) -> pl.DataFrame:
    values = {
        "name": "[memory]",
        "annotation": False,
        "calls": memory.calls,
        "category": "memory",
        "memory_bytes": memory.host_bytes,
        "self_memory_bytes": memory.host_bytes,
        "device_memory_bytes": memory.device_bytes,
        "self_device_memory_bytes": memory.device_bytes,
    }
    parts = ("total", "self", "mean", "min", "max", "p50", "p99", "host", "device", "self_device")
    times = {f"{part}_ps": 0 for part in parts} | {"flops": 0.0}
    row = {**values, **times, "is_backward": False}
    if "shapes" in table.columns:
        row["shapes"] = "[]"
    return pl.DataFrame([row])
