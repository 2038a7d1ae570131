"""Where a command works while it has little to do: on one core, together with polars' one thread.

Each query is handed to that thread and back again. Within a core that takes a tenth of the time that it takes between two, most of
all on a virtual machine, where waking an idle core is the host's business.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from threading import get_native_id

_POLARS_THREADS = "polars-"
"""How the names of the threads begin that work for polars; `polars-ooc-…` does not"""
_THREADS = Path("/proc/self/task")
_CORE = 36
"""field `processor` of a thread's `stat`, behind its name"""


class OneCore:
    """This thread and polars' on the core where this thread is, between `stay` and `leave`; nothing where the system cannot."""

    def __init__(self) -> None:
        self._allowed: dict[int, set[int]] = {}
        """cores of each thread that stays"""

    def stay(self) -> None:
        """To be called when all has been read: reading takes every core."""
        if self._allowed or not hasattr(os, "sched_setaffinity"):
            return
        with suppress(OSError, ValueError, IndexError):  # no /proc, or a thread that ended
            core = int((_THREADS / str(get_native_id()) / "stat").read_text().rpartition(")")[2].split()[_CORE])
            for thread in (get_native_id(), *_polars_threads()):
                self._allowed[thread] = os.sched_getaffinity(thread)
                os.sched_setaffinity(thread, {core})

    def leave(self) -> None:
        """To where each was allowed before."""
        for thread, cores in self._allowed.items():
            with suppress(OSError):
                os.sched_setaffinity(thread, cores)
        self._allowed.clear()


def _polars_threads() -> list[int]:
    names = {int(thread.name): (thread / "comm").read_text().strip() for thread in _THREADS.iterdir()}
    return [thread for thread, name in names.items() if name.removeprefix(_POLARS_THREADS).isdecimal() and name.startswith(_POLARS_THREADS)]
