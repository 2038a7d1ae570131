"""Side tables of a trace that was made from an XPlane: kernels and copies of streams, HLO instructions, launches, steps."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm_parsers.chrome.arguments import hlo_parts
from roofterm_parsers.chrome.codes import Columns
from roofterm_parsers.chrome.context import Context, GatheredIds, XlaStep, with_id
from roofterm_parsers.chrome.events import NULL
from roofterm_parsers.chrome.frames import bounded, nullable, table
from roofterm_parsers.chrome.gathering import Gathered
from roofterm_parsers.chrome.groups import Group
from roofterm_parsers.chrome.kinds import XlaLanes
from roofterm_parsers.chrome.times import PS_PER_US
from roofterm_parsers.occurring import occurring
from roofterm_parsers.profile import (
    COPIES,
    COUNTERS,
    DEVICE_CLOCK,
    HLO,
    HLO_OPS,
    HOST_CALL_KINDS,
    KERNELS,
    RUNTIME,
    WORK_KINDS,
    Kind,
    TrackKind,
)
from roofterm_parsers.xplane.details import copy_of, launch_of
from roofterm_parsers.xplane.kinds import device_of, stream_of

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
T = TypeVar("T")

_MODULE = re.compile(r"(?P<program>.*)\((?P<id>\d{1,20})\)\Z")
_INSTRUCTION = re.compile(r"%?([\w.\-]+) = ")
_SAYS_NOTHING = "XlaModule:"
_MOST_U32 = (1 << 32) - 1


def refine_kinds(gathered: Gathered, kinds: U8, row_of: NDArray[np.int32], lane: U32, lines: XlaLanes) -> Columns:
    """Let arguments tell kinds that names do not; gives the columns of arguments, `row` being the gathered slice."""
    table = gathered.table(Group.XLA)
    if table is None:
        return {}
    columns = table.join()
    rows = row_of[columns["row"]]
    held = rows >= 0
    on_host = np.zeros(rows.size, bool)
    host_lane = np.array([device is None for device in lines.device], bool)
    stream_lane = np.array([d is not None and k is None for d, k in zip(lines.device, lines.kind, strict=True)], bool)
    on_host[held] = host_lane[lane[rows[held]]]
    on_stream = np.zeros(rows.size, bool)
    on_stream[held] = stream_lane[lane[rows[held]]]
    _set(kinds, rows, on_host & columns["eager"], Kind.OP)
    _set(kinds, rows, on_host & (columns["hlo"] != 0) & _has_hlo_op(gathered, columns["hlo"]), Kind.OP)
    launches = on_host & (columns["correlation"] != NULL)
    calls = np.isin(kinds[rows], [int(kind) for kind in HOST_CALL_KINDS])
    _set(kinds, rows, launches & ~calls, Kind.RUNTIME)
    _set(kinds, rows, on_host & (columns["step"] != NULL), Kind.STEP)
    is_kernel = kinds[rows] == Kind.KERNEL
    _set(kinds, rows, on_stream & (columns["copy"] != 0) & is_kernel, Kind.COPY)
    _set(kinds, rows, on_stream & (columns["kernel"] != 0), Kind.KERNEL)
    return columns


def fill(context: Context, lines: XlaLanes, columns: Columns) -> GatheredIds:
    """Fill kernels, copies, runtime, hlo, hlo_ops and counters of the profile and its devices; gives the ids of launches."""
    ids = GatheredIds()
    device_of_lane = _devices(context, lines)
    if not columns:
        return ids
    slices = context.id_of[columns.pop("row")].astype(np.int64)
    order = np.argsort(slices, kind="stable")
    order = order[np.searchsorted(slices[order], 0) :]
    slices = slices[order]
    columns = {name: values[order] for name, values in columns.items()}
    kinds = context.profile.slices["kind"].to_numpy()[slices]
    device = device_of_lane[context.lane[slices]]
    stream = _streams(context)[context.lane[slices]]
    _fill_work(context, slices, kinds, device, stream, columns)
    correlation = columns["correlation"]
    calls = np.isin(kinds, [int(kind) for kind in HOST_CALL_KINDS]) & (correlation != NULL)
    work = np.isin(kinds, [int(kind) for kind in WORK_KINDS]) & (device >= 0) & (stream != NULL)
    ids.launch = slices[calls], correlation[calls]
    ids.work = with_id(slices[work], correlation[work], NULL)
    ids.linked = slices[work]
    context.profile.runtime = table(RUNTIME, {"slice": slices[calls], "correlation": correlation[calls]})
    _fill_hlo(context, slices, kinds, columns["hlo"], device)
    _fill_clock(context, slices, columns["clock_offset"], columns["clock_duration"])
    _fill_counters(context, slices, columns["util"])
    _find_steps(context, slices, kinds, device, columns)
    return ids


def _set(kinds: U8, rows: NDArray[np.int32], where: NDArray[np.bool_], kind: Kind) -> None:
    kinds[rows[where & (rows >= 0)]] = kind


def _has_hlo_op(gathered: Gathered, code: U32) -> NDArray[np.bool_]:
    texts = list(gathered.texts)
    used = occurring(code)
    table = np.zeros(len(texts), bool)
    table[[c for c in used.tolist() if c and texts[c].split(b"\x00")[1]]] = True
    return table[code]


def _devices(context: Context, lines: XlaLanes) -> I64:
    """Row of devices for each lane; -1 on the host. Devices that the file names without work have a row too."""
    kinds = context.profile.slices["kind"].to_numpy()
    work = np.isin(kinds, [int(kind) for kind in WORK_KINDS])
    worked = np.bincount(context.lane[work], minlength=len(context.lanes)) > 0
    named = {
        (process, found)
        for process, name in context.names.process.items()
        if (found := device_of(name[name.find("/device:") :])) is not None
    }
    known = {found for _, found in named} | {device for device in lines.device if device is not None}
    rows = {}
    context.devices.kind = min((device.kind for device in known), default="gpu")
    for device in sorted(known):
        does = any(worked[i] for i, other in enumerate(lines.device) if other == device)
        rows[device] = context.devices.row("", device.id, worked=does)
    device_of_lane = np.array([-1 if device is None else rows[device] for device in lines.device], np.int64)
    of_thread = {(str(pid), str(tid)): int(device_of_lane[i]) for i, (_, _, pid, tid) in enumerate(context.lanes)}
    for track in context.tracks.rows:
        row = of_thread.get((track.process, track.thread), -1)
        if row >= 0 and track.kind in (TrackKind.DEVICE, TrackKind.DEVICE_OTHER):
            track.device = row
            track.stream = stream_of(context.names.thread.get((track.process, track.thread), ""))
    return device_of_lane


def _streams(context: Context) -> I64:
    found = [stream_of(context.names.thread.get((str(pid), str(tid)), "")) for _, _, pid, tid in context.lanes]
    return np.array([NULL if stream is None else stream for stream in found], np.int64)


def _fill_work(context: Context, slices: I64, kinds: U8, device: I64, stream: I64, columns: Columns) -> None:
    on_stream = (device >= 0) & (stream != NULL)
    kernel = np.flatnonzero((kinds == Kind.KERNEL) & on_stream)
    launches = _per_text(context, columns["kernel"][kernel], launch_of)
    occupancy = np.array([np.nan if launch.occupancy_pct is None else launch.occupancy_pct for launch in launches], np.float32)
    theoretical = columns["occupancy"][kernel]
    occupancy = np.where(np.isfinite(theoretical) & (theoretical > 0), theoretical, occupancy)
    shape = np.array([[*(x.grid or (-1, -1, -1)), *(x.block or (-1, -1, -1))] for x in launches], np.int64).reshape(-1, 6)
    context.profile.kernels = table(
        KERNELS,
        {
            "slice": slices[kernel],
            "device": device[kernel],
            "stream": stream[kernel],
            "correlation": nullable(columns["correlation"][kernel]),
            **{
                name: bounded(shape[:, i], _MOST_U32)
                for i, name in enumerate(("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"))
            },
            "registers": bounded(np.array([-1 if x.registers is None else x.registers for x in launches], np.int64), _MOST_U32),
            "shared_bytes": bounded(np.array([-1 if x.shared_bytes is None else x.shared_bytes for x in launches], np.int64), 1 << 40),
            "occupancy_pct": nullable(occupancy.astype(np.float32)),
        },
    )
    copy = np.flatnonzero(((kinds == Kind.COPY) | (kinds == Kind.MEMSET)) & on_stream)
    copies = _per_text(context, columns["copy"][copy], copy_of)
    context.profile.copies = table(
        COPIES,
        {
            "slice": slices[copy],
            "device": device[copy],
            "stream": stream[copy],
            "correlation": nullable(columns["correlation"][copy]),
            "bytes": nullable(np.array([NULL if x.bytes is None else x.bytes for x in copies], np.int64)),
        },
    )


def _per_text(context: Context, code: U32, read: Callable[[str], T]) -> list[T]:
    """What each event's text says, read once a distinct text."""
    texts = list(context.gathered.texts)
    known = {c: read(texts[c].decode("utf-8", "replace").strip('"')) for c in occurring(code).tolist()}
    return [known[c] for c in code.tolist()]


def _fill_hlo(context: Context, slices: I64, kinds: U8, code: U32, device: I64) -> None:
    """Rows of hlo and hlo_ops: an instruction is told by its texts and, on a TPU, by the program that runs at its time."""
    held = np.flatnonzero(
        (code != 0) & ((device < 0) | np.isin(kinds, [int(Kind.KERNEL), int(Kind.COPY), int(Kind.MEMSET), int(Kind.ASYNC)]))
    )
    if held.size == 0:
        return
    module = _module_of(context, slices[held], device[held])
    keys, back = np.unique(np.stack((code[held].astype(np.int64), module), axis=1), axis=0, return_inverse=True)
    texts = list(context.gathered.texts)
    names = context.profile.names["text"]
    rows: dict[tuple[Any, ...], int] = {}
    numbers = []
    for text, program in keys.tolist():
        row = _instruction(hlo_parts(texts[text]), names[program] if program >= 0 else None)
        numbers.append(-1 if row is None else rows.setdefault(tuple(row.items()), len(rows)))
    op = np.array(numbers, np.int64)[back.reshape(-1)]
    known = op >= 0
    context.profile.hlo = table(HLO, {"slice": slices[held][known], "op": op[known]})
    context.profile.hlo_ops = pl.DataFrame([dict(row) for row in rows], schema=HLO_OPS)


def _fill_clock(context: Context, slices: I64, offset: I64, duration: I64) -> None:
    """The device's own times, which count from where the file's times do: from the start of the profile."""
    told = (offset != NULL) & (duration != NULL)
    if told.any():
        start = offset[told] - (context.axis.zero_us * PS_PER_US + context.axis.zero_ps)
        context.profile.device_clock = table(DEVICE_CLOCK, {"slice": slices[told], "start_ps": start, "dur_ps": duration[told]})


def _module_of(context: Context, slices: I64, device: I64) -> I64:
    """Row of `names` of the module that runs on the slice's device at its start; -1 if none is shown."""
    frame = context.profile.slices
    module = np.flatnonzero(frame["kind"].to_numpy() == Kind.MODULE)
    found = np.full(slices.size, -1, np.int64)
    if module.size == 0:
        return found
    start, dur, name = (frame[column].to_numpy() for column in ("start_ps", "dur_ps", "name"))
    device_of_track = {i: track.device for i, track in zip(context.track_place.tolist(), context.tracks.rows, strict=True)}
    module_device = np.array(
        [device_of_track.get(t) if device_of_track.get(t) is not None else -1 for t in frame["track"].to_numpy()[module].tolist()], np.int64
    )
    for number in occurring(module_device[module_device >= 0]).tolist():
        own = module[module_device == number]
        own = own[np.argsort(start[own], kind="stable")]
        rows = np.flatnonzero(device == number)
        place = np.searchsorted(start[own], start[slices[rows]], side="right") - 1
        inside = place >= 0
        inside[inside] = start[slices[rows[inside]]] < (start + dur)[own[place[inside]]]
        found[rows[inside]] = name[own[place[inside]]]
    return found


def _instruction(parts: dict[str, str | None], module: str | None) -> dict[str, Any] | None:
    """A row of hlo_ops; None where the texts name no instruction and no op of the framework."""
    told = (parts[key] for key in ("name", "level", "annotation", "framework_op"))
    framework = next((text for text in told if text and text != _SAYS_NOTHING), None)
    program, number = parts["module"], None
    if module is not None and (match := _MODULE.match(module)):
        program, number = match["program"], int(match["id"])
        number = number if number < 1 << 64 else None
    name = parts["op"]
    if name is None and parts["text"] and parts["category"]:
        found = _INSTRUCTION.match(parts["text"])
        name = found[1] if found else None
    if name is None and framework is None:
        return None
    return {
        "program_id": number,
        "program": program,
        "name": name,
        "category": parts["category"],
        "text": parts["text"],
        "framework_op": framework.removesuffix(":") if framework and parts["category"] is None else framework,
        "source": parts["source"],
        "source_stack": parts["source_stack"],
        "deduplicated": parts["deduplicated"],
        "model_flops": _number(parts["model_flops"]),
        "bytes": _number(parts["bytes_accessed"]),
        "flops_from": "none",
    }


def _number(text: str | None) -> float | None:
    try:
        value = None if text is None else float(text)
    except ValueError:
        return None
    return value if value is not None and np.isfinite(value) else None


def _fill_counters(context: Context, slices: I64, util: NDArray[np.float32]) -> None:
    rows = np.flatnonzero(np.isfinite(util))
    if rows.size == 0:
        return
    frame = context.profile.slices[slices[rows]]
    texts = context.profile.names["text"].gather(frame["name"]) + " % util"
    processes = pl.Series([context.names.process.get(str(pid), str(pid)) for _, _, pid, _ in context.lanes], dtype=pl.String)
    context.profile.counters = table(
        COUNTERS,
        {
            "time_ps": frame["start_ps"],
            "source": np.zeros(rows.size, np.uint16),
            "process": processes.gather(context.lane[slices[rows]]),
            "series": texts,
            "value": util[rows].astype(np.float64),
        },
    ).sort("time_ps", maintain_order=True)


def _find_steps(context: Context, slices: I64, kinds: U8, device: I64, columns: Columns) -> None:
    names = context.profile.names["text"]
    name_of = context.profile.slices["name"].to_numpy()
    on_line = np.flatnonzero(context.profile.slices["kind"].to_numpy() == Kind.STEP)
    group = dict(zip(slices.tolist(), columns["group"].tolist(), strict=True)) if on_line.size else {}
    number = dict(zip(slices.tolist(), columns["step"].tolist(), strict=True)) if on_line.size else {}
    rows = dict(zip(slices.tolist(), device.tolist(), strict=True)) if on_line.size else {}
    for place, row in enumerate(on_line.tolist()):
        text = names[int(name_of[row])]
        if rows.get(row, -1) >= 0:
            told = int(text) if text.isdecimal() and len(text) < 19 else group.get(row, NULL)
            context.xla_steps.append(XlaStep(row, told if told != NULL else place, text, rows[row]))
        elif number.get(row, NULL) != NULL:
            context.xla_steps.append(XlaStep(row, number[row], f"{text} {number[row]}", None))
