"""`.xplane.pb` (XSpace) files made profiles."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import polars as pl

from roofterm_parsers.allocator import keep_freed
from roofterm_parsers.errors import Interrupted, ProfileError
from roofterm_parsers.profile import DEVICE_ALONE, DEVICES, LINKS, STEPS, TRACKS, Profile, Source, Warning, empty
from roofterm_parsers.records import HostNames
from roofterm_parsers.threads import threads
from roofterm_parsers.xplane.device_lines import add_device_line
from roofterm_parsers.xplane.devices import device_row, plain_stats
from roofterm_parsers.xplane.gather import Gather
from roofterm_parsers.xplane.host_lines import add_host_line
from roofterm_parsers.xplane.kinds import DEVICE_STATS, HLO_PLANE, HOST_STATS, SILENT_PLANES, device_of
from roofterm_parsers.xplane.lines import Span, head_of, read_lines
from roofterm_parsers.xplane.making import Making, Step
from roofterm_parsers.xplane.needed import grouped, host_needed, line_needed
from roofterm_parsers.xplane.programs import Programs, mean_event_costs
from roofterm_parsers.xplane.space import Plane, Space, Value, looks_like_xplane, read_space
from roofterm_parsers.xplane.wire import Buffer

__all__ = ["looks_like_xplane", "read"]

RELATIVE_BELOW_NS = 1 << 57
"""Line times below this (4.5 years) count from the start of the profile, not from 1970."""
WORTH_THREADS_BYTES = 8 << 20
"""From this size on, threads read faster than they take to start."""
_MODULE = re.compile(r"^(.*)\((\d+)\)$")


def read(
    data: bytes | memoryview,
    source: Source,
    report: Callable[[int], None],
    *,
    cancelled: Callable[[], bool],
    device_alone: bool | HostNames = False,
) -> Profile:
    """The profile in an XSpace. `device_alone`: of TPUs' profiles without the host's lines, unless they are needed, and without the
    devices' lines that hold no work (`needed`; True: as XProf's tables need them).

    `report` is told the bytes that were read since it was called last, `cancelled` is asked between blocks. Raises
    ProfileError where nothing is on the time axis, Interrupted when cancelled. Times are exact to the picosecond.
    """
    view = memoryview(data).cast("B") if not isinstance(data, memoryview) or data.format != "B" else data
    if len(view) == 0:
        raise ProfileError(f"{source.path} is empty (0 bytes): it holds no event.", source.path)
    array = np.frombuffer(view, np.uint8)
    if len(view) >= WORTH_THREADS_BYTES:
        keep_freed()

    def tick(size: int) -> None:
        if cancelled():
            raise Interrupted(f"Loading of {source.path} was stopped.", source.path)
        report(size)

    space = read_space(view)
    environment = _environment(view, space)
    devices: list[dict[str, Any]] = []
    host = not device_alone or host_needed(view, space, device_alone if isinstance(device_alone, HostNames) else None)
    spans: list[Span] = []
    belongs: list[tuple[Plane, int | None]] = []
    for plane in space.planes:
        device = device_of(plane.name)
        if plane.name in SILENT_PLANES or (device is None and not host):
            continue
        row = len(devices) if device is not None else None
        if device is not None:
            devices.append(device_row(0, device, plane.values(view, plane.stats), worked=False))
        wanted = plane.stat_ids(HOST_STATS if device is None else DEVICE_STATS)
        lines = plane.lines if host else [line for line in plane.lines if line_needed(view, plane, *line)]
        spans += (Span(at, end, wanted) for at, end in lines)
        belongs += ((plane, row) for _ in lines)
    with threads(sum(span.end - span.at for span in spans) >= WORTH_THREADS_BYTES) as later:
        making = Making(view, _reference_ps(view, space), Gather(later))
        programs = Programs(view, space, making.hlo)
        modules = _modules(space)
        lines_damaged = events_damaged = 0
        for line, (plane, row) in zip(read_lines(view, array, spans, tick, later), belongs, strict=True):
            lines_damaged += line.damaged
            events_damaged += line.events.damaged
            if line.events.metadata.size == 0:
                continue
            if row is None:
                add_host_line(making, plane, line, programs.row)
            elif add_device_line(making, plane, line, row, modules, programs.row):
                devices[row]["worked"] = True
        if not host and (lines_damaged or events_damaged or not any(row["worked"] for row in devices)):
            return read(data, source, report, cancelled=cancelled)  # the lines did not hold what their heads and names promise
        if making.gather.slices == 0:
            raise ProfileError(_nothing(space, source), source.path)
        if not host:
            source = msgspec.structs.replace(source, metadata={**source.metadata, DEVICE_ALONE: True})
        return _profile(making, space, source, devices, environment, programs, lines_damaged, events_damaged)


def _profile(
    making: Making,
    space: Space,
    source: Source,
    devices: list[dict[str, Any]],
    environment: dict[str, Value],
    programs: Programs,
    lines_damaged: int,
    events_damaged: int,
) -> Profile:
    gather = making.gather
    zero_ps = gather.zero_ps()
    tables = {name: gather.later(gather.table, name, "slice") for name in ("kernels", "copies", "runtime", "hlo", "hlo_events")}
    tables["device_clock"] = gather.later(gather.table, "device_clock", "slice", "start_ps", zero_ps)
    zero_unix_ns = _unix_ns(making.reference_ps + zero_ps, environment)
    profile = Profile(
        sources=[
            msgspec.structs.replace(
                source,
                format="xplane",
                producer=_producer(making, space),
                events=gather.slices,
                host=source.host or (space.hosts[0] if space.hosts else None),
                base_unix_ns=zero_unix_ns,
                metadata={**source.metadata, **_metadata(making, space, environment)},
            )
        ],
        zero_unix_ns=zero_unix_ns,
        slices=gather.slices_frame(zero_ps),
        tracks=pl.DataFrame(making.tracks, schema=TRACKS),
        names=gather.names_frame(),
        counters=gather.table("counters", "time_ps", "time_ps", zero_ps),
        counted=gather.table("counted", "slice"),
        flows=gather.table("flows", "time_ps", "time_ps", zero_ps),
        devices=pl.DataFrame(devices, schema=DEVICES),
        steps=_steps(making.steps, zero_ps),
        kernels=tables["kernels"](),
        copies=tables["copies"](),
        runtime=tables["runtime"](),
        hlo=tables["hlo"](),
        hlo_events=tables["hlo_events"](),
        device_clock=tables["device_clock"](),
    )
    programs.add_surroundings()
    mean_event_costs(making.hlo, profile.hlo, profile.hlo_events)
    profile.hlo_ops, profile.hlo_facts, profile.hlo_roles = making.hlo.frames()
    profile.memory, profile.allocations = _memory(gather, zero_ps)
    profile.links = _links(profile)
    profile.warnings = _warnings(making, space, source, devices, programs, lines_damaged, events_damaged)
    return profile


def _reference_ps(data: Buffer, space: Space) -> int:
    """A time near those of most lines, ps, to count from."""
    bases = sorted(
        head.base_ps
        for plane in space.planes
        if plane.name not in SILENT_PLANES
        for at, end in plane.lines
        if (head := head_of(data, at, end)) is not None
    )
    return bases[len(bases) // 2] if bases else 0


def _environment(data: Buffer, space: Space) -> dict[str, Value]:
    """Stats of the planes that speak of the whole profile: start and stop, versions."""
    stats: dict[str, Value] = {}
    for plane in space.planes:
        if plane.name in SILENT_PLANES:
            stats |= plane.values(data, plane.stats)
    return stats


def _unix_ns(zero_ps: int, environment: dict[str, Value]) -> int | None:
    if zero_ps // 1000 >= RELATIVE_BELOW_NS:
        return zero_ps // 1000
    start = environment.get("profile_start_time")
    return start + zero_ps // 1000 if isinstance(start, int) and start > 0 else None


def _modules(space: Space) -> dict[int, str]:
    """Program id to module name: a program is called `jit_f(2433868464432466958)` where it runs on a TPU and where its HLO lies."""
    found: dict[int, str] = {}
    for plane in space.planes:
        if plane.name != HLO_PLANE and device_of(plane.name) is None:
            continue
        for metadata in plane.event_metadata.values():
            match = _MODULE.match(metadata.name)
            if match and (plane.name == HLO_PLANE or not metadata.stats):
                found[int(match.group(2))] = match.group(1)
    return found


def _producer(making: Making, space: Space) -> str | None:
    for plane in space.planes:
        if plane.name in SILENT_PLANES:
            stats = plane.values(making.data, plane.stats)
            for stat, producer in (("jax_version", "JAX"), ("tensorflow_version", "TensorFlow"), ("jaxlib_version", "jaxlib")):
                version = stats.get(stat)
                if isinstance(version, str) and version:
                    return f"{producer} {version}"
    return None


def _metadata(making: Making, space: Space, environment: dict[str, Value]) -> dict[str, Any]:
    planes = {plane.name: plain_stats(plane.values(making.data, plane.stats)) for plane in space.planes if plane.name not in SILENT_PLANES}
    return {
        **plain_stats(environment),
        "hosts": space.hosts,
        "events_grouped": grouped(space),
        "planes": {name: stats for name, stats in planes.items() if stats or device_of(name) is not None},
    }


def _steps(steps: list[Step], zero_ps: int) -> pl.DataFrame:
    """Distinct steps. A `Steps` line of a device goes before the host's annotations; of several devices the first counts."""
    if any(step.device is not None for step in steps):
        steps = [step for step in steps if step.device is not None]
    distinct: dict[tuple[int, str], Step] = {}
    for step in steps:
        distinct.setdefault((step.number, step.name), step)
    rows = sorted(distinct.values(), key=lambda step: step.start_ps)
    return pl.DataFrame(
        [(0, step.number, step.name, step.start_ps - zero_ps, step.dur_ps, step.slice, step.device) for step in rows],
        schema=STEPS,
        orient="row",
    )


def _memory(gather: Gather, zero_ps: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    memory, allocations = gather.table("memory", None, "time_ps", zero_ps), gather.table("allocations")
    if memory.is_empty():
        return memory, allocations
    order = memory["time_ps"].arg_sort()
    rows = pl.Series("memory", np.arange(memory.height, dtype=np.uint32))
    return memory[order], allocations[order].with_columns(rows)


def _links(profile: Profile) -> pl.DataFrame:
    """Each piece of work with the runtime call of its correlation id; only files with such ids tell of launches."""
    work = pl.concat([frame.select("slice", "correlation") for frame in (profile.kernels, profile.copies)]).sort("slice")
    if work.is_empty():
        return empty("links")
    calls = profile.runtime.select(pl.col("slice").alias("launch"), "correlation").unique("correlation", keep="first", maintain_order=True)
    linked = work.join(calls, on="correlation", how="left", maintain_order="left")
    parents = profile.slices["parent"]
    launch = linked["launch"]
    return pl.DataFrame({"work": linked["slice"], "launch": launch, "op": _op_around(launch, parents)}, schema=LINKS)


def _op_around(launch: pl.Series, parents: pl.Series) -> pl.Series:
    """The slice directly around each launch on its own thread; null if none."""
    around = parents.gather(launch.fill_null(0))
    return pl.select(pl.when(launch.is_null() | (around == 0xFFFFFFFF)).then(None).otherwise(around)).to_series()


def _nothing(space: Space, source: Source) -> str:
    if space.damage:
        return f"{source.path} is damaged or no XPlane file, and nothing could be read: {space.damage[0]}."
    names = ", ".join(plane.name for plane in space.planes[:5]) or "none"
    return f"{source.path} holds no event (planes: {names}): profile for longer, or check that the profiler was on."


def _warnings(
    making: Making,
    space: Space,
    source: Source,
    devices: list[dict[str, Any]],
    programs: Programs,
    lines_damaged: int,
    events_damaged: int,
) -> list[Warning]:
    warnings = [Warning("xplane-error", f"the profiler reports: {text}") for text in space.errors]
    warnings += [Warning("xplane-warning", f"the profiler warns: {text}") for text in space.warnings]
    if space.damage or lines_damaged:
        what = space.damage[0] if space.damage else "a line's bytes are no events"
        warnings.append(
            Warning("truncated", f"{source.path}: {what}; what stands before it was kept.", max(1, len(space.damage), lines_damaged))
        )
    if events_damaged:
        warnings.append(Warning("damaged-events", f"{events_damaged:,} events are damaged and were left out.", events_damaged))
    if making.aggregated:
        warnings.append(
            Warning(
                "aggregated-events",
                f"{making.aggregated:,} events are sums without a time and stand at their line's start.",
                making.aggregated,
            )
        )
    if making.far_lines:
        warnings.append(
            Warning(
                "other-clock", f"lines on another clock were put at the start: {', '.join(making.far_lines[:5])}.", len(making.far_lines)
            )
        )
    if not any(row["worked"] for row in devices):
        what = "its device planes are empty" if devices else "it has no GPU or TPU plane"
        warnings.append(Warning("no-device", f"no accelerator at work in this profile ({what}): only the host is shown."))
    warnings += programs.warnings()
    return warnings
