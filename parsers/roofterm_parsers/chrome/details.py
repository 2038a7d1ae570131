"""One event with all that it holds, read again from the file: no table keeps every argument."""

from __future__ import annotations

import json
from typing import Any

from roofterm_parsers.chrome.splitting import ByteSource

LONGEST_EVENT_BYTES = 8 << 20
_READ_BYTES = 1 << 20
_FIRST_BYTES = 64 << 10


def event_at(stream: ByteSource, name: str) -> dict[str, Any] | None:
    """The event called `name` at the place of a stream or soon behind it; None if it is too damaged to read.

    The stream is at the offset of a slice: the event's own, or in a damaged stretch that of the stretch.
    """
    data = b""
    reader = json.JSONDecoder(strict=False)
    while more := stream.read(_READ_BYTES if data else _FIRST_BYTES):
        data += more
        text = data.decode("utf-8", "replace")
        at = text.find("{")
        while at >= 0:
            try:
                event, end = reader.raw_decode(text, at)
            except (ValueError, RecursionError):
                break
            if isinstance(event, dict) and event.get("name") == name:
                return event
            at = text.find("{", end)
        if len(data) > LONGEST_EVENT_BYTES:
            break
    return None
