"""Runs a command and says what all its processes together took: wall time, CPU time, and memory at its most.

Linux only: memory is read from /proc.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

SAMPLE_SECONDS = 0.05
_ORPHAN_SECONDS = 5.0
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Run:
    """One run of a command, from its start until its last process has ended."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    """Private memory of all processes plus what one of them shares at most, at the sample where that was most; or what a
    single process held at its most between two samples, if that is more."""
    load: float
    """Load average of the machine over the minute before the end."""
    output: str


class CommandFailed(RuntimeError):
    """The command ended with another code than 0; the message has its last words."""


def run(command: Sequence[str | Path], *, env: Mapping[str, str] | None = None, cwd: Path | None = None, nice: int = 0) -> Run:
    """Run a command with `env` beside this process's own environment. Raises CommandFailed."""
    _adopt_orphans()
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as complained:
        started = time.perf_counter()
        process = subprocess.Popen(
            ["nice", "-n", str(nice), *command] if nice else list(command),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=complained,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            start_new_session=True,
        )
        with _Sampler(process.pid) as sampler:
            _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        cpu_s = usage.ru_utime + usage.ru_stime + _cpu_of_orphans()
        said.seek(0)
        output = said.read().decode("utf-8", "replace")
        if process.returncode != 0:
            complained.seek(0)
            words = complained.read().decode("utf-8", "replace")[-2000:]
            raise CommandFailed(f"{' '.join(map(str, command))} ended with {process.returncode}: {words}")
        return Run(wall_s, cpu_s, sampler.peak_bytes, os.getloadavg()[0], output)


class _Sampler:
    """Looks at the processes of a session in a thread of its own."""

    def __init__(self, session: int) -> None:
        self.peak_bytes = 0
        self._session = session
        self._others: set[str] = set()
        self._over = Event()
        self._thread = Thread(target=self._watch, daemon=True)

    def __enter__(self) -> _Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            self.peak_bytes = max(self.peak_bytes, self._now_bytes())

    def _now_bytes(self) -> int:
        pids = {name for name in os.listdir("/proc") if name.isdigit()} - self._others
        found = [memory for pid in pids if (memory := self._memory(pid)) is not None]
        together = sum(one.private for one in found) + max((one.shared for one in found), default=0)
        return max(together, *(one.most for one in found), 0)

    def _memory(self, pid: str) -> Memory | None:
        """Of a process of the session; None for any other, which is not looked at again."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
            if int(stat.rpartition(")")[2].split()[3]) != self._session:
                self._others.add(pid)
                return None
            return memory_of(pid)
        except (OSError, ValueError, IndexError):  # it ended between two looks
            return None


@dataclass
class Memory:
    """What a process holds, in bytes."""

    private: int = 0
    """anonymous"""
    shared: int = 0
    """of files and shared memory"""
    most: int = 0
    """of both, so far"""


_LINES = {"RssAnon": "private", "RssFile": "shared", "RssShmem": "shared", "VmHWM": "most"}


def memory_of(pid: int | str) -> Memory:
    """Raises OSError if the process has ended."""
    memory = Memory()
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in _LINES:
            part = _LINES[name]
            setattr(memory, part, getattr(memory, part) + int(value.split()[0]) * 1024)
    return memory


def _adopt_orphans() -> None:
    """Have processes that outlive their parent become ours, so that their CPU time is counted and none is left behind."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _cpu_of_orphans() -> float:
    cpu_s = 0.0
    until = time.monotonic() + _ORPHAN_SECONDS
    while time.monotonic() < until:
        try:
            pid, _, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid:
            cpu_s += usage.ru_utime + usage.ru_stime
        else:
            time.sleep(SAMPLE_SECONDS)
    return cpu_s
