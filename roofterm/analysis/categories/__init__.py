"""What a kernel or op is: its category, the type and units it computes with, and a short name for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roofterm.analysis.categories.kinds import DEVICE_CATEGORIES, HOST_CATEGORIES, TENSOR_CATEGORIES, TITLES, Category, from_title
from roofterm.analysis.categories.op_names import op_category
from roofterm.analysis.categories.short import short_name

if TYPE_CHECKING:
    from roofterm.analysis.categories.facts import DTYPES, EVIDENCE, FACTS, classify, is_communication, kernel_facts, read_names

__all__ = [
    "DEVICE_CATEGORIES",
    "DTYPES",
    "EVIDENCE",
    "FACTS",
    "HOST_CATEGORIES",
    "TENSOR_CATEGORIES",
    "TITLES",
    "Category",
    "classify",
    "from_title",
    "is_communication",
    "kernel_facts",
    "op_category",
    "read_names",
    "short_name",
]

_OF_FACTS = ("DTYPES", "EVIDENCE", "FACTS", "classify", "is_communication", "kernel_facts", "read_names")
"""what needs polars, which a screen that knows its figures already must not wait for"""


def __getattr__(name: str) -> Any:
    if name in _OF_FACTS:
        from roofterm.analysis.categories import facts

        return getattr(facts, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
