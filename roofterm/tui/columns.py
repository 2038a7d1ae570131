"""How the tables of `report.columns` are laid out on a screen: order, width, and what gives way when room is short."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from roofterm.analysis.categories.short import short_name
from roofterm.glossary import find
from roofterm.report import columns as printed
from roofterm.report import explorer_columns as extra
from roofterm.report import ops_columns as ops
from roofterm.report.fields import NAME, SELF, byte_rate, numbers, words, yes_no
from roofterm.report.fields import Column as Field
from roofterm.text.units import bytes_text, count, duration_us, pct, si
from roofterm.tui.stacked import share_bar, step_bar
from roofterm.tui.themes import Palette
from roofterm.tui.widgets.detail import Details, Fact
from roofterm.tui.widgets.glyphs import Look
from roofterm.tui.widgets.line_widget import Piece
from roofterm.tui.widgets.table_layout import Column

if TYPE_CHECKING:
    import polars as pl

_WIDTHS: Mapping[Callable[[Any], str], int] = {duration_us: 9, pct: 6, si: 8, count: 5, bytes_text: 9, byte_rate: 10, yes_no: 3, numbers: 9}
"""cells that texts of a kind need"""

LAST = 99
"""priority of a column in which nothing is known"""


ORIGINS = ("launched_by", "module_path", "launched_from", "op", "source", "tf_op", "shapes")
"""Where a row comes from: what is asked of it first, and so the first of its details."""


@dataclass(frozen=True)
class At:
    """A column's place: its field, and what the screen alone knows of it."""

    field: str
    priority: int
    """what stays when room is short: smaller stays longer; 0 always"""
    width: int = 0
    """cells; 0: what its kind of text needs"""
    tint: str | None = None
    draw: Callable[[Any, int, Palette, Look], Sequence[Piece]] | None = None
    """drawn instead of written, without a title"""
    label: str | None = None
    """title on the screen alone: of what is drawn or marked"""


def named(label: str, shorten: bool = True, width: int = 24, about: str = NAME.about, tint: str | None = None) -> Column:
    """The first column of a table."""
    return Column("name", label, width, short_name if shorten else words, 0, left=True, tint=tint, about=about)


def laid_out(fields: Sequence[Field], first: Column, *places: At) -> tuple[Column, ...]:
    """The first column, then the fields in the order of their places. Raises KeyError for a field that is not there."""
    known = {field.name: field for field in fields}
    return (first, *(_column(known[place.field], place) for place in places))


def _column(field: Field, place: At) -> Column:
    label = place.label if place.label is not None else "" if place.draw else field.label
    width = max(place.width or _WIDTHS.get(field.text, 8), len(label))
    left = not field.right or place.draw is not None
    return Column(field.name, label, width, field.text, place.priority, left, place.tint, field.about, place.draw, _title(field, label))


def _title(field: Field, label: str) -> str:
    """A column's label in details: whole, and a share says of what."""
    if field.title == "%":
        of_what = field.about.partition(",")[0].replace("this table's ", "")
        return f"% {of_what}" if of_what.startswith("of ") else "change %"
    if label.startswith("% "):
        return f"% of {label.removeprefix('% ')}"
    return max(label, field.title, key=len) if label else ""  # some say more in few words than in a table's title


_OF = {by: (*columns, *extra.MORE_COLUMNS.get(by, ())) for by, columns in ops.TABLE_COLUMNS.items()}
_SHARE_BAR = At("pct", 8, 12, draw=share_bar)
_CATEGORY = At("category", 2, 13, tint="category")
_ROOF = At("pct_of_roof", 1, tint="share")
_BOUND = At("limit", 1, 8)

TABLES: Mapping[str, Sequence[Column]] = {
    "kernel": laid_out(
        _OF["kernel"], named("kernel"), _CATEGORY, At("calls", 2, 8), At("total_us", 0), At("pct", 1), _SHARE_BAR, At("mean_us", 3),
        At("max_us", 4), _ROOF, _BOUND, At("dtype", 4, 5), At("tensor_core", 5), At("launched_by", 6, 26), At("module_path", 7, 26),
        At("launched_from", 7, 26), At("min_us", 6),
        At("p50_us", 5), At("p99_us", 5), At("flops", 6), At("bytes", 6), At("occupancy_pct", 7), At("waves", 7), At("tail_pct", 7),
        At("grid", 7, 13), At("block", 7, 9), At("registers", 7), At("shared_bytes", 7), At("limited_by", 7, 13), At("evidence", 8, 7),
        At("stream_ids", 7), At("flags", 8, 20),
    ),
    "launch": laid_out(
        _OF["launch"], named("kernel"), At("calls", 2, 8), At("total_us", 0), At("pct", 1), At("mean_us", 3), At("min_us", 4),
        At("max_us", 4), At("grid", 1, 13), At("block", 1, 9), At("registers", 2, 5), At("shared_bytes", 5), At("occupancy_pct", 2),
        At("tf_op", 3, 30), At("tensor_core", 5), At("dtype", 6, 5), _ROOF, _BOUND, _CATEGORY, At("p50_us", 7), At("p99_us", 7),
        At("flops", 7), At("bytes", 7), At("flags", 8, 20),
    ),
    "framework": laid_out(
        _OF["framework"], named("framework op", shorten=False, about="as its framework names it"), At("side", 0, 6),
        At("op_type", 2, 18), At("calls", 2, 8), At("self_us", 0), At("pct", 1), At("total_us", 3), At("mean_us", 4), _ROOF, _BOUND,
        _CATEGORY, At("dtype", 6, 5), At("flops", 6), At("bytes", 6), At("flags", 8, 20),
    ),
    "op": laid_out(
        _OF["op"], named("host op", shorten=False), At("calls", 2, 8), At("self_us", 0), At("pct", 1), At("total_us", 1), At("mean_us", 3),
        At("self_device_us", 1), At("device_us", 2), At("flops", 6), At("shapes", 6, 26), At("stack", 6, 36),
        At("module_path", 6, 30), At("device_memory_bytes", 6, 10),
        At("self_device_memory_bytes", 7, 10), At("memory_bytes", 6, 10), At("self_memory_bytes", 7, 10), At("min_us", 6),
        At("max_us", 4), At("p50_us", 5), At("p99_us", 5), _CATEGORY,
    ),
    "category": laid_out(
        _OF["category"], named("category", shorten=False, about="what the work computes", tint="category"), At("calls", 2, 8),
        At("total_us", 0), At("pct", 1), replace(_SHARE_BAR, priority=2), At("mean_us", 3), At("min_us", 6), At("max_us", 4),
        At("p50_us", 5), At("p99_us", 5), At("flops", 6), At("bytes", 6), _ROOF,
    ),
    "module": laid_out(
        _OF["module"], named("module", shorten=False, about="module of the model, the innermost around the launch"), At("calls", 2, 8),
        At("total_us", 0), At("pct", 1), _SHARE_BAR, At("mean_us", 3), _CATEGORY, _ROOF, _BOUND, At("dtype", 5, 5),
        At("module_path", 4, 30), At("flops", 6), At("bytes", 6), At("max_us", 6), At("p50_us", 7), At("p99_us", 7), At("flags", 8, 20),
    ),
    "hlo": laid_out(
        _OF["hlo"], named("HLO instruction", shorten=False, about="as compiled"), At("hlo_category", 2, 16), At("calls", 3, 8),
        At("total_us", 0), At("pct", 1), _SHARE_BAR, At("self_us", 5), At("mean_us", 4), _ROOF, _BOUND, At("dtype", 5, 5),
        At("tf_op", 4, 30), At("source", 5, 24), At("flops", 6), At("bytes", 6), At("program", 6, 20), At("max_us", 7),
        At("long_name", 8, 40), At("operands", 9, 30), At("users", 9, 30), At("flags", 8, 20),
    ),
    "op_profile": laid_out(
        printed.OP_PROFILE_COLUMNS, named("op profile", shorten=False, about="program, category or instruction"), At("total_us", 0),
        At("pct", 0), At("wasted_us", 1), At("flops_pct", 1, tint="share"), At("hbm_pct", 1, tint="share"), At("calls", 3, 8),
        At("mean_us", 3), At("hlo_category", 5, 20), At("long_name", 6, 60),
    ),
    "collective": laid_out(
        _OF["collective"], named("collective", shorten=False, width=20, about="as the file or its kernel names it"), At("group", 4, 12),
        At("group_size", 3), At("message_bytes", 1), At("calls", 2, 8), At("total_us", 0), At("pct", 1), At("mean_us", 3),
        At("exposed_us", 1), At("bus_bw", 2), At("pct_of_link", 2), At("wait_us", 3), At("transfer_us", 4), At("algo_bw", 6),
        At("hidden_us", 6), At("library", 7, 8), At("note", 7, 20),
    ),
    "gap": laid_out(
        _OF["gap"], named("meanwhile on the host", shorten=False, about="what the launching thread did for most of the gap"),
        At("total_us", 0), At("pct", 1), At("category", 1, 11), At("start_us", 2), At("after", 3, 24), At("before", 4, 24),
        At("step", 4, 16), At("device", 5), At("host_wait_us", 6), At("kernel_gap_us", 6), At("thread", 7, 20),
    ),
    "counter": laid_out(
        _OF["counter"], named("counter", shorten=False, about="as in the file"), At("value_mean", 0), At("value_min", 2),
        At("value_max", 1),
        At("value_last", 2), At("value_sum", 4), At("calls", 3, 8), At("counted_for", 1, 24),
    ),
    "iteration": laid_out(
        _OF["iteration"], named("iteration", shorten=False, about="iterations of the same name, numbers left out"), At("phase", 2, 8),
        At("calls", 2, 8), At("total_us", 0), At("pct", 1), At("mean_us", 3), At("p99_us", 5), At("tokens_per_s", 1),
        At("inter_token_p50_us", 3), At("inter_token_p99_us", 3), At("compute_us", 3), At("exposed_comm_us", 4), At("idle_us", 3),
        At("prompt_tokens", 5), At("generated_tokens", 5), At("context_tokens", 5), At("launches", 5), _ROOF, _BOUND, At("flops", 6),
        At("bytes", 6),
    ),
    "roofline": laid_out(
        (*printed.ROOFLINE_COLUMNS, *extra.MORE_COLUMNS["roofline"]), named("op"), _CATEGORY, At("shapes", 4, 26), At("calls", 4, 8),
        At("time_us", 0), At("intensity", 1), At("flops_per_s", 2), At("bytes_per_s", 3), _ROOF, At("limit", 1, 9), At("headroom_us", 3),
        At("time_bound_us", 6), At("dtype", 4, 5), At("flops", 6), At("bytes", 6), At("pct_of_peak_flops", 6), At("pct_of_peak_bw", 6),
        At("flops_from", 7, 6), At("op", 7, 20), At("flags", 7, 20),
    ),
    "step": laid_out(
        (*printed.STEP_COLUMNS, *extra.MORE_COLUMNS["step"]), named("step", shorten=False, width=18), At("rank", 0, 5),
        At("mark", 0, 10, tint="warn"), At("parts", 3, 28, draw=step_bar, label="where it goes"), At("dur_us", 0), At("host_dur_us", 4),
        At("compute_us", 1), At("exposed_comm_us", 1), At("exposed_copy_us", 3), At("idle_us", 1), At("busy_pct", 2),
        At("host_wait_us", 5), At("kernel_gap_us", 5), At("comm_us", 5), At("launches", 4), At("mfu_pct", 4), At("tensor_core_pct", 6),
        At("sm_efficiency_pct", 6), At("host_busy_pct", 6), At("start_us", 6),
    ),
    "findings": laid_out(
        extra.FINDING_COLUMNS, named("finding", shorten=False, about="what is wrong, in one line"), At("severity", 2, 8, tint="severity"),
        At("time_at_stake_us", 0), At("share_of_step_pct", 1),
    ),
    "ranks": laid_out(
        (*printed.RANK_COLUMNS, *extra.MORE_COLUMNS["ranks"]), named("rank", shorten=False, about="process of a job"),
        At("mark", 0, 4, tint="bad"), At("step_us", 0), At("compute_us", 0), At("exposed_comm_us", 1), At("exposed_wait_us", 2),
        At("exposed_transfer_us", 3), At("kept_waiting_us", 0), At("last_pct", 3), At("idle_us", 1), At("host_wait_us", 3),
        At("busy_pct", 2), At("wait_us", 4), At("transfer_us", 4), At("exposed_copy_us", 6), At("launches", 5), At("slowest_us", 5),
        At("steps", 6), At("devices", 7), At("host", 6, 16),
    ),
    "groups": laid_out(
        printed.RANK_GROUP_COLUMNS, named("group", shorten=False, about="description or name of the process group"), At("role", 3, 8),
        At("members", 2, 12), At("seen_of", 4, 7), At("calls", 1, 6), At("uneven", 1, 10, tint="bad"), At("total_us", 0), At("wait_us", 0),
        At("transfer_us", 1), At("bus_bw", 0), At("message_bytes", 3), At("matched_pct", 4, 7),
    ),
    "memory_op": laid_out(
        extra.MEMORY_COLUMNS["memory_op"], named("op", shorten=False, about="innermost op around the allocation"), At("peak_bytes", 0),
        At("allocated_bytes", 0), At("freed_bytes", 1), At("allocations", 2),
    ),
    "memory_block": laid_out(
        extra.MEMORY_COLUMNS["memory_block"], named("op", shorten=False, about="innermost op around the allocation"), At("held_bytes", 0),
        At("pct", 1), At("blocks", 1, 6), At("bytes", 3), At("dtype", 2, 8), At("shape", 1, 16), At("requested_bytes", 5),
        At("region", 5, 12), At("allocated_us", 3),
    ),
    "memory_pool": laid_out(
        extra.MEMORY_COLUMNS["memory_pool"], named("allocator", shorten=False, width=14, about="one a device and one of the host"),
        At("rank", 4), At("peak_bytes", 0), At("peak_pct", 1, tint="share"), At("capacity_bytes", 3), At("reserved_peak_bytes", 2),
        At("fragmentation_pct", 2), At("free_at_peak_bytes", 4), At("stack_bytes", 5), At("lifetime_peak_bytes", 5),
        At("last_bytes", 1), At("peak_us", 3), At("peak_op", 4, 24), At("peak_step", 5, 16), At("first_bytes", 5),
        At("held_before_bytes", 5), At("allocations", 6), At("frees", 6), At("failed", 6),
    ),
    "memory_step": laid_out(
        extra.MEMORY_COLUMNS["memory_step"], named("step", shorten=False, width=18), At("peak_bytes", 0), At("last_bytes", 0),
        At("allocated_bytes", 1), At("freed_bytes", 1), At("allocations", 2),
    ),
    "memory_pressure": laid_out(
        extra.MEMORY_COLUMNS["memory_pressure"], named("call to the driver", shorten=False, about="it may wait for the device"),
        At("total_us", 0), At("calls", 0), At("us_per_step", 1), At("calls_per_step", 1),
    ),
    "figures": laid_out(
        printed.CHANGE_COLUMNS, named("figure", shorten=False, about="as the JSON names it"), At("base", 1, 9), At("new", 0, 9),
        At("change", 0, 10), At("change_pct", 0, 7), At("status", 2, 8), At("spread", 3, 9),
    ),
    "changes": laid_out(
        extra.TIME_CHANGE_COLUMNS, named("name"), At("change", 0, 10), At("change_pct", 0, 8, tint="rise"), At("base", 1), At("new", 1),
        At("status", 2, 8), At("base_calls", 3, 7), At("new_calls", 3, 7), At("base_mean_us", 4), At("new_mean_us", 4), At("spread", 5),
        At("limiter", 4, 16),
    ),
    "device": laid_out(
        extra.ROOF_COLUMNS, named("roof", shorten=False, width=20, about="type of arithmetic, or level of memory"), At("kind", 1, 7),
        At("value", 0, 13), At("ridge", 1, 13), At("source", 2, 8),
    ),
}  # fmt: skip
"""Columns of each table, in the order in which they stand."""

_OWN = _column(replace(SELF, about="outside of what is nested in it"), At("self_us", 0))
"""First of a table some of whose rows lie inside others (a TPU's loops)."""

NOUNS = {
    "kernel": "kernels",
    "launch": "launches of kernels",
    "framework": "framework ops",
    "op": "host ops",
    "category": "categories",
    "module": "modules",
    "hlo": "HLO instructions",
    "collective": "collectives",
    "gap": "gaps",
    "iteration": "iterations",
    "counter": "counters",
    "roofline": "points",
    "step": "steps",
    "findings": "findings",
    "ranks": "ranks",
    "groups": "groups of collectives",
    "figures": "figures",
    "changes": "changes",
    "memory_op": "ops that allocate",
    "memory_pool": "allocators",
    "memory_block": "blocks held at the peak",
    "memory_step": "steps",
    "memory_pressure": "calls to the driver",
    "device": "roofs",
}


def known_first(columns: Sequence[Column], frame: pl.DataFrame) -> list[Column]:
    """The columns, those without a single known value giving way before all others."""
    empty = {name for name in frame.columns if frame.height and frame[name].null_count() == frame.height}
    return [replace(c, priority=LAST) if c.key in empty and c.priority else c for c in columns]


_SINGULARS = {
    "categories": "category",
    "launches of kernels": "launch of a kernel",
    "groups of collectives": "group of collectives",
    "ops that allocate": "op that allocates",
    "blocks held at the peak": "block held at the peak",
    "calls to the driver": "call to the driver",
}


def counted(number: int, noun: str) -> str:
    """A number of rows, with the noun in its number."""
    return f"{count(number)} {noun if number != 1 else _SINGULARS.get(noun, noun.removesuffix('s'))}"


_AGAINST_UNITS = {"roofline": "pct", "memory_op": "bytes", "memory_pool": "bytes", "memory_step": "bytes"}
"""Unit of the figure that a table holds against the baseline's, where that is no time."""


def against_columns(table: str) -> tuple[Column, ...]:
    """Columns that hold a table against a baseline."""
    texts = extra.AGAINST_TEXTS.get(_AGAINST_UNITS.get(table, ""), {})
    fields = [replace(field, text=texts.get(field.name, field.text)) for field in extra.AGAINST_COLUMNS]
    places = (At("change", 0, 10), At("change_pct", 1, 8, tint=None if table == "roofline" else "rise"), At("base", 3, 9))
    return laid_out(fields, named(""), *places)[1:]


def columns_of(table: str, frame: pl.DataFrame) -> list[Column]:
    """The columns of a table for the frame that it shows: held against a baseline if the frame is, what is unknown giving way first."""
    columns = TABLES[table]
    if table in ops.NESTING and not (frame["self_us"] == frame["total_us"]).all():
        columns = (
            columns[0],
            _OWN,
            *(replace(c, priority=max(c.priority, 2)) if c.key == "total_us" else c for c in columns[1:] if c.key != "self_us"),
        )
    if "base" in frame.columns and table not in ("figures", "changes"):
        columns = (columns[0], *against_columns(table), *columns[1:])
    apart = _APART.get(table)
    if apart and frame[apart].n_unique() <= 1:
        columns = [column for column in columns if column.key != apart]
    return known_first(columns, frame)


_APART = {"step": "rank"}
"""Column of a table that tells rows of one name apart, and says nothing where it is the same in all."""


def definition(name: str) -> str:
    """A figure's definition from the glossary, with its source; empty if it has none."""
    entry = find(name)
    return "" if entry is None else f"{entry.text} [{entry.source}]" if entry.source else entry.text


def row_details(table: str, row: Mapping[str, Any], extra: Sequence[Fact] = ()) -> Details:
    """Everything that a row of a table says, unknown figures left out."""
    columns = sorted(TABLES[table][1:], key=lambda column: column.key not in ORIGINS)
    if "base" in row and table not in ("figures", "changes"):
        columns = [*columns, *against_columns(table)]
    facts = [
        Fact(column.title or column.label or "note", column.show(row[column.key]), definition(column.key) or column.about)
        for column in columns
        if column.draw is None and row.get(column.key) not in (None, "", [])
    ]
    unknown = [column.title or column.label for column in columns if column.label and row.get(column.key, "") is None]
    if unknown:
        facts.append(Fact("unknown", ", ".join(unknown), "the profile does not tell"))
    return Details(str(row["name"]), [*facts, *extra])
