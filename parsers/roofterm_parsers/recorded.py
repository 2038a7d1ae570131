"""A slice's event as its file holds it, read again when somebody asks: tables keep only the arguments that they need."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from roofterm_parsers.cache_keys import key_of
from roofterm_parsers.chrome.details import events_at
from roofterm_parsers.errors import ProfileError
from roofterm_parsers.listing import list_named
from roofterm_parsers.memory_limit import default_limit_bytes
from roofterm_parsers.profile import Profile
from roofterm_parsers.reading import reopen
from roofterm_parsers.records import Source

_PS_PER_US = 1_000_000
_ROUNDED = 1e-9
"""of a length, lost where it went through a float"""


def may_be_read_again(profile: Profile, slice_id: int) -> bool:
    """Whether a slice is an event of a text that is still at hand: a file's, not standard input's or a URL's, no XPlane's."""
    source = _source_of(profile, slice_id)
    return source.format != "xplane" and "://" not in source.path and source.path != "-"


def recorded_event(profile: Profile, slice_id: int, cancelled: Callable[[], bool] = lambda: False) -> dict[str, Any]:
    """The event that became a slice, as JSON gives it.

    Reads a plain file at the event's place; a packed one is unpacked up to there. Raises ProfileError if the file is gone, is
    not as it was when it was read, or is too damaged at that place; Interrupted if `cancelled()`.
    """
    source = _source_of(profile, slice_id)
    row = profile.slices.row(slice_id, named=True)
    name = str(profile.names["text"][row["name"]])
    if not _is_as_it_was(profile, source):
        raise ProfileError(f"{source.path}: has changed since it was read", source.path)
    alike = _in_the_same_stretch(profile, slice_id)
    with closing(reopen(source, row["offset"], default_limit_bytes(), cancelled)) as stream:
        events = events_at(stream, name, alike.size)
    event = _in_turn(events, int(np.flatnonzero(alike == slice_id)[0]), alike.size)
    if event is None or not _lasts(event, row["dur_ps"]):
        raise ProfileError(f"{source.path}: the event is not found again at its place", source.path)
    return event


def _in_the_same_stretch(profile: Profile, slice_id: int) -> NDArray[np.int64]:
    """The slices of that name whose offset is the same, in order of start: where that is not an event's own but its stretch's."""
    slices = profile.slices
    offset, name, track = (slices[column].to_numpy() for column in ("offset", "name", "track"))
    rows = np.flatnonzero((offset == offset[slice_id]) & (name == name[slice_id]))
    source = profile.tracks["source"].to_numpy()[track[rows]]
    rows = rows[source == source[rows == slice_id]]
    in_order: NDArray[np.int64] = rows[np.argsort(slices["start_ps"].to_numpy()[rows], kind="stable")]
    return in_order


def _in_turn(events: list[dict[str, Any]], place: int, count: int) -> dict[str, Any] | None:
    """The event whose turn by time it is; None where not all are there, or another one starts at the same time."""
    if len(events) < count or (count > 1 and not all(_is_number(event.get("ts")) for event in events)):
        return None
    if count == 1:
        return events[0]
    times = sorted(event["ts"] for event in events)
    if times.count(times[place]) > 1:
        return None
    return next(event for event in events if event["ts"] == times[place])


def _source_of(profile: Profile, slice_id: int) -> Source:
    return profile.sources[int(profile.tracks["source"][int(profile.slices["track"][slice_id])])]


def _is_as_it_was(profile: Profile, source: Source) -> bool:
    files = [file for listing in list_named(source.path) for file in listing.files]
    if len(files) != 1 or files[0].bytes != source.bytes:
        return False
    return len(profile.sources) > 1 or profile.key is None or key_of(files) == profile.key


def _lasts(event: dict[str, Any], dur_ps: int) -> bool:
    """Whether the event is as long as the slice, where it says so itself (one that was begun and ended does not)."""
    told = event.get("dur")
    if not _is_number(told):
        return True
    return abs(max(told, 0) * _PS_PER_US - dur_ps) <= 1 + _ROUNDED * abs(dur_ps)


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
