"""A program on a pseudo-terminal, read as fast as it writes: what it sends, when, and when it has finished."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.checkout import environment

SIZES = ((80, 24), (200, 60))
QUIET_SECONDS = 0.3
"""Without a byte and without work for so long, the program has finished with a key."""
BUSY_SECONDS = 0.02
"""More CPU time than this within the quiet is work."""
PATIENCE_SECONDS = 600.0
TURN_SECONDS = 0.002
"""How often it is looked whether a program has ended."""
_READ_BYTES = 1 << 16

ASKS_SYNCHRONISED = b"\x1b[?2026$p"
HAS_SYNCHRONISED = b"\x1b[?2026;2$y"
"""DECRQM and its answer: the terminal knows synchronised output, and it is off."""
_SEQUENCES = re.compile(rb"\x1b\[[0-9;:?<=>]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]|\x1b.")


@dataclass(frozen=True)
class Answer:
    """What came back after a key: when its last byte came, and how many there were."""

    seconds: float
    bytes: int


@dataclass(frozen=True)
class Ended:
    """How a program has ended: how long after the key, with which exit code, and how long it and its workers worked in all."""

    seconds: float
    code: int
    cpu_s: float


class TerminalEnded(RuntimeError):
    """The program has ended, or never answered."""


class PseudoTerminal:
    """A program started on a terminal of its own. Use as a context: the program ends with it."""

    def __init__(self, command: Sequence[str | Path], width: int, height: int, env: Mapping[str, str | None]) -> None:
        """`env` beside this process's own environment; None takes a variable out."""
        self.output = b""
        self._marks: list[tuple[float, int]] = []
        """when how much of the output had come"""
        self._gone = False
        self.started = time.perf_counter()
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            kept = {name: value for name, value in os.environ.items() if name not in env}
            given = {name: value for name, value in env.items() if value is not None}
            os.execvpe(command[0], [str(word) for word in command], {**kept, **given})
        self.resize(width, height)

    def __enter__(self) -> PseudoTerminal:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._gone:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._terminal)

    def resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def press(self, keys: str, patience: float = PATIENCE_SECONDS) -> Answer:
        """Send keys and wait until the program rests again. Raises TerminalEnded."""
        before = len(self.output)
        sent = time.perf_counter()
        os.write(self._terminal, keys.encode())
        last = self.rest(patience)
        return Answer(max(last - sent, 0.0), len(self.output) - before)

    def end(self, keys: str, patience: float = PATIENCE_SECONDS) -> Ended | None:
        """Send keys that end the program, and wait until it is gone; None if it stays."""
        sent = time.perf_counter()
        os.write(self._terminal, keys.encode())
        while not self._gone and time.perf_counter() - sent < patience:
            with suppress(TerminalEnded):
                self._read(TURN_SECONDS)
            ended, status, used = os.wait4(self.pid, os.WNOHANG)
            self._gone = ended == self.pid
        took = time.perf_counter() - sent
        return Ended(took, os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime) if self._gone else None

    def read_until(self, moment: float) -> None:
        """Take what it sends until so many seconds after its start. Raises TerminalEnded."""
        while (left := self.started + moment - time.perf_counter()) > 0:
            self._read(min(left, TURN_SECONDS))

    def rest(self, patience: float = PATIENCE_SECONDS) -> float:
        """Read until the program rests; when its last byte came. Raises TerminalEnded."""
        until = time.perf_counter() + patience
        quiet_since, worked = time.perf_counter(), self.cpu_seconds()
        while time.perf_counter() < until:
            if self._read(QUIET_SECONDS - (time.perf_counter() - quiet_since)):
                quiet_since, worked = time.perf_counter(), self.cpu_seconds()
            elif time.perf_counter() - quiet_since >= QUIET_SECONDS:
                now = self.cpu_seconds()
                if now - worked <= BUSY_SECONDS and not self._waits_for_a_core():
                    return self._marks[-1][0] if self._marks else self.started
                quiet_since, worked = time.perf_counter(), now
        raise TerminalEnded(f"not at rest after {patience:.0f} s; last:\n{self.text()[-2000:]}")

    def seconds_until(self, pattern: str, patience: float = PATIENCE_SECONDS) -> float:
        """From the start until the text that was sent shows this. Raises TerminalEnded."""
        wanted = re.compile(pattern)
        until = time.perf_counter() + patience
        while time.perf_counter() < until:
            if self._read(0.05) and wanted.search(self.text()):
                return self._earliest(lambda text: wanted.search(text) is not None) - self.started
        raise TerminalEnded(f"never showed {pattern!r}; last:\n{self.text()[-2000:]}")

    def text(self, end: int | None = None) -> str:
        """What was sent, without its control sequences."""
        return _SEQUENCES.sub(b" ", self.output[:end]).decode("utf-8", "replace")

    def _earliest(self, holds: Callable[[str], bool]) -> float:
        return next(at for at, length in self._marks if holds(self.text(length)))

    def _read(self, seconds: float) -> bool:
        """Take what has come, at the latest after this time; whether there was anything."""
        ready, _, _ = select.select([self._terminal], [], [], max(seconds, 0))
        if not ready:
            return False
        try:
            data = os.read(self._terminal, _READ_BYTES)
        except OSError as fault:  # how a terminal says that its last program has ended
            raise TerminalEnded(self.text()[-2000:]) from fault
        self.output += data
        self._marks.append((time.perf_counter(), len(self.output)))
        if ASKS_SYNCHRONISED in data:
            os.write(self._terminal, HAS_SYNCHRONISED)
        return True

    def _waits_for_a_core(self) -> bool:
        """Whether a thread of the program runs, or would if the machine had a core or a disk for it."""
        states = (stat.read_text().rpartition(")")[2].split()[0] for stat in Path(f"/proc/{self.pid}/task").glob("*/stat"))
        try:
            return any(state in "RD" for state in states)
        except OSError:  # a thread has just ended
            return True

    def cpu_seconds(self) -> float:
        """User and system time of the program so far."""
        values = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")


def terminal_environment() -> dict[str, str | None]:
    """A terminal of 256 colours, as over SSH, and this checkout's roofterm."""
    return {**environment(), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **dict.fromkeys(("COLORTERM", "NO_COLOR", "TMUX", "STY"))}
