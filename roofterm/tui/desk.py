"""One thread that asks the Study, in order of asking: screens await it, and nothing blocks the screen.

A question whose asker was cancelled before it came up is never asked, so the newest one wins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


class Desk:
    """Its thread is a daemon: a long question does not keep the program from ending."""

    def __init__(self) -> None:
        self._questions: SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]] | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name="roofterm-desk", daemon=True)
        self._thread.start()

    async def ask(self, question: Callable[[], T]) -> T:
        """The question's answer, or its exception."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._questions.put((question, future))
        return await future

    def close(self) -> None:
        self._questions.put(None)

    def _work(self) -> None:
        while (asked := self._questions.get()) is not None:
            question, future = asked
            if future.cancelled():
                continue
            try:
                answer, fault = question(), None
            except BaseException as error:  # the asker's to handle: this thread must go on
                answer, fault = None, error
            with suppress(RuntimeError):  # the loop has ended: nobody waits any more
                future.get_loop().call_soon_threadsafe(_settle, future, answer, fault)


def _settle(future: asyncio.Future[Any], answer: Any, fault: BaseException | None) -> None:
    if future.done():
        return
    if isinstance(fault, StopIteration):  # no future takes it: whoever waits would wait for ever
        lost = RuntimeError("a question found nothing where there had to be something")
        lost.__cause__ = fault
        future.set_exception(lost)
    elif fault is not None:
        future.set_exception(fault)
    else:
        future.set_result(answer)
