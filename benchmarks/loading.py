"""Loading large Chrome traces: roofterm beside HTA, Perfetto's engine and json.load, in one run.

    python -m benchmarks.loading [--sizes 100 1000] [--rounds 3] [--without hta] [--peers-home FOLDER]

Makes the traces (kept in --data for the next time), lets each contender load each of them in a process of its own, in
turns, and prints the medians as Markdown. HTA takes minutes at 1000 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.checkout import ROOT, compile_packages, environment
from benchmarks.figures import MB, load_text, machine, megabytes, seconds, share, table, verdict
from benchmarks.peers import CONTENDERS, default_home, hta_command, perfetto_command
from benchmarks.process_tree import CommandFailed, Run, run

ALL_PEERS = ("hta", "perfetto", "json.load")
NICE = 5


LARGEST_PLAIN_MB = 1500
"""Only roofterm is tried on larger ones, and it reads the packed file."""


@dataclass(frozen=True)
class Trace:
    megabytes: int
    packed: Path
    plain: Path

    @property
    def expanded_bytes(self) -> int:
        """Of the text: gzip's last word holds it modulo 2**32."""
        with self.packed.open("rb") as file:
            file.seek(-4, os.SEEK_END)
            size = int.from_bytes(file.read(4), "little")
        return size + -(-max(self.megabytes * MB - size, 0) // 2**32) * 2**32


@dataclass
class Contender:
    name: str
    command: Callable[[Trace], list[str | Path]]
    answers: bool = True
    """it prints how long loading took inside the process"""
    largest_mb: int = 1 << 62
    """no larger trace is tried: it would not fit, or take hours"""
    rounds: int | None = None
    memory_per_byte: float = 1.0
    """about how much it takes for each byte of the trace, so as not to start what does not fit"""
    env: dict[str, str] = field(default_factory=dict)
    runs: dict[int, list[Run]] = field(default_factory=dict)

    def load_s(self, size: int) -> float | None:
        """Median of the time inside the process, imports done; None where the contender does not say."""
        return self.median(size, lambda done: float(json.loads(done.output.splitlines()[-1])["load_s"])) if self.answers else None

    def median(self, size: int, figure: Callable[[Run], float]) -> float | None:
        runs = self.runs.get(size)
        return statistics.median(map(figure, runs)) if runs else None


def contenders(peers_home: Path, cache: Path, without: Iterable[str]) -> list[Contender]:
    """roofterm's ways to load, and the peers that are asked for."""
    load: list[str | Path] = [sys.executable, "-m", "benchmarks.contenders.roofterm_load"]
    report: list[str | Path] = [sys.executable, "-m", "roofterm.cli.main", "report", "--format", "json"]
    kept = {"XDG_CACHE_HOME": str(cache)}
    found = [
        Contender("roofterm, to a Profile", lambda trace: [*load, trace.packed]),
        Contender("roofterm report --no-cache", lambda trace: [*report, "--no-cache", trace.packed], answers=False),
        Contender("roofterm, Profile from the cache", lambda trace: [*load, trace.packed, "--cache"], env=kept),
        Contender("roofterm report, from the cache", lambda trace: [*report, trace.packed], answers=False, env=kept),
        Contender(
            "json.load", lambda trace: [sys.executable, CONTENDERS / "json_load.py", trace.plain], largest_mb=1000, memory_per_byte=6.5
        ),
        Contender(
            "Perfetto 52 WASM", lambda trace: perfetto_command(peers_home, trace.plain), largest_mb=LARGEST_PLAIN_MB, memory_per_byte=3
        ),
        Contender("HTA 0.5.0", lambda trace: hta_command(peers_home, trace.packed), largest_mb=1000, rounds=1, memory_per_byte=6),
    ]
    left_out = {"hta": "HTA", "perfetto": "Perfetto", "json.load": "json.load"}
    return [one for one in found if not any(one.name.startswith(left_out[name]) for name in without)]


def measure(found: list[Contender], trace: Trace, rounds: int) -> None:
    """Every contender once a round, so that a busy minute of the machine falls on all of them."""
    for number in range(rounds):
        for one in found:
            if number >= (one.rounds or rounds) or trace.megabytes > one.largest_mb:
                continue
            if one.memory_per_byte * trace.expanded_bytes > _free_bytes():
                _say(f"{one.name}: left out at {trace.megabytes} MB: there is not enough free memory")
                continue
            try:
                command = one.command(trace)
                if one.env and not one.runs.get(trace.megabytes):
                    run(command, env={**environment(), **one.env}, cwd=ROOT)  # the first one fills the cache
                done = run(command, env={**environment(), **one.env}, cwd=ROOT, nice=NICE)
            except (CommandFailed, RuntimeError, OSError, subprocess.CalledProcessError) as fault:
                _say(f"{one.name}: {fault}")
                continue
            one.runs.setdefault(trace.megabytes, []).append(done)
            told = f"{done.wall_s:.2f} s, {done.cpu_s:.2f} s of CPU, {done.peak_bytes / MB:.0f} MB, load {done.load:.1f}"
            _say(f"{trace.megabytes} MB, round {number + 1}: {one.name}: {told}")


def make_traces(sizes: Iterable[int], data: Path) -> list[Trace]:
    """The traces, made where they are not there yet."""
    data.mkdir(parents=True, exist_ok=True)
    made = []
    for size in sizes:
        trace = Trace(size, data / f"trace_{size}mb.json.gz", data / f"trace_{size}mb.json")
        wanted = [trace.packed, trace.plain] if size <= LARGEST_PLAIN_MB else [trace.packed]
        if not all(path.exists() for path in wanted):
            _say(f"making the trace of {size} MB in {data}")
            parts = [path.with_suffix(".part") for path in wanted]
            plain: list[str | Path] = ["--plain", parts[1]] if len(parts) > 1 else []
            command: list[str | Path] = [sys.executable, "-m", "benchmarks.make_trace", str(size), parts[0], *plain]
            subprocess.run(command, check=True, cwd=ROOT)
            for part, whole in zip(parts, wanted, strict=True):
                part.rename(whole)
        made.append(trace)
    return made


def results_table(found: list[Contender], traces: list[Trace]) -> str:
    """A row for each contender and trace."""
    rows = []
    for trace in traces:
        for one in found:
            size = trace.megabytes
            if size in one.runs:
                peak = one.median(size, lambda done: done.peak_bytes)
                rows.append(
                    [
                        f"{one.name}, {size:,} MB",
                        str(len(one.runs[size])),
                        seconds(one.load_s(size)),
                        seconds(one.median(size, lambda done: done.wall_s)),
                        seconds(one.median(size, lambda done: done.cpu_s)),
                        megabytes(peak),
                        share(peak / trace.expanded_bytes if peak else None),
                    ]
                )
    return table(["medians", "runs", "load", "whole process", "CPU", "peak memory", "of the text"], rows)


def ratios_table(found: list[Contender], traces: list[Trace]) -> str:
    """What is promised, and what this run gave; by CPU time too, which other work on the machine disturbs less."""
    by_name = {one.name: one for one in found}
    profile, report, kept = (
        by_name[name] for name in ("roofterm, to a Profile", "roofterm report --no-cache", "roofterm, Profile from the cache")
    )
    rows = []

    def promise(
        text: str, at_most: float, value: float | None, cpu: float | None = None, shown: Callable[[float | None], str] = share
    ) -> None:
        rows.append([text, shown(at_most), shown(value), share(cpu), verdict(value, at_most)])

    for trace in traces:
        size = trace.megabytes
        for name, at_most in (("HTA 0.5.0", 1 / 30), ("Perfetto 52 WASM", 1 / 4)):
            if size >= 1000 and (peer := by_name.get(name)):
                promise(
                    f"{size:,} MB: load / {name}'s load",
                    at_most,
                    _ratio(profile.load_s(size), peer.load_s(size)),
                    _cpu_ratio(profile, peer, size),
                )
        if size == 100 and (peer := by_name.get("json.load")):
            whole = [one.median(size, lambda done: done.wall_s) for one in (report, peer)]
            promise(f"{size:,} MB: report / json.load, whole processes", 0.30, _ratio(*whole), _cpu_ratio(report, peer, size))
        if size >= 1000:
            peak = profile.median(size, lambda done: done.peak_bytes)
            promise(f"{size:,} MB: peak memory / text", 0.45 if size < 5000 else 0.35, _ratio(peak, trace.expanded_bytes))
            promise(f"{size:,} MB: opening from the cache, in process", 0.050, kept.load_s(size), shown=seconds)
    return table(["promise", "at most", "this run", "by CPU", ""], rows)


def _ratio(ours: float | None, theirs: float | None) -> float | None:
    return ours / theirs if ours is not None and theirs else None


def _cpu_ratio(ours: Contender, theirs: Contender, size: int) -> float | None:
    """Of whole processes."""
    return _ratio(*(one.median(size, lambda done: done.cpu_s) for one in (ours, theirs)))


def _free_bytes() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable"):
            return int(line.split()[1]) * 1024
    return 1 << 62


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[100, 1000], metavar="MB", help="of the traces' text (default: 100 1000); 5000 works"
    )
    parser.add_argument("--rounds", type=int, default=3, help="runs of each contender (HTA: one)")
    parser.add_argument("--without", nargs="+", default=[], choices=ALL_PEERS, help="peers to leave out")
    parser.add_argument("--data", type=Path, default=default_home() / "data", help="where the traces are kept")
    parser.add_argument("--peers-home", type=Path, default=default_home(), help="where the peers' environments are kept")
    args = parser.parse_args()
    traces = make_traces(args.sizes, args.data)
    compile_packages()
    cache = Path(tempfile.mkdtemp(prefix="cache-", dir=args.data))
    try:
        found = contenders(args.peers_home.resolve(), cache, args.without)
        for trace in traces:
            measure(found, trace, args.rounds)
    finally:
        shutil.rmtree(cache, ignore_errors=True)
    loads = [done.load for one in found for runs in one.runs.values() for done in runs]
    print(f"{machine()}; {load_text(loads)}\n")
    print(results_table(found, traces), end="\n\n")
    print(ratios_table(found, traces))


if __name__ == "__main__":
    main()
