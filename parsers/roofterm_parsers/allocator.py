"""How the C library keeps memory: large arrays come and go while a profile is read, and what they leave is not ours to keep."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

KEPT_BYTES = 32 << 20
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""glibc's malloc.h"""


def keep_freed() -> None:
    """Have memory of freed arrays kept for the next ones, since taking it from the system again costs more than filling it.

    To the sizes that glibc comes to by itself once an array of KEPT_BYTES was freed; there is no way back for a process.
    """
    tune = _of_libc("mallopt")
    if tune is not None:
        tune(_MMAP_THRESHOLD, KEPT_BYTES)
        tune(_TRIM_THRESHOLD, 2 * KEPT_BYTES)


def give_back() -> None:
    """Return free memory to the system, where the C library can."""
    trim = _of_libc("malloc_trim")
    if trim is not None:
        trim(0)


@cache
def _of_libc(function: str) -> Any:
    try:
        return getattr(ctypes.CDLL(None), function)
    except (AttributeError, OSError, TypeError):  # another C library than glibc
        return None
