"""A block of columns as bytes, to cross from a worker to its parent in shared memory."""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np

from roofterm_parsers.chrome.codes import Block, Columns, Lane, Whole

ALIGNMENT = 8


class _Column(msgspec.Struct, array_like=True):
    group: int
    """-1: a column of all events"""
    name: str
    dtype: str
    count: int
    constant: bool
    """all values are the one that stands there"""


class _Head(msgspec.Struct, array_like=True):
    columns: list[_Column]
    whole: list[Whole]
    new_lanes: list[Lane]
    new_names: list[str]
    new_texts: list[bytes]
    damage: dict[str, int]
    trailers: list[bytes]
    ended: bool
    lists: int


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Head).decode


def packed(block: Block) -> list[bytes]:
    """The parts of a block's bytes, to be written one behind the other."""
    columns: list[_Column] = []
    parts: list[bytes] = []
    for group, held in ((-1, block.columns), *block.groups.items()):
        for name, values in held.items():
            constant = values.size > 1 and bool(values[0] == values[-1]) and bool((values == values[0]).all())
            columns.append(_Column(int(group), name, values.dtype.str, values.size, constant))
            data = (values[:1] if constant else values).tobytes()
            parts.append(data)
            parts.append(bytes(-len(data) % ALIGNMENT))
    head = _encode(
        _Head(
            columns,
            block.whole,
            block.new_lanes,
            block.new_names,
            block.new_texts,
            dict(block.damage),
            block.trailers,
            block.ended,
            block.lists,
        )
    )
    length = len(head).to_bytes(ALIGNMENT, "little")
    return [length, head, bytes(-len(head) % ALIGNMENT), *parts]


def unpacked(data: memoryview) -> Block:
    """The block in `data`, which its columns keep pointing into."""
    length = int.from_bytes(data[:ALIGNMENT], "little")
    head = _decode(data[ALIGNMENT : ALIGNMENT + length])
    at = ALIGNMENT + length + -length % ALIGNMENT
    held: dict[int, Columns] = {-1: {}}
    for column in head.columns:
        dtype = np.dtype(column.dtype)
        stored = 1 if column.constant else column.count
        values = np.frombuffer(data, dtype, stored, at) if stored else np.zeros(0, dtype)
        at += stored * dtype.itemsize
        at += -at % ALIGNMENT
        held.setdefault(column.group, {})[column.name] = np.broadcast_to(values, column.count) if column.constant else values
    return Block(
        columns=held.pop(-1),
        groups=held,
        whole=head.whole,
        new_lanes=head.new_lanes,
        new_names=head.new_names,
        new_texts=head.new_texts,
        damage=Counter(head.damage),
        trailers=head.trailers,
        ended=head.ended,
        lists=head.lists,
    )
