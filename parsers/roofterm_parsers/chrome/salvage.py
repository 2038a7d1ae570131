"""Events out of a damaged piece of text: every place that looks like the start of one is tried."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from roofterm_parsers.chrome.repair import mend, outer_fields

E = TypeVar("E")

KEYS = rb'"(?:ph|name|cat|pid|tid|ts|dur|id|args|bp|s|id2|tts|tdur|sf|cname|scope)"'
"""Keys that an event may begin with."""
MOST_MERGED = 4
"""How many suspected events are tried as one before the first is given up."""

START = re.compile(rb"(?:\A|[,\[{}])\s*(\{\s*" + KEYS + rb"\s*:|\{\s*\}\s*(?=[,\]]))")
TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_LIST_END = re.compile(rb'\}\s*,?\s*\]\s*(?:\}|,\s*"[A-Za-z_]+"\s*:|\Z)')
_BLANK = re.compile(rb"[\s,]*")
_NOTHING = b" \t\r\n,\x00"


def end_of_first(text: bytes, error: Exception) -> int | None:
    """Where the whole value ends that `text` begins with, if that is what a decoder complains of."""
    found = TRAILING.search(str(error))
    return len(text[: int(found[1]) - 1].rstrip()) if found else None


@dataclass(slots=True)
class Found(Generic[E]):
    """Events of a piece, where reading it ended, and whether the list of events ended there."""

    events: list[E]
    used: int
    ended: bool


class Salvager(Generic[E]):
    """Reads what can be read; counts in `damage` what was mended, skipped or cut."""

    def __init__(self, single: Callable[[bytes], E], loose: Callable[[bytes], E], damage: Counter[str]) -> None:
        """`single` decodes an event, `loose` one with values of other types; both raise msgspec errors."""
        self._single = single
        self._loose = loose
        self._damage = damage

    def resync(self, data: bytes, *, last: bool) -> Found[E]:
        """Events of a damaged text. `last`: the file ends with it."""
        starts = [m.start(1) for m in START.finditer(data)]
        events: list[E] = []
        if not starts:
            return self._without_events(data, last=last)
        if data[: starts[0]].strip():
            end = list_end(data, 0)
            if end is not None:
                return Found(events, end, True)
            self._damage["mended"] += 1
        bounds = [*starts, len(data)]
        i = 0
        while i < len(starts):
            event, used, following = self._next(data, bounds, i, last=last)
            if event is not None:
                events.append(event)
                behind = starts[i] + used
                end = list_end(data, behind)
                if end is not None:
                    return Found(events, end, True)
                if following < len(starts) and not _BETWEEN.fullmatch(data, behind, starts[following]):
                    self._damage["mended"] += 1
            i = following
        return Found(events, len(data), False)

    def whole(self, text: bytes) -> tuple[E | None, int]:
        """The event that `text` begins with, if it is JSON, and how many bytes it takes."""
        body = text.rstrip(_NOTHING)
        for _ in range(2):
            try:
                return self._single(body), len(body)
            except msgspec.ValidationError:
                try:
                    return self._loose(body), len(body)
                except (msgspec.DecodeError, RecursionError):
                    return None, 0
            except msgspec.DecodeError as error:
                end = end_of_first(body, error)
                if end is None:
                    return None, 0
                body = body[:end]
            except RecursionError:
                return None, 0
        return None, 0

    def _next(self, data: bytes, bounds: list[int], i: int, *, last: bool) -> tuple[E | None, int, int]:
        """The event that starts at bounds[i], the bytes it takes, and which start comes after it."""
        start, end = bounds[i], bounds[i + 1]
        event, used = self.whole(data[start:end])
        if event is not None:
            return event, used, i + 1
        text = data[start:end]
        is_tail = last and end == len(data)
        if is_tail and not text.rstrip(_NOTHING).endswith((b"}", b"]")):
            self._damage["cut"] += 1
            return None, len(text), i + 1
        event, used = self._mended(text)
        if event is not None:
            return event, used, i + 1
        for j in range(i + 2, min(i + 1 + MOST_MERGED, len(bounds))):  # a list of objects within the event's arguments
            event, used = self.whole(data[start : bounds[j]])
            if event is not None:
                return event, used, j
        if is_tail:
            self._damage["cut"] += 1
            return None, len(text), i + 1
        event, used = self._outer(text)
        self._damage["skipped" if event is None else "mended"] += 1
        return event, used, i + 1

    def _mended(self, text: bytes) -> tuple[E | None, int]:
        """The event in a damaged text, mended and counted, and how many bytes it takes; None if it cannot be."""
        body = text.rstrip(_NOTHING)
        ends = [len(body), *(m.start() + 1 for m in _LIST_END.finditer(body))]
        for end in ends[: MOST_MERGED + 1]:
            found = mend(body[:end], self._is_event)
            if found is not None:
                self._damage["mended"] += 1
                return self.whole(found)[0], end
        return None, len(text)

    def _outer(self, text: bytes) -> tuple[E | None, int]:
        """What the outer fields of a text say, if they are whole."""
        outer = outer_fields(text)
        event = None if outer is None else self.whole(outer)[0]
        return event, len(text.rstrip(_NOTHING)) if event is not None else len(text)

    def _is_event(self, text: bytes) -> bool:
        event, used = self.whole(text)
        return event is not None and used == len(text.rstrip())

    def _without_events(self, data: bytes, *, last: bool) -> Found[E]:
        end = list_end(data, 0)
        if end is not None:
            return Found([], end, True)
        if data.strip(_NOTHING):
            self._damage["cut" if last else "skipped"] += 1
        return Found([], len(data), False)


_BETWEEN = re.compile(rb"\s*,\s*")


def list_end(data: bytes, at: int) -> int | None:
    """Where the list of events has ended, if nothing but its end follows `at`."""
    blank = _BLANK.match(data, at)
    end = blank.end() if blank else at
    return end + 1 if data[end : end + 1] == b"]" else None


def whole_events(text: bytes, single: Callable[[bytes], E]) -> list[E]:
    """Those events of a damaged text that are JSON."""
    found: list[Any] = []
    bounds = [*(m.start(1) for m in START.finditer(text)), len(text)]
    for i, start in enumerate(bounds[:-1]):
        body = text[start : bounds[i + 1]].rstrip(_NOTHING)
        try:
            found.append(single(body))
        except (msgspec.DecodeError, RecursionError) as error:
            end = end_of_first(body, error)
            if end is not None:
                try:
                    found.append(single(body[:end]))
                except (msgspec.DecodeError, RecursionError):
                    continue
    return found
