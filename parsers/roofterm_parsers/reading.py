"""One input read: looked into, unpacked, and given to the reader of its format."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec

from roofterm_parsers.chrome.crew import EXPANDING
from roofterm_parsers.container import BOM, Stream, open_stream
from roofterm_parsers.discover import Look
from roofterm_parsers.errors import Interrupted, ProfileError, TooLarge
from roofterm_parsers.inputs import Input, open_raw
from roofterm_parsers.listing import list_named
from roofterm_parsers.lookalike import Lookalike, identify
from roofterm_parsers.memory_limit import taken_bytes
from roofterm_parsers.progress import Tracker
from roofterm_parsers.records import HostNames, Source, Warning
from roofterm_parsers.sniffing import HEAD_BYTES, speaks_of_events

if TYPE_CHECKING:
    from roofterm_parsers.chrome.crew import Crew
    from roofterm_parsers.profile import Profile

XPLANE_PER_MEMORY = 3
"""An XPlane file is held in memory whole, and its frames beside it: it may take this part of what is allowed."""
LINKING_PER_READING = 2.5
"""What a trace takes at its most, while its events are put in order and linked, over what it took to be read (measured: 2.6)."""
_MAPPED_BYTES = 64 << 20
_LEFTOVERS = (".tmp", ".part", ".crdownload")


def look_into(file: Input, max_memory: int, tracker: Tracker) -> Look:
    """What a file is, by the first bytes of its content; never raises but `Interrupted`."""
    if file.kind == "pipe":
        return Look(format="json")  # its bytes come but once: it is looked into when it is read
    try:
        with closing(open_stream(open_raw(file, lambda _: tracker.watch(0)), file.path, max_memory)) as stream:
            head = stream.peek(HEAD_BYTES)
    except Interrupted:
        raise
    except ProfileError as error:
        return Look(flaw=str(error))
    what = identify(head, _inner_name(file, stream), whole=len(head) < HEAD_BYTES)
    if isinstance(what, Lookalike):
        return Look(flaw=what.sentence(file.path), neighbour=what.neighbour)
    return Look(format=what, sure=what == "xplane" or speaks_of_events(head))


def read_input(
    file: Input, tracker: Tracker, *, max_memory: int, workers: int | Crew | None, device_alone: bool | HostNames = False
) -> Profile:
    """The profile in one input, with what its container had to say. `device_alone`: see `xplane.reader.read`.

    Raises ProfileError if it is none, or holds nothing on the time axis; Interrupted if loading is stopped.
    """
    tracker.phase("reading", file.path)
    with closing(open_stream(open_raw(file, tracker.watch), file.path, max_memory)) as stream:
        head = stream.peek(HEAD_BYTES)
        what = identify(head, _inner_name(file, stream), whole=len(head) < HEAD_BYTES)
        if isinstance(what, Lookalike):
            raise ProfileError(what.sentence(file.path), file.path)
        source = Source(
            path=file.path, format="xplane" if what == "xplane" else "chrome", container=stream.container, run=file.run, host=file.host
        )
        if what == "xplane":
            profile = _read_xplane(file, stream, source, tracker, device_alone)
        else:
            expected = (file.bytes or 0) * (EXPANDING if stream.containers else 1)
            profile = _read_chrome(stream, source, tracker, max_memory=max_memory, workers=workers, expected_bytes=expected)
        if not _has_anything(profile):
            raise ProfileError(f"{file.path}: there is no event in it: nothing on the time axis", file.path)
        facts = {"bytes": file.bytes if file.bytes is not None else stream.bytes_read, "bytes_expanded": stream.bytes_expanded}
        profile.sources = [msgspec.structs.replace(read, **facts) for read in profile.sources]
        profile.warnings = [*_of_name(file), *stream.warnings, *profile.warnings]
        return profile


def reopen(source: Source, offset: int, max_memory: int, cancelled: Callable[[], bool] = lambda: False) -> Stream:
    """The content of a file of a profile from a byte offset on, as `slices.offset` counts them; the caller closes it.

    Up to there a packed file is unpacked again. Raises ProfileError if the file cannot be read any more, as standard input;
    Interrupted if `cancelled()`.
    """
    (listing,) = list_named(source.path)
    (file,) = listing.files
    if file.kind == "pipe":
        raise ProfileError(f"{source.path}: cannot be read a second time", source.path)
    raw = open_raw(file, Tracker(None, cancelled).watch)
    stream = open_stream(raw, file.path, max_memory)
    if not stream.containers and raw.seekable:
        raw.seek(offset + (len(BOM) if stream.has_mark else 0))
        return open_stream(raw, file.path, max_memory)
    left = offset
    while left > 0 and (data := stream.read(min(left, 1 << 20))):
        left -= len(data)
    return stream


def _read_chrome(
    stream: Stream, source: Source, tracker: Tracker, *, max_memory: int, workers: int | Crew | None, expected_bytes: int
) -> Profile:
    from roofterm_parsers.chrome.reader import read

    before = taken_bytes()

    # The bytes are counted where they are read, as they lie on disk.
    def at_block(_: int) -> None:
        taken = taken_bytes() - before
        if taken * LINKING_PER_READING > max_memory:
            raise TooLarge(
                f"{stream.path}: {stream.bytes_expanded / 1e6:,.0f} MB of its text take {taken / 1e6:,.0f} MB of memory, and linking "
                f"more: beyond the {max_memory / 1e6:,.0f} MB that are allowed; raise --max-memory, or record fewer steps",
                stream.path,
            )
        if stream.ended:
            tracker.phase("linking")

    return read(
        stream, source, at_block, workers=workers, max_memory=max_memory, expected_bytes=expected_bytes, cancelled=tracker.cancelled
    )


def _read_xplane(file: Input, stream: Stream, source: Source, tracker: Tracker, device_alone: bool | HostNames) -> Profile:
    from roofterm_parsers.xplane.reader import read

    most = stream.max_memory // XPLANE_PER_MEMORY
    if stream.container == "plain" and file.kind == "file" and (file.bytes or 0) > _MAPPED_BYTES:
        _check_fits(file.path, file.bytes or 0, most)
        with open(file.location, "rb") as opened:
            mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        stream.bytes_expanded = len(mapped)
        return read(memoryview(mapped), source, tracker.watch, cancelled=tracker.cancelled, device_alone=device_alone)
    data = _all_of(stream, most)
    tracker.phase("linking")
    return read(data, source, lambda _: tracker.watch(0), cancelled=tracker.cancelled, device_alone=device_alone)


def _all_of(stream: Stream, most: int) -> bytes:
    parts: list[bytes] = []
    while data := stream.read(1 << 20):
        parts.append(data)
        _check_fits(stream.path, stream.bytes_expanded, most)
    return b"".join(parts)


def _check_fits(path: str, size: int, most: int) -> None:
    if size > most:
        raise TooLarge(
            f"{path}: an XPlane profile of {size / 1e6:,.0f} MB needs about {size * XPLANE_PER_MEMORY / 1e6:,.0f} MB of memory, "
            "more than is allowed; raise --max-memory, or record fewer steps",
            path,
        )


def _has_anything(profile: Profile) -> bool:
    return any(frame.height for frame in (profile.slices, profile.instants, profile.counters, profile.memory, profile.flows))


def _of_name(file: Input) -> list[Warning]:
    if not file.name.endswith(_LEFTOVERS):
        return []
    return [Warning("leftover", f"{file.path}: by its name a leftover of a writer or download that did not finish; opened as it is")]


def _inner_name(file: Input, stream: Stream) -> str:
    """The name without the suffixes of containers, which its content is not packed in any more."""
    name = file.name
    for suffix in (".gz", ".zst", ".zip", *_LEFTOVERS):
        name = name.removesuffix(suffix) if stream.containers or suffix in _LEFTOVERS else name
    return name
