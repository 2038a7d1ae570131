"""A process that reads files whole, one after the other, and gives their profiles to the process that started it.

It is told of a file by a line of JSON on its standard input, and answers on its standard output: the length of a message,
the message as JSON, and behind the message of a profile the bytes of its frames. It ends when its input does, or when
nobody hears it any more.
"""

from __future__ import annotations

import io
import json
import os
import struct
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence

import msgspec
import polars as pl

from roofterm_parsers.chrome.worker import NICENESS
from roofterm_parsers.errors import ProfileError, TooLarge
from roofterm_parsers.inputs import Input
from roofterm_parsers.profile import Profile, Source, Warning
from roofterm_parsers.progress import Progress, Tracker
from roofterm_parsers.records import HostNames

LENGTH = struct.Struct("<Q")


class Task(msgspec.Struct, frozen=True):
    file: Input
    max_memory: int
    device_alone: bool | HostNames


class Kept(msgspec.Struct, frozen=True):
    """A profile but for its frames, of which it names those with rows, and the bytes of each."""

    sources: list[Source]
    warnings: list[Warning]
    zero_unix_ns: int | None
    frames: list[tuple[str, int]]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """How far the file is read; at the end its profile, or why there is none."""

    bytes_done: int
    profile: Kept | None = None
    flaw: str | None = None
    too_large: bool = False


def frames_from(frames: Sequence[tuple[str, int]], receive: Callable[[int], bytes]) -> Iterator[tuple[str, pl.DataFrame]]:
    """The frames behind the message of a profile."""
    for name, size in frames:
        yield name, pl.read_ipc(io.BytesIO(receive(size)))


class _Reading:
    """One file, on its way to the process that asked for it."""

    def __init__(self) -> None:
        self._done = 0

    def answer(self, task: Task) -> None:
        from roofterm_parsers.reading import read_input

        try:
            profile = read_input(
                task.file, Tracker(self._tell, None), max_memory=task.max_memory, workers=0, device_alone=task.device_alone
            )
        except ProfileError as error:
            self._say(flaw=str(error), too_large=isinstance(error, TooLarge))
        except MemoryError:
            self._say(flaw=f"{task.file.path}: needs more memory than there is", too_large=True)
        except BrokenPipeError:
            raise
        except Exception:  # said to the parent, which leaves the file out with a sentence
            fault = traceback.format_exc().strip().rpartition("\n")[2]
            self._say(flaw=f"{task.file.path}: could not be read: {fault}; this is a fault of roofterm's")
        else:
            self._send(profile)

    def _tell(self, progress: Progress) -> None:
        self._done = progress.bytes_done
        self._say()

    def _send(self, profile: Profile) -> None:
        packed: list[tuple[str, bytes]] = []
        for name, frame in profile.frames().items():
            if frame.height:
                data = io.BytesIO()
                frame.rechunk().write_ipc(data, compression="uncompressed", record_batch_size=frame.height)
                packed.append((name, data.getvalue()))
        sizes = [(name, len(data)) for name, data in packed]
        self._say(Kept(profile.sources, profile.warnings, profile.zero_unix_ns, sizes))
        for _, sent in packed:
            sys.stdout.buffer.write(sent)
        sys.stdout.buffer.flush()

    def _say(self, profile: Kept | None = None, flaw: str | None = None, *, too_large: bool = False) -> None:
        answer = Answer(bytes_done=self._done, profile=profile, flaw=flaw, too_large=too_large)
        # The standard library's JSON, since only that keeps a file name that is no UTF-8.
        message = json.dumps(msgspec.to_builtins(answer)).encode()
        sys.stdout.buffer.write(LENGTH.pack(len(message)) + message)
        sys.stdout.buffer.flush()


def main(_: Sequence[str]) -> None:
    """Entry of the process."""
    os.nice(NICENESS)
    try:
        for line in sys.stdin.buffer:
            _Reading().answer(msgspec.convert(json.loads(line), Task))
    except (BrokenPipeError, KeyboardInterrupt):  # the parent is gone, or goes
        os._exit(1)
