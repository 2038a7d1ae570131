"""How XProf reads a framework op out of a name: `name:type` of TensorFlow, JAX's paths, tf.data's iterators (tf_op_utils.cc)."""

from __future__ import annotations

import re
from typing import NamedTuple

UNKNOWN = ""
XLA_LAUNCH = "XlaModule:"
"""The framework op that XLA writes on each launch of a kernel."""
_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_./>-]*")
_TYPE = re.compile(r"[A-Z_][a-zA-Z0-9_]*")
_JAX_TYPE = re.compile(r"[a-z_][a-z0-9_]*(\[.*\])?", re.DOTALL)
_COPIES = {"MEMCPYHTOD": "MemcpyHToD", "MEMCPYDTOH": "MemcpyDToH", "MEMCPYDTOD": "MemcpyDToD", "MEMCPYHTOH": "MemcpyHToH"}


class FrameworkOp(NamedTuple):
    name: str
    type: str
    known: bool
    """whether it is an op of a framework at all"""


def framework_op_of(text: str) -> FrameworkOp:
    """The op that a provenance or an event's name speaks of."""
    name, colon, kind = text.partition(":")
    if not colon:
        found = next((kind for prefix, kind in _COPIES.items() if text.upper().startswith(prefix)), None)
        return FrameworkOp(text, found or UNKNOWN, found is not None)
    if name == "Iterator":
        return FrameworkOp(text, "Dataset", True)
    if _TYPE.fullmatch(kind) and _NAME.fullmatch(name):
        return FrameworkOp(name, kind, True)
    derived = kind or _derived_type(name)
    if _JAX_TYPE.fullmatch(derived):
        return FrameworkOp(name, derived.partition("[")[0], True)
    return FrameworkOp(name, derived, True) if not kind else FrameworkOp(text, UNKNOWN, False)


def _derived_type(name: str) -> str:
    """The last part of the path, without a number that makes it unique."""
    last = name.rsplit("/", 1)[-1]
    stem, underscore, number = last.rpartition("_")
    return stem if underscore and number.isdecimal() else last
