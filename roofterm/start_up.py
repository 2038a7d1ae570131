"""What makes a program that uses numpy and polars start sooner."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_BLAS_THREADS = "OPENBLAS_NUM_THREADS"
_POLARS_THREADS = "POLARS_MAX_THREADS"


def import_numpy() -> None:
    """Import numpy without the threads of its linear algebra, of which roofterm does none: they spin for a while once they are started,
    as long on another core as this import takes. A number of threads that the user has set is kept, and what roofterm starts, such
    as torch, does not see ours."""
    with _one_thread(_BLAS_THREADS):  # read once, when numpy's library is loaded
        import numpy  # noqa: F401


def import_polars_for_little() -> bool:
    """Import polars with one thread of its own: over frames of up to a million rows more of them wake one another for longer than
    they work. A number of threads that the user has set is kept, and what roofterm starts does not see ours.

    Gives whether polars has one thread now.
    """
    with _one_thread(_POLARS_THREADS):
        import polars

        return polars.thread_pool_size() == 1  # read once, when polars is imported


@contextmanager
def _one_thread(variable: str) -> Iterator[None]:
    """Have a library that reads its number of threads here find 1, unless another is set."""
    if variable in os.environ:
        yield
        return
    os.environ[variable] = "1"
    try:
        yield
    finally:
        del os.environ[variable]
