"""The program in real terminals: tmux, and a pseudo-terminal read by pyte. What is asserted is what a person would see."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pexpect
import pyte
import pytest

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "samples" / "transformer_h100_synthetic.pt.trace.json.gz"
PROGRAM = [sys.executable, "-m", "roofterm.cli.main", str(SAMPLE), "--no-cache", "--no-state"]
SECONDS = 30

pytestmark = pytest.mark.terminal


def environment(**extra: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLORTERM", "TMUX")}
    paths = os.pathsep.join([str(ROOT), str(ROOT / "parsers")])
    return {**kept, "PYTHONPATH": paths, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color", **extra}


def eventually(look: Callable[[], str], wanted: str) -> str:
    """The screen once it shows this; polls, since how long it takes is not the test's business."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        text = look()
        if re.search(wanted, text):
            return text
        time.sleep(0.05)
    pytest.fail(f"never showed {wanted!r}; last:\n{look()}")


class Tmux:
    """A server of its own, without anybody's configuration."""

    def __init__(self, folder: Path) -> None:
        self._command = ["tmux", "-S", str(folder / f"s{uuid.uuid4().hex[:8]}"), "-f", "/dev/null"]

    def start(self, width: int, height: int, command: list[str]) -> None:
        line = subprocess.list2cmdline(command) + "; echo left with $?; sleep 60"
        self._run("new-session", "-d", "-x", str(width), "-y", str(height), line)

    def keys(self, *keys: str) -> None:
        for key in keys:
            self._run("send-keys", key)

    def screen(self) -> str:
        return self._run("capture-pane", "-p")

    def resize(self, width: int, height: int) -> None:
        self._run("resize-window", "-x", str(width), "-y", str(height))

    def end(self) -> None:
        self._run("kill-server")

    def _run(self, *words: str) -> str:
        done = subprocess.run([*self._command, *words], capture_output=True, text=True, env=environment(), check=False, cwd=ROOT)
        return done.stdout


@pytest.fixture
def tmux() -> Iterator[Tmux]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    with TemporaryDirectory(prefix="rt") as folder:  # a socket's path may have 107 characters, pytest's folders are longer
        server = Tmux(Path(folder))
        yield server
        server.end()


def test_from_open_to_the_slowest_gemm_its_roof_its_slices_and_out(tmux):
    tmux.start(80, 24, PROGRAM)
    text = eventually(tmux.screen, r"busy\s+\d+\.\d%")
    assert "H100" in text
    tmux.keys("3")
    eventually(tmux.screen, r">nvjet\S+ gemm")
    tmux.keys("2")
    eventually(tmux.screen, r"\[g\] .*mm.*gemm")
    tmux.keys("3")
    eventually(tmux.screen, r"\[3 Ops\]")
    tmux.keys("4")
    eventually(tmux.screen, r"\[g\] nvjet")
    tmux.keys("u")
    eventually(tmux.screen, r"\[.\] cu\w*Launch")
    tmux.keys("?")
    eventually(tmux.screen, r"from a kernel to its launch")
    tmux.keys("Escape")
    eventually(tmux.screen, r"\[4 Timeline\]")
    tmux.keys("q")
    eventually(tmux.screen, r"left with 0")


def test_resizing_from_small_to_large_and_too_small(tmux):
    tmux.start(80, 24, PROGRAM)
    eventually(tmux.screen, r"health")
    tmux.resize(200, 60)
    text = eventually(tmux.screen, r"Top kernels")
    assert "Categories" in text
    tmux.resize(60, 16)
    eventually(tmux.screen, r"^(?!.*Top kernels)[\s\S]*health")
    tmux.resize(40, 10)
    eventually(tmux.screen, r"needs 60x16, has 40x10")
    tmux.resize(80, 24)
    eventually(tmux.screen, r"health")
    tmux.keys("C-c")
    eventually(tmux.screen, r"left with 0")


def test_suspend_gives_the_shell_and_fg_returns(tmux):
    tmux.start(80, 24, ["bash", "--norc", "-i"])
    tmux.keys("cd " + str(ROOT), "Enter", subprocess.list2cmdline(PROGRAM), "Enter")
    eventually(tmux.screen, r"health")
    tmux.keys("C-z")
    eventually(tmux.screen, r"Stopped")
    tmux.keys("fg", "Enter")
    eventually(tmux.screen, r"\[1 Overview\][\s\S]*health")
    tmux.keys("q")
    eventually(tmux.screen, r"^(?![\s\S]*\[1 Overview\])")


def test_a_bad_file_leaves_a_usable_terminal_and_one_line(tmux, tmp_path):
    bad = tmp_path / "bad.json"
    bad.write_text("this is no profile")
    tmux.start(80, 24, [sys.executable, "-m", "roofterm.cli.main", str(bad)])
    text = eventually(tmux.screen, r"left with 2")
    assert "roofterm:" in text
    assert "Traceback" not in text


def test_standard_error_may_be_a_file(tmux, tmp_path):
    log = tmp_path / "log"
    tmux.start(80, 24, ["sh", "-c", f"{subprocess.list2cmdline(PROGRAM)} 2>{log}"])
    eventually(tmux.screen, r"roofline covers")
    tmux.keys("q")
    eventually(tmux.screen, r"left with 0")
    assert log.read_text() == ""


class Pty:
    """The program on a pseudo-terminal, and pyte as the terminal."""

    def __init__(self, width: int, height: int, **extra: str) -> None:
        self.shown = pyte.Screen(width, height)
        self._stream = pyte.ByteStream(self.shown)
        self.sent = b""
        self.child = pexpect.spawn(
            PROGRAM[0], PROGRAM[1:], dimensions=(height, width), env=environment(**extra), cwd=str(ROOT), timeout=SECONDS
        )

    def screen(self) -> str:
        try:
            while True:
                data = self.child.read_nonblocking(1 << 16, timeout=0.05)
                self.sent += data
                # pyte takes private sequences that it does not know for text
                self._stream.feed(re.sub(rb"\x1b\[[<=>][0-9;]*[a-zA-Z]", b"", data))
        except (pexpect.TIMEOUT, pexpect.EOF):
            return "\n".join(self.shown.display)


@pytest.fixture
def terminals() -> Iterator[list[Pty]]:
    started: list[Pty] = []
    yield started
    for terminal in started:
        terminal.child.close(force=True)


def test_pyte_shows_every_screen_and_the_cursor_row_in_reverse_without_colour(terminals):
    terminal = Pty(80, 24, NO_COLOR="1", ROOFTERM_ASCII="1")
    terminals.append(terminal)
    eventually(terminal.screen, r"health")
    for key, wanted in (("2", r"FLOPs known"), ("3", r">nvjet"), ("4", r"busy %"), ("5", r"ProfilerStep#"), ("9", r"989\.4 TFLOP/s")):
        terminal.child.send(key)
        text = eventually(terminal.screen, wanted)
        assert text.isascii()
    terminal.child.send("3")
    text = eventually(terminal.screen, r">nvjet")
    row = next(y for y, line in enumerate(text.splitlines()) if line.startswith(">nvjet"))
    cells = [terminal.shown.buffer[row][x] for x in range(70)]
    assert all(cell.reverse for cell in cells)
    assert {(cell.fg, cell.bg) for cell in cells} == {("default", "default")}
    assert not re.search(rb"\x1b\[[0-9;]*(?:3[0-7]|4[0-7]|[34]8;|9[0-7]|10[0-7])(?:;[0-9;]*)?m", terminal.sent)


def test_no_mouse_mode_is_ever_set_and_all_modes_are_taken_back(terminals):
    terminal = Pty(80, 24)
    terminals.append(terminal)
    eventually(terminal.screen, r"health")
    terminal.child.send("q")
    terminal.child.expect(pexpect.EOF)
    terminal.sent += terminal.child.before or b""
    terminal.child.close()
    assert terminal.child.exitstatus == 0
    assert not re.search(rb"\x1b\[\?100[0-36]h", terminal.sent)
    for mode in (b"1049", b"2004", b"1004"):
        assert terminal.sent.rfind(b"\x1b[?" + mode + b"l") > terminal.sent.rfind(b"\x1b[?" + mode + b"h")
    assert terminal.sent.rfind(b"\x1b[?25h") > terminal.sent.rfind(b"\x1b[?25l")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["SIGTERM", "SIGHUP"])
def test_ended_from_outside_it_gives_the_terminal_back(terminals, number):
    terminal = Pty(80, 24)
    terminals.append(terminal)
    eventually(terminal.screen, r"health")
    os.kill(terminal.child.pid, number)
    terminal.child.expect(pexpect.EOF)
    terminal.sent += terminal.child.before or b""
    terminal.child.close()
    assert terminal.child.exitstatus == 130
    assert terminal.sent.rfind(b"\x1b[?1049l") > terminal.sent.rfind(b"\x1b[?1049h")


def test_a_dumb_terminal_gets_the_report(terminals):
    terminal = Pty(80, 24, TERM="dumb")
    terminals.append(terminal)
    terminal.child.expect(pexpect.EOF)
    assert b"\x1b[?1049h" not in terminal.child.before
    assert b"H100" in terminal.child.before
