"""Work that numpy does without the interpreter, side by side in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import ParamSpec, Protocol, TypeVar

from roofterm_parsers.cores import usable_cores

P = ParamSpec("P")
T = TypeVar("T")


class Later(Protocol):
    """Takes work and gives the way to its result, which is there at the latest when it is asked for."""

    def __call__(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Callable[[], T]: ...


def when_asked(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Callable[[], T]:
    """A `Later` without threads: the work is done when its result is asked for."""
    return partial(work, *args, **kwargs)


@contextmanager
def threads(worth: bool) -> Iterator[Later]:
    """A `Later` with a thread for each core that may be used, if the work is worth them and there are several.

    Work that has not begun when the context ends is never done.
    """
    cores = usable_cores() if worth else 1
    if cores == 1:
        yield when_asked
        return
    pool = ThreadPoolExecutor(cores, "roofterm")

    def later(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Callable[[], T]:
        return pool.submit(work, *args, **kwargs).result

    try:
        yield later
    finally:
        pool.shutdown(cancel_futures=True)
