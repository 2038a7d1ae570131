"""Lines of a device plane: TPU op lines with their HLO instructions, GPU streams with launches and copies, steps, counters."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm_parsers.profile import Kind
from roofterm_parsers.xplane.columns import NONE, LineStats
from roofterm_parsers.xplane.details import copy_of, launch_of
from roofterm_parsers.xplane.flow_rows import add_flows
from roofterm_parsers.xplane.gather import filled, filled_floats
from roofterm_parsers.xplane.hlo_rows import metadata_row
from roofterm_parsers.xplane.kinds import device_line_kind, stream_event_kind, stream_of, track_kind
from roofterm_parsers.xplane.lines import Line
from roofterm_parsers.xplane.making import Codes, Making, Step, codes, event_name
from roofterm_parsers.xplane.space import Plane
from roofterm_parsers.xplane.wire import I64, U32

UNKNOWN = -(1 << 63)
NO_ROW = 0xFFFFFFFF

GpuOp = Callable[[int | None, str, str, str, bool, str], int]
"""(program id, module, hlo_op, framework op, whether `tf_op` states that, shapes of its annotation) to a row of hlo_ops"""
_SHAPES = re.compile(r"\bshape=\(([^)]*)\)")


def add_device_line(making: Making, plane: Plane, line: Line, device: int, modules: dict[int, str], gpu_op: GpuOp) -> bool:
    """Add a line of a device plane; returns whether it holds work."""
    events = line.events
    stats = LineStats(making.data, plane, events)
    code = codes(events.metadata)
    kind = Kind.COUNTED if stats.everywhere("counter_value") else device_line_kind(line.name, line.id)
    op_line = kind in (Kind.KERNEL, Kind.ASYNC)
    rows = _metadata_rows(making, plane, code, modules) if op_line else []
    categories = [making.hlo.ops[row]["category"] or "" if row >= 0 else "" for row in rows] or [""] * len(code.ids)
    texts = [event_name(plane, metadata) for metadata in code.ids]
    names = np.array([making.gather.name(text, cat) for text, cat in zip(texts, categories, strict=True)], np.uint32)[code.of_event]
    kinds = _stream_kinds(texts, code, stats) if kind is None else np.full(events.metadata.size, kind, np.uint8)
    ids = making.add_track(plane, line, track_kind(kind), names, kinds, device, stream_of(line.name))
    if kind is None:
        _add_stream_rows(making, stats, kinds, ids, device, stream_of(line.name), gpu_op)
        add_event_rows(making, stats, ids)
    elif op_line:
        _add_op_rows(making, line, stats, ids, rows, code)
    elif kind is Kind.STEP:
        _add_clock(making, line, stats, ids)
        add_event_rows(making, stats, ids)
        _add_steps(making, line, stats, ids, [texts[i] for i in code.of_event.tolist()], device)
    elif kind is Kind.COUNTED:
        _add_counters(making, plane, line, stats, texts, code, ids)
    add_flows(making, line, stats)
    return bool(kinds.size) and kind in (None, Kind.KERNEL)


def _metadata_rows(making: Making, plane: Plane, code: Codes, modules: dict[int, str]) -> list[int]:
    """For each of the line's metadata its row of hlo_ops; NONE where the file lacks the metadata."""
    rows = []
    for metadata in code.ids:
        found = plane.event_metadata.get(metadata)
        rows.append(NONE if found is None else metadata_row(making.data, plane, found, modules, making.hlo))
    return rows


def _stream_kinds(texts: list[str], code: Codes, stats: LineStats) -> NDArray[np.uint8]:
    """Kernel, copy or memset: by the details an event has, else by its name."""
    by_name = np.array([int(stream_event_kind(text)) for text in texts], np.uint8)
    kinds = by_name[code.of_event]
    copies = stats.rows("memcpy_details")
    kinds[copies[kinds[copies] == Kind.KERNEL]] = Kind.COPY
    kinds[stats.rows("memset_details")] = Kind.MEMSET
    kinds[stats.rows("kernel_details")] = Kind.KERNEL
    return kinds


def _add_op_rows(making: Making, line: Line, stats: LineStats, ids: U32, rows: list[int], code: Codes) -> None:
    op = np.array([row if row >= 0 else NO_ROW for row in rows], np.uint32)[code.of_event]
    if NONE in rows:
        known = op != NO_ROW
        making.gather.add_rows("hlo", {"slice": ids[known], "op": op[known]})
    else:
        making.gather.add_rows("hlo", {"slice": ids, "op": op})
    _add_clock(making, line, stats, ids)
    add_event_rows(making, stats, ids)


def _add_clock(making: Making, line: Line, stats: LineStats, ids: U32) -> None:
    """The device's own time of each event that states it."""
    if not (stats.has("device_offset_ps") and stats.has("device_duration_ps")):
        return
    start, dur = stats.integers("device_offset_ps", UNKNOWN), stats.integers("device_duration_ps", UNKNOWN)
    if not (stats.everywhere("device_offset_ps") and stats.everywhere("device_duration_ps")):
        rows = np.flatnonzero((start != UNKNOWN) & (dur != UNKNOWN))
        start, dur, ids = start[rows], dur[rows], ids[rows]
    base = making.base_ps(line)
    making.gather.add_rows("device_clock", {"slice": ids, "start_ps": start + base if base else start, "dur_ps": dur})


def add_event_rows(making: Making, stats: LineStats, ids: U32) -> None:
    """What single events say of their costs and step."""
    stated = {column: stats.stated_floats(stat) for column, stat in _EVENT_COSTS.items() if stats.has(stat)}
    numbers = {column: stats.stated_integers(stat) for column, stat in _EVENT_NUMBERS.items() if stats.has(stat)}
    if "time_scale" in stated:  # the nominal clock is also that of events that say nothing
        rows, scale = stated["time_scale"]
        stated["time_scale"] = rows[scale != 1.0], scale[scale != 1.0]
    told = np.zeros(ids.size, bool)
    for rows, _ in (*stated.values(), *numbers.values()):
        told[rows] = True
    if not told.any():
        return
    place = np.cumsum(told, dtype=np.int32) - 1
    columns: dict[str, pl.Series] = {}
    for column, (rows, values) in stated.items():
        dense = np.full(int(place[-1]) + 1, np.nan)
        dense[place[rows]] = values
        columns[column] = filled_floats(dense)
    for column, (rows, whole) in numbers.items():
        known = np.full(int(place[-1]) + 1, UNKNOWN, np.int64)
        known[place[rows]] = whole
        columns[column] = filled(known, UNKNOWN)
    making.gather.add_rows("hlo_events", {"slice": ids[told], **columns})


_EVENT_COSTS = {"time_scale": "Time Scale Multiplier", "flops": "flops", "model_flops": "model_flops", "bytes": "bytes_accessed"}
_EVENT_NUMBERS = {"dma_stall_ps": "dma_stall_duration_ps", "step": "group_id"}


def _add_stream_rows(
    making: Making, stats: LineStats, kinds: NDArray[np.uint8], ids: U32, device: int, stream: int | None, gpu_op: GpuOp
) -> None:
    correlation = stats.integers("correlation_id", UNKNOWN)
    streams = pl.Series([stream], dtype=pl.Int64).new_from_index(0, ids.size)
    kernels = np.flatnonzero(kinds == Kind.KERNEL)
    if kernels.size:
        code, texts = stats.texts("kernel_details")
        launches = pl.DataFrame([_launch_columns(text) for text in [*texts, ""]], schema=_LAUNCH, orient="row")
        launches = launches[np.where(code[kernels] == NONE, len(texts), code[kernels])]
        occupancy = stats.floats("theoretical_occupancy_pct")[kernels]
        if not np.isnan(occupancy).all():
            launches = launches.with_columns(pl.coalesce(filled_floats(occupancy), pl.col("occupancy_pct")).alias("occupancy_pct"))
        making.gather.add_rows(
            "kernels",
            {
                "slice": ids[kernels],
                "device": np.full(kernels.size, device, np.uint16),
                "stream": streams.head(kernels.size),
                "correlation": filled(correlation[kernels], UNKNOWN),
                "graph": filled(stats.integers("cuda_graph_id", UNKNOWN)[kernels], UNKNOWN),
                "graph_node": filled(stats.integers("cuda_graph_node_id", UNKNOWN)[kernels], UNKNOWN),
                **{column: launches[column] for column in _LAUNCH},
            },
        )
    copies = np.flatnonzero(kinds != Kind.KERNEL)
    if copies.size:
        code, texts = stats.texts("memcpy_details")
        set_code, set_texts = stats.texts("memset_details")
        sizes = np.array([copy_of(text).bytes or UNKNOWN for text in texts] + [UNKNOWN], np.int64)
        set_sizes = np.array([copy_of(text).bytes or UNKNOWN for text in set_texts] + [UNKNOWN], np.int64)
        size = np.maximum(sizes[code[copies]], set_sizes[set_code[copies]])
        making.gather.add_rows(
            "copies",
            {
                "slice": ids[copies],
                "device": np.full(copies.size, device, np.uint16),
                "stream": streams.head(copies.size),
                "correlation": filled(correlation[copies], UNKNOWN),
                "bytes": filled(size, UNKNOWN),
            },
        )
    add_gpu_ops(making, stats, ids, gpu_op)


_LAUNCH = {
    "registers": pl.UInt32,
    "shared_bytes": pl.UInt64,
    "grid_x": pl.UInt32,
    "grid_y": pl.UInt32,
    "grid_z": pl.UInt32,
    "block_x": pl.UInt32,
    "block_y": pl.UInt32,
    "block_z": pl.UInt32,
    "occupancy_pct": pl.Float64,
}


def _launch_columns(text: str) -> tuple[int | float | None, ...]:
    launch = launch_of(text)
    return (launch.registers, launch.shared_bytes, *(launch.grid or (None,) * 3), *(launch.block or (None,) * 3), launch.occupancy_pct)


def add_gpu_ops(making: Making, stats: LineStats, ids: U32, gpu_op: GpuOp, among: I64 | None = None) -> None:
    """The HLO instruction, or at least the framework's op, that each event (of those `among`) belongs to."""
    op_code, ops = stats.texts("hlo_op")
    module_code, modules = stats.texts("hlo_module")
    framework_code, frameworks = _first_texts(stats, "name", "level 0", "annotation", "tf_op")
    own_code, _ = _first_texts(stats, "tf_op")
    shapes_code, shapes = _annotated_shapes(stats)
    program = stats.integers("program_id", UNKNOWN)
    said = (op_code != NONE) | (framework_code != NONE)
    told = np.flatnonzero(said) if among is None else among[said[among]]
    if told.size == 0:
        return
    known = (program, op_code, module_code, framework_code, own_code != NONE, shapes_code)
    keys = np.stack([codes[told] for codes in known], axis=1)
    distinct, back = np.unique(keys, axis=0, return_inverse=True)
    rows = [
        gpu_op(
            None if program == UNKNOWN else program,
            modules[module] if module != NONE else "",
            ops[op] if op != NONE else "",
            frameworks[framework] if framework != NONE else "",
            bool(own),
            shapes[shape] if shape != NONE else "",
        )
        for program, op, module, framework, own, shape in distinct.tolist()
    ]
    making.gather.add_rows("hlo", {"slice": ids[told], "op": np.array(rows, np.int64)[back.reshape(-1)]})


def _annotated_shapes(stats: LineStats) -> tuple[I64, list[str]]:
    """The shapes that a framework's annotation tells of an event's op (`Tile:Tile#shape=(half[1];int32[1])#`): codes, texts."""
    code, texts = stats.texts("annotation")
    shapes: dict[str, int] = {}
    found = [";".join(_SHAPES.findall(text)) for text in texts]
    codes = np.array([shapes.setdefault(shape, len(shapes)) if shape else NONE for shape in found] + [NONE], np.int64)
    return codes[code], list(shapes)


def _first_texts(stats: LineStats, *names: str) -> tuple[I64, list[str]]:
    """Of several stats the first that an event has; an empty text and XLA's `XlaModule:` say nothing."""
    codes = np.full(stats.size, NONE, np.int64)
    texts: list[str] = []
    for name in names:
        own, found = stats.texts(name)
        for i, text in enumerate(found):
            if text and text != "XlaModule:":
                rows = (own == i) & (codes == NONE)
                codes[rows] = len(texts)
                texts.append(text)
    return codes, texts


def _add_steps(making: Making, line: Line, stats: LineStats, ids: U32, names: list[str], device: int) -> None:
    group = stats.integers("group_id", UNKNOWN)
    base = making.base_ps(line)
    events = line.events
    for row, name in enumerate(names):
        number = int(name) if name.isdecimal() else int(group[row]) if group[row] != UNKNOWN else row
        making.steps.append(Step(device, name, number, int(ids[row]), base + int(events.offset_ps[row]), int(events.dur_ps[row])))


def _add_counters(making: Making, plane: Plane, line: Line, stats: LineStats, texts: list[str], code: Codes, ids: U32) -> None:
    """Series of the events' names; a kernel's own counters (XProf's perf_counters) stand on a line of its name, each an event.

    Those of one time were counted over one range, of which the first event is the slice.
    """
    rows = stats.rows("counter_value")
    if rows.size:
        spans = np.stack([line.events.offset_ps[rows], line.events.dur_ps[rows]], axis=1)
        _, first, back = np.unique(spans, axis=0, return_index=True, return_inverse=True)
        making.gather.add_rows(
            "counted",
            {
                "slice": ids[rows][first][back.reshape(-1)],
                "counter": pl.Series(texts).gather(code.of_event[rows]),
                "value": stats.floats("counter_value")[rows],
            },
        )
    whose = plane.name if line.name in ("", "_counters_") else f"{plane.name} {line.name}"
    for stat, unit in (("% util", "% util"), ("counter_value", "")):
        rows = stats.rows(stat)
        if rows.size == 0:
            continue
        series = pl.Series([f"{text} {unit}".strip() for text in texts]).gather(code.of_event[rows])
        making.gather.add_rows(
            "counters",
            {
                "time_ps": line.events.offset_ps[rows] + making.base_ps(line),
                "source": np.zeros(rows.size, np.uint16),
                "process": pl.Series([whose]).new_from_index(0, rows.size),
                "series": series,
                "value": stats.floats(stat)[rows],
            },
        )
