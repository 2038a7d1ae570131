"""Profiles kept as they were read, so that opening one again takes milliseconds: Arrow IPC files, mapped into memory.

One folder an entry under XDG_CACHE_HOME/roofterm/profiles, named by what it was made from (location, size and mtime of
every file, and PARSER_VERSION) and put there by one rename. Whatever is wrong with the cache (full disk, read-only home,
damaged entry, another roofterm at work), the profile is read as if there were none.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np
import polars as pl

from roofterm_parsers.arrow_map import map_file, map_frame, write_frame
from roofterm_parsers.cache_keys import directory
from roofterm_parsers.deflate import crc32
from roofterm_parsers.errors import Interrupted
from roofterm_parsers.inputs import Input
from roofterm_parsers.leftovers import delete, half_made
from roofterm_parsers.profile import FRAMES, Profile, Source, Warning

LIMIT_BYTES = 4 << 30
"""Of all entries together: beyond it the longest unused go."""
_AT_ONCE = ("slices", "tracks", "names")
"""Frames that whatever opens a profile asks for; mapping them shows too whether this version reads what another wrote."""
_META = "meta.json"
_TAG = "CACHEDIR.TAG"
_TAG_TEXT = "Signature: 8a477f597d28d172789f06886806bc55\n# Profiles kept by roofterm; safe to delete. See bford.info/cachedir\n"
_SPARE_BYTES = 256 << 20
"""Left free on the disk: other jobs write there too."""
_STALE_SECONDS = 3600
_FAILURES = (OSError, ValueError, TypeError, KeyError, msgspec.MsgspecError, pl.exceptions.PolarsError)


class Entry(msgspec.Struct, frozen=True):
    """A kept profile, for `roofterm cache info`."""

    paths: list[str]
    bytes: int
    created_unix_s: float
    used_unix_s: float
    key: str


class _Frame(msgspec.Struct, frozen=True):
    bytes: int
    crc: int
    columns: str
    """names and types, as they were when it was written"""


class _Meta(msgspec.Struct, frozen=True):
    created_unix_s: float
    locations: dict[str, str]
    """path of a source: location of its input"""
    sources: list[Source]
    warnings: list[Warning]
    zero_unix_ns: int | None
    frames: dict[str, _Frame]


def load(key: str, inputs: Sequence[Input]) -> tuple[Profile | None, Warning | None]:
    """The kept profile of these files, or None; a damaged entry is thrown away, and the warning says so."""
    home = directory()
    if home is None:
        return None, None
    entry = home / key
    try:
        if not entry.is_dir():
            return None, None
        profile = _load(entry, inputs)
    except _FAILURES as error:
        if not entry.is_dir():  # another roofterm is clearing up
            return None, None
        _remove(entry)
        return None, Warning("cache", f"a damaged copy in the cache was thrown away, and the profile read anew ({_reason(error)})")
    with suppress(OSError):
        os.utime(entry / _META)
    return profile, None


def store(
    key: str, profile: Profile, inputs: Sequence[Input], *, limit_bytes: int = LIMIT_BYTES, stopped: Callable[[], bool] = lambda: False
) -> Warning | None:
    """Keep a profile that was read from these files; a warning says why it could not be kept. Once `stopped`, nothing is kept."""
    home = directory()
    size = sum(frame.estimated_size() for frame in profile.frames().values())
    if home is None or size > limit_bytes:
        return None
    made = home / f"tmp-{os.getpid()}-{os.urandom(6).hex()}"
    try:
        _make_home(home)
        if _free_bytes(home) < size + _SPARE_BYTES:
            return Warning("cache", f"not kept in the cache: the disk of {home} is nearly full")
        with half_made(made):
            _write(made, profile, inputs, stopped)
            _put(made, home / key)
        _shrink(home, limit_bytes, keep=key)
    except Interrupted:
        return None
    except _FAILURES as error:
        return Warning("cache", f"not kept in the cache, {home}: {_reason(error)}; set XDG_CACHE_HOME to a folder that can be written")
    return None


def info() -> list[Entry]:
    """All kept profiles, the last used first."""
    home = directory()
    entries = [entry for folder in _folders(home) if (entry := _entry(folder)) is not None] if home is not None else []
    return sorted(entries, key=lambda entry: -entry.used_unix_s)


def clear() -> int:
    """Remove all kept profiles; gives the bytes that this frees."""
    home = directory()
    if home is None:
        return 0
    freed = 0
    for folder in (*_folders(home), *_leftovers(home)):
        freed += _bytes_in(folder)
        _remove(folder)
    return freed


def _load(entry: Path, inputs: Sequence[Input]) -> Profile:
    """The profile in an entry, all of it checked. Frames but for the slices wait until they are used, their files open."""
    meta = _read_meta(entry)
    copied = _is_remote_disk(entry)
    sources, warnings = _under_present_names(meta, inputs)
    profile = Profile(sources=sources, warnings=warnings, zero_unix_ns=meta.zero_unix_ns, from_cache=True)
    for name, kept in meta.frames.items():
        path = entry / f"{name}.arrow"
        _check(path, kept)
        if kept.columns != _columns(name):
            raise ValueError(f"{path.name} has other columns")
        if copied or name in _AT_ONCE:
            setattr(profile, name, map_frame(path, FRAMES[name], copied=copied))
        else:
            profile.defer(name, partial(_read_later, path.open("rb"), FRAMES[name]))
    return profile


def _read_later(file: BinaryIO, schema: pl.Schema) -> pl.DataFrame:
    with file:
        return map_file(file, schema)


def _under_present_names(meta: _Meta, inputs: Sequence[Input]) -> tuple[list[Source], list[Warning]]:
    """Sources and warnings, with the paths as the user named them this time."""
    present = {file.location: file.path for file in inputs}
    new = {old: present[location] for old, location in meta.locations.items() if present[location] != old}
    sources = [msgspec.structs.replace(source, path=new.get(source.path, source.path)) for source in meta.sources]
    warnings = meta.warnings
    for old, path in new.items():
        warnings = [msgspec.structs.replace(warning, message=warning.message.replace(old, path)) for warning in warnings]
    return sources, warnings


def _write(folder: Path, profile: Profile, inputs: Sequence[Input], stopped: Callable[[], bool]) -> None:
    frames: dict[str, _Frame] = {}
    for name, frame in profile.frames().items():
        if stopped():
            raise Interrupted("keeping the profile was stopped")
        if frame.height:
            path = folder / f"{name}.arrow"
            write_frame(frame, path)
            _sync(path)
            frames[name] = _Frame(path.stat().st_size, _crc(path), _columns(name))
    paths = {source.path for source in profile.sources}
    meta = _Meta(
        created_unix_s=time.time(),
        locations={file.path: file.location for file in inputs if file.path in paths},
        sources=profile.sources,
        warnings=profile.warnings,
        zero_unix_ns=profile.zero_unix_ns,
        frames=frames,
    )
    # The standard library's JSON, since only that keeps a file name that is no UTF-8.
    text = json.dumps(msgspec.to_builtins(meta)).encode()
    (folder / _META).write_bytes(b"%08x\n" % crc32(text) + text)
    _sync(folder / _META)


def _read_meta(entry: Path) -> _Meta:
    head, _, text = (entry / _META).read_bytes().partition(b"\n")
    if int(head, 16) != crc32(text):
        raise ValueError("its description is damaged")
    return msgspec.convert(json.loads(text), _Meta)


def _check(path: Path, kept: _Frame) -> None:
    if path.stat().st_size != kept.bytes or _crc(path) != kept.crc:
        raise ValueError(f"{path.name} is damaged")


def _columns(name: str) -> str:
    return ", ".join(f"{column} {kind}" for column, kind in FRAMES[name].items())


def _crc(path: Path) -> int:
    return int(crc32(np.memmap(path, dtype=np.uint8, mode="r").data))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_home(home: Path) -> None:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    tag = home.parent / _TAG
    if not tag.exists():
        tag.write_text(_TAG_TEXT)


def _put(made: Path, entry: Path) -> None:
    """Rename a finished folder to its name, all at once; if another roofterm was first, its entry stays."""
    _sync(made)
    try:
        made.rename(entry)
    except OSError:
        if not (entry / _META).is_file():
            raise
    else:
        _sync(entry.parent)


def _shrink(home: Path, limit_bytes: int, keep: str) -> None:
    """Remove the longest unused entries beyond the limit, and what a killed roofterm left."""
    for folder in _leftovers(home):
        delete(folder)
    aged = sorted(((_used(folder), folder, _bytes_in(folder)) for folder in _folders(home)), key=lambda item: item[0])
    total = sum(size for _, _, size in aged)
    for _, folder, size in aged:
        if total <= limit_bytes:
            return
        if folder.name != keep:
            _remove(folder)
            total -= size


def _folders(home: Path) -> Iterator[Path]:
    """Entries, told by their names: nothing else in the folder is ever touched."""
    return (home / name for name in _names_in(home) if len(name) == 32 and all(char in "0123456789abcdef" for char in name))


def _leftovers(home: Path) -> Iterator[Path]:
    """What a roofterm that was killed long ago left half done."""
    for name in _names_in(home):
        if name.startswith("tmp-"):
            with suppress(OSError):
                if time.time() - (home / name).stat().st_mtime > _STALE_SECONDS:
                    yield home / name


def _names_in(home: Path) -> list[str]:
    try:
        return sorted(os.listdir(home))
    except OSError:
        return []


def _entry(folder: Path) -> Entry | None:
    try:
        meta = _read_meta(folder)
    except _FAILURES:
        return Entry(["(damaged)"], _bytes_in(folder), 0.0, _used(folder), folder.name)
    paths = sorted(meta.locations.values())
    return Entry(paths, _bytes_in(folder), meta.created_unix_s, _used(folder), folder.name)


def _used(folder: Path) -> float:
    try:
        return (folder / _META).stat().st_mtime
    except OSError:
        return 0.0


def _bytes_in(folder: Path) -> int:
    total = 0
    with suppress(OSError):
        for item in os.scandir(folder):
            total += item.stat(follow_symlinks=False).st_size
    return total


def _remove(folder: Path) -> None:
    """Take an entry out of sight, then delete it: no one ever sees half of one."""
    away = folder.with_name(f"tmp-{os.getpid()}-{os.urandom(6).hex()}")
    try:
        folder.rename(away)
    except OSError:
        away = folder
    delete(away)


def _free_bytes(folder: Path) -> int:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def _is_remote_disk(path: Path) -> bool:
    """True on a network file system: a file that another machine deletes there takes a mapped page, and the process, with it."""
    kind, best = "", ""
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return False
    for line in lines:
        before, _, after = line.partition(" - ")
        fields = before.split()
        if len(fields) > 4 and after and (str(path) + "/").startswith(fields[4].rstrip("/") + "/") and len(fields[4]) >= len(best):
            best, kind = fields[4], after.split()[0]
    return kind.startswith(
        ("nfs", "cifs", "smb", "lustre", "gpfs", "beegfs", "ceph", "9p", "afs", "glusterfs", "fuse", "pvfs2", "orangefs")
    )


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) and error.strerror else " ".join(str(error).split())[:120]) or type(error).__name__
