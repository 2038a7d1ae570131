"""What has a time but no length: instants, memory events, arrows, counters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm_parsers.chrome.axis import Axis
from roofterm_parsers.chrome.codes import Columns
from roofterm_parsers.chrome.context import Context
from roofterm_parsers.chrome.events import NULL
from roofterm_parsers.chrome.frames import nullable, table
from roofterm_parsers.chrome.gathering import Gathered
from roofterm_parsers.chrome.groups import FLOW_START, Group
from roofterm_parsers.chrome.kinds import pair_names
from roofterm_parsers.chrome.tracks import Tracks
from roofterm_parsers.profile import COUNTERS, FLOWS, INSTANTS, MEMORY, NAMES

I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]

MARKS, ARROWS = "marks", "arrows"
OUT_OF_MEMORY = "[OutOfMemory]"
_MEMORY_NAMES = ("[memory]", OUT_OF_MEMORY)


def _columns(gathered: Gathered) -> tuple[Columns | None, Columns | None, Columns | None]:
    """Marks, arrows and counters as columns, joined once and kept."""
    if gathered.joined is None:
        marks = gathered.marks.join() if gathered.marks.rows else None
        gathered.joined = (marks, _joined(gathered, Group.FLOW), _joined(gathered, Group.COUNTER))
    return gathered.joined


def _joined(gathered: Gathered, group: Group) -> Columns | None:
    table = gathered.table(group)
    return None if table is None else table.join()


def times(gathered: Gathered) -> tuple[I64, NDArray[np.int32]] | None:
    """Times (µs, ps) of all marks and counters; None if there is none. An arrow alone is nothing to show."""
    marks, _, counters = _columns(gathered)
    held = [columns for columns in (marks, counters) if columns is not None]
    if not held:
        return None
    return np.concatenate([c["us"] for c in held]), np.concatenate([c["ps"] for c in held])


def seen(gathered: Gathered, axis: Axis) -> Iterator[tuple[U32, I64]]:
    """Lanes and times at which something was marked on a thread."""
    for columns in _columns(gathered)[:2]:
        if columns is not None:
            yield columns["lane"], axis.place(columns["us"], columns["ps"])


def place(gathered: Gathered, tracks: Tracks) -> dict[str, U32]:
    """Track of each mark and arrow."""
    marks, arrows, _ = _columns(gathered)
    return {what: tracks.of_marks(columns["lane"]) for what, columns in ((MARKS, marks), (ARROWS, arrows)) if columns is not None}


def fill(context: Context, track: dict[str, U32]) -> None:
    """Fill instants, memory, flows and counters of the profile."""
    marks, arrows, counters = _columns(context.gathered)
    if marks is not None:
        _fill_marks(context, marks, track[MARKS])
    if arrows is not None:
        _fill_arrows(context, arrows, track[ARROWS])
    if counters is not None:
        _fill_counters(context, counters)


def _fill_marks(context: Context, marks: Columns, track: U32) -> None:
    time = context.axis.place(marks["us"], marks["ps"])
    memory = _joined(context.gathered, Group.MEMORY)
    names = list(context.gathered.names)
    plain = np.ones(time.size, bool)
    if memory is not None:
        of_memory = np.isin(marks["name"], [code for code, text in enumerate(names) if text in _MEMORY_NAMES])
        held = (memory["bytes"] != NULL) & of_memory[memory["row"]]
        rows = memory["row"][held]
        plain[rows] = False
        rows_order = np.argsort(time[rows], kind="stable")
        rows = rows[rows_order]
        values = {key: value[held][rows_order] for key, value in memory.items()}
        out = marks["name"][rows] == (names.index(OUT_OF_MEMORY) if OUT_OF_MEMORY in names else -1)
        context.profile.memory = table(
            MEMORY,
            {
                "time_ps": time[rows],
                "track": track[rows],
                "bytes": nullable(values["bytes"]),
                "address": nullable(values["address"]),
                "allocated_bytes": nullable(values["allocated"]),
                "reserved_bytes": nullable(values["reserved"]),
                "device_type": _narrow(values["device_type"]),
                "device_id": _narrow(values["device_id"]),
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


def _fill_arrows(context: Context, arrows: Columns, track: U32) -> None:
    ids = pl.Series(arrows["id"]).cast(pl.String)
    spelled = arrows["id_text"]
    if spelled.any():
        texts = pl.Series([text.decode("utf-8", "replace") for text in context.gathered.texts], dtype=pl.String)
        written = texts.gather(spelled)
        ids = pl.select(pl.when(pl.lit(pl.Series(spelled != 0))).then(pl.lit(written)).otherwise(pl.lit(ids))).to_series()
    categories = pl.Series([category for _, category, _, _ in context.lanes], dtype=pl.String)
    context.profile.flows = table(
        FLOWS,
        {
            "id": ids,
            "cat": categories.gather(arrows["lane"]),
            "phase": arrows["what"].astype(np.uint8) - np.uint8(FLOW_START),
            "time_ps": context.axis.place(arrows["us"], arrows["ps"]),
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
