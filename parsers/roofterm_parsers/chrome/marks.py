"""What has a time but no length: instants, memory events, arrows, counters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm_parsers.allocator import give_back
from roofterm_parsers.chrome.axis import Axis
from roofterm_parsers.chrome.codes import Columns
from roofterm_parsers.chrome.context import Context
from roofterm_parsers.chrome.events import NULL
from roofterm_parsers.chrome.frames import LARGE_ROWS, nullable, table
from roofterm_parsers.chrome.gathering import Gathered
from roofterm_parsers.chrome.groups import FLOW_START, Group
from roofterm_parsers.chrome.kinds import pair_names
from roofterm_parsers.chrome.store import Table
from roofterm_parsers.chrome.tracks import Tracks
from roofterm_parsers.profile import COUNTERS, FLOWS, INSTANTS, MEMORY, NAMES

I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]

MARKS, ARROWS = "marks", "arrows"
OUT_OF_MEMORY = "[OutOfMemory]"
_MEMORY_NAMES = ("[memory]", OUT_OF_MEMORY)


def _tables(gathered: Gathered) -> tuple[Table, Table, Table]:
    """Marks, arrows and counters as they were gathered: narrow, and joined only when they are needed."""
    return gathered.marks, gathered.groups.get(Group.FLOW, Table()), gathered.groups.get(Group.COUNTER, Table())


def times(gathered: Gathered) -> tuple[I64, NDArray[np.int32]] | None:
    """Times (µs, ps) of all marks and counters; None if there is none. An arrow alone is nothing to show."""
    marks, _, counters = _tables(gathered)
    held = [part for part in (marks, counters) if part.rows]
    if not held:
        return None
    return np.concatenate([part.copy("us") for part in held]), np.concatenate([part.copy("ps") for part in held])


def seen(gathered: Gathered, axis: Axis) -> Iterator[tuple[U32, I64]]:
    """Lanes and times at which something was marked on a thread."""
    for held in _tables(gathered)[:2]:
        if held.rows:
            yield held.copy("lane"), axis.place(held.copy("us"), held.copy("ps"))


def place(gathered: Gathered, tracks: Tracks) -> dict[str, U32]:
    """Track of each mark and arrow."""
    marks, arrows, _ = _tables(gathered)
    return {what: tracks.of_marks(held.copy("lane")) for what, held in ((MARKS, marks), (ARROWS, arrows)) if held.rows}


def fill(context: Context, track: dict[str, U32]) -> None:
    """Fill instants, memory, flows and counters of the profile."""
    marks, arrows, counters = _tables(context.gathered)
    if marks.rows:
        _fill_marks(context, marks.join(), track.pop(MARKS))
    if marks.rows > LARGE_ROWS:
        give_back()
    if arrows.rows:
        _fill_arrows(context, arrows, track.pop(ARROWS))
    if arrows.rows > LARGE_ROWS:
        give_back()
    if counters.rows:
        _fill_counters(context, counters.join())


def _fill_marks(context: Context, marks: Columns, track: U32) -> None:
    time = context.axis.place(marks["us"], marks["ps"])
    held_memory = context.gathered.table(Group.MEMORY)
    memory = None if held_memory is None else held_memory.join()
    names = list(context.gathered.names)
    plain = np.ones(time.size, bool)
    if memory is not None:
        of_memory = np.isin(marks["name"], [code for code, text in enumerate(names) if text in _MEMORY_NAMES])
        held = (memory["bytes"] != NULL) & of_memory[memory["row"]]
        rows = memory["row"][held]
        plain[rows] = False
        in_time = np.flatnonzero(held)[np.argsort(time[rows], kind="stable")]
        rows = memory["row"][in_time]
        out = marks["name"][rows] == (names.index(OUT_OF_MEMORY) if OUT_OF_MEMORY in names else -1)
        context.profile.memory = table(
            MEMORY,
            {
                "time_ps": time[rows],
                "track": track[rows],
                "bytes": nullable(memory.pop("bytes")[in_time]),
                "address": nullable(memory.pop("address")[in_time]),
                "allocated_bytes": nullable(memory.pop("allocated")[in_time]),
                "reserved_bytes": nullable(memory.pop("reserved")[in_time]),
                "device_type": _narrow(memory.pop("device_type")[in_time]),
                "device_id": _narrow(memory.pop("device_id")[in_time]),
                "out_of_memory": out,
            },
        )
    rows = np.flatnonzero(plain)
    if rows.size:
        rows = rows[np.argsort(time[rows], kind="stable")]
        context.profile.instants = table(
            INSTANTS, {"time_ps": time[rows], "track": track[rows], "name": _names(context, marks["name"][rows], marks["lane"][rows])}
        )


def _narrow(values: I64) -> pl.Series:
    missing = (values < -(1 << 31)) | (values >= 1 << 31)
    return nullable(np.where(missing, 0, values), missing)


def _names(context: Context, name: U32, lane: U32) -> U32:
    """Rows of `names` for marks; pairs that no slice has are added behind."""
    named = pair_names(name, lane, list(context.gathered.names), context.lanes)
    known = {pair: row for row, pair in enumerate(context.profile.names.iter_rows())}
    rows = [known.setdefault(pair, len(known)) for pair in zip(named.texts, named.categories, strict=True)]
    if len(known) > context.profile.names.height:
        texts, categories = zip(*known, strict=True)
        context.profile.names = pl.DataFrame({"text": texts, "cat": categories}, schema=NAMES)
    return np.array(rows, np.uint32)[named.of_slice]


def _fill_arrows(context: Context, arrows: Table, track: U32) -> None:
    time = pl.Series(context.axis.place(arrows.column("us"), arrows.column("ps")))
    ids = pl.Series(arrows.column("id")).cast(pl.String)
    spelled = arrows.column("id_text")
    if spelled.any():
        texts = pl.Series([text.decode("utf-8", "replace") for text in context.gathered.texts], dtype=pl.String)
        written = texts.gather(spelled)
        ids = pl.select(pl.when(pl.lit(pl.Series(spelled != 0))).then(pl.lit(written)).otherwise(pl.lit(ids))).to_series()
    del spelled
    categories = pl.Series([category for _, category, _, _ in context.lanes], dtype=pl.String)
    context.profile.flows = table(
        FLOWS,
        {
            "id": ids,
            "cat": categories.gather(arrows.column("lane")),
            "phase": arrows.column("what").astype(np.uint8) - np.uint8(FLOW_START),
            "time_ps": time,
            "track": track,
        },
    )


def _fill_counters(context: Context, counters: Columns) -> None:
    texts = pl.Series([text.decode("utf-8", "replace") for text in context.gathered.texts], dtype=pl.String)
    processes = pl.Series([str(pid) for _, _, pid, _ in context.lanes], dtype=pl.String)
    time = context.axis.place(counters["us"], counters["ps"])
    order = np.argsort(time, kind="stable")
    context.profile.counters = table(
        COUNTERS,
        {
            "time_ps": time[order],
            "source": np.zeros(order.size, np.uint16),
            "process": processes.gather(counters["lane"][order]),
            "series": texts.gather(counters["series"][order]),
            "value": counters["value"][order],
        },
    )
