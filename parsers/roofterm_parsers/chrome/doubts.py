"""Warnings: what was mended, cut or left out while reading, and what a profile says that can hardly be so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from roofterm_parsers.chrome.gathering import Gathered
from roofterm_parsers.profile import ROOT, WORK_KINDS, Kind, Profile, Source, TrackKind, Warning

if TYPE_CHECKING:
    from roofterm_parsers.chrome.assembling import FileFacts

COVERED_PS = 100_000_000
"""A kernel may run on for a while after the next of its stream has begun (dependent launch), but not for 100 µs."""
COVERED_KERNELS = 2
EARLY_PS = 1_000_000
"""Kernels that start less than a microsecond before their launch are within the rounding of old traces."""


def of_reading(source: Source, gathered: Gathered, file: FileFacts) -> list[Warning]:
    """What happened to the text."""
    damage = gathered.damage
    path = source.path
    found = []
    if damage["mended"] + file.damaged_header:
        count = damage["mended"] + file.damaged_header
        found.append(
            Warning("mended", f"{path}: {count} damaged places were mended (quotes, escapes, commas or words that are no JSON)", count)
        )
    if damage["skipped"]:
        count = damage["skipped"]
        found.append(Warning("skipped", f"{path}: {count} damaged or unknown events were skipped", count))
    cut = damage["cut"] or int(not file.is_whole)
    if cut:
        found.append(Warning("cut", f"{path}: the file is cut: it ends in the middle of its list of events, what comes after is lost", cut))
    if damage["untimed"]:
        found.append(Warning("skipped", f"{path}: {damage['untimed']} events without a usable time were skipped", damage["untimed"]))
    if damage["unmeasured"]:
        found.append(
            Warning("no-length", f"{path}: {damage['unmeasured']} events without a usable length were given length 0", damage["unmeasured"])
        )
    if gathered.lists > 1:
        found.append(
            Warning("mended", f"{path}: {gathered.lists} traces stand in the file one behind the other; all are shown", gathered.lists - 1)
        )
    return found


def unmatched(source: Source, unclosed: int, stray: int) -> Warning:
    return Warning(
        "unmatched",
        f"{source.path}: {stray} ends without a begin were dropped, "
        f"{unclosed} begins without an end were closed at the last time of their thread",
        unclosed + stray,
    )


def off_axis(source: Source, count: int) -> Warning:
    return Warning("off-axis", f"{source.path}: {count} events without a real time (0, or days away from the others) are left out", count)


def of_profile(source: Source, profile: Profile, *, nests: bool) -> list[Warning]:
    """What cannot be so. `nests`: the format nests the work of a device on purpose (TPU)."""
    found = [_no_kernels(source, profile), _early(source, profile)]
    if not nests:
        found.append(_implausible(source, profile))
    return [warning for warning in found if warning is not None]


def _no_kernels(source: Source, profile: Profile) -> Warning | None:
    kinds = profile.slices["kind"].to_numpy()
    if not np.any(kinds == Kind.RUNTIME) or np.any(np.isin(kinds, [int(kind) for kind in WORK_KINDS])):
        return None
    launches = profile.names.select(profile.names["text"].str.contains(r"(?i)launch"))["text"].to_numpy()
    count = int(launches[profile.slices["name"].to_numpy()[kinds == Kind.RUNTIME]].sum())
    if count == 0:
        return None
    return Warning(
        "no-kernels",
        f"{source.path}: {count} launches but not one kernel: the profiler recorded no work of the GPU (driver, permissions or warm-up)",
        count,
    )


def _early(source: Source, profile: Profile) -> Warning | None:
    links = profile.links
    held = np.flatnonzero(links["launch"].is_not_null().to_numpy())
    if held.size == 0:
        return None
    start = profile.slices["start_ps"].to_numpy()
    work = links["work"].to_numpy()[held]
    launch = links["launch"].fill_null(0).to_numpy()[held]
    early = start[launch] - start[work]
    count = int((early > EARLY_PS).sum())
    if count == 0:
        return None
    return Warning(
        "clock",
        f"{source.path}: {count} kernels or copies start before their launch, by up to {early.max() / 1e6:.3f} µs: "
        "the clocks of host and device disagree",
        count,
    )


def _implausible(source: Source, profile: Profile) -> Warning | None:
    """Work that covers later work of its own stream, for longer than any overlap of launches lasts."""
    kind_of_track = profile.tracks["kind"].to_numpy()
    slices = profile.slices
    parent = slices["parent"].to_numpy()
    inside = np.flatnonzero((parent != ROOT) & (kind_of_track[slices["track"].to_numpy()] == TrackKind.DEVICE))
    if inside.size == 0:
        return None
    start, dur = slices["start_ps"].to_numpy(), slices["dur_ps"].to_numpy()
    covering, count = np.unique(parent[inside], return_counts=True)
    first = np.full(start.size, np.iinfo(np.int64).max)
    np.minimum.at(first, parent[inside], start[inside])
    overhang = (start + dur)[covering] - first[covering]
    far = covering[(overhang > COVERED_PS) & (count >= COVERED_KERNELS)]
    if far.size == 0:
        return None
    longest = int(far[np.argmax(dur[far])])
    name = profile.names["text"][int(slices["name"][longest])][:80]
    return Warning(
        "implausible",
        f"{source.path}: {far.size} kernels have an implausible duration: they cover later kernels of their own stream, "
        f"the longest is {name} with {dur[longest] / 1e9:.3f} ms",
        int(far.size),
    )
