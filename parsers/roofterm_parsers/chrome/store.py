"""Columns that grow block by block, kept small until they are joined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roofterm_parsers.chrome.codes import Columns
from roofterm_parsers.chrome.events import NULL

_LOW, _HIGH = -(1 << 31) + 1, (1 << 31) - 1
_NARROW_NULL = -(1 << 31)


@dataclass(slots=True)
class _Part:
    """Some values: `base` is added to those in `values`; a constant part has one value only."""

    values: NDArray[Any]
    size: int
    base: int
    has_null: bool

    def fill(self, out: NDArray[Any]) -> None:
        out[:] = self.values
        if self.base:
            out += self.base
        if self.has_null:
            out[self.values == _NARROW_NULL] = NULL


class Table:
    """Columns in the making: the same names in every part."""

    def __init__(self) -> None:
        self._parts: dict[str, list[_Part]] = {}
        self._types: dict[str, np.dtype[Any]] = {}
        self.rows = 0
        self.bytes = 0

    def add(self, columns: Columns) -> None:
        """Add rows. The arrays are copied: they may lie in memory that is used again."""
        size = next(iter(columns.values())).size
        if size == 0:
            return
        self.rows += size
        for name, values in columns.items():
            part = _stored(values)
            self.bytes += part.values.nbytes
            self._parts.setdefault(name, []).append(part)
            self._types[name] = values.dtype

    def column(self, name: str) -> NDArray[Any]:
        """A column joined; its parts are given up, so that it can be taken once."""
        out = self.copy(name)
        self.bytes -= sum(part.values.nbytes for part in self._parts.pop(name))
        return out

    def copy(self, name: str) -> NDArray[Any]:
        """A column joined, which stays."""
        out = np.empty(self.rows, self._types[name])
        at = 0
        for part in self._parts[name]:
            part.fill(out[at : at + part.size])
            at += part.size
        return out

    def join(self) -> Columns:
        """All columns."""
        return {name: self.column(name) for name in list(self._parts)}


def _stored(values: NDArray[Any]) -> _Part:
    size = values.size
    if size > 1 and values[0] == values[-1] and (values == values[0]).all():
        return _Part(values[:1].copy(), size, 0, False)
    if values.dtype == np.uint64:
        base = int(values[0])
        return (
            _Part((values - values[0]).astype(np.uint32), size, base, False)
            if int(values[-1]) - base < _HIGH and int(values.min()) == base
            else _Part(values.copy(), size, 0, False)
        )
    if values.dtype != np.int64:
        return _Part(_smaller(values), size, 0, False)
    low, high = int(values.min()), int(values.max())
    if low > _NARROW_NULL and high <= _HIGH:
        return _Part(values.astype(np.int32), size, 0, False)
    if high - low <= 2 * _HIGH:
        return _Part((values - low).astype(np.uint32), size, low, False)
    if low == NULL:
        held = values != NULL
        if high <= _HIGH and int(values.min(where=held, initial=0)) >= _LOW:
            narrow = values.astype(np.int32)
            narrow[~held] = _NARROW_NULL
            return _Part(narrow, size, 0, True)
    return _Part(values.copy(), size, 0, False)


def _smaller(values: NDArray[Any]) -> NDArray[Any]:
    """A copy, of a type that is as narrow as codes allow."""
    if values.dtype == np.uint32 and int(values.max()) < 1 << 16:
        return values.astype(np.uint16)
    return values.copy()
