"""From what the user named to the files of one profile: which of them are profiles, counted once, of one run.

Files that the user names are all opened. Of a folder (a TensorBoard log dir, a run, ranks side by side) those are taken
that are profiles by their content. Where a folder holds several runs, the newest is opened and all are counted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from roofterm_parsers.errors import ProfileError
from roofterm_parsers.inputs import Input
from roofterm_parsers.listing import Listing, list_named, natural
from roofterm_parsers.ranks import rank_in
from roofterm_parsers.records import Warning
from roofterm_parsers.sniffing import Format

CAPTURES = "capture_traces"
"""Folder beside a profile with the traces of its graphs' capture."""

# fmt: off
_NO_PROFILES = {
    "py", "pyc", "pyi", "so", "c", "cc", "cpp", "cu", "h", "hpp", "sh", "rs", "js", "css", "ipynb",
    "txt", "md", "rst", "log", "out", "err", "yaml", "yml", "toml", "cfg", "ini", "lock", "csv", "tsv", "xlsx",
    "parquet", "arrow", "feather", "npy", "npz", "pt", "pth", "bin", "safetensors", "ckpt", "h5", "hdf5", "onnx", "gguf",
    "png", "jpg", "jpeg", "gif", "svg", "pdf", "mp4", "whl", "tar", "tgz", "o", "a",
}
# fmt: on
"""Suffixes in a folder that are not even looked into. A file that the user names is looked into whatever its name."""
_CLAIMS = re.compile(r"(\.trace\.json|\.xplane\.pb|trace.*\.json|rank[-_]?\d+.*\.json)(\.gz|\.zst|\.zip)?(\.tmp)?$", re.IGNORECASE)
"""Names that promise a profile: one that is none deserves a warning."""
_XLA_JSON = re.compile(r"(?:(?P<stem>.+)\.)?(?:perfetto_)?trace\.json(\.gz)?$")
_XPLANE = re.compile(r"(?P<stem>.+)\.xplane\.pb(\.gz)?$")
_RUN_FOLDER = re.compile(r"(?:^|/)plugins/profile/([^/]+)/[^/]*$")
_WINDOW = re.compile(r"(?P<worker>.+)\.(?P<stamp>\d{12,20})\.pt\.trace\.json(\.gz)?$")
_WORKER_HOST = re.compile(r"(?P<host>.+)_\d+$")
"""torch names a worker HOST_PID."""
_RANK_FOLDER = re.compile(r"(?:(?:global[-_]?|local[-_]?)?rank|worker|node|host|gpu|device|tp|pp|dp|r)[-_]?\d+$", re.IGNORECASE)
_DATED_RUN = re.compile(r"\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d$")
_LISTED = 3


class Look(msgspec.Struct, frozen=True):
    """What a file is, by a look into it."""

    format: Format | None = None
    flaw: str | None = None
    """why it is no profile: a sentence that names it"""
    sure: bool = True
    """JSON that says by its first bytes that it is a trace"""
    neighbour: bool = False
    """another kind of file that is often found beside profiles"""


class Found(msgspec.Struct, frozen=True):
    """The files of a profile, what there is to say about them, and the names of all runs in the folders they are from."""

    inputs: list[Input]
    warnings: list[Warning] = []
    runs: list[str] = []


def discover(words: Sequence[str], look: Callable[[Input], Look]) -> Found:
    """The files of one profile. `look` opens a file and says what it is.

    Raises ProfileError if something named does not exist, or if there is no profile in what is named.
    """
    listings = [listing for word in words for listing in list_named(word)]
    if len(listings) == 1 and listings[0].folder is None and len(listings[0].files) == 1:
        return _alone(listings[0].files[0], look)
    looks = _Looks(look)
    found = [_in_folder(listing, listing.folder, looks) for listing in listings if listing.folder is not None]
    named = _without_copies([file for listing in listings if listing.folder is None for file in listing.files], looks)
    inputs = _distinct([file for part in (*found, named) for file in part.inputs])
    if not inputs:
        raise ProfileError(_nothing(words, looks), words[0])
    return Found(
        inputs=inputs,
        warnings=[warning for part in (*found, named) for warning in part.warnings],
        runs=sorted({run for part in found for run in part.runs}, key=natural),
    )


class _Looks:
    """Looks at files, each once."""

    def __init__(self, look: Callable[[Input], Look]) -> None:
        self._look = look
        self.seen: dict[str, Look] = {}

    def __call__(self, file: Input) -> Look:
        if file.location not in self.seen:
            self.seen[file.location] = self._look(file)
        return self.seen[file.location]

    def is_profile(self, file: Input) -> bool:
        seen = self(file)
        return seen.format is not None and (seen.sure or _CLAIMS.search(file.name) is not None)


def _alone(file: Input, look: Callable[[Input], Look]) -> Found:
    """One file that the user named. In a run folder the XPlane file beside a JSON is read in its place."""
    beside = _xplane_beside(file)
    if beside is None or look(beside).format != "xplane":
        return Found([_placed(file)])
    if _RUN_FOLDER.search(_slashed(file.location)):
        told = f"{file.path}: read {beside.name} beside it instead: the same profile, with costs and peaks that the JSON lacks"
        return Found([_placed(beside)], [Warning("sibling", told)])
    told = f"{file.path}: {beside.name} beside it holds the same profile, with costs and peaks that the JSON lacks; open that one"
    return Found([_placed(file)], [Warning("sibling", told)])


def _xplane_beside(file: Input) -> Input | None:
    match = _XLA_JSON.match(file.name)
    if file.kind != "file" or not match or not match["stem"]:
        return None
    location = os.path.join(os.path.dirname(file.location), match["stem"] + ".xplane.pb")
    try:
        status = os.stat(location)
    except OSError:
        return None
    path = file.path[: len(file.path) - len(file.name)] + match["stem"] + ".xplane.pb"
    return Input(path=path, location=location, bytes=status.st_size, mtime_ns=status.st_mtime_ns)


def _in_folder(listing: Listing, folder: str, looks: _Looks) -> Found:
    """The profiles of the newest run in a folder, each once."""
    files = [file for file in listing.files if file.name.rpartition(".")[2].lower() not in _NO_PROFILES]
    # What graphs were captured from belongs to the profile beside it and is no run of its own.
    own = [file for file in files if CAPTURES not in _below(file, folder).split("/")[:-1]]
    runs = _by_run(own or files, folder)
    chosen: Found | None = None
    names: list[str] = []
    for run in sorted(runs, key=lambda run: _age(run, runs, folder), reverse=True):
        files = runs[run]
        if chosen is not None:
            if any(looks.is_profile(file) for file in files):
                names.append(run)
            continue
        good = [file for file in files if looks.is_profile(file)]
        if good:
            chosen = _of_run(good, [file for file in files if file not in good], looks)
            names.append(run)
    if chosen is None:
        return Found([])
    warnings = list(chosen.warnings)
    if len(names) > 1:
        warnings.append(_of_runs(folder, names, _is_direct(runs[names[0]], folder)))
    inputs = [msgspec.structs.replace(file, run=file.run or (names[0] if len(names) > 1 else None)) for file in chosen.inputs]
    return Found(inputs, warnings, names if len(names) > 1 else sorted({file.run for file in inputs if file.run}))


def _of_runs(folder: str, names: Sequence[str], direct: bool) -> Warning:
    others = ", ".join(names[1 : _LISTED + 1]) + (", ..." if len(names) > _LISTED + 1 else "")
    opened = "those directly in it" if direct else f"the newest, {names[0]}"
    return Warning("runs", f"{folder}: holds {len(names)} runs; opened {opened}; name a folder for another: {others}", len(names))


def _of_run(good: list[Input], rest: list[Input], looks: _Looks) -> Found:
    warnings: list[Warning] = []
    for file in rest:
        seen = looks(file)
        if seen.flaw and not seen.neighbour and _CLAIMS.search(file.name) and not _is_derived(file):
            warnings.append(Warning("left_out", f"{seen.flaw}; left out"))
    good, left = _newest_windows(_whole_only(good))
    if left:
        names = _names(left)
        warnings.append(Warning("windows", f"older windows of the same workers are left out: {names}; name them to open them", len(left)))
    found = _without_copies(good, looks)
    return Found(found.inputs, warnings + found.warnings)


def _is_derived(file: Input) -> bool:
    return file.name.lower().endswith((".op_stats.pb", ".kernel_stats.pb", ".overview_page.pb", ".input_pipeline.pb"))


def _whole_only(files: list[Input]) -> list[Input]:
    """Without leftovers of an interrupted writer (`X.tmp`) beside the whole file."""
    names = {file.location for file in files}
    return [file for file in files if not (file.location.endswith(".tmp") and file.location.removesuffix(".tmp") in names)]


def _newest_windows(files: list[Input]) -> tuple[list[Input], list[Input]]:
    """Of files that a worker wrote one after the other (WORKER.STAMP.pt.trace.json) the last; and those before it."""
    newest: dict[tuple[str, str], tuple[int, Input]] = {}
    for file in files:
        match = _WINDOW.match(file.name)
        if match:
            key = (os.path.dirname(file.location), match["worker"])
            newest[key] = max(newest.get(key, (-1, file)), (int(match["stamp"]), file), key=lambda pair: pair[0])
    kept = {file.location for _, file in newest.values()}
    is_kept = [file.location in kept or not _WINDOW.match(file.name) for file in files]
    return [f for f, keep in zip(files, is_kept, strict=True) if keep], [f for f, keep in zip(files, is_kept, strict=True) if not keep]


def _without_copies(files: list[Input], looks: _Looks) -> Found:
    """Without the JSON that XLA writes beside an XPlane file, and without its Perfetto copy: the same data again."""
    stems: dict[str, set[str]] = {}
    for file in files:
        match = _XPLANE.match(file.name)
        if match and looks(file).format == "xplane":
            stems.setdefault(os.path.dirname(file.location), set()).add(match["stem"])
    kept: list[Input] = []
    copies: list[Input] = []
    for file in files:
        beside = stems.get(os.path.dirname(file.location), set())
        match = _XLA_JSON.match(file.name)
        is_copy = match is not None and bool(beside) and (match["stem"] in beside or file.name.startswith("perfetto_trace."))
        is_copy = is_copy or (file.name.startswith("perfetto_trace.") and any(_is_twin(file, other) for other in files))
        (copies if is_copy else kept).append(file)
    inputs = [_placed(file) for file in kept]
    if not copies:
        return Found(inputs)
    told = f"{_names(copies)}: the same data again as in {_names(_originals(copies, kept))}; counted once"
    return Found(inputs, [Warning("same_data", told, len(copies))])


def _is_twin(copy: Input, other: Input) -> bool:
    """True for the trace.json.gz that a perfetto_trace.json.gz in a run folder repeats."""
    same_folder = os.path.dirname(copy.location) == os.path.dirname(other.location)
    in_run = _RUN_FOLDER.search(_slashed(other.location)) is not None
    return same_folder and in_run and other is not copy and _XLA_JSON.match(other.name) is not None


def _originals(copies: Iterable[Input], kept: Iterable[Input]) -> list[Input]:
    folders = {os.path.dirname(file.location) for file in copies}
    return [file for file in kept if os.path.dirname(file.location) in folders and (_XPLANE.match(file.name) or _XLA_JSON.match(file.name))]


def _placed(file: Input) -> Input:
    """With the run and host that its place and name state: plugins/profile/RUN/HOST.xplane.pb, HOST_PID.STAMP.pt.trace.json."""
    run = _RUN_FOLDER.search(_slashed(file.location))
    return msgspec.structs.replace(file, run=file.run or (run[1] if run else None), host=file.host or _host_in(file.name, bool(run)))


def _host_in(name: str, in_run: bool) -> str | None:
    window = _WINDOW.match(name)
    if window:
        worker = _WORKER_HOST.match(window["worker"])
        return worker["host"] if worker and rank_in(window["worker"]) is None else None
    stem = _XPLANE.match(name) or (_XLA_JSON.match(name) if in_run else None)
    return stem["stem"] if stem else None


def _by_run(files: Iterable[Input], folder: str) -> dict[str, list[Input]]:
    """Files by run: the folder they lie in, folders of ranks of one job (rank0/, rank1/) taken together."""
    groups: dict[str, list[Input]] = {}
    names: dict[str, str] = {}
    numbered = _numbered_folders(files := list(files), folder)
    for file in files:
        parts = _below(file, folder).split("/")[:-1]
        key = "/".join("*" if _RANK_FOLDER.match(part) or "/".join(parts[:i]) in numbered else part for i, part in enumerate(parts))
        place = _RUN_FOLDER.search(_slashed(file.location))
        before = "/".join(parts).partition("plugins/profile")[0].rstrip("/") if place else ""
        own = f"{before}/{place[1]}".lstrip("/") if place else key or _slashed(folder).rstrip("/").rpartition("/")[2]
        names.setdefault(key, own if own not in names.values() else key)
        groups.setdefault(key, []).append(file)
    return {names[key]: group for key, group in groups.items()}


def _numbered_folders(files: Iterable[Input], folder: str) -> set[str]:
    """Folders whose subfolders are called 0, 1, 2, ... and nothing else: one for each rank."""
    below: dict[str, set[str]] = {}
    for file in files:
        parts = _below(file, folder).split("/")[:-1]
        for i, part in enumerate(parts):
            below.setdefault("/".join(parts[:i]), set()).add(part)
    return {place for place, names in below.items() if names == {str(n) for n in range(len(names))} and len(names) > 1}


def _is_direct(files: Iterable[Input], folder: str) -> bool:
    return any("/" not in _below(file, folder) for file in files)


def _below(file: Input, folder: str) -> str:
    start = _slashed(folder).rstrip("/") + "/"
    return _slashed(file.path).removeprefix(start)


def _age(run: str, runs: dict[str, list[Input]], folder: str) -> tuple[object, ...]:
    """Sort key: what is opened first is greater. Files directly in the named folder are what the user means; else later runs are
    greater, by the profiler's date in the folder's name if every run has one."""
    direct = _is_direct(runs[run], folder)
    if all(_DATED_RUN.search(name) for name in runs):
        return (direct, run.rpartition("/")[2], run)
    return (direct, max((file.mtime_ns or 0 for file in runs[run]), default=0), natural(run))


def _distinct(files: Iterable[Input]) -> list[Input]:
    seen: dict[str, Input] = {}
    for file in files:
        key = os.path.realpath(file.location) if file.kind == "file" else file.location
        seen.setdefault(key, file)
    return list(seen.values())


def _nothing(words: Sequence[str], looks: _Looks) -> str:
    """The sentence for a folder without a profile: what was looked for, and what lies there instead."""
    flaws = [seen.flaw for seen in looks.seen.values() if seen.flaw]
    told = [flaw for flaw in flaws if " is not a profile that " not in flaw]
    what = f"{', '.join(words)}: no profile found (looked for Chrome traces, *.json or *.json.gz, and *.xplane.pb, by content)"
    return what + (": " + "; ".join(told[:_LISTED]) if told else "")


def _names(files: Sequence[Input]) -> str:
    """Files for a sentence: the first by its path, the others by their names."""
    listed = [files[0].path, *(file.name for file in files[1:_LISTED])]
    return ", ".join(listed) + (f" and {len(files) - _LISTED} more" if len(files) > _LISTED else "")


def _slashed(path: str) -> str:
    return path.replace("\\", "/") if os.sep == "\\" else path
