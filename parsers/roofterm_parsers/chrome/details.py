"""One event with all that it holds, read again from the file: no table keeps every argument."""

from __future__ import annotations

import json
from typing import Any

from roofterm_parsers.chrome.groups import BEGIN, PHASES, SLICE
from roofterm_parsers.chrome.splitting import ByteSource

LONGEST_EVENT_BYTES = 8 << 20
_READ_BYTES = 1 << 20
_FIRST_BYTES = 64 << 10
_NEAR = 32
"""Characters from the end of what was read: a fault there is its end, not damage."""


def events_at(stream: ByteSource, name: str, count: int = 1) -> list[dict[str, Any]]:
    """The first `count` events called `name` that begin a slice, at the place of a stream or soon behind it; fewer if there are no more.

    The stream is at the offset of a slice: the event's own, or that of the stretch it stands in, where its own is not known.
    """
    found: list[dict[str, Any]] = []
    data = b""
    place = 0
    reader = json.JSONDecoder(strict=False)
    while more := stream.read(_READ_BYTES if data else _FIRST_BYTES):
        data += more
        text = data.decode("utf-8", "replace")
        at = text.find("{", place)
        while at >= 0:
            try:
                event, end = reader.raw_decode(text, at)
            except json.JSONDecodeError as error:
                if error.msg.startswith("Unterminated") or error.pos > len(text) - _NEAR:
                    break  # more text may mend it
                event, end = None, at + 1
            except (ValueError, RecursionError):
                event, end = None, at + 1
            if isinstance(event, dict) and event.get("name") == name and PHASES.get(str(event.get("ph"))) in (SLICE, BEGIN):
                found.append(event)
                if len(found) == count:
                    return found
            place = end
            at = text.find("{", end)
        if len(data) > LONGEST_EVENT_BYTES:
            break
    return found
