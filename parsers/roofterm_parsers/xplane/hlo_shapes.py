"""HLO shapes: element types with their sizes, dimensions, layouts, tuples (xla/xla_data.proto)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from roofterm_parsers.xplane.wire import BYTES, VARINT, Buffer, fields, signed, varint

TUPLE, OPAQUE, TOKEN = 13, 14, 17
POINTER_BYTES = 8

_TYPES: dict[int, tuple[str, int]] = {
    1: ("pred", 8), 2: ("s8", 8), 3: ("s16", 16), 4: ("s32", 32), 5: ("s64", 64), 6: ("u8", 8), 7: ("u16", 16), 8: ("u32", 32),
    9: ("u64", 64), 10: ("f16", 16), 11: ("f32", 32), 12: ("f64", 64), 15: ("c64", 64), 16: ("bf16", 16), 18: ("c128", 128),
    19: ("f8e5m2", 8), 20: ("f8e4m3fn", 8), 21: ("s4", 4), 22: ("u4", 4), 23: ("f8e4m3b11fnuz", 8), 24: ("f8e5m2fnuz", 8),
    25: ("f8e4m3fnuz", 8), 26: ("s2", 2), 27: ("u2", 2), 28: ("f8e4m3", 8), 29: ("f8e3m4", 8), 30: ("s1", 1), 31: ("u1", 1),
    32: ("f4e2m1fn", 4), 33: ("f8e8m0fnu", 8),
}  # fmt: skip
"""PrimitiveType: its name in HLO text and its bits."""
_NO_ARRAYS = {TUPLE: "tuple", OPAQUE: "opaque", TOKEN: "token"}


@dataclass(frozen=True)
class Shape:
    element: int
    dims: tuple[int, ...] = ()
    tuple_shapes: tuple[Shape, ...] = ()
    minor_to_major: tuple[int, ...] | None = None
    """None: no layout"""
    tiles: tuple[tuple[int, ...], ...] = ()
    memory_space: int = 0
    packed_bits: int = 0
    """bits that an element takes in memory where the layout says it, else whole bytes"""

    @property
    def is_tuple(self) -> bool:
        return self.element == TUPLE

    @property
    def is_array(self) -> bool:
        return self.element not in (0, TUPLE, OPAQUE, TOKEN)

    @property
    def dtype(self) -> str:
        """As in HLO text: bf16, f32, s8, ..."""
        return _TYPES[self.element][0] if self.element in _TYPES else _NO_ARRAYS.get(self.element, f"type{self.element}")

    @property
    def bits(self) -> int:
        """Bits of an element; 0 for what has none."""
        return _TYPES[self.element][1] if self.element in _TYPES else 0

    @cached_property
    def elements(self) -> int:
        """Elements of an array, 1 for a scalar; of a tuple those of all its arrays."""
        if self.is_tuple:
            return sum(shape.elements for shape in self.tuple_shapes)
        return prod(self.dims) if self.is_array else 0

    @cached_property
    def bytes(self) -> int:
        """Bytes of an array; of a tuple its table of pointers."""
        if self.is_tuple:
            return POINTER_BYTES * len(self.tuple_shapes)
        return -(-self.elements * (self.packed_bits or -(-self.bits // 8) * 8) // 8) if self.is_array else 0

    def leaves(self) -> list[tuple[tuple[int, ...], Shape]]:
        """Arrays and tokens inside, with their index path."""
        if not self.is_tuple:
            return [((), self)]
        return [((i, *path), leaf) for i, shape in enumerate(self.tuple_shapes) for path, leaf in shape.leaves()]

    @cached_property
    def array_bytes(self) -> int:
        """Bytes of all arrays inside."""
        return sum(leaf.bytes for _, leaf in self.leaves())

    def __str__(self) -> str:
        """As in HLO text: `bf16[8,128]{1,0}`."""
        if self.is_tuple:
            parts = [("" if i % 5 or not i else f"/*index={i}*/") + str(shape) for i, shape in enumerate(self.tuple_shapes)]
            return f"({', '.join(parts)})"
        if not self.is_array:
            return f"{self.dtype}[]"
        text = f"{self.dtype}[{','.join(map(str, self.dims))}]"
        return text if self.minor_to_major is None or not self.dims else text + self._layout()

    def _layout(self) -> str:
        extra = ""
        if self.tiles:
            extra += "T" + "".join(f"({','.join(map(str, tile))})" for tile in self.tiles)
        if self.packed_bits:
            extra += f"E({self.packed_bits})"
        if self.memory_space:
            extra += f"S({self.memory_space})"
        order = ",".join(map(str, self.minor_to_major or ()))
        return f"{{{order}:{extra}}}" if extra else f"{{{order}}}"


def read_shape(data: Buffer, at: int, end: int) -> Shape:
    """A ShapeProto."""
    element = 0
    dims: list[int] = []
    tuple_shapes: list[Shape] = []
    minor_to_major: tuple[int, ...] | None = None
    tiles: list[tuple[int, ...]] = []
    memory_space = packed_bits = 0
    for number, wire, a, b in fields(data, at, end):
        if number == 2 and wire == VARINT:
            element = a
        elif number == 3:
            dims += numbers(data, wire, a, b)
        elif number == 4 and wire == BYTES:
            tuple_shapes.append(read_shape(data, a, b))
        elif number == 5 and wire == BYTES:
            minor: list[int] = []
            for key, kind, c, d in fields(data, a, b):
                if key == 1:
                    minor += numbers(data, kind, c, d)
                elif key == 6 and kind == BYTES:
                    tiles.append(tuple(size for part, w, x, y in fields(data, c, d) if part == 1 for size in numbers(data, w, x, y)))
                elif key == 7 and kind == VARINT:
                    packed_bits = c
                elif key == 8 and kind == VARINT:
                    memory_space = c
            minor_to_major = tuple(minor)
    return Shape(element, tuple(dims), tuple(tuple_shapes), minor_to_major, tuple(tiles), memory_space, packed_bits)


def numbers(data: Buffer, wire: int, a: int, b: int) -> list[int]:
    """Values of a repeated int64 field, packed or one by one."""
    if wire == VARINT:
        return [signed(a)]
    values = []
    while a < b:
        value, a = varint(data, a, b)
        values.append(signed(value))
    return values
