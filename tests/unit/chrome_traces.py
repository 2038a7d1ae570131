"""Small traces written in the tests, and what a profile of them says by name."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import polars as pl

from roofterm_parsers.chrome.reader import read
from roofterm_parsers.nesting import self_times
from roofterm_parsers.profile import Kind, Profile, Source, TrackKind

US = 1_000_000
"""picoseconds"""


def opened(trace: bytes | str | Sequence[Any] | dict[str, Any], **options: Any) -> Profile:
    """The profile of a trace given as text, as a list of events, or as a whole object."""
    if isinstance(trace, str):
        trace = trace.encode()
    elif not isinstance(trace, bytes):
        trace = json.dumps(trace, ensure_ascii=False).encode()
    profile = read(io.BytesIO(trace), Source(path="made.json", format="", container="plain"), lambda _: None, **options)
    profile.check()
    return profile


def x(name: str, ts: Any, dur: Any = 0, *, cat: str = "cpu_op", pid: Any = 1, tid: Any = 1, **args: Any) -> dict[str, Any]:
    """A complete event; arguments with blanks in their keys are given as **{"External id": 1}."""
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def kernel(
    name: str, ts: Any, dur: Any, correlation: int | None = None, *, device: Any = 0, stream: Any = 7, **args: Any
) -> dict[str, Any]:
    ids = {} if correlation is None else {"correlation": correlation}
    return x(name, ts, dur, cat="kernel", pid=device, tid=stream, device=device, stream=stream, **ids, **args)


def call(name: str, ts: Any, dur: Any, correlation: int | None = None, *, tid: Any = 1, pid: Any = 1, **args: Any) -> dict[str, Any]:
    ids = {} if correlation is None else {"correlation": correlation}
    return x(name, ts, dur, cat="cuda_runtime", tid=tid, pid=pid, **ids, **args)


def named(profile: Profile) -> pl.DataFrame:
    """Slices with the texts behind their codes, in the order of the profile."""
    slices = profile.slices.with_row_index("slice")
    names, tracks = profile.names, profile.tracks
    return slices.with_columns(
        names["text"].gather(slices["name"]).alias("text"),
        names["cat"].gather(slices["name"]).alias("cat"),
        tracks["process"].gather(slices["track"]).alias("process"),
        tracks["thread"].gather(slices["track"]).alias("thread"),
        tracks["kind"].gather(slices["track"]).alias("track_kind"),
        pl.Series("self_ps", self_times(slices["parent"].to_numpy(), slices["start_ps"].to_numpy(), slices["dur_ps"].to_numpy())),
    )


def spans(profile: Profile) -> list[tuple[str, int, int]]:
    """(name, start, length) of all slices in picoseconds, by start."""
    return named(profile).sort("start_ps", "slice").select("text", "start_ps", "dur_ps").rows()


def self_us(profile: Profile) -> dict[str, float]:
    """Self time by name, in microseconds."""
    return {text: own / US for text, own in named(profile).group_by("text").agg(pl.col("self_ps").sum()).rows()}


def kinds(profile: Profile) -> dict[str, Kind]:
    return {text: Kind(kind) for text, kind in named(profile).select("text", "kind").rows()}


def track_kinds(profile: Profile) -> dict[str, TrackKind]:
    return {text: TrackKind(kind) for text, kind in named(profile).select("text", "track_kind").rows()}


def codes(profile: Profile) -> dict[str, int]:
    """Warnings: code and count."""
    found: dict[str, int] = {}
    for warning in profile.warnings:
        found[warning.code] = found.get(warning.code, 0) + warning.count
    return found


def texts_of(profile: Profile, ids: pl.Series) -> list[str | None]:
    """Names of slices by their ids; None for null."""
    texts = named(profile)["text"]
    return [None if i is None else texts[i] for i in ids.to_list()]
