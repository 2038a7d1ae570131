"""What is taken hold of while the program runs, and given back when it ends: the stream that is drawn on, and signals."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def drawing_on_the_terminal() -> Iterator[None]:
    """Textual draws on standard error: where that is a file (2>log), draw on standard output, which is a terminal."""
    kept = sys.__stderr__
    if kept is None or not kept.isatty():
        setattr(sys, "__stderr__", sys.__stdout__)  # noqa: B010 (typeshed calls it final)
    try:
        yield
    finally:
        setattr(sys, "__stderr__", kept)  # noqa: B010


@contextmanager
def ended_by_signals(end: Callable[[], None]) -> Iterator[None]:
    """SIGTERM and SIGHUP end the program as a key would, so that the terminal is given back as it was."""

    def leave(_number: int, _frame: FrameType | None) -> None:
        end()

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
