"""Several files read side by side, each whole by one process: the ranks of a job, the hosts of a run."""

from __future__ import annotations

import json
import selectors
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import NoReturn

import msgspec

from roofterm_parsers import processes
from roofterm_parsers.abreast_worker import LENGTH, Answer, Task, frames_from
from roofterm_parsers.errors import ProfileError, TooLarge
from roofterm_parsers.inputs import Input
from roofterm_parsers.profile import Profile
from roofterm_parsers.progress import Tracker
from roofterm_parsers.records import HostNames

LEAST_BYTES = 48 << 20
"""Text of all files together from which on it pays: below, a process reads them before another has come up."""
MOST_BYTES = 256 << 20
"""Text of the largest file up to which each has a process to itself: of larger ones, one after the other is decoded by all
processes, so that no more than one lies in memory half read."""
MOST_READERS = 16
"""More would wait for this process, which takes in and merges what they read."""
MEMORY_PER_BYTE = 1.5
"""What a process takes at its most for each byte of text (measured: 0.4, and what Python and polars take themselves)."""
EXPANDING = 16
"""How many times its packed size the text of a trace has (seen: 10 to 20)."""
_PACKED = (".gz", ".zst", ".zip")
_TURN_SECONDS = 0.05

Outcome = Profile | ProfileError


def count_for(files: Sequence[Input], max_memory: int, workers: int | None) -> int:
    """How many processes are to read these files side by side; 0 where they are better read one after the other."""
    if len(files) < 2 or any(file.kind != "file" or file.bytes is None for file in files):
        return 0
    texts = [_text_bytes(file) for file in files]
    if sum(texts) < LEAST_BYTES or max(texts) > MOST_BYTES:
        return 0
    fit = int(max_memory / (max(texts) * MEMORY_PER_BYTE))
    count = min(processes.fitting_workers(MOST_READERS) if workers is None else workers, len(files), fit)
    return count if count > 1 else 0


def read_abreast(
    files: Sequence[Input], tracker: Tracker, *, count: int, left: Callable[[], int], device_alone: bool | HostNames
) -> Iterator[tuple[int, Outcome]]:
    """The number of each file and its profile, or why there is none, as they come.

    `left`: bytes of memory that may still be taken. Raises Interrupted if loading is stopped, TooLarge if a process was
    killed, OSError if none can be had.
    """
    with ExitStack() as stack:
        readers: list[_Reader] = []
        stack.callback(lambda: processes.stop([reader.process for reader in readers]))
        selector = stack.enter_context(selectors.DefaultSelector())
        waiting = list(enumerate(files))[::-1]
        for _ in range(count):
            readers.append(_Reader(tracker))
            selector.register(readers[-1].output, selectors.EVENT_READ, readers[-1])
        for reader in readers:
            reader.begin(*waiting.pop(), max_memory=left() // count, device_alone=device_alone)
        while any(reader.busy for reader in readers):
            tracker.watch(0)
            for key, _ in selector.select(_TURN_SECONDS):
                reader = key.data
                outcome = reader.hear()
                if outcome is None:
                    continue
                yield reader.number, outcome
                if waiting:
                    reader.begin(*waiting.pop(), max_memory=left() // count, device_alone=device_alone)


class _Reader:
    """One of the processes, and the file that it is at."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self.process: subprocess.Popen[bytes] = processes.start("roofterm_parsers.abreast_worker", environment={"POLARS_MAX_THREADS": "1"})
        self.output = processes.pipe(self.process.stdout)
        self.busy = False
        self.number = -1
        self._file: Input | None = None
        self._told = 0
        self._came_up = False

    def begin(self, number: int, file: Input, *, max_memory: int, device_alone: bool | HostNames) -> None:
        """Have a file read."""
        self.number, self._file, self._told, self.busy = number, file, 0, True
        task = msgspec.to_builtins(Task(file, max(max_memory, 1), device_alone))
        try:
            processes.pipe(self.process.stdin).write(json.dumps(task).encode() + b"\n")
        except BrokenPipeError:
            self._fail()

    def hear(self) -> Outcome | None:
        """Take what it says; what came of the file, once it says that."""
        assert self._file is not None  # it only speaks of one
        answer = msgspec.convert(json.loads(self._receive(LENGTH.unpack(self._receive(LENGTH.size))[0])), Answer)
        self._tracker.phase("reading", self._file.path)
        self._tracker.watch(answer.bytes_done - self._told)
        self._told = answer.bytes_done
        self._came_up = True
        kept = answer.profile
        if kept is None:
            if answer.flaw is None:
                return None
            self.busy = False
            kind = TooLarge if answer.too_large else ProfileError
            return kind(answer.flaw, self._file.path)
        self.busy = False
        profile = Profile(sources=kept.sources, warnings=kept.warnings, zero_unix_ns=kept.zero_unix_ns)
        for name, frame in frames_from(kept.frames, self._receive):
            setattr(profile, name, frame)
        return profile

    def _receive(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size > 0:
            part = self.output.read(size)
            if not part:
                self._fail()
            parts.append(part)
            size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _fail(self) -> NoReturn:
        if not self._came_up:
            raise ChildProcessError("a process ended before it was there")
        path = self._file.path if self._file is not None else ""
        raise TooLarge(f"{path}: a process that reads it {processes.how_it_ended(self.process)}. Try again with fewer files", path)


def _text_bytes(file: Input) -> int:
    """How long the text of a file will be, as far as its name and size tell."""
    return (file.bytes or 0) * (EXPANDING if file.name.endswith(_PACKED) else 1)
