"""How soon roofterm is gone after Ctrl+C, whatever it is at: starting, decoding, putting together, keeping, working a report out.

    python -m benchmarks.stopping TRACE... [--times 24] [--cores 1] [--explorer]

Starts a report of each file again and again with an empty cache, interrupts it at another time each time, and prints the
slowest ends as Markdown, by what it was at. A process or a half made folder that is left behind is a fault. `--cores 1`: all in
one process. `--explorer`: the explorer instead, on a pseudo-terminal, from its first frame to its first figures, by `esc` and
by `ctrl+c`.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from benchmarks.checkout import ROOT, compile_packages, environment
from benchmarks.figures import load_text, machine, seconds, table, verdict
from benchmarks.pseudo_terminal import SIZES, PseudoTerminal, terminal_environment
from roofterm_parsers.progress import Phase

AT_MOST_SECONDS = 0.2
DONE, INTERRUPTED = 0, 130
_OPENING, _READ, _FIGURES = "opening", r"\[1 Overview\]", r"busy +[\d.]+%"
"""what the explorer shows from its first frame, once all is read, and from its first figures on"""
_PHASES = re.compile("|".join(get_args(Phase)))
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Stop:
    at: str
    """what it was at when it was interrupted"""
    seconds: float
    """until it was gone"""
    cpu_s: float
    """that it worked meanwhile, itself and its workers: on a busy machine it waits, too"""
    load: float


class LeftBehind(RuntimeError):
    """A process of an interrupted program lives on, or it did not end as interrupted programs do."""


def whole_seconds(path: Path, cores: int | None) -> float:
    """How long a report takes that nobody interrupts."""
    with tempfile.TemporaryDirectory() as cache:
        before = time.perf_counter()
        _start(path, cache, cores).wait()
        return time.perf_counter() - before


def stop(path: Path, after_s: float, cores: int | None) -> Stop | None:
    """Interrupt a report after some time; None if it had ended before. Raises LeftBehind."""
    with tempfile.TemporaryDirectory() as cache:
        process = _start(path, cache, cores)
        seen = False
        until = time.perf_counter() + after_s
        while time.perf_counter() < until:
            seen = seen or bool(_children(process.pid))
            time.sleep(0.005)
        if process.poll() is not None:
            return None
        workers = _children(process.pid)
        at = _what(Path(cache), seen, bool(workers), cores)
        before = _cpu_s([process.pid, *workers])
        begun = time.perf_counter()
        process.send_signal(signal.SIGINT)
        _, status, used = os.wait4(process.pid, 0)
        took = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (INTERRUPTED, DONE):
            raise LeftBehind(f"{at}: ended with {process.returncode}")
        left = [pid for pid in workers if _lives(pid)]
        if left:
            raise LeftBehind(f"{at}: processes {left} live on")
        return None if process.returncode == DONE else Stop(at, took, used.ru_utime + used.ru_stime - before, os.getloadavg()[0])


def report_stops(path: Path, times: int, cores: int | None) -> Iterator[Stop]:
    """Interrupt a report at moments spread over what it takes. Raises LeftBehind."""
    whole = whole_seconds(path, cores)
    for number in range(times):
        found = stop(path, whole * (number + 0.5) / times, cores)
        if found is not None:
            yield found


def explorer_stops(path: Path, times: int) -> Iterator[Stop]:
    """Stop the explorer while it reads, at moments spread over that. Raises LeftBehind."""
    with tempfile.TemporaryDirectory() as cache, _explorer(path, cache) as terminal:
        first = terminal.seconds_until(_OPENING)
        whole = terminal.seconds_until(_FIGURES)
    for key, named in (("\x1b", "esc"), ("\x03", "ctrl+c")):
        for number in range(times):
            found = _stop_explorer(path, key, named, first + (whole - first) * (number + 0.5) / times)
            if found is not None:
                yield found


def _stop_explorer(path: Path, key: str, named: str, moment: float) -> Stop | None:
    """None if it had read all before, and the key meant something else."""
    with tempfile.TemporaryDirectory() as cache, _explorer(path, cache) as terminal:
        terminal.seconds_until(_OPENING)
        terminal.read_until(moment)
        at = f"{named}: {['starting', *_PHASES.findall(terminal.text())][-1]}"
        workers = _children(terminal.pid)
        before = _cpu_s([terminal.pid, *workers])
        found = terminal.end(key, AT_MOST_SECONDS * 10)
        if re.search(_READ, terminal.text()) or (found is not None and found.code == DONE):
            return None
        if found is None or found.code != INTERRUPTED:
            raise LeftBehind(f"{at}: {'goes on' if found is None else f'ended with {found.code}'}")
        left = [pid for pid in workers if _lives(pid)]
        kept = [folder.name for folder in (Path(cache) / "roofterm" / "profiles").glob("tmp-*")]
        if left or kept:
            raise LeftBehind(f"{at}: processes {left} live on, {kept} are left")
        return Stop(at, found.seconds, found.cpu_s - before, os.getloadavg()[0])


def _explorer(path: Path, cache: str) -> PseudoTerminal:
    command: list[str | Path] = [sys.executable, "-m", "roofterm.cli.main", path, "--no-state"]
    return PseudoTerminal(command, *SIZES[0], {**terminal_environment(), "XDG_CACHE_HOME": cache, "XDG_STATE_HOME": cache})


def _start(path: Path, cache: str, cores: int | None) -> subprocess.Popen[bytes]:
    few = "import os, runpy, sys; os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:int(sys.argv.pop(1))]); "
    run = "runpy.run_module('roofterm.cli.main', run_name='__main__', alter_sys=True)"
    return subprocess.Popen(
        [sys.executable, "-c", few + run, str(cores or os.cpu_count()), "report", "--format", "json", path],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **environment(), "XDG_CACHE_HOME": cache},
        cwd=ROOT,
    )


def _what(cache: Path, seen: bool, decodes: bool, cores: int | None) -> str:
    """What a report is at, as its processes and its cache show it."""
    kept = list((cache / "roofterm" / "profiles").glob("*")) if (cache / "roofterm" / "profiles").is_dir() else []
    if any(entry.name.startswith("tmp-") for entry in kept):
        return "keeping the profile"
    if kept:
        return "working out the report"
    if cores == 1:
        return "starting, decoding or putting together"
    return "starting or decoding" if decodes or not seen else "putting together"


def _children(pid: int) -> list[int]:
    """Processes that a process has started, its threads' too."""
    found: list[int] = []
    for task in _listed(f"/proc/{pid}/task"):
        try:
            found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
        except OSError:  # it ends
            continue
    return found


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _lives(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def _cpu_s(pids: Iterable[int]) -> float:
    """User and system time of processes and of their children so far."""
    total = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15]))  # its own, and of the children that have ended
    return total / _TICKS


def results_table(stops: Sequence[tuple[str, Stop]]) -> str:
    rows = []
    for name, at in dict.fromkeys((name, one.at) for name, one in stops):
        mine = [one for other, one in stops if other == name and one.at == at]
        worst = max(one.seconds for one in mine)
        rows.append(
            [
                f"{name}: {at}",
                str(len(mine)),
                seconds(statistics.median(one.seconds for one in mine)),
                seconds(worst),
                seconds(max(one.cpu_s for one in mine)),
                seconds(AT_MOST_SECONDS),
                verdict(worst, AT_MOST_SECONDS),
            ]
        )
    return table(["interrupted while", "times", "median", "slowest", "most CPU", "at most", ""], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", type=Path, metavar="TRACE")
    parser.add_argument("--times", type=int, default=24, help="interrupts of each file, spread over what a report of it takes")
    parser.add_argument("--cores", type=int, default=None, help="cores that it may use (default: all)")
    parser.add_argument("--explorer", action="store_true", help="stop the explorer while it reads, and not a report")
    args = parser.parse_args()
    compile_packages()
    stops: list[tuple[str, Stop]] = []
    for path in map(Path.resolve, args.traces):
        for found in explorer_stops(path, args.times) if args.explorer else report_stops(path, args.times, args.cores):
            stops.append((path.name, found))
            told = f"{found.at}: {found.seconds:.3f} s, {found.cpu_s:.3f} s of CPU, load {found.load:.1f}"
            print(f"{path.name}: {told}", file=sys.stderr, flush=True)
    print(f"{machine()}, {load_text([one.load for _, one in stops])}\n\n{results_table(stops)}")


if __name__ == "__main__":
    main()
