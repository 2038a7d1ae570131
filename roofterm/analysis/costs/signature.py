"""An op's recorded inputs (dims, types, strides, concrete values) as typed tensors and scalars.

The recordings are what a file says, so every reader here answers None for what is absent, cut, ragged, negative or text
instead of raising. Slots are the op's positional arguments (reference: torch's RECORD_FUNCTION inputs).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

ITEM_BYTES: dict[str, float] = {
    "fp64": 8,
    "fp32": 4,
    "tf32": 4,
    "fp16": 2,
    "bf16": 2,
    "fp8": 1,
    "fp4": 0.5,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "int4": 0.5,
    "bool": 1,
    "complex64": 8,
    "complex128": 16,
    "1byte": 1,
    "2byte": 2,
    "4byte": 4,
    "8byte": 8,
    "16byte": 16,
}
"""Bytes of one stored element, by roofterm's name of the type; `2byte`: a type of which only the size is known."""

_TYPES: dict[str, str] = {
    "float": "fp32",
    "double": "fp64",
    "c10::half": "fp16",
    "half": "fp16",
    "c10::bfloat16": "bf16",
    "bfloat16": "bf16",
    "long int": "int64",
    "long": "int64",
    "int": "int32",
    "short int": "int16",
    "short": "int16",
    "signed char": "int8",
    "char": "int8",
    "unsigned char": "int8",
    "byte": "int8",
    "unsigned int": "int32",
    "unsigned long": "int64",
    "unsigned short": "int16",
    "bool": "bool",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
    "float32": "fp32",
    "float64": "fp64",
    "float16": "fp16",
    "int64": "int64",
    "int32": "int32",
    "uint8": "int8",
}


def decoded(text: str | Sequence[Any] | None) -> list[Any] | None:
    """A recorded list from its JSON text (or as it is); None if it is no list."""
    if isinstance(text, str):
        try:
            text = msgspec.json.decode(text)
        except msgspec.DecodeError:
            return None
    return list(text) if isinstance(text, (list, tuple)) else None


def dtype_name(recorded: str | None) -> str | None:
    """roofterm's name (bf16, fp32, int64, ...) of a type as torch records it; None if it is none."""
    if not isinstance(recorded, str):
        return None
    key = recorded.strip().lower()
    found = _TYPES.get(key)
    if found is not None:
        return found
    if "float8" in key or "e4m3" in key or "e5m2" in key:
        return "fp8"
    if "float4" in key or "e2m1" in key:
        return "fp4"
    return None


def int_list(recorded: Any) -> list[int] | None:
    """Integers of a concrete input such as "[1, 1]" or "2"; None if it is cut or holds anything else."""
    if isinstance(recorded, bool):
        return None
    if isinstance(recorded, int):
        return [recorded]
    if isinstance(recorded, list):
        return recorded if recorded and all(type(value) is int for value in recorded) else None
    if not isinstance(recorded, str):
        return None
    parts = recorded.strip().removeprefix("[").removesuffix("]").split(",")
    try:
        return [int(part) for part in parts]
    except ValueError:
        return None


class Tensor(NamedTuple):
    """One recorded tensor: its sizes, stored type, strides (elements) where recorded."""

    dims: tuple[int, ...]
    dtype: str | None
    strides: tuple[int, ...] | None = None

    @property
    def elements(self) -> int:
        """Elements as seen by the op."""
        return math.prod(self.dims)

    @property
    def unique_elements(self) -> int:
        """Elements that exist in memory: a dimension of stride 0 (expanded) counts once."""
        if self.strides is None or len(self.strides) != len(self.dims):
            return self.elements
        return math.prod(size for size, stride in zip(self.dims, self.strides, strict=True) if stride != 0)

    @property
    def item_bytes(self) -> float | None:
        return None if self.dtype is None else ITEM_BYTES.get(self.dtype)

    @property
    def bytes(self) -> float | None:
        """Stored bytes of the unique elements; None if the type is unknown."""
        item = self.item_bytes
        return None if item is None else item * self.unique_elements


class Inputs:
    """The recorded inputs of one distinct call, read by slot.

    `fallback` is the type of tensors that the file names no type for (those of tensor lists; all in the oldest files),
    where something else tells it, such as the kernel's name.
    """

    def __init__(
        self,
        dims: str | Sequence[Any] | None,
        types: str | Sequence[Any] | None = None,
        strides: str | Sequence[Any] | None = None,
        concrete: str | Sequence[Any] | None = None,
        fallback: str | None = None,
    ) -> None:
        self._dims = decoded(dims) or []
        self._types = decoded(types) or []
        self._strides = decoded(strides) or []
        self._concrete = decoded(concrete) or []
        self._fallback = fallback

    def __len__(self) -> int:
        return len(self._dims)

    def tensor(self, slot: int) -> Tensor | None:
        """The tensor in a slot; None for a scalar, a list, an absent or impossible one."""
        sizes = _shape(_at(self._dims, slot))
        if sizes is None:
            return None
        recorded = _at(self._types, slot)
        if isinstance(recorded, str) and (_is_scalar_type(recorded) or (not recorded and not sizes)):
            return None
        if not sizes and not self._types:
            return None  # without types an empty shape may be a scalar as well as a tensor of one element
        return Tensor(sizes, dtype_name(recorded) or self._fallback, _shape(_at(self._strides, slot)))

    def tensors(self, slot: int) -> list[Tensor] | None:
        """The tensors of a tensor list; None if the slot holds none or the file recorded its tensors without sizes."""
        shapes = _at(self._dims, slot)
        if not isinstance(shapes, list) or not shapes:
            return None
        types, strides = _at(self._types, slot), _at(self._strides, slot)
        found = []
        for row, shape in enumerate(shapes):
            sizes = _shape(shape)
            if sizes is None:
                return None
            dtype = dtype_name(_at(types, row)) if isinstance(types, list) else None
            found.append(Tensor(sizes, dtype or self._fallback, _shape(_at(strides, row))))
        return found

    @cached_property
    def all_tensors(self) -> list[Tensor]:
        """Every single tensor among the inputs, in order."""
        return [found for slot in range(len(self)) if (found := self.tensor(slot)) is not None]

    @property
    def has_concrete(self) -> bool:
        """Whether the file holds concrete values (strides, dims, flags) for this call."""
        return bool(self._concrete)

    def ints(self, slot: int) -> list[int] | None:
        """Integers of a concrete input (stride, dims, ...)."""
        return int_list(_at(self._concrete, slot))

    def integer(self, slot: int) -> int | None:
        found = self.ints(slot)
        return found[0] if found is not None and len(found) == 1 else None

    def flag(self, slot: int) -> bool | None:
        return _FLAGS.get(str(_at(self._concrete, slot)).strip().lower())

    def flags(self, slot: int) -> list[bool] | None:
        """Booleans of a concrete list such as "[True, True, False]"."""
        value = _at(self._concrete, slot)
        parts = value if isinstance(value, list) else str(value or "").strip().removeprefix("[").removesuffix("]").split(",")
        found = [_FLAGS.get(str(part).strip().lower()) for part in parts]
        known = [flag for flag in found if flag is not None]
        return known if known and len(known) == len(found) else None

    def text(self, slot: int) -> str | None:
        """A concrete input as text; None where it is absent or empty."""
        value = _at(self._concrete, slot)
        return None if value is None or value == "" else str(value)

    def type_text(self, slot: int) -> str | None:
        value = _at(self._types, slot)
        return value if isinstance(value, str) else None


_FLAGS = {"true": True, "false": False, "1": True, "0": False}


def _at(values: Any, slot: int) -> Any:
    return values[slot] if isinstance(values, list) and 0 <= slot < len(values) else None


def _shape(sizes: Any) -> tuple[int, ...] | None:
    if isinstance(sizes, list) and all(type(size) is int and size >= 0 for size in sizes):
        return tuple(sizes)
    return None


def _is_scalar_type(recorded: str) -> bool:
    """Scalar, ScalarList, TensorList, GenericList, Device; in 2021 Int, Bool, Double: types of tensors begin in lower case."""
    return recorded[:1].isupper()
