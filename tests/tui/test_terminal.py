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
COLOURS = re.compile(rb"\x1b\[[0-9;]*(?:3[0-7]|4[0-7]|[34]8;|9[0-7]|10[0-7])(?:;[0-9;]*)?m")

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

    def type(self, text: str) -> None:
        """Characters as they are; what is no letter by its code."""
        self._run("send-keys", "-H", *(f"{byte:02x}" for byte in text.encode()))

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


def test_from_open_to_the_slowest_gemm_its_roof_its_slices_its_op_its_step_and_a_file(tmux, tmp_path):
    tmux.start(80, 24, PROGRAM)
    walk_to_the_export(tmux.screen, tmux.type, tmp_path / "kernels.csv")
    tmux.type("?")
    eventually(tmux.screen, r"sort by the next column")
    tmux.keys("Escape")
    eventually(tmux.screen, r"\[3 Ops\]")
    tmux.keys("q")
    eventually(tmux.screen, r"left with 0")


def walk_to_the_export(look: Callable[[], str], type_text: Callable[[str], None], path: Path) -> None:
    """The way of a person who looks for the slowest GEMM: its roof, its slices, the op that launched it, its step, and a file."""
    text = eventually(look, r"busy\s+\d+\.\d%")
    assert "H100" in text
    type_text("3")
    eventually(look, r">nvjet\S+ gemm")
    type_text("/cat:gemm\r")
    eventually(look, r"filter cat:gemm[\s\S]*\d+ of \d+ kernels")
    type_text("2")
    eventually(look, r"\[g\] .*mm.*gemm[\s\S]*% of roof")
    type_text("4")
    eventually(look, r"\[g\] nvjet")
    type_text("\x1b")  # the filter hides the launch
    eventually(look, r"^(?![\s\S]*filter cat:gemm)[\s\S]*\[g\] nvjet")
    type_text("\r")
    eventually(look, r"launched by\s+aten::(add)?mm")
    eventually(look, r"step\s+1\d\b")
    type_text("\x1b")
    eventually(look, r"\[g\] nvjet")
    type_text("u")
    eventually(look, r"\[.\] cu\w*Launch")
    type_text("5")
    eventually(look, r">ProfilerStep#1\d")
    type_text("3")
    eventually(look, r"\[3 Ops\]")
    type_text("e")
    eventually(look, r"Write all kernels shown to")
    type_text("\x15" + str(path) + "\r")
    eventually(look, r"kernels written to")
    assert path.read_text().startswith("name,")


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
    eventually(tmux.screen, r"fix first")  # before, it would stop what is being found out
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

    def __init__(self, width: int, height: int, program: list[str] | None = None, **extra: str) -> None:
        self.shown = pyte.Screen(width, height)
        self._stream = pyte.ByteStream(self.shown)
        self.sent = b""
        words = program or PROGRAM
        self.child = pexpect.spawn(
            words[0], words[1:], dimensions=(height, width), env=environment(**extra), cwd=str(ROOT), timeout=SECONDS
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
    assert not COLOURS.search(terminal.sent)


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


@pytest.mark.parametrize(
    "numbers",
    [(signal.SIGTERM,), (signal.SIGHUP,), (signal.SIGHUP, signal.SIGCONT), (signal.SIGCONT, signal.SIGTERM)],
    ids=["SIGTERM", "SIGHUP", "a connection that is lost", "after it was continued"],
)
def test_ended_from_outside_it_gives_the_terminal_back(terminals, numbers):
    """What a terminal that goes away sends is SIGHUP and then SIGCONT."""
    terminal = Pty(80, 24)
    terminals.append(terminal)
    eventually(terminal.screen, r"health")
    for number in numbers:
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


def test_the_same_way_in_ascii_and_without_colour(terminals, tmp_path):
    terminal = Pty(80, 24, NO_COLOR="1", ROOFTERM_ASCII="1")
    terminals.append(terminal)
    walk_to_the_export(terminal.screen, lambda text: terminal.child.send(text) and None, tmp_path / "kernels.csv")
    assert terminal.screen().isascii()
    assert not COLOURS.search(terminal.sent)


def test_stopped_from_outside_it_gives_the_terminal_back_and_comes_again(terminals):
    terminal = Pty(80, 24)
    terminals.append(terminal)
    eventually(terminal.screen, r"health")
    os.kill(terminal.child.pid, signal.SIGTSTP)
    eventually(lambda: terminal.screen() and state_of(terminal.child.pid), r"T")
    assert terminal.sent.rfind(b"\x1b[?1049l") > terminal.sent.rfind(b"\x1b[?1049h")
    os.kill(terminal.child.pid, signal.SIGCONT)
    eventually(lambda: str(terminal.screen() and terminal.sent.rfind(b"\x1b[?1049h") > terminal.sent.rfind(b"\x1b[?1049l")), r"True")
    terminal.child.send("3")
    eventually(terminal.screen, r"\[3 Ops\]")


def state_of(pid: int) -> str:
    """The letter of a process's state, T where it is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


@pytest.mark.parametrize("debug", [False, True], ids=["one-line", "debug"])
def test_a_fault_anywhere_gives_the_terminal_back_and_is_one_line(terminals, tmp_path, debug):
    broken = tmp_path / "broken.py"
    broken.write_text(
        "import sys\n"
        "from roofterm.cli.main import main\n"
        "from roofterm.tui.screens.ops import OpsPage\n"
        "OpsPage.action_reverse = lambda self: 1 // 0\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    words = [str(broken), *PROGRAM[3:], *(["--debug"] if debug else [])]
    terminal = Pty(80, 24, program=[sys.executable, *words], XDG_STATE_HOME=str(tmp_path))
    terminals.append(terminal)
    eventually(terminal.screen, r"health")
    terminal.child.send("3r")
    eventually(terminal.screen, r"ZeroDivisionError: integer division" if debug else r"internal fault: ZeroDivisionError")
    text = terminal.screen()
    assert ("File " in text) is debug
    assert debug or "fault.log" in "".join(text.split())
    assert terminal.sent.rfind(b"\x1b[?1049l") > terminal.sent.rfind(b"\x1b[?1049h")
    assert "action_reverse" in (tmp_path / "roofterm" / "fault.log").read_text()


def test_a_wrong_configuration_is_one_sentence(terminals, tmp_path):
    (tmp_path / "roofterm").mkdir()
    (tmp_path / "roofterm" / "config.toml").write_text("[keys]\nsrot = 'x'\n")
    terminal = Pty(120, 24, XDG_CONFIG_HOME=str(tmp_path))
    terminals.append(terminal)
    text = eventually(terminal.screen, r"did you mean 'sort'")
    assert "Traceback" not in text
    terminal.child.wait()
    assert terminal.child.exitstatus == 2
    assert b"\x1b[?1049h" not in terminal.sent


def test_a_profile_comes_back_as_it_was_left(terminals, tmp_path):
    kept = {"XDG_STATE_HOME": str(tmp_path)}
    program = [word for word in PROGRAM if word != "--no-state"]
    first = Pty(80, 24, program=program, **kept)
    terminals.append(first)
    eventually(first.screen, r"health")
    first.child.send("3")
    eventually(first.screen, r"\[3 Ops\]")
    first.child.send("/cat:gemm\r")
    eventually(first.screen, r"filter cat:gemm")
    os.kill(first.child.pid, signal.SIGHUP)
    first.child.expect(pexpect.EOF)
    second = Pty(80, 24, program=program, **kept)
    terminals.append(second)
    eventually(second.screen, r"\[3 Ops\][\s\S]*as you left it")
    second.child.send("k")
    eventually(second.screen, r"filter cat:gemm")


@pytest.mark.parametrize("term", ["screen", "linux", "vt100", "tmux-256color"])
def test_every_kind_of_terminal_shows_it(terminals, term):
    terminal = Pty(80, 24, TERM=term)
    terminals.append(terminal)
    eventually(terminal.screen, r"health")
    terminal.child.send("2")
    eventually(terminal.screen, r"FLOPs known")
    assert (b"38;5;" in terminal.sent or b"48;5;" in terminal.sent) is term.endswith("256color")
