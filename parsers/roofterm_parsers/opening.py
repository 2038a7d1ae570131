"""From what the user named to one profile: found, read, put together, and kept for the next time.

What needs polars (the cache, merging) is imported where it is used: a large trace is read from early on, while polars still loads.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from roofterm_parsers.cache_keys import is_kept, is_worth, key_of
from roofterm_parsers.discover import Found, discover
from roofterm_parsers.errors import Interrupted, ProfileError, TooLarge
from roofterm_parsers.inputs import Input
from roofterm_parsers.memory_limit import default_limit_bytes
from roofterm_parsers.progress import Progress, Tracker
from roofterm_parsers.ranks import assign_ranks, missing_ranks
from roofterm_parsers.reading import look_into, read_input
from roofterm_parsers.records import DEVICE_ALONE, HostNames, Warning

if TYPE_CHECKING:
    from roofterm_parsers.abreast import Outcome
    from roofterm_parsers.chrome.crew import Crew
    from roofterm_parsers.profile import Profile

__all__ = ["Progress", "open_profile"]

MERGING_PER_READING = 1.5
"""What several profiles take at their most, while they are merged frame by frame, over what they take one by one."""
_LISTED = 3

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def open_profile(
    paths: Paths,
    *,
    progress: Callable[[Progress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
    cache: bool = True,
    max_memory: int | None = None,
    workers: int | Crew | None = None,
    device_alone: bool | HostNames = False,
) -> Profile:
    """Read a profile from a file, a folder, a quoted glob, "-" (standard input), a URL, or a list of these.

    `progress` is told how far reading has come, at most twenty times a second; `cancelled` is asked between reads, and
    stops loading with `Interrupted`. With `cache`, a profile that took long to read is kept under XDG_CACHE_HOME and
    found again. `max_memory` (bytes) bounds what may be taken; by default 60 % of what is free in the container.
    `workers`: how many processes decode large JSON beside this one, by default one for each other core that it may use; or a crew of
    them that was started before. `device_alone`: where a
    TPU's XPlane profile is not kept yet, read its devices' lines without the host's, and do not keep it. What XProf's tables show
    of the devices is then the same; with the names by which a host may tell more of their work also every roofline of it.

    Of a folder with several runs the newest is opened, and a warning names the others; `Source.metadata["runs"]` lists
    them all. A bad file among several is left out with a warning that names it. Raises ProfileError, with a sentence for
    the user, if nothing can be opened.
    """
    started = time.perf_counter()
    words = [os.fsdecode(path) for path in ([paths] if isinstance(paths, str | bytes | os.PathLike) else paths)]
    if not words:
        raise ProfileError("no file was named: give a trace, a folder, or - for standard input")
    limit = default_limit_bytes() if max_memory is None else max_memory
    try:
        found = discover(words, partial(look_into, max_memory=limit, tracker=Tracker(None, cancelled)))
        tracker = Tracker(progress, cancelled, _bytes_of(found.inputs), len(found.inputs))
        read = partial(_read, max_memory=limit, workers=workers, device_alone=device_alone)
        profile = _from_cache_or_files(found, tracker, use_cache=cache, read=read)
    except MemoryError as error:
        raise TooLarge(f"{words[0]}: needs more memory than there is; open fewer ranks, or record fewer steps", words[0]) from error
    profile.key = key_of(found.inputs)
    profile.warnings = [*found.warnings, *profile.warnings]
    if found.runs:
        profile.sources = [msgspec.structs.replace(source, metadata={**source.metadata, "runs": found.runs}) for source in profile.sources]
    profile.seconds = time.perf_counter() - started
    return profile


def _from_cache_or_files(found: Found, tracker: Tracker, *, use_cache: bool, read: Callable[..., Profile]) -> Profile:
    key = key_of(found.inputs) if use_cache else None
    told: list[Warning] = []
    if key is not None and is_kept(key):
        from roofterm_parsers import cache as kept

        profile, warning = kept.load(key, found.inputs)
        told += [warning] if warning is not None else []
        if profile is not None:
            return profile
    started = time.perf_counter()
    profile = read(found.inputs, tracker)
    whole = not any(source.metadata.get(DEVICE_ALONE) for source in profile.sources)
    if key is not None and whole and is_worth(_bytes_of(found.inputs) or 0, time.perf_counter() - started):
        tracker.phase("cache")
        from roofterm_parsers.cache import store

        warning = store(key, profile, found.inputs, stopped=tracker.cancelled)
        told += [warning] if warning is not None else []
    profile.warnings = [*told, *profile.warnings]
    return profile


def _read(
    inputs: Sequence[Input], tracker: Tracker, *, max_memory: int, workers: int | Crew | None, device_alone: bool | HostNames
) -> Profile:
    parts: dict[int, Profile] = {}
    flaws: dict[int, str] = {}
    taken = 0

    def left() -> int:
        return max(max_memory - taken, 1)

    for number, outcome in _outcomes(inputs, tracker, left, workers, device_alone):
        if isinstance(outcome, ProfileError):
            if len(inputs) == 1 or isinstance(outcome, TooLarge):
                raise outcome
            flaws[number] = str(outcome)
        else:
            parts[number] = outcome
            taken += sum(int(frame.estimated_size()) for frame in outcome.frames().values())
            if taken * (MERGING_PER_READING if len(inputs) > 1 else 1) > max_memory:
                path = inputs[number].path
                raise TooLarge(
                    f"{path}: with this file the profile takes more than the {max_memory / 1e9:.1f} GB of memory that are allowed; "
                    "open fewer ranks, or raise --max-memory",
                    path,
                )
        tracker.file_done()
    said = [flaw for _, flaw in sorted(flaws.items())]
    if not parts:
        listed = "; ".join(said[:_LISTED]) + ("; ..." if len(said) > _LISTED else "")
        raise ProfileError(f"none of the {len(inputs)} files can be opened: {listed}", inputs[0].path)
    left_out = [Warning("left_out", f"{flaw}; left out") for flaw in said]
    in_order = [part for _, part in sorted(parts.items())]
    parts.clear()
    told = _number_ranks(in_order)
    if len(in_order) > 1:
        tracker.phase("merging")
    from roofterm_parsers.merging import merge

    profile = merge(in_order, consumed=True)
    profile.warnings = [*left_out, *told, *profile.warnings]
    return profile


def _outcomes(
    inputs: Sequence[Input], tracker: Tracker, left: Callable[[], int], workers: int | Crew | None, device_alone: bool | HostNames
) -> Iterator[tuple[int, Outcome]]:
    """The number of each input and what came of it: side by side where there are several and cores to read them, else in turn."""
    waiting = dict(enumerate(inputs))
    with suppress(OSError):  # no process can be had: the rest is read here
        for number, outcome in _abreast(inputs, tracker, left, workers, device_alone):
            if isinstance(outcome, TooLarge):
                continue  # for its share of the memory: it may have all of it below
            del waiting[number]
            yield number, outcome
    for number, file in waiting.items():
        try:
            yield number, read_input(file, tracker, max_memory=left(), workers=workers, device_alone=device_alone)
        except (Interrupted, TooLarge):
            raise
        except ProfileError as error:
            yield number, error


def _abreast(
    inputs: Sequence[Input], tracker: Tracker, left: Callable[[], int], workers: int | Crew | None, device_alone: bool | HostNames
) -> Iterator[tuple[int, Outcome]]:
    """What comes of several inputs that are read side by side; nothing where they are better read in turn. Raises as `read_abreast`."""
    if len(inputs) < 2:
        return
    from roofterm_parsers.abreast import count_for, read_abreast

    count = count_for(inputs, left(), workers if isinstance(workers, int) else None)
    if count:
        yield from read_abreast(inputs, tracker, count=count, left=left, device_alone=device_alone)


def _number_ranks(parts: Sequence[Profile]) -> list[Warning]:
    """Give each source its rank; a warning if they had to be numbered by the order of the files, or if some are missing."""
    sources = [source for part in parts for source in part.sources]
    hosts = {(source.run, source.host) for source in sources}
    if len(sources) == 1 and sources[0].format in ("xplane", "xla_json"):
        return []
    ranks, told = assign_ranks([source.rank for source in sources], [source.path for source in sources])
    numbered = iter(ranks)
    for part in parts:
        part.sources = [msgspec.structs.replace(source, rank=next(numbered)) for source in part.sources]
    known_by_host = len(hosts) == len(sources) and all(source.host for source in sources)
    if told is not None:
        return [] if known_by_host else [Warning("rank", told)]
    absent = missing_ranks(ranks, [source.world_size for source in sources]) if len(sources) > 1 else None
    return [Warning("missing_ranks", absent)] if absent is not None else []


def _bytes_of(inputs: Sequence[Input]) -> int | None:
    sizes = [file.bytes for file in inputs if file.bytes is not None]
    return sum(sizes) if len(sizes) == len(inputs) else None
