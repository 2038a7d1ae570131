"""What must not outlive a program that ends without waiting for its threads: worker processes, and folders half made.

Once `clear_up` has begun, nothing new can be started or made. Free of numpy, as those who start workers are.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Lock

from roofterm_parsers.errors import Interrupted

LAST_SECONDS = 1.0
"""How long a process that was killed may take to be gone."""
_ATTEMPTS = 5
"""A thread that still writes may put a file into a folder while that is being deleted."""

_lock = Lock()
_processes: set[subprocess.Popen[bytes]] = set()
_folders: set[Path] = set()
_over = Event()


def started(start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """The process that `start` starts, known until `ended`. Raises Interrupted if the program ends."""
    with _lock:
        _refuse()
        process = start()
        _processes.add(process)
    return process


def ended(process: subprocess.Popen[bytes]) -> None:
    with _lock:
        _processes.discard(process)


@contextmanager
def half_made(folder: Path) -> Iterator[None]:
    """A new folder of the user's alone; what is left of it at the end is deleted. Raises Interrupted if the program ends."""
    with _lock:
        _refuse()
        folder.mkdir(mode=0o700)
        _folders.add(folder)
    try:
        yield
    finally:
        delete(folder)
        with _lock:
            _folders.discard(folder)


def clear_up() -> None:
    """Kill every process and delete every folder that is known. The program ends after it."""
    with _lock:
        _over.set()
        processes, folders = list(_processes), list(_folders)
    for process in processes:
        process.kill()
    for folder in folders:
        for _ in range(_ATTEMPTS):
            delete(folder)
            if not folder.exists():
                break
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(LAST_SECONDS)


def delete(folder: Path) -> None:
    """A folder with all in it, if it is there."""
    import shutil  # only here: it costs as much as opening a small profile

    shutil.rmtree(folder, ignore_errors=True)


def _refuse() -> None:
    if _over.is_set():
        raise Interrupted("the program ends")
