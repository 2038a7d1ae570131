"""Runs the program `measure` in an interpreter that has torch, and hears what it says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from roofterm.hardware.store import MeasuredRoofs, keep_roofs
from roofterm_parsers.errors import ProfileError

PROGRAM = Path(__file__).with_name("measure")
HAS_TORCH = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
PATIENCE_S = 90.0
"""Beyond the budget: importing torch from a cold network disk, waking the device, building GEMM kernels."""


class Progress(msgspec.Struct, frozen=True):
    stage: str
    """launch, bandwidth copy, gemm bf16, ..."""
    share: float
    """of the whole, 0 to 1"""
    elapsed_s: float
    figure: float | None = None
    unit: str | None = None
    """FLOP/s, B/s or s"""


class _Line(msgspec.Struct):
    progress: Progress | None = None
    result: MeasuredRoofs | None = None
    error: str | None = None


def measure(
    python: str | None,
    budget_s: float,
    progress: Callable[[Progress], None],
    device: str | None = None,
    threads: int | None = None,
) -> MeasuredRoofs:
    """This machine's roofs, measured within about `budget_s` seconds by `python` (None: the first interpreter with torch, ours first).

    `device` is torch's name ("cuda:1", "cpu"), None the first accelerator, else the CPU. Nothing is kept: see `keep`.
    Raises ProfileError if no interpreter has torch or the measurement fails.
    """
    interpreter = find_python(python)
    command = [interpreter, str(PROGRAM), "--budget", str(budget_s)]
    command += ["--device", device] if device else []
    command += ["--threads", str(threads)] if threads else []
    with tempfile.TemporaryFile() as complaints:
        try:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=complaints, stdin=subprocess.DEVNULL)
        except OSError as error:
            raise ProfileError(f"cannot run {interpreter}: {error}") from error
        alarm = threading.Timer(budget_s + PATIENCE_S, process.kill)
        alarm.start()
        try:
            line = _listen(process, progress)
        finally:
            alarm.cancel()
            if process.poll() is None:
                process.kill()
            process.wait()
        if line is not None and line.result is not None:
            return line.result
        complaints.seek(0)
        last = complaints.read().decode(errors="replace").strip().splitlines()[-1:]
    if line is not None and line.error is not None:
        raise ProfileError(f"measuring failed in {interpreter}: {line.error}")
    reason = last[0] if last else f"it ended with code {process.returncode}"
    raise ProfileError(f"measuring failed in {interpreter}: {reason}")


def keep(roofs: MeasuredRoofs, force: bool = False, path: Path | None = None) -> Path:
    """Keep measured roofs for later rooflines; gives the file.

    Raises ProfileError if they are noisy and not forced, or cannot be written.
    """
    if roofs.noisy and not force:
        raise ProfileError(
            f"not kept, since the figures are not to be trusted: {'; '.join(roofs.noisy)}. "
            "Measure again when the machine is quiet, or keep them anyway with --force"
        )
    try:
        return keep_roofs(roofs, path)
    except OSError as error:
        raise ProfileError(f"cannot keep the measured roofs: {error}") from error


def find_python(named: str | None = None) -> str:
    """An interpreter with torch: the one named, else ours, the active environment's, or the first on PATH.

    Raises ProfileError if there is none.
    """
    if named is not None:
        path = shutil.which(os.path.expanduser(named))
        if path is None:
            raise ProfileError(f"there is no interpreter {named}: give --python the path of the python that your job runs in")
        if not _has_torch(path):
            raise ProfileError(f"{named} has no torch: give --python the path of the python that your job runs in")
        return path
    for path in _interpreters():
        if _has_torch(path):
            return path
    raise ProfileError("no interpreter here has torch: give --python the path of the python that your job runs in")


def _interpreters() -> list[str]:
    homes = [os.environ.get(name) for name in ("VIRTUAL_ENV", "CONDA_PREFIX")]
    found = [sys.executable, *(os.path.join(home, "bin", "python") for home in homes if home)]
    found += [path for name in ("python3", "python") if (path := shutil.which(name))]
    return list(dict.fromkeys(path for path in found if path))


def _has_torch(python: str) -> bool:
    try:
        return subprocess.run([python, "-c", HAS_TORCH], capture_output=True, timeout=30, check=False, cwd="/").returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _listen(process: subprocess.Popen[bytes], progress: Callable[[Progress], None]) -> _Line | None:
    """Pass progress on; the line with the result or the error, None if the program ended without one."""
    assert process.stdout is not None
    decoder = msgspec.json.Decoder(_Line)
    for text in process.stdout:
        try:
            line = decoder.decode(text)
        except msgspec.DecodeError as error:
            raise ProfileError(f"measuring gave an answer that cannot be read: {error}") from error
        if line.progress is not None:
            progress(line.progress)
        else:
            return line
    return None
