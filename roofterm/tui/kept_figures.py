"""The first screen's figures, kept beside the cache of profiles: a profile opened again shows them before it is read.

They are believed only for the same bytes on disk, options, roofs and program; the profile is read and analysed all the same,
and what that gives takes their place. Importing this loads neither polars nor numpy. Whatever is wrong with a kept file (no
home, a full disk, damage), there is none.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from roofterm import __version__
from roofterm.analysis.digest import StepDigest
from roofterm.analysis.scope import STEADY
from roofterm.config_file import config_path
from roofterm.hardware.store import store_path
from roofterm.results import Coverage, DeviceInfo, Finding, HostBalance, LaunchPath, PhaseTime, StepRow, Summary, WarningInfo, XlaOverview
from roofterm.tui.options import Options
from roofterm.tui.state_files import folder_in, write_whole
from roofterm.tui.widgets.records import Records
from roofterm_parsers.errors import ProfileError
from roofterm_parsers.inputs import Input
from roofterm_parsers.listing import list_named

FORMAT = 3
MOST_BYTES = 2 << 20
"""of one profile's figures; those of more steps than fit are not kept"""
MOST_FILES = 200
MOST_ROWS = 60
"""of a table: more than a screen shows"""
MOST_FINDINGS = 3

FLAGS = (("record_shapes", "shapes"), ("with_stack", "stacks"), ("profile_memory", "memory"), ("with_flops", "flops"))
"""of the profiler, that the first screen shows: key of the metadata, and word"""

_DIGEST_BYTES = 16
_CAPTURES = "capture_traces"
_OUTLINE = ".outline"


class KeptSource(msgspec.Struct, frozen=True):
    """Of a file of the profile what the first screen says."""

    metadata: dict[str, Any]
    format: str = ""


class KeptTable(msgspec.Struct, frozen=True):
    """A table's first rows, and how many it has."""

    first: Records
    rows: int


NO_ROWS = KeptTable(Records([], []), 0)


class KeptFigures(msgspec.Struct, frozen=True):
    """All that the first screen shows of a whole profile."""

    header: list[str]
    screens: list[str]
    """that the profile has something for"""
    first_table: str
    part: str
    """of the profile that the tables speak of, in words"""
    sources: list[KeptSource]
    warnings: list[WarningInfo]
    mended: int
    summary: Summary
    devices: list[DeviceInfo]
    steps: list[StepRow]
    numbers_of_rows: list[int | None]
    digest: StepDigest
    nests: bool
    """ops of a device lie inside others: the first table goes by their own time"""
    outline: bool = False
    """only what costs little to find out is known; what is below, and what peaks say of steps and summary, is not"""
    coverage: Coverage | None = None
    findings: list[Finding] = []
    balance: HostBalance | None = None
    launch_path: LaunchPath | None = None
    phases: list[PhaseTime] = []
    kernels: KeptTable = NO_ROWS
    """the first table: of host ops where no device worked"""
    categories: KeptTable = NO_ROWS
    xla: XlaOverview | None = None


def key_of(paths: Sequence[str], options: Options) -> str | None:
    """The name of the figures of these files with these options; None if none are kept of them.

    None are kept of what cannot be known again (a pipe, a URL) nor of a part of a profile.
    """
    if not options.cache or options.capture is not None or options.scope != STEADY:
        return None
    try:
        files = [file for path in paths for listing in list_named(path) for file in listing.files]
        beside = {os.path.join(os.path.dirname(file.location), _CAPTURES) for file in files}
        files += [file for folder in beside if os.path.isdir(folder) for listing in list_named(folder) for file in listing.files]
    except (ProfileError, OSError):
        return None
    if not files or any(file.kind != "file" for file in files):
        return None
    settings = (msgspec.json.encode(options.roofs), options.top, os.uname().nodename, *map(_facts, (config_path(), store_path())))
    told = (FORMAT, __version__, _program(), settings, sorted(map(_of_file, files)))
    return hashlib.blake2b(repr(told).encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()


def read_figures(key: str | None) -> KeptFigures | None:
    """The figures of that name, else their outline; None if there are none, or none that can be understood."""
    home = _home()
    if key is None or home is None:
        return None
    return _read(home / key) or _read(home / (key + _OUTLINE))


def _read(path: Path) -> KeptFigures | None:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + _DIGEST_BYTES + 1)
        if data[:_DIGEST_BYTES] != _sum(data[_DIGEST_BYTES:]):
            return None
        figures = msgspec.msgpack.decode(data[_DIGEST_BYTES:], type=KeptFigures)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    with suppress(OSError):
        os.utime(path)
    return figures


def has_figures(key: str | None, outline: bool = False) -> bool:
    """Whether a file has that name; what is in it nobody has looked at. `outline`: one of an outline is enough."""
    home = _home()
    if key is None or home is None:
        return False
    return (home / key).is_file() or (outline and (home / (key + _OUTLINE)).is_file())


def keep_figures(key: str | None, figures: KeptFigures) -> None:
    """Keep them for the next time; those not shown for longest go."""
    home = _home()
    if key is None or home is None:
        return
    try:
        data = msgspec.msgpack.encode(figures)
        if len(data) <= MOST_BYTES:
            outline = home / (key + _OUTLINE)
            write_whole(outline if figures.outline else home / key, _sum(data) + data)
            if not figures.outline:
                outline.unlink(missing_ok=True)
            for _, path, _ in sorted(_files(home), reverse=True)[MOST_FILES:]:
                path.unlink()
    except (OSError, TypeError, UnicodeEncodeError):
        return


def clear_figures() -> int:
    """Remove all that are kept; gives the bytes that this frees."""
    home = _home()
    freed = 0
    for _, path, size in _files(home) if home is not None else ():
        with suppress(OSError):
            path.unlink()
            freed += size
    return freed


def _home() -> Path | None:
    cache = folder_in("XDG_CACHE_HOME", ".cache")
    return None if cache is None else cache / "figures"


def _files(home: Path) -> Iterator[tuple[float, Path, int]]:
    """When each was last shown, its path and its bytes."""
    with suppress(OSError):
        for entry in os.scandir(home):
            if entry.is_file(follow_symlinks=False):
                status = entry.stat()
                yield status.st_mtime, Path(entry.path), status.st_size


def _sum(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()


def _of_file(file: Input) -> tuple[str, int | None, int | None]:
    return file.location, file.bytes, file.mtime_ns


def _facts(path: Path) -> tuple[int, int] | None:
    """By which a file is known to be the same; None: there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _program() -> str:
    """What tells this program's code and tables from another's of the same version."""
    import roofterm
    import roofterm_parsers

    facts = [
        (os.path.relpath(place, root), name, _facts(Path(place, name)))
        for root in (*roofterm.__path__, *roofterm_parsers.__path__)
        for place, folders, names in os.walk(root)
        for name in sorted(names)
        if name.endswith((".py", ".toml", ".json"))
    ]
    return hashlib.blake2b(repr(sorted(facts)).encode(), digest_size=_DIGEST_BYTES).hexdigest()
