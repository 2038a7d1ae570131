"""How soon the explorer is there: first paint, first figures, and the command line, beside an empty Textual program."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.checkout import ROOT, environment
from benchmarks.figures import NOTHING, share, table, verdict
from benchmarks.peers import CONTENDERS
from benchmarks.process_tree import run
from benchmarks.pseudo_terminal import SIZES, PseudoTerminal, terminal_environment


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
    report: Start
    """first figures as a report kept them, of a profile that was never shown"""
    outline: Start
    """first figures of a profile that another command has read, never shown"""
    again: Start
    """first figures as the explorer kept them"""
    read: Start
    """first figures of a profile in the cache of which none were kept"""
    version_cpu: float


def measure_starts(trace: Path, cache: Path, rounds: int) -> Starts:
    """An empty Textual program and the explorer over a cached profile, in turns."""
    kept = {"XDG_CACHE_HOME": str(cache), "XDG_STATE_HOME": str(cache / "state")}
    env = {**terminal_environment(), **kept}
    explore: list[str | Path] = [sys.executable, "-m", "roofterm.cli.main", trace]
    subprocess.run(
        [*explore, "--format", "json", "-o", os.devnull], env={**os.environ, **environment(), **kept}, check=True, cwd=ROOT
    )  # fills the cache, and keeps figures
    figures = cache / "roofterm" / "figures"
    figures.rename(of_report := cache / "of_report")
    subprocess.run([*explore[:-1], "ops", trace, "-o", os.devnull], env={**os.environ, **environment(), **kept}, check=True, cwd=ROOT)
    figures.rename(of_ops := cache / "of_ops")
    found: dict[str, list[Start]] = {name: [] for name in ("empty", "paint", "outline", "report", "again", "read")}
    version = []
    for _ in range(rounds):
        found["empty"] += _until([sys.executable, CONTENDERS / "empty_app.py"], env, "painted")
        for name, kept_by in (("outline", of_ops), ("report", of_report), ("again", None), ("read", None)):
            if name != "again":
                shutil.rmtree(figures, ignore_errors=True)
            if kept_by is not None:
                shutil.copytree(kept_by, figures)
            paint, shown = _until(explore, env, "roofterm", r"busy +[\d.]+%")
            found["paint"].append(paint)
            found[name].append(shown)
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


def starts_table(starts: Starts, megabytes: int) -> str:
    def line(name: str, start: Start, most: float | None) -> list[str]:
        times = [name, f"{start.wall:.2f} s", f"{start.cpu:.2f} s"]
        wall, cpu = start.wall / starts.empty.wall, start.cpu / starts.empty.cpu
        return [*times, share(wall), share(cpu), *((f"{most:.2f}", verdict(wall, most)) if most else (NOTHING, ""))]

    rows = [
        ["empty Textual program, painted", f"{starts.empty.wall:.2f} s", f"{starts.empty.cpu:.2f} s", *[NOTHING] * 3, ""],
        line("roofterm, first paint", starts.paint, 1.3),
        line(f"roofterm, first figures of {megabytes:,} MB that a report has read, never shown", starts.report, 3),
        line(f"roofterm, first figures of {megabytes:,} MB that `ops` has read, never shown", starts.outline, 3),
        line(f"roofterm, first figures of {megabytes:,} MB opened before", starts.again, 3),
        line(f"roofterm, first figures of {megabytes:,} MB of which none were kept", starts.read, None),
        ["roofterm --version", NOTHING, f"{starts.version_cpu:.3f} s", *[NOTHING] * 2, "0.150 s", verdict(starts.version_cpu, 0.15)],
    ]
    return table(["start, median", "time", "CPU", "of the empty one's", "by CPU", "at most", ""], rows)
