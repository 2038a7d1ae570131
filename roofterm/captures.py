"""Finds and opens the capture traces that belong to a profile: those named, or in `capture_traces/` beside its files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from roofterm.analysis.graphs import graph_replays
from roofterm.analysis.iterations import engine_iterations
from roofterm.analysis.joining import replay_sizes
from roofterm_parsers.discover import CAPTURES
from roofterm_parsers.errors import ProfileError
from roofterm_parsers.opening import open_profile
from roofterm_parsers.profile import Profile, Warning

MOST_FILES = 8
"""Traces opened at most where nothing tells which sizes are replayed."""

_TRACE = re.compile(r"\.(json|trace)(\.(gz|zst))?$|\.json\.zip$")
_DETAILS = "execution_details.json"
_SIZE = re.compile(r"(?:^|[_.-])(?:bs|size|batch|capture)[_-]?(\d+)", re.IGNORECASE)
_RANK = re.compile(r"rank[_-]?(\d+)", re.IGNORECASE)


class CaptureFile(NamedTuple):
    path: str
    size: int | None
    """batch size by its name, or by `execution_details.json` beside it"""
    rank: int | None


def open_captures(
    profile: Profile, asked: str | None, *, cache: bool = True, max_memory: int | None = None, cancelled: Callable[[], bool] | None = None
) -> list[Profile]:
    """The capture traces for the graphs that a profile replays; none where it replays none.

    `asked`: a trace or a folder of them; raises ProfileError if it cannot be opened. Without it, `capture_traces/` beside
    the profile's files is looked into, and what cannot be opened there becomes a warning of the profile.
    """
    replays = graph_replays(profile)
    if replays.height == 0 and asked is None:
        return []
    sizes = replay_sizes(replays, engine_iterations(profile))
    files = _named(asked) if asked is not None else _beside(profile)
    ranks = {source.rank for source in profile.sources}
    opened = []
    for file in wanted(files, sizes, ranks):
        try:
            opened.append(open_profile(file.path, cache=cache, max_memory=max_memory, cancelled=cancelled))
        except ProfileError as error:
            if asked is not None:
                raise
            profile.warnings.append(Warning("capture", f"{error}; the graphs' capture is not read from it"))
    return opened


def wanted(files: Iterable[CaptureFile], sizes: Iterable[int | None], ranks: set[int | None]) -> list[CaptureFile]:
    """Of capture files those that replays of these sizes are of: for each size the smallest that holds it, of the same rank."""
    mine = [file for file in files if file.rank is None or None in ranks or file.rank in ranks]
    held = sorted({file.size for file in mine if file.size is not None})
    needed = set(sizes)
    if None in needed or not held:
        return sorted(mine)[:MOST_FILES]
    chosen = {next((size for size in held if size >= need), None) for need in needed if need is not None}
    return sorted(file for file in mine if file.size is None or file.size in chosen)


def _named(asked: str) -> list[CaptureFile]:
    if not os.path.isdir(asked):
        return [CaptureFile(asked, None, None)]
    files = _in_folder(asked)
    if not files:
        raise ProfileError(f"{asked}: no trace is in this folder; name the trace of a graph's capture", asked)
    return files


def _beside(profile: Profile) -> list[CaptureFile]:
    folders = {
        os.path.join(os.path.dirname(os.path.abspath(source.path)), CAPTURES) for source in profile.sources if "://" not in source.path
    }
    return [file for folder in sorted(folders) if os.path.isdir(folder) for file in _in_folder(folder)]


def _in_folder(folder: str) -> list[CaptureFile]:
    sizes = _details(os.path.join(folder, _DETAILS))
    names = sorted(name for name in os.listdir(folder) if _TRACE.search(name) and name != _DETAILS)
    return [CaptureFile(os.path.join(folder, name), sizes.get(name, _number(_SIZE, name)), _number(_RANK, name)) for name in names]


def _details(path: str) -> dict[str, int]:
    """Sizes of files, as the tool that split a trace by captures leaves them: a list of {file, batch_size, mode}."""
    try:
        with open(path, "rb") as file:
            rows = msgspec.json.decode(file.read(1 << 20))
    except (OSError, msgspec.DecodeError):
        return {}
    pairs = [(row.get("file"), row.get("batch_size")) for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return {name: size for name, size in pairs if isinstance(name, str) and isinstance(size, int)}


def _number(pattern: re.Pattern[str], name: str) -> int | None:
    found = pattern.search(name)
    return int(found[1]) if found else None
