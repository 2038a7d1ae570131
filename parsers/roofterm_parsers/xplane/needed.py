"""Which lines figures of TPUs hang on, told by what stands beside the events: the heads of lines, and the planes' names."""

from __future__ import annotations

from collections.abc import Set

import polars as pl

from roofterm_parsers.profile import Kind
from roofterm_parsers.records import HostNames
from roofterm_parsers.xplane.hlo_rows import short_name
from roofterm_parsers.xplane.kinds import SILENT_PLANES, device_line_kind, device_of
from roofterm_parsers.xplane.lines import head_of
from roofterm_parsers.xplane.space import Plane, Space
from roofterm_parsers.xplane.wire import Buffer

_TPU = frozenset({"tpu", "sparsecore"})
_STEP_NUMBER = "step_num"
_OPS_AND_LAUNCHES = frozenset({"hlo_op", "correlation_id"})
_COUNTED = frozenset({"counter_value"})
_BESIDE_WORK = frozenset({Kind.DEVICE_ANNOTATION, Kind.DEVICE_WAIT, Kind.COUNTED})


def host_needed(data: Buffer, space: Space, names: HostNames | None) -> bool:
    """Whether the host's lines are to be read for figures of the file's TPUs; also where no TPU has worked.

    `names`: what tells of work, steps and phases besides; None: only the steps' numbers count, which the host's annotations
    give in a file that nobody has grouped.
    """
    kinds = _kinds_of_lines(data, space, {"tpu"})
    if Kind.KERNEL not in kinds:
        return True
    if names is None:
        return Kind.STEP in kinds and not grouped(space)
    return bool(space.damage) or _tells(space, names, Kind.STEP in _kinds_of_lines(data, space, _TPU))


def line_needed(data: Buffer, plane: Plane, at: int, end: int) -> bool:
    """Whether the line of a device in data[at:end] may tell of its work: all do but a TPU's annotations and waits, and its counters
    where none counted over a program."""
    device, head = device_of(plane.name), head_of(data, at, end)
    aside = device is not None and device.kind in _TPU and head is not None and device_line_kind(head.name, 0) in _BESIDE_WORK
    return not aside or _has_stat(plane, _COUNTED)


def grouped(space: Space) -> bool:
    """Whether the profiler has numbered the events by step: all planes that hold any know of it."""
    return all("group_id" in plane.stat_names.values() for plane in space.planes if plane.lines)


def _kinds_of_lines(data: Buffer, space: Space, devices: Set[str]) -> set[Kind | None]:
    """The kinds of the lines of such devices that hold events."""
    heads = [
        head_of(data, at, end)
        for plane in space.planes
        if (device := device_of(plane.name)) is not None and device.kind in devices
        for at, end in plane.lines
    ]
    return {device_line_kind(head.name, 0) for head in heads if head is not None}


def _tells(space: Space, names: HostNames, marked: bool) -> bool:
    """Whether a plane of the host can tell more of the devices' work than they do. `marked`: they mark their steps themselves."""
    stats = _OPS_AND_LAUNCHES if marked else _OPS_AND_LAUNCHES | {_STEP_NUMBER}
    pattern = f"(?:{names.always})|(?:{names.in_steps})" if marked else names.always
    for plane in space.planes:
        device = device_of(plane.name)
        if device is not None and device.kind not in _TPU:
            return True
        if device is None and plane.name not in SILENT_PLANES and (_has_stat(plane, stats) or _has_event(plane, pattern)):
            return True
    return False


def _has_stat(plane: Plane, names: frozenset[str]) -> bool:
    return not names.isdisjoint(plane.stat_names.values())


def _has_event(plane: Plane, pattern: str) -> bool:
    """Whether an event is of such a name, or of two: then one is that of a framework's op."""
    events = plane.event_metadata.values()
    if any(event.display_name and event.name and event.display_name != event.name for event in events):
        return True
    return bool(pl.Series([short_name(event) for event in events], dtype=pl.String).str.contains(pattern).any())
