"""Lines of a host plane: threads with annotations, Python frames, runtime calls, steps, and the allocators' events."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm_parsers.profile import HOST_CALL_KINDS, Kind, TrackKind
from roofterm_parsers.xplane.columns import LineStats
from roofterm_parsers.xplane.device_lines import NO_ROW, UNKNOWN, GpuOp, add_event_rows, add_gpu_ops
from roofterm_parsers.xplane.flow_rows import add_flows
from roofterm_parsers.xplane.gather import filled, filled_floats
from roofterm_parsers.xplane.kinds import host_event_kind
from roofterm_parsers.xplane.lines import Line
from roofterm_parsers.xplane.making import Codes, Making, Step, codes, event_name
from roofterm_parsers.xplane.space import Plane
from roofterm_parsers.xplane.wire import I64, U32

_DTYPE_NAMES = (
    "float", "double", "int32", "uint8", "int16", "int8", "string", "complex64", "int64", "bool", "qint8", "quint8", "qint32",
    "bfloat16", "qint16", "quint16", "uint16", "complex128", "half", "resource", "variant", "uint32", "uint64", "float8_e5m2",
    "float8_e4m3fn",
)  # fmt: skip
_DTYPES = dict(enumerate(_DTYPE_NAMES, start=1))
"""Element types by TensorFlow's numbers, in which allocators write them."""


def add_host_line(making: Making, plane: Plane, line: Line, cpu_op: GpuOp) -> None:
    """Add a host thread. `cpu_op` finds the HLO instruction that XLA runs on the host."""
    events = line.events
    stats = LineStats(making.data, plane, events)
    code = codes(events.metadata)
    texts = [event_name(plane, metadata) for metadata in code.ids]
    names = np.array([making.gather.name(text, "") for text in texts], np.uint32)[code.of_event]
    kinds = _kinds(texts, code, stats)
    ids = making.add_track(plane, line, TrackKind.HOST, names, kinds, None, None)
    _add_steps(making, line, stats, ids, texts, code)
    add_event_rows(making, stats, ids)
    correlated = stats.rows("correlation_id")
    if correlated.size:
        correlation = stats.integers("correlation_id", UNKNOWN)[correlated]
        making.gather.add_rows("runtime", {"slice": ids[correlated], "correlation": filled(correlation, UNKNOWN)})
    if stats.has("hlo_op"):
        add_gpu_ops(making, stats, ids, cpu_op)
    else:
        _add_full_names(making, plane, ids, code, cpu_op)
        if correlated.size:
            add_gpu_ops(making, stats, ids, cpu_op, correlated)
    _add_memory(making, line, stats, texts, code)
    add_flows(making, line, stats)


def _kinds(texts: list[str], code: Codes, stats: LineStats) -> NDArray[np.uint8]:
    """By name, and by what the stats say of an event: that it is a launch, a step, an op of TensorFlow or of an XLA program."""
    by_name = np.array([int(host_event_kind(text)) for text in texts], np.uint8)
    kinds = by_name[code.of_event]
    kinds[stats.rows("is_eager")] = Kind.OP
    kinds[stats.rows("hlo_op")] = Kind.OP
    launches = stats.rows("correlation_id")
    known = np.isin(by_name[code.of_event[launches]], HOST_CALL_KINDS)
    kinds[launches] = np.where(known, by_name[code.of_event[launches]], Kind.RUNTIME)
    kinds[stats.rows("step_num")] = Kind.STEP
    return kinds


def _add_full_names(making: Making, plane: Plane, ids: U32, code: Codes, op: GpuOp) -> None:
    """TensorFlow shows an op by its type (`Cast`); the whole name (`layer/add/Cast:Cast`) is kept as the framework's op."""
    rows = np.full(len(code.ids), NO_ROW, np.uint32)
    for i, metadata in enumerate(code.ids):
        found = plane.event_metadata.get(metadata)
        if found is not None and found.display_name and found.name and found.display_name != found.name:
            rows[i] = op(None, "", "", found.name, False, "")
    own = rows[code.of_event]
    named = own != NO_ROW
    if named.any():
        making.gather.add_rows("hlo", {"slice": ids[named], "op": own[named]})


def _add_steps(making: Making, line: Line, stats: LineStats, ids: U32, texts: list[str], code: Codes) -> None:
    numbers = stats.integers("step_num", UNKNOWN)
    base = making.base_ps(line)
    for row in stats.rows("step_num").tolist():
        number = int(numbers[row])
        name = f"{texts[code.of_event[row]]} {number}"
        making.steps.append(Step(None, name, number, int(ids[row]), base + int(line.events.offset_ps[row]), int(line.events.dur_ps[row])))


def _add_memory(making: Making, line: Line, stats: LineStats, texts: list[str], code: Codes) -> None:
    """Rows of `memory` and `allocations`, in pairs: the second frame's `memory` is filled in when all are in order."""
    sign = np.array([{"MemoryAllocation": 1, "MemoryDeallocation": -1}.get(text, 0) for text in texts], np.int64)[code.of_event]
    rows = np.flatnonzero(sign)
    if rows.size == 0:
        return
    size = stats.integers("allocation_bytes", UNKNOWN)[rows]
    device = stats.integers("index_on_host", UNKNOWN)[rows]
    if not stats.has("index_on_host"):
        device = stats.integers("device_ordinal", UNKNOWN)[rows]
    allocator = _texts(stats, "allocator_name", rows)
    making.gather.add_rows(
        "memory",
        {
            "time_ps": line.events.offset_ps[rows] + making.base_ps(line),
            "track": np.full(rows.size, len(making.tracks) - 1, np.uint32),
            "bytes": filled(np.where(size == UNKNOWN, UNKNOWN, size * sign[rows]), UNKNOWN),
            "address": filled(stats.integers("addr", UNKNOWN)[rows], UNKNOWN),
            "allocated_bytes": filled(stats.integers("bytes_allocated", UNKNOWN)[rows], UNKNOWN),
            "reserved_bytes": filled(stats.integers("bytes_reserved", UNKNOWN)[rows], UNKNOWN),
            "device_id": filled(device, UNKNOWN),
        },
    )
    making.gather.add_rows(
        "allocations",
        {
            "memory": np.zeros(rows.size, np.uint32),
            "line_ps": line.events.offset_ps[rows],
            "offset": line.events.at[rows].astype(np.uint64),
            "freed": sign[rows] < 0,
            "allocator": allocator,
            "available_bytes": filled(stats.integers("bytes_available", UNKNOWN)[rows], UNKNOWN),
            "peak_bytes": filled(stats.integers("peak_bytes_in_use", UNKNOWN)[rows], UNKNOWN),
            "requested_bytes": filled(stats.integers("requested_bytes", UNKNOWN)[rows], UNKNOWN),
            "fragmentation": filled_floats(stats.floats("fragmentation")[rows]),
            "framework_op": _texts(stats, "tf_op", rows),
            "region": _texts(stats, "region_type", rows),
            "dtype": pl.Series([_DTYPES.get(number) for number in stats.integers("data_type", 0)[rows].tolist()], dtype=pl.String),
            "shape": _texts(stats, "shape", rows),
        },
    )


def _texts(stats: LineStats, name: str, rows: I64) -> pl.Series:
    """A text stat as a column, null where an event lacks it."""
    own, texts = stats.texts(name)
    return pl.Series([*texts, None], dtype=pl.String).gather(np.where(own[rows] < 0, len(texts), own[rows]))
