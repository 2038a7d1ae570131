"""All that was gathered from a file, made into a profile: slices, side tables, links, facts, warnings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from roofterm_parsers import linking
from roofterm_parsers.chrome import device_tables, doubts, header, host_tables, marks, xla_tables
from roofterm_parsers.chrome.categories import KINETO_CATEGORIES
from roofterm_parsers.chrome.codes import Lane
from roofterm_parsers.chrome.context import Context
from roofterm_parsers.chrome.devices import Devices
from roofterm_parsers.chrome.gathering import Gathered
from roofterm_parsers.chrome.naming import Names
from roofterm_parsers.chrome.slicing import make_slices
from roofterm_parsers.chrome.steps import steps_of
from roofterm_parsers.chrome.tracks import groups_of
from roofterm_parsers.profile import Profile, Source


@dataclass(slots=True)
class FileFacts:
    """What is known of the file beside its events."""

    top: dict[str, Any]
    is_list: bool
    is_whole: bool
    """the text begins where a trace begins, and ends where it ends"""
    damaged_header: int


def assemble(gathered: Gathered, file: FileFacts, source: Source, *, xla: bool, check: Callable[[], None]) -> Profile:
    """The profile of one file. Raises ProfileError if nothing of it lies on a time axis; `check` may raise to stop."""
    names = Names()
    names.learn((name, pid, tid, text) for row, phase, name, pid, tid, text in gathered.whole if phase == "M")
    sliced = make_slices(gathered, names, source, xla=xla, check=check)
    profile = Profile(slices=sliced.slices, names=sliced.names)
    lanes = list(gathered.lanes)
    context = Context(
        profile=profile,
        gathered=gathered,
        id_of=sliced.id_of,
        lane=sliced.lane,
        lanes=lanes,
        group_of_lane=groups_of(lanes),
        names=names,
        tracks=sliced.tracks,
        track_place=sliced.place,
        devices=Devices(header.device_properties(file.top), _device_kind(lanes)),
        axis=sliced.axis,
    )
    if sliced.lines is None or sliced.xla is None:
        ids = device_tables.fill(context)
        check()
        host_tables.fill(context, ids)
    else:
        ids = xla_tables.fill(context, sliced.lines, sliced.xla)
    check()
    profile.tracks = sliced.tracks.frame(names, sliced.place)
    profile.devices = context.devices.frame()
    profile.links = linking.link(profile.slices, ids.linkable(context))
    check()
    marks.fill(context, sliced.track_of_marks)
    profile.steps = steps_of(profile, context.xla_steps)

    profile.zero_unix_ns = sliced.axis.unix_ns(header.integer(file.top.get("baseTimeNanoseconds")))
    form = _form(lanes, file, xla)
    profile.sources = [header.describe(source, file.top, form=form, events=gathered.events, base_unix_ns=profile.zero_unix_ns)]
    profile.warnings = [*sliced.warnings, *doubts.of_reading(source, gathered, file), *doubts.of_profile(source, profile, nests=xla)]
    return profile


def _device_kind(lanes: Sequence[Lane]) -> str:
    """Accelerator of a trace that is not made from an XPlane."""
    return "npu" if any(category.lower().startswith(("mtia", "hpu")) for _, category, _, _ in lanes) else "gpu"


def _form(lanes: Sequence[Lane], file: FileFacts, xla: bool) -> str:
    if xla:
        return "xla_json"
    if header.is_kineto(file.top) or any(category.lower() in KINETO_CATEGORIES for _, category, _, _ in lanes):
        return "kineto"
    return "chrome"
