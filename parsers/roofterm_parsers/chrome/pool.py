"""Worker processes that decode blocks side by side, and give them back in the order of the file."""

from __future__ import annotations

import selectors
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import NoReturn

from roofterm_parsers.chrome.codes import Block
from roofterm_parsers.chrome.crew import SLOT_BYTES, TASKS_OF_BUSY_PARENT, TASKS_PER_WORKER, Crew
from roofterm_parsers.chrome.transport import unpacked
from roofterm_parsers.chrome.worker import ANSWER, FAILED, PLACED, READY, TASK
from roofterm_parsers.errors import Interrupted, ProfileError
from roofterm_parsers.processes import how_it_ended, pipe

HERE = -1
"""In the place of a worker: this process."""
_TURN_SECONDS = 0.05


@dataclass(slots=True)
class Task:
    slot: int
    worker: int
    block: Block | None = None


class Pool:
    """Slots of shared memory, and the processes that work in them. Use as a context: at its end the crew is dismissed."""

    def __init__(self, crew: Crew, *, path: str, cancelled: Callable[[], bool]) -> None:
        self._path = path
        self._cancelled = cancelled
        self._crew = crew
        self._processes = crew.processes
        self._view = memoryview(crew.map)
        self._free = list(range(crew.slots))
        self._tasks: deque[Task] = deque()
        self._ready = [False] * len(crew.processes)
        self._queues: list[deque[Task]] = [deque() for _ in crew.processes]
        self._selector = selectors.DefaultSelector()
        for worker, process in enumerate(crew.processes):
            self._selector.register(pipe(process.stdout), selectors.EVENT_READ, worker)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._selector.close()
        self._tasks.clear()
        self._queues = []
        self._view.release()
        self._crew.dismiss()

    def is_ready(self) -> bool:
        """Whether a worker has come up. Waits for it if there is nothing else to do meanwhile."""
        self._listen(0)
        while self.does_all and self.may_come_up and not any(self._ready):
            self._wait()
        return any(self._ready)

    @property
    def does_all(self) -> bool:
        """Whether the workers are to decode alone, while the parent does something else."""
        return self._crew.alone

    @property
    def may_come_up(self) -> bool:
        """Whether some worker still may; a machine may be too short of memory, or forbid it."""
        return len(self._selector.get_map()) > 0

    def slot(self) -> memoryview | None:
        """A free slot to fill and `submit`; None if the next block has to be taken in first, or the workers have enough to do."""
        self._listen(0)
        most = TASKS_OF_BUSY_PARENT if self.does_all else TASKS_PER_WORKER
        is_wanted = any(ready and len(queue) < most for ready, queue in zip(self._ready, self._queues, strict=True))
        return self._slot(self._free[-1]) if self._free and is_wanted else None

    def submit(self, length: int, offset: int, *, last: bool, xla: bool, long: bool) -> None:
        """Have the text decoded that lies in the slot that `slot` gave last."""
        worker = min((i for i, ready in enumerate(self._ready) if ready), key=lambda i: len(self._queues[i]))
        task = Task(self._free.pop(), worker)
        self._tasks.append(task)
        self._queues[worker].append(task)
        try:
            pipe(self._processes[worker].stdin).write(TASK.pack(task.slot * SLOT_BYTES, length, offset, last, xla, long))
        except BrokenPipeError:
            self._fail(worker)

    def put(self, block: Block) -> None:
        """Have a block that was decoded here wait for its turn behind those of the workers."""
        self._tasks.append(Task(HERE, HERE, block))

    @property
    def waiting_here(self) -> int:
        """How many blocks that were `put` wait."""
        return sum(task.worker == HERE for task in self._tasks)

    def finished(self, *, wait: bool) -> Block | None:
        """The next block in the order of the file, if it is decoded or `wait`; `release` it when it has been taken in."""
        self._listen(0)
        while wait and self._tasks and self._tasks[0].block is None:
            self._wait()
        return self._tasks[0].block if self._tasks else None

    @property
    def worker(self) -> int:
        """Which worker decoded the block that `finished` gave; HERE: none did."""
        return self._tasks[0].worker

    def release(self) -> None:
        """Give back the slot of the block that `finished` gave."""
        slot = self._tasks.popleft().slot
        if slot != HERE:
            self._free.append(slot)

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
            self._selector.unregister(pipe(self._processes[worker].stdout))
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
        answers = pipe(self._processes[worker].stdout)
        parts: list[bytes] = []
        while size > 0:
            part = answers.read(size)
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
        return self._view[slot * SLOT_BYTES : (slot + 1) * SLOT_BYTES]

    def _fail(self, worker: int) -> NoReturn:
        how = how_it_ended(self._processes[worker])
        raise ProfileError(f"{self._path}: a process that decodes it {how}. Try again with fewer workers", self._path)
