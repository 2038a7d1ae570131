"""The categories: what a piece of device work computes, and what a slice of the host is."""

from __future__ import annotations

from enum import IntEnum

from roofterm_parsers.kinds import Kind


class Category(IntEnum):
    """Order is stable: filters, colours and saved states rely on it. Device work comes first, from 0 to OTHER."""

    GEMM = 0
    CONV = 1
    ATTENTION = 2
    MOE = 3
    NORM = 4
    SOFTMAX = 5
    ELEMENTWISE = 6
    REDUCTION = 7
    FUSED_ELEMENTWISE = 8
    FUSED_REDUCTION = 9
    EMBEDDING = 10
    """Embedding, gather, scatter and indexing."""
    OPTIMIZER = 11
    QUANTIZATION = 12
    ROPE = 13
    KV_CACHE = 14
    POOLING = 15
    """Pooling and resizing."""
    LAYOUT = 16
    """Transposes and changes of data format."""
    COPY = 17
    MEMSET = 18
    FILL = 19
    COMMUNICATION = 20
    SORT = 21
    """Sort, scan, unique, top-k."""
    RNG = 22
    """Random numbers and sampling."""
    HOST_IO = 23
    """Infeed, outfeed and transfers with the host that a program on the device waits for."""
    CONTROL = 24
    """A container of other work (while, conditional, call) or a wait: its own time is no work."""
    OTHER = 25

    OP = 40
    ANNOTATION = 41
    STEP = 42
    RUNTIME = 43
    SYNC = 44
    PYTHON = 45
    MODULE = 46
    OVERHEAD = 47
    HOST_OTHER = 48

    @property
    def title(self) -> str:
        """Its name in tables, filters and JSON."""
        return self.name.lower()

    @property
    def letter(self) -> str:
        """One letter, unique among the device's categories ('.' for the host's)."""
        return _LETTERS.get(self, ".")

    @property
    def on_device(self) -> bool:
        return self <= Category.OTHER


DEVICE_CATEGORIES = tuple(category for category in Category if category.on_device)

TENSOR_CATEGORIES = frozenset({Category.GEMM, Category.CONV, Category.ATTENTION, Category.MOE})
"""Work that tensor or matrix units can do; all other is held against the vector roof."""

_LETTERS = dict(zip(DEVICE_CATEGORIES, "gcamnserfuioqpkwlyzbxtdhjv", strict=True))

TITLES = [""] * (max(Category) + 1)
for _category in Category:
    TITLES[_category] = _category.title

HOST_CATEGORIES: dict[Kind, Category] = {
    Kind.OP: Category.OP,
    Kind.ANNOTATION: Category.ANNOTATION,
    Kind.STEP: Category.STEP,
    Kind.RUNTIME: Category.RUNTIME,
    Kind.SYNC: Category.SYNC,
    Kind.PYTHON: Category.PYTHON,
    Kind.MODULE: Category.MODULE,
    Kind.DEVICE_ANNOTATION: Category.ANNOTATION,
    Kind.DEVICE_WAIT: Category.SYNC,
    Kind.OVERHEAD: Category.OVERHEAD,
    Kind.COUNTED: Category.HOST_OTHER,
    Kind.ASYNC: Category.OTHER,
    Kind.OTHER: Category.HOST_OTHER,
}
"""Category of a slice that is no device work, by its kind."""


def from_title(title: str) -> Category | None:
    """The category of a name as `Category.title` gives it, any letter case; None if there is none."""
    return _BY_TITLE.get(title.strip().lower().replace("-", "_"))


_BY_TITLE = {category.title: category for category in Category}
