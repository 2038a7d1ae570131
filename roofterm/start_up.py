"""What makes a program that uses numpy start sooner."""

from __future__ import annotations

import os

_BLAS_THREADS = "OPENBLAS_NUM_THREADS"


def import_numpy() -> None:
    """Import numpy without the threads of its linear algebra, of which roofterm does none: they spin for a while once they are started,
    as long on another core as this import takes. A number of threads that the user has set is kept, and what roofterm starts, such
    as torch, does not see ours."""
    if _BLAS_THREADS in os.environ:
        return
    os.environ[_BLAS_THREADS] = "1"  # read once, when numpy's library is loaded
    try:
        import numpy  # noqa: F401
    finally:
        del os.environ[_BLAS_THREADS]
