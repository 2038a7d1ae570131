"""A process that decodes blocks: takes them from shared memory, and puts their columns where their text was.

Its parent starts it and speaks to it over its standard input and output. It ends when its input does, so it never
outlives its parent. It imports msgspec and numpy and nothing bigger.
"""

from __future__ import annotations

import gc
import mmap
import os
import struct
import sys
import traceback

TASK = struct.Struct("<QQQBBB5x")
"""position of the text in shared memory, its length, its offset in the file; whether the file ends with it, is XLA's, is long"""
ANSWER = struct.Struct("<BQ")
"""state and number of bytes"""
READY, PLACED, SENT, FAILED = range(4)
"""the worker waits for tasks; columns lie in shared memory; they follow on the pipe; a traceback follows on the pipe"""
NICENESS = 5


def run(memory: int, slot_bytes: int) -> None:
    """Decode what comes on standard input until it ends. `memory`: descriptor of the shared memory."""
    gc.disable()
    from roofterm_parsers.chrome.decoding import Decoder
    from roofterm_parsers.chrome.transport import packed

    os.nice(NICENESS)  # not before: until it has come up, its parent does alone what it is for
    decoder: Decoder | None = None
    tasks, answers = sys.stdin.buffer, sys.stdout.buffer
    with mmap.mmap(memory, 0) as shared, memoryview(shared) as view:
        _answer(READY, 0)
        while len(task := tasks.read(TASK.size)) == TASK.size:
            position, length, offset, last, xla, long = TASK.unpack(task)
            decoder = decoder or Decoder(xla=bool(xla), long=bool(long))
            try:
                with view[position : position + length] as text:
                    parts = packed(decoder.block(text, offset, last=bool(last)))
            except Exception:  # said to the parent, which ends with a sentence
                message = traceback.format_exc().encode("utf-8", "replace")
                _answer(FAILED, len(message))
                answers.write(message)
                answers.flush()
                return
            size = sum(map(len, parts))
            if size <= slot_bytes:
                for part in parts:
                    view[position : position + len(part)] = part
                    position += len(part)
                _answer(PLACED, size)
            else:
                _answer(SENT, size)
                for part in parts:
                    answers.write(part)
                answers.flush()


def _answer(state: int, size: int) -> None:
    sys.stdout.buffer.write(ANSWER.pack(state, size))
    sys.stdout.buffer.flush()


def main(arguments: list[str]) -> None:
    """Entry of the process: descriptor, bytes of a slot."""
    try:
        run(int(arguments[0]), int(arguments[1]))
    except (BrokenPipeError, KeyboardInterrupt):  # the parent is gone, or goes
        os._exit(1)
