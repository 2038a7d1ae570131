"""Worker processes, and the memory that they share with their parent.

Free of numpy, so that they can be started first of all, and come up while their parent still imports.
"""

from __future__ import annotations

import mmap
import os
import subprocess
from contextlib import suppress
from types import TracebackType

from roofterm_parsers import processes
from roofterm_parsers.allocator import KEPT_BYTES

BLOCK_BYTES = 4 << 20
BUFFER_BYTES = BLOCK_BYTES + (64 << 10)
"""What a buffer for a block must hold."""
SLOT_BYTES = BUFFER_BYTES + -BUFFER_BYTES % mmap.PAGESIZE
TASKS_PER_WORKER = 2
"""One is worked on, and one lies ready."""
TASKS_OF_BUSY_PARENT = 3
"""The same, where the parent comes back later."""
SPARE_SLOTS = 1
"""One is filled, or taken in."""
LARGE_BYTES = 48 << 20
"""Where a text is expected to be longer than this, workers are started at once."""
EXPANDING = 8
"""How many times its packed size the text of a trace has at least, for what is better known in advance (seen: 10 to 20)."""
_ENVIRONMENT = {
    # Arrays of a block come and go: their memory is kept, since taking it from the system again costs more than filling it.
    "MALLOC_MMAP_THRESHOLD_": str(KEPT_BYTES),
    "MALLOC_TRIM_THRESHOLD_": str(2 * KEPT_BYTES),
}


class Crew:
    """Processes that decode blocks. Whoever starts one closes it; to close it twice is no harm."""

    def __init__(self, count: int) -> None:
        """Raises OSError where the system has no process, no descriptor or no memory left for it."""
        self.slots = count * TASKS_OF_BUSY_PARENT + SPARE_SLOTS
        self.memory = _shared_memory(self.slots * SLOT_BYTES)
        self.map = mmap.mmap(self.memory, self.slots * SLOT_BYTES)
        self.processes: list[subprocess.Popen[bytes]] = []
        self.alone = False
        """whether the processes are to do all of the decoding, since their parent has other work"""
        self._dismissed = self._closed = False
        try:
            for _ in range(count):
                arguments = [str(self.memory), str(SLOT_BYTES)]
                worker = processes.start("roofterm_parsers.chrome.worker", arguments, fds=[self.memory], environment=_ENVIRONMENT)
                self.processes.append(worker)
        except OSError:
            self.close()
            raise

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def dismiss(self) -> None:
        """End the processes, whatever they are at, and give up the memory, without waiting until they are gone: `close` does that."""
        if self._dismissed:
            return
        self._dismissed = True
        for process in self.processes:
            process.kill()
        with suppress(BufferError):  # a column still points into it; it goes with the column
            self.map.close()
        os.close(self.memory)

    def close(self) -> None:
        """Dismiss the processes; returns when they are gone."""
        self.dismiss()
        if not self._closed:
            self._closed = True
            processes.stop(self.processes)


def _shared_memory(size: int) -> int:
    """A descriptor of memory that no /dev/shm limits; where the system has none, of a file that has no name."""
    if hasattr(os, "memfd_create"):
        memory = os.memfd_create("roofterm")
    else:
        import tempfile  # only here: it costs as much as all of this

        with tempfile.TemporaryFile() as file:
            memory = os.dup(file.fileno())
    os.ftruncate(memory, size)
    return memory
