"""The explorer in the hand: from key to final content, and how many bytes a key sends, on a pseudo-terminal.

    python -m benchmarks.explorer [--slices 5000000] [--rows 1000000] [--presses 9] [--cached-mb 1000]

Also: first paint and first figures of a cached profile against an empty Textual program, and the CPU time of --version.
Prints medians as Markdown, with what is promised.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.checkout import ROOT, compile_packages, environment
from benchmarks.figures import NOTHING, load_text, machine, share, table, verdict
from benchmarks.loading import make_traces
from benchmarks.peers import CONTENDERS, default_home
from benchmarks.process_tree import run
from benchmarks.pseudo_terminal import Answer, PseudoTerminal

SIZES = ((80, 24), (200, 60))
PAGE_BYTES, LINE_BYTES = 6_000, 600
"""promised at 80x24"""

PAGE_DOWN = "\x1b[6~"
RIGHT = "\x1b[C"
ESCAPE = "\x1b"


@dataclass(frozen=True)
class Gesture:
    """A key on a screen, pressed again and again; `before` brings the screen to where it makes sense."""

    name: str
    keys: tuple[str, ...]
    """pressed in turn"""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    most_ms: tuple[int, int] = (50, 100)
    """promised at 80x24 and at 200x60"""
    most_bytes: int = PAGE_BYTES


PLOT_MS = (100, 150)
GESTURES = (
    Gesture("table: page down", (PAGE_DOWN,), before=("3",)),
    Gesture("table: one row down", ("k", "j"), most_bytes=LINE_BYTES),
    Gesture("table: reverse", ("r",)),
    Gesture("table: next sort column", ("s",) * 5 + ("S",) * 5),
    Gesture("table: filter by category", ("c",), after=(ESCAPE,)),
    Gesture("table: a letter of a filter", tuple("elementwise"), before=("/",), after=(ESCAPE,)),
    Gesture("timeline: zoom in", ("+",), before=("4",)),
    Gesture("timeline: pan, zoomed in", ("h",)),
    Gesture("timeline: next slice", (RIGHT,)),
    Gesture("timeline: zoom out", ("-",)),
    Gesture("timeline: pan, whole profile half shown", ("l", "h"), before=("0", "+")),
    Gesture("plot: zoom", ("+", "+", "+", "-", "-", "-"), before=("2",), most_ms=PLOT_MS),
    Gesture("plot: cursor to next point", ("n",), before=("0",), most_ms=PLOT_MS, most_bytes=LINE_BYTES),
    Gesture("plot: pan", ("L", "H"), before=("+", "+"), most_ms=PLOT_MS),
    Gesture("plot: filter by category", ("c",), before=("0",), after=(ESCAPE,), most_ms=PLOT_MS),
    Gesture("screens: overview and ops in turn", ("3", "1"), before=("1", "3", "1")),
)


@dataclass
class Measured:
    """All presses of a gesture, by the size of the terminal."""

    gesture: Gesture
    answers: dict[tuple[int, int], list[Answer]] = field(default_factory=dict)
    cpu_s: dict[tuple[int, int], float] = field(default_factory=dict)
    """a press, on average, what the program does beside it included"""


def measure_keys(slices: int, rows: int, presses: int, gestures: Sequence[Gesture] = GESTURES) -> list[Measured]:
    """Every gesture at every size, in one run of the explorer."""
    measured = [Measured(gesture) for gesture in gestures]
    command = [sys.executable, "-m", "benchmarks.contenders.large_explorer", str(slices), str(rows)]
    _say("making the profile and asking for its first figures")
    with PseudoTerminal(command, *SIZES[0], terminal_environment()) as terminal:
        terminal.seconds_until(r"busy", patience=1800)
        terminal.rest()
        for size in SIZES:
            terminal.resize(*size)
            terminal.rest()
            for one in measured:
                gesture = one.gesture
                for keys in gesture.before:
                    terminal.press(keys)
                terminal.press(gesture.keys[0])  # the first one may have to compute what the others find
                worked = terminal.cpu_seconds()
                answers = [terminal.press(gesture.keys[(at + 1) % len(gesture.keys)]) for at in range(presses)]
                one.cpu_s[size] = (terminal.cpu_seconds() - worked) / presses
                one.answers[size] = [answer for answer in answers if answer.bytes]  # at the end of a range a key does nothing
                for keys in gesture.after:
                    terminal.press(keys)
                _say(f"{size[0]}x{size[1]} {gesture.name}: {_ms(one, size):.0f} ms, {_bytes(one, size):,.0f} bytes")
    return measured


@dataclass(frozen=True)
class Start:
    """From the start of a process until it shows something: medians of the seconds, and of the CPU time."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Starts:
    empty: Start
    """a Textual program with one word"""
    paint: Start
    read: Start
    """first figures, of a profile in the cache of which none were kept"""
    again: Start
    """first figures as they were kept"""
    version_cpu: float


def measure_starts(trace: Path, cache: Path, rounds: int) -> Starts:
    """An empty Textual program and the explorer over a cached profile, in turns."""
    kept = {"XDG_CACHE_HOME": str(cache), "XDG_STATE_HOME": str(cache / "state")}
    env = {**terminal_environment(), **kept}
    explore: list[str | Path] = [sys.executable, "-m", "roofterm.cli.main", trace]
    subprocess.run(
        [*explore, "--format", "json", "-o", os.devnull], env={**os.environ, **environment(), **kept}, check=True, cwd=ROOT
    )  # fills the cache
    found: dict[str, list[Start]] = {name: [] for name in ("empty", "paint", "read", "again")}
    version = []
    for _ in range(rounds):
        found["empty"] += _until([sys.executable, CONTENDERS / "empty_app.py"], env, "painted")
        shutil.rmtree(cache / "roofterm" / "figures", ignore_errors=True)
        for name in ("read", "again"):
            paint, figures = _until(explore, env, "roofterm", r"busy +[\d.]+%")
            found["paint"].append(paint)
            found[name].append(figures)
        version.append(run([sys.executable, "-m", "roofterm.cli.main", "--version"], env=environment()).cpu_s)
    medians = {
        name: Start(statistics.median(s.wall for s in starts), statistics.median(s.cpu for s in starts)) for name, starts in found.items()
    }
    return Starts(**medians, version_cpu=statistics.median(version))


def _until(command: Sequence[str | Path], env: dict[str, str | None], *patterns: str) -> list[Start]:
    """When a program first shows each of these; it ends once it rests, so that it has kept what it keeps."""
    with PseudoTerminal(command, *SIZES[0], env) as terminal:
        starts = [Start(terminal.seconds_until(pattern), terminal.cpu_seconds()) for pattern in patterns]
        terminal.rest()
    return starts


def terminal_environment() -> dict[str, str | None]:
    """A terminal of 256 colours, as over SSH, and this checkout's roofterm."""
    return {**environment(), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **dict.fromkeys(("COLORTERM", "NO_COLOR", "TMUX", "STY"))}


def keys_table(measured: Sequence[Measured]) -> str:
    head = [
        "key to last byte, median",
        *(f"{width}x{height}" for width, height in SIZES),
        *(f"CPU {width}x{height}" for width, height in SIZES),
        "worst",
        "at most",
        "",
        f"bytes at {SIZES[0][0]}x{SIZES[0][1]}",
        "at most",
        "",
    ]
    rows = []
    for one in measured:
        gesture = one.gesture
        medians = [_ms(one, size) for size in SIZES]
        worst = max((answer.seconds for answers in one.answers.values() for answer in answers), default=0.0) * 1000
        held = all(median <= most for median, most in zip(medians, gesture.most_ms, strict=True))
        sent = _bytes(one, SIZES[0])
        rows.append(
            [
                gesture.name,
                *(f"{median:.0f} ms" for median in medians),
                *(f"{one.cpu_s[size] * 1000:.0f} ms" for size in SIZES),
                f"{worst:.0f} ms",
                " / ".join(map(str, gesture.most_ms)),
                "held" if held else "missed",
                f"{sent:,.0f}",
                f"{gesture.most_bytes:,}",
                verdict(sent, gesture.most_bytes),
            ]
        )
    return table(head, rows)


def starts_table(starts: Starts, megabytes: int) -> str:
    def line(name: str, start: Start, most: float | None) -> list[str]:
        times = [name, f"{start.wall:.2f} s", f"{start.cpu:.2f} s"]
        wall, cpu = start.wall / starts.empty.wall, start.cpu / starts.empty.cpu
        return [*times, share(wall), share(cpu), *((f"{most:.2f}", verdict(wall, most)) if most else (NOTHING, ""))]

    rows = [
        ["empty Textual program, painted", f"{starts.empty.wall:.2f} s", f"{starts.empty.cpu:.2f} s", *[NOTHING] * 3, ""],
        line("roofterm, first paint", starts.paint, 1.3),
        line(f"roofterm, first figures of {megabytes:,} MB opened before", starts.again, 3),
        line(f"roofterm, first figures of {megabytes:,} MB from the cache of profiles alone", starts.read, None),
        ["roofterm --version", NOTHING, f"{starts.version_cpu:.3f} s", *[NOTHING] * 2, "0.150 s", verdict(starts.version_cpu, 0.15)],
    ]
    return table(["start, median", "time", "CPU", "of the empty one's", "by CPU", "at most", ""], rows)


def _ms(one: Measured, size: tuple[int, int]) -> float:
    """Median time; not a number if no press was answered."""
    answers = one.answers[size]
    return statistics.median(answer.seconds for answer in answers) * 1000 if answers else float("nan")


def _bytes(one: Measured, size: tuple[int, int]) -> float:
    answers = one.answers[size]
    return statistics.median(answer.bytes for answer in answers) if answers else float("nan")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slices", type=int, default=5_000_000, help="in the profile that the keys are pressed over")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of its table of kernels")
    parser.add_argument("--presses", type=int, default=9, help="of each key")
    parser.add_argument("--cached-mb", type=int, default=1000, help="size of the trace whose first figures are waited for; 0: none")
    parser.add_argument("--data", type=Path, default=default_home() / "data", help="where the trace is kept")
    args = parser.parse_args()
    loads = [os.getloadavg()[0]]
    compile_packages()
    print(machine(), end="\n\n", flush=True)
    if args.cached_mb:
        (trace,) = make_traces([args.cached_mb], args.data)
        cache = Path(tempfile.mkdtemp(prefix="cache-", dir=args.data))
        try:
            starts = measure_starts(trace.packed, cache, args.presses)
        finally:
            shutil.rmtree(cache, ignore_errors=True)
        print(starts_table(starts, args.cached_mb), end="\n\n", flush=True)
        loads.append(os.getloadavg()[0])
    if args.slices:
        print(keys_table(measure_keys(args.slices, args.rows, args.presses)), end="\n\n")
        loads.append(os.getloadavg()[0])
    print(load_text(loads))


if __name__ == "__main__":
    main()
