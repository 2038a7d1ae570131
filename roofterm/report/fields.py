"""What a column of a table is for people: title, text of a value, meaning. Printed tables and the explorer both derive from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from roofterm.text.safe import safe_text
from roofterm.text.units import UNKNOWN, bytes_text, count, duration_us, figures, pct, si

_TO_PACKAGES = re.compile(r"[^;]*/site-packages/")


@dataclass(frozen=True)
class Column:
    name: str
    title: str
    text: Callable[[Any], str]
    right: bool = True
    least: int = 0
    """narrowest width in cells"""
    needs_value: bool = False
    """left out where every row has 0, as where it is unknown"""
    short: str = ""
    """title where room is short; empty: the same"""
    about: str = ""
    """what the figure means in this table, in one line; its definition is the glossary's"""

    @property
    def label(self) -> str:
        return self.short or self.title


def words(value: Any) -> str:
    """Text out of a file, made safe."""
    return UNKNOWN if value is None else safe_text(str(value))


def yes_no(value: bool | None) -> str:
    return UNKNOWN if value is None else "yes" if value else "no"


def numbers(value: list[int] | None) -> str:
    """Up to four numbers of a list."""
    if value is None or len(value) == 0:
        return UNKNOWN
    shown = ",".join(map(str, list(value)[:4]))
    return shown if len(value) <= 4 else f"{shown},+{len(value) - 4}"


def sentences(value: list[str] | None) -> str:
    """What is said of a row, one after the other."""
    return UNKNOWN if value is None else safe_text("; ".join(value))


def call_stack(value: str | None) -> str:
    """Python frames, the innermost first, those of packages without the way to them."""
    return UNKNOWN if value is None else safe_text(_TO_PACKAGES.sub("", value).replace(";", " < "))


def amount(value: float | None) -> str:
    return UNKNOWN if value is None else figures(value)


def byte_rate(value: float | None) -> str:
    return si(value, "B/s")


def rise(value: float | None) -> str:
    """A change in percent, with its sign."""
    return UNKNOWN if value is None else ("+" if value > 0 else "") + pct(value)


def time_rise(value: float | None) -> str:
    """A change of a time (us), with its sign."""
    return ("+" if value is not None and value > 0 else "") + duration_us(value)


def byte_rise(value: float | None) -> str:
    """A change of a size, with its sign."""
    return ("+" if value is not None and value > 0 else "") + bytes_text(value)


def intensity_text(value: float | None) -> str:
    return UNKNOWN if value is None else si(value) if value >= 1000 else figures(value)


NAME = Column("name", "name", words, right=False, least=20, about="as in the file")
SHORT = Column("short_name", "name", words, right=False, least=20)
CATEGORY = Column("category", "category", words, right=False, about="what it computes, by its launching op and its name")
CALLS = Column("calls", "calls", count, about="how often it ran")
TOTAL = Column("total_us", "total", duration_us, about="sum over all calls")
SELF = Column("self_us", "self", duration_us)
MEAN = Column("mean_us", "mean", duration_us, about="total by calls")
MIN = Column("min_us", "min", duration_us, about="the shortest call")
MAX = Column("max_us", "max", duration_us, about="the longest call")
P50 = Column("p50_us", "p50", duration_us, about="half of the calls are shorter")
P99 = Column("p99_us", "p99", duration_us, about="99 of 100 calls are shorter")
SHARE = Column("pct", "%", pct, about="of this table's total")
DEVICE = Column(
    "device_us",
    "device",
    duration_us,
    needs_value=True,
    about="device time of the work that it and its children launched",
)
SELF_DEVICE = Column(
    "self_device_us",
    "self device",
    duration_us,
    needs_value=True,
    short="self dev",
    about="device time of the work that it launched itself",
)
FLOPS = Column("flops", "FLOPs", si, needs_value=True, about="executed operations, 2 per multiply-add, over all calls")
BYTES = Column("bytes", "bytes", bytes_text, about="compulsory traffic: each operand and result once")
DTYPE = Column("dtype", "dtype", words, right=False, about="type of the arithmetic")
BOUND = Column(
    "limit",
    "bound by",
    words,
    right=False,
    short="bound",
    about="the resource used most; with ? if even that one is used by less than 60 %: then latency limits",
)
ROOF = Column("pct_of_roof", "% of roof", pct, short="% roof", about="of what the roofs allow; above 100 % something in the model is wrong")
STREAMS = Column("stream_ids", "streams", numbers, about="streams on which it ran")
GRID = Column("grid", "grid", words, about="blocks, most frequent")
BLOCK = Column("block", "block", words, about="threads of a block, most frequent")
OCCUPANCY = Column(
    "occupancy_pct",
    "occupancy",
    pct,
    short="occup.",
    about="estimated achieved occupancy, as the file states it; weighted by time",
)
WAVES = Column("waves", "waves", amount, about="blocks by what the device holds at once; weighted by time")
TAIL = Column("tail_pct", "tail", pct, about="of the last wave, what stays empty; weighted by time")
TENSOR = Column("tensor_core", "tensor", yes_no, about="runs on tensor or matrix units, as far as its name tells")
LAUNCHER = Column("launched_by", "launched by", words, right=False, about="the op under which most of its time was launched")
LAUNCHED_FROM = Column(
    "launched_from", "line", words, right=False, about="the line of own Python around most of its launches, or around their forward op"
)
REGISTERS = Column("registers", "registers", count, short="regs", about="registers of a thread, most frequent")
SHARED = Column("shared_bytes", "shared memory", bytes_text, short="shared", about="shared memory of a block, most frequent")
LIMITED = Column("limited_by", "limited by", words, right=False, short="limited", about="what keeps a further block from a unit")
EVIDENCE = Column(
    "evidence", "told by", words, right=False, about="what category and type rest on: the op, a collective's arguments, the name"
)
SHAPES = Column("shapes", "shapes", words, right=False, about="input shapes")
MEMORY = Column("memory_bytes", "memory", bytes_text, needs_value=True, about="allocated less freed, with its children")
SELF_MEMORY = Column(
    "self_memory_bytes", "self memory", bytes_text, needs_value=True, short="self mem", about="allocated less freed by itself"
)


DEVICE_MEMORY = Column(
    "device_memory_bytes",
    "device memory",
    bytes_text,
    needs_value=True,
    short="dev mem",
    about="allocated less freed on devices, with its children",
)
SELF_DEVICE_MEMORY = Column(
    "self_device_memory_bytes",
    "self device memory",
    bytes_text,
    needs_value=True,
    short="self dmem",
    about="allocated less freed on devices by itself",
)
FLAGS = Column("flags", "flags", sentences, right=False, needs_value=True, about="doubts about this row")
STACK = Column("stack", "called from", call_stack, right=False, about="the Python frames around it, the innermost first")
MODULE = Column("module_path", "inside", words, right=False, about="the modules around it, from the outermost")


def shown(columns: Sequence[Column], records: Sequence[dict[str, Any]]) -> list[Column]:
    """The columns that say something about these rows."""
    return [c for c in columns if not records or any(_says(c, record.get(c.name)) for record in records)]


def _says(column: Column, value: Any) -> bool:
    return value is not None and not (column.needs_value and not value)
