"""Which format a content is in, by its first bytes: never by the file's name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

HEAD_BYTES = 1 << 16
"""What is looked at."""

Format = Literal["json", "xplane"]

_JSON_START = re.compile(rb"""\s*(\{\s*(["'}]|\Z)|\[\s*([\[{\]]|\Z))""")
_TRACE_WORDS = (b"traceEvents", b'"ph"', b"'ph'")
_KINETO_WORDS = (b'"deviceProperties"', b'"baseTimeNanoseconds"', b'"distributedInfo"', b'"traceName"', b'"displayTimeUnit"', b'"trace_id"')
_VARINT, _FIXED64, _LEN, _FIXED32 = 0, 1, 2, 5
_XSPACE_PLANE, _XSPACE_TEXTS = 1, (2, 3, 4)  # errors, warnings, hostnames
_XPLANE_FIELDS = {(1, _VARINT), (2, _LEN), (3, _LEN), (4, _LEN), (5, _LEN), (6, _LEN)}
_XPLANE_NAME = (2, _LEN)


def format_of(head: bytes) -> Format | None:
    """json for what may be a Chrome trace, xplane for an XSpace; None for anything else.

    `head`: the first `HEAD_BYTES` of the content. JSON is taken on trust here: a trace's events may begin far behind
    its header, and what comes before them is the user's own metadata.
    """
    if is_json(head):
        return "json"
    return "xplane" if is_xspace(head) else None


def is_json(head: bytes) -> bool:
    """True if a content starts like a JSON object or list, or holds events in the middle of which it starts."""
    return _JSON_START.match(head) is not None or (b'"ph"' in head and b'"ts"' in head)


def speaks_of_events(head: bytes) -> bool:
    """True if JSON says by its first bytes that it is a trace; a trace with much metadata may not."""
    return any(word in head for word in _TRACE_WORDS) or sum(word in head for word in _KINETO_WORDS) >= 2


def is_xspace(head: bytes) -> bool:
    """True if a content starts like a serialized XSpace with a plane in it, or an XSpace of messages alone."""
    texts = 0
    for field, wire, value in fields(head):
        if wire != _LEN or field not in (_XSPACE_PLANE, *_XSPACE_TEXTS):
            return False
        if field == _XSPACE_PLANE:
            return _is_xplane(value)
        if not is_printable(value):
            return False
        texts += 1
    return texts > 0 and not head.isascii()


def _is_xplane(data: bytes) -> bool:
    strange = 0
    named = False
    for count, (field, wire, value) in enumerate(fields(data)):
        if (field, wire) not in _XPLANE_FIELDS:
            if count == 0:
                return False
            strange += 1
        elif (field, wire) == _XPLANE_NAME and not named:
            if not is_printable(value):
                return False
            named = True
    return named or (strange == 0 and len(data) > 0 and next(fields(data), None) is not None)


def fields(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """(number, wire type, value) of the fields of a protobuf message whose end may be missing.

    The value is empty but for fields with a length; at a wrong tag a field of number 0 is given, and nothing more.
    """
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire = tag & 7
        value = b""
        if tag >> 3 == 0 or wire not in (_VARINT, _FIXED64, _LEN, _FIXED32):
            yield 0, wire, b""
            return
        if wire == _VARINT:
            _, at = _varint(data, at)
        elif wire == _LEN:
            length, at = _varint(data, at)
            value = data[at : at + length]
            at += length
        else:
            at += 8 if wire == _FIXED64 else 4
        yield tag >> 3, wire, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80 or shift > 63:
            return value, at
        shift += 7
    return value, at


def is_printable(data: bytes) -> bool:
    """True for UTF-8 text without control characters; its last character may be cut."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if error.start < len(data) - 3:
            return False
        text = data[: error.start].decode()
    return all(char.isprintable() or char in "\n\t\r" for char in text)
