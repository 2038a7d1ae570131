"""Worker processes that decode blocks side by side, and give them back in the order of the file."""

from __future__ import annotations

import mmap
import os
import selectors
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import NoReturn

from roofterm_parsers import processes
from roofterm_parsers.chrome.codes import Block
from roofterm_parsers.chrome.splitting import BUFFER_BYTES
from roofterm_parsers.chrome.transport import unpacked
from roofterm_parsers.chrome.worker import ANSWER, FAILED, PLACED, READY, TASK
from roofterm_parsers.errors import Interrupted, ProfileError

TASKS_PER_WORKER = 2
"""One is worked on, and one lies ready."""
SPARE_SLOTS = 1
"""One is filled, or taken in."""
_TURN_SECONDS = 0.05
_ENVIRONMENT = {
    # Arrays of a block come and go: their memory is kept, since taking it from the system again costs more than filling it.
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(64 << 20),
}


@dataclass(slots=True)
class Task:
    slot: int
    worker: int
    block: Block | None = None


class Pool:
    """Slots of shared memory, and the processes that work in them. Use as a context: nothing outlives it."""

    def __init__(self, workers: int, *, xla: bool, path: str, cancelled: Callable[[], bool]) -> None:
        self._path = path
        self._cancelled = cancelled
        slots = workers * TASKS_PER_WORKER + SPARE_SLOTS
        self._slot_bytes = BUFFER_BYTES + -BUFFER_BYTES % mmap.PAGESIZE
        self._memory = _shared_memory(slots * self._slot_bytes)
        self._map = mmap.mmap(self._memory, slots * self._slot_bytes)
        self._view = memoryview(self._map)
        self._free = list(range(slots))
        self._tasks: deque[Task] = deque()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._ready = [False] * workers
        self._queues: list[deque[Task]] = [deque() for _ in range(workers)]
        self._selector = selectors.DefaultSelector()
        try:
            for worker in range(workers):
                self._processes.append(_start(self._memory, self._slot_bytes, xla))
                self._selector.register(processes.pipe(self._processes[worker].stdout), selectors.EVENT_READ, worker)
        except OSError:
            self._close()
            raise

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._close()

    def _close(self) -> None:
        self._selector.close()
        processes.stop(self._processes)
        self._tasks.clear()
        self._queues = []
        self._view.release()
        with suppress(BufferError):  # a column still points into it; it goes with the column
            self._map.close()
        os.close(self._memory)

    def is_ready(self) -> bool:
        """Whether a worker has come up. Does not wait."""
        self._listen(0)
        return any(self._ready)

    @property
    def may_come_up(self) -> bool:
        """Whether some worker still may; a machine may be too short of memory, or forbid it."""
        return len(self._selector.get_map()) > 0

    def slot(self) -> memoryview | None:
        """A free slot to fill and `submit`; None if the next block has to be taken in first."""
        self._listen(0)
        return self._slot(self._free[-1]) if self._free else None

    def submit(self, length: int, offset: int, *, last: bool) -> None:
        """Have the text decoded that lies in the slot that `slot` gave last."""
        worker = min((i for i, ready in enumerate(self._ready) if ready), key=lambda i: len(self._queues[i]))
        task = Task(self._free.pop(), worker)
        self._tasks.append(task)
        self._queues[worker].append(task)
        try:
            processes.pipe(self._processes[worker].stdin).write(TASK.pack(task.slot * self._slot_bytes, length, offset, last))
        except BrokenPipeError:
            self._fail(worker)

    def finished(self, *, wait: bool) -> Block | None:
        """The next block in the order of the file, if it is decoded or `wait`; `release` it when it has been taken in."""
        self._listen(0)
        while wait and self._tasks and self._tasks[0].block is None:
            self._wait()
        return self._tasks[0].block if self._tasks else None

    @property
    def worker(self) -> int:
        """Which worker decoded the block that `finished` gave."""
        return self._tasks[0].worker

    def release(self) -> None:
        """Give back the slot of the block that `finished` gave."""
        self._free.append(self._tasks.popleft().slot)

    def _wait(self) -> None:
        if self._cancelled():
            raise Interrupted("loading was stopped")
        self._listen(_TURN_SECONDS)

    def _listen(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            self._hear(key.data)

    def _hear(self, worker: int) -> None:
        """Take an answer of a worker; one that ends before its first has never been there."""
        answer = self._receive(worker, ANSWER.size)
        if answer is None and not self._ready[worker]:
            self._selector.unregister(processes.pipe(self._processes[worker].stdout))
            return
        state, size = ANSWER.unpack(self._whole(worker, answer))
        if state == READY:
            self._ready[worker] = True
            return
        if state == FAILED:
            said = bytes(self._whole(worker, self._receive(worker, size))).decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise ProfileError(f"{self._path} could not be decoded: {said}", self._path)
        task = self._queues[worker].popleft()
        data = self._slot(task.slot)[:size] if state == PLACED else self._whole(worker, self._receive(worker, size))
        task.block = unpacked(data)

    def _receive(self, worker: int, size: int) -> memoryview | None:
        """Bytes that a worker sends over its pipe; None if it ends before."""
        pipe = processes.pipe(self._processes[worker].stdout)
        parts: list[bytes] = []
        while size > 0:
            part = pipe.read(size)
            if not part:
                return None
            parts.append(part)
            size -= len(part)
        return memoryview(b"".join(parts))

    def _whole(self, worker: int, data: memoryview | None) -> memoryview:
        if data is None:
            self._fail(worker)
        return data

    def _slot(self, slot: int) -> memoryview:
        return self._view[slot * self._slot_bytes : (slot + 1) * self._slot_bytes]

    def _fail(self, worker: int) -> NoReturn:
        how = processes.how_it_ended(self._processes[worker])
        raise ProfileError(f"{self._path}: a process that decodes it {how}. Try again with fewer workers", self._path)


def _start(memory: int, slot_bytes: int, xla: bool) -> subprocess.Popen[bytes]:
    arguments = [str(memory), str(slot_bytes), str(int(xla))]
    return processes.start("roofterm_parsers.chrome.worker", arguments, fds=[memory], environment=_ENVIRONMENT)


def _shared_memory(size: int) -> int:
    """A descriptor of memory that no /dev/shm limits; where the system has none, of a file that has no name."""
    if hasattr(os, "memfd_create"):
        memory = os.memfd_create("roofterm")
    else:
        with tempfile.TemporaryFile() as file:
            memory = os.dup(file.fileno())
    os.ftruncate(memory, size)
    return memory
