"""Worker processes: started with this interpreter and its path, told and heard over their standard input and output."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import IO

from roofterm_parsers import leftovers
from roofterm_parsers.cores import usable_cores

MOST_WORKERS = 6
"""More would wait for the process that started them, where that puts together what they decode."""
_LAST_SECONDS = 1.0
START = "import sys; sys.path[:] = {path!r}; from {module} import main; main(sys.argv[1:])"
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONNODEBUGRANGES": "1"}


def fitting_workers(most: int = MOST_WORKERS) -> int:
    """As many as there are cores to use, up to `most`; none beside a single core, nor in a program that is its own interpreter."""
    cores = usable_cores()
    return 0 if cores < 2 or getattr(sys, "frozen", False) or not sys.executable else min(cores, most)


def workers_beside() -> int:
    """As many as there are cores beside the one that this process itself works on."""
    return max(fitting_workers() - 1, 0)


def start(
    module: str, arguments: Sequence[str] = (), *, fds: Sequence[int] = (), environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """`main(arguments)` of a module in a process and a process group of its own, so that Ctrl+C reaches the program alone.

    It inherits `fds`, and `environment` beside what this process has. Raises OSError if no process can be had, Interrupted if
    the program ends.
    """
    return leftovers.started(
        lambda: subprocess.Popen(
            [sys.executable, "-c", START.format(path=sys.path, module=module), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            stderr=subprocess.DEVNULL,
            pass_fds=tuple(fds),
            process_group=0,
            env={**os.environ, **_ENVIRONMENT, **environment},
        )
    )


def pipe(end: IO[bytes] | None) -> IO[bytes]:
    """One of the two pipes of a process that `start` gave."""
    assert end is not None
    return end


def stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Kill processes and wait until they are gone."""
    for process in processes:
        process.kill()
    for process in processes:
        process.wait()
        leftovers.ended(process)
        pipe(process.stdin).close()
        pipe(process.stdout).close()


def how_it_ended(process: subprocess.Popen[bytes]) -> str:
    """Why a worker speaks no more, and what that hints at: the end of a sentence."""
    try:
        status = process.wait(_LAST_SECONDS)
    except subprocess.TimeoutExpired:
        status = 0
    how = f"was killed ({signal.Signals(-status).name})" if status < 0 else f"ended (exit code {status})"
    hint = "most likely the machine ran out of memory" if status == -signal.SIGKILL else "this is a fault of roofterm's"
    return f"{how}; {hint}"
