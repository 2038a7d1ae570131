"""Events whose values have other types than writers usually give: read without expectations, then bent into shape."""

from __future__ import annotations

import types as python_types
from collections.abc import Callable
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Raw, Struct, defstruct

from roofterm_parsers.chrome.events import NO_TEXT, NULL, AnyEvent

E = TypeVar("E", bound=AnyEvent)

NO_NAME = "(no name)"
LONGEST_INTEGER = 400
"""Digits of the longest text that is taken for an integer: Python refuses thousands, and no id has hundreds."""


class LooseReader:
    """Reads one event at a time into the struct that the decoder uses, whatever the types of its values."""

    def __init__(self, event: type[AnyEvent]) -> None:
        self._event = event
        self._read: Callable[[bytes], Any] | None = None

    def _prepare(self) -> Callable[[bytes], Any]:
        """Make the decoders: few files need them, and they take a while."""
        self._args: Any = get_type_hints(self._event)["args"]
        self._kinds = {f.name: _kind(hint) for f, hint in zip(msgspec.structs.fields(self._args), _hints(self._args), strict=True)}
        self._read_args = msgspec.json.Decoder(_all_raw(self._args)).decode
        read: Callable[[bytes], Any] = msgspec.json.Decoder(_all_raw(self._event)).decode
        self._read = read
        return read

    def read(self, text: bytes) -> AnyEvent:
        """The event in `text`, an object of valid JSON. Raises msgspec.DecodeError if it is something else."""
        raw = (self._read or self._prepare())(text)
        return self._event(
            ph=_text(raw.ph, ""),
            cat=_category(raw.cat),
            name=_text(raw.name, "" if len(bytes(raw.name)) == 0 else NO_NAME),
            pid=_id(raw.pid),
            tid=_id(raw.tid),
            ts=raw.ts,
            dur=raw.dur,
            id=_id(raw.id),
            args=self._arguments(bytes(raw.args)),
        )

    def _arguments(self, text: bytes) -> Any:
        if not text.startswith(b"{"):
            return self._args()
        raw = self._read_args(text)
        return self._args(**{name: kind(getattr(raw, name)) for name, kind in self._kinds.items()})


def _all_raw(struct: type[Struct]) -> type[Struct]:
    """The same keys, every value kept as text."""
    fields = msgspec.structs.fields(struct)
    return defstruct(
        f"Loose{struct.__name__}",
        [(f.name, Raw, msgspec.field(default=NO_TEXT, name=f.encode_name)) for f in fields],
        gc=False,
    )


def _hints(struct: type[Struct]) -> list[Any]:
    hints = get_type_hints(struct)
    return [hints[f.name] for f in msgspec.structs.fields(struct)]


def _kind(hint: Any) -> Any:
    """The function that bends a raw text into a value of the type."""
    if hint is Raw:
        return lambda raw: raw
    members = get_args(hint) if get_origin(hint) in (Union, python_types.UnionType) else (hint,)
    if float in members:
        return _number
    if str in members:
        return lambda raw: NULL if len(bytes(raw)) == 0 else _id(raw)
    return _integer


def _value(raw: Raw) -> Any:
    text = bytes(raw)
    if not text:
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text.decode("utf-8", "replace")


def _text(raw: Raw, instead: str) -> str:
    """A text as it is, anything else as its JSON."""
    value = _value(raw)
    if isinstance(value, str):
        return value
    return instead if value is None else bytes(raw).decode("utf-8", "replace")


def _category(raw: Raw) -> str:
    value = _value(raw)
    if isinstance(value, list):
        return ",".join(map(str, value))
    return _text(raw, "")


def _id(raw: Raw) -> int | str:
    value = _value(raw)
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return "" if value is None else bytes(raw).decode("utf-8", "replace")


def _integer(raw: Raw) -> int:
    value = _value(raw)
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and len(value) < LONGEST_INTEGER:
        try:
            return int(value.strip(), 0)
        except ValueError:
            return NULL
    return NULL


def _number(raw: Raw) -> float | None:
    value = _value(raw)
    if isinstance(value, bool):
        return None
    try:
        return float(value) if isinstance(value, int | float | str) else None
    except (ValueError, OverflowError):
        return None
