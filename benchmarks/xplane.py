"""Large XPlane profiles: roofterm's roofline beside XProf's, and how fast a plane becomes a Profile.

    python -m benchmarks.xplane [--events 5000000] [--rounds 3] [--sample SMALL.xplane.pb] [--peers-home FOLDER]

Makes the profiles (kept in --data for the next time), runs both in processes of their own, in turns, and prints the medians
as Markdown.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.checkout import ROOT, compile_packages, environment
from benchmarks.figures import load_text, machine, megabytes, seconds, share, table, verdict
from benchmarks.loading import NICE
from benchmarks.peers import default_home, xprof_command
from benchmarks.process_tree import CommandFailed, Run, run

UNIFORM_EVENTS = 2_100_000
EVENTS_PER_SECOND = 2_000_000
"""promised, for the uniform plane, into a Profile"""


OWN_ROOFLINE, XPROFS_TABLE = "roofterm roofline", "roofterm roofline --xprof 2.24.2"
"""the second gives the table that XProf gives, cell by cell; the first one holds each piece of work against its roof besides"""
XPROFS_OWN = "XProf 2.24.2 roofline"
KINDS = {"training": "tpu", "serving": "serving"}
"""the TPUs' profiles, and what `make_xplane` calls them"""


@dataclass
class Contender:
    name: str
    command: Callable[[Path], list[str | Path]]
    profile: Path
    answers: bool = True
    """it prints how long its work took inside the process"""
    runs: list[Run] = field(default_factory=list)

    def median(self, figure: Callable[[Run], float]) -> float | None:
        return statistics.median(map(figure, self.runs)) if self.runs else None

    def answer(self, key: str) -> float | None:
        """Median of a figure that it prints; None where it prints none."""
        return self.median(lambda done: float(json.loads(done.output.splitlines()[-1])[key])) if self.answers else None


def contenders(uniform: Path, tpus: Mapping[str, Path], peers_home: Path | None) -> list[Contender]:
    """Those over the uniform plane and over each TPU's profile, which has a name."""
    load: list[str | Path] = [sys.executable, "-m", "benchmarks.contenders.roofterm_load"]
    roofline: list[str | Path] = [sys.executable, "-m", "roofterm.cli.main", "roofline", "--format", "json", "--no-cache"]
    found = [Contender("roofterm, uniform plane to a Profile", lambda path: [*load, path], uniform)]
    for kind, profile in tpus.items():
        found += [
            Contender(f"roofterm, {kind} to a Profile", lambda path: [*load, path], profile),
            Contender(f"{XPROFS_TABLE}, {kind}", lambda path: [*roofline, "--xprof", "2.24.2", path], profile, answers=False),
            Contender(f"{OWN_ROOFLINE}, {kind}", lambda path: [*roofline, path], profile, answers=False),
        ]
        if peers_home is not None:
            found.append(Contender(f"{XPROFS_OWN}, {kind}", partial(xprof_command, peers_home), profile))
    return found


def measure(found: Sequence[Contender], rounds: int, data: Path) -> None:
    """Every contender once a round, each time over a file in a folder where nobody has left anything."""
    for number in range(rounds):
        for one in found:
            with tempfile.TemporaryDirectory(dir=data) as folder:
                fresh = Path(folder) / one.profile.name
                fresh.hardlink_to(one.profile)
                try:
                    done = run(one.command(fresh), env=environment(), cwd=ROOT, nice=NICE)
                except (CommandFailed, OSError, subprocess.CalledProcessError) as fault:
                    print(f"{one.name}: {fault}", file=sys.stderr)
                    continue
            one.runs.append(done)
            told = f"{done.wall_s:.2f} s, {done.cpu_s:.2f} s of CPU, {done.peak_bytes / 1e6:.0f} MB, load {done.load:.1f}"
            print(f"round {number + 1}: {one.name}: {told}", file=sys.stderr, flush=True)


def make_profiles(events: int, samples: Sequence[Path], data: Path) -> tuple[Path, dict[str, Path]]:
    """The uniform profile, and those of TPUs by name: built by hand, or the samples made large. Made where they are not there yet."""
    data.mkdir(parents=True, exist_ok=True)
    named = {sample.name.partition(".")[0]: str(sample.resolve()) for sample in samples}
    uniform = _made("uniform", UNIFORM_EVENTS, data / f"uniform_{UNIFORM_EVENTS}.xplane.pb")
    if named:
        return uniform, {name: _made(which, events, data / f"{name}_{events}.xplane.pb") for name, which in named.items()}
    return uniform, {kind: _made(which, events, data / f"{which}_{events}.xplane.pb") for kind, which in KINDS.items()}


def _made(which: str, events: int, path: Path) -> Path:
    if not path.exists():
        part = path.with_suffix(".part")
        subprocess.run([sys.executable, "-m", "benchmarks.make_xplane", which, str(events), part], check=True, cwd=ROOT)
        part.rename(path)
    return path


def results_table(found: Sequence[Contender]) -> str:
    rows = [
        [
            one.name,
            f"{one.profile.stat().st_size / 1e6:.0f} MB",
            str(len(one.runs)),
            seconds(one.answer("load_s")),
            seconds(one.median(lambda done: done.wall_s)),
            seconds(one.median(lambda done: done.cpu_s)),
            megabytes(one.median(lambda done: done.peak_bytes)),
        ]
        for one in found
        if one.runs
    ]
    return table(["medians", "file", "runs", "inside", "whole process", "CPU", "peak memory"], rows)


def promises_table(found: Sequence[Contender]) -> str:
    by_name = {one.name: one for one in found if one.runs}
    rows = []
    uniform = by_name.get("roofterm, uniform plane to a Profile")
    if uniform is not None:
        slices, load_s = uniform.answer("slices") or 0, uniform.answer("load_s") or 1
        at_most = slices / EVENTS_PER_SECOND
        rows.append(["uniform plane to a Profile, 2 M events a second", seconds(at_most), seconds(load_s), verdict(load_s, at_most)])
    figures: list[tuple[str, Callable[[Run], float], float]] = [
        ("whole process", lambda done: done.wall_s, 1 / 5),
        ("CPU", lambda done: done.cpu_s, 1 / 5),
        ("peak memory", lambda done: done.peak_bytes, 1 / 3),
    ]
    for theirs in by_name.values():
        tool, _, kind = theirs.name.partition(", ")
        if tool != XPROFS_OWN:
            continue
        for contender, said in ((XPROFS_TABLE, "XProf's table"), (OWN_ROOFLINE, "own roofline")):
            ours = by_name.get(f"{contender}, {kind}")
            if ours is None:
                continue
            for name, figure, at_most in figures:
                value = (ours.median(figure) or 0.0) / (theirs.median(figure) or 1.0)
                rows.append([f"{kind}: {said} / XProf's, {name}", share(at_most), share(value), verdict(value, at_most)])
    return table(["promise", "at most", "this run", ""], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=5_000_000, help="of each TPU's profile")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--sample",
        type=Path,
        action="append",
        default=[],
        help="a small .xplane.pb to repeat instead of those built by hand; may be repeated",
    )
    parser.add_argument("--without-xprof", action="store_true")
    parser.add_argument("--data", type=Path, default=default_home() / "data", help="where the profiles are kept")
    parser.add_argument("--peers-home", type=Path, default=default_home(), help="where XProf's environment is kept")
    args = parser.parse_args()
    uniform, tpus = make_profiles(args.events, args.sample, args.data)
    found = contenders(uniform, tpus, None if args.without_xprof else args.peers_home.resolve())
    compile_packages()
    measure(found, args.rounds, args.data)
    print(f"{machine()}; {load_text([done.load for one in found for done in one.runs])}\n")
    print(results_table(found), end="\n\n")
    print(promises_table(found))


if __name__ == "__main__":
    main()
