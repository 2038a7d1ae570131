"""A slice's event as its file holds it, read again when somebody asks: tables keep only the arguments that they need."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

from roofterm_parsers.cache_keys import key_of
from roofterm_parsers.chrome.details import event_at
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
    with closing(reopen(source, row["offset"], default_limit_bytes(), cancelled)) as stream:
        event = event_at(stream, name)
    if event is None or not _lasts(event, row["dur_ps"]):
        raise ProfileError(f"{source.path}: the event is not found again at its place", source.path)
    return event


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
    if isinstance(told, bool) or not isinstance(told, int | float):
        return True
    return abs(max(told, 0) * _PS_PER_US - dur_ps) <= 1 + _ROUNDED * abs(dur_ps)
