"""What a report costs after loading, part by part, beside json.load of the same trace in the same run.

    python -m benchmarks.analysis [--sizes 100] [--rounds 5] [--profiles FILE ...]

Makes the traces (kept in --data for the next time). CPU times, of which the least of the rounds counts: other work on the machine
can only add to them. `--profiles` tries files of one's own, without json.load.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.checkout import ROOT, compile_packages, environment
from benchmarks.figures import NOTHING, load_text, machine, seconds, share, table
from benchmarks.loading import NICE, make_traces
from benchmarks.peers import CONTENDERS, default_home
from benchmarks.process_tree import Run, run

PARTS = "benchmarks.contenders.roofterm_parts"


def measured(profile: Path, plain: Path | None, cache: Path, rounds: int) -> tuple[list[Run], list[Run]]:
    """Runs of the parts, and of json.load where there is a plain trace, in turns."""
    env = {**environment(), "XDG_CACHE_HOME": str(cache)}
    command: list[str | Path] = [sys.executable, "-m", PARTS, profile]
    run(command, env=env, cwd=ROOT)  # the first one fills the cache
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(run(command, env=env, cwd=ROOT, nice=NICE))
        if plain is not None:
            theirs.append(run([sys.executable, CONTENDERS / "json_load.py", plain], env=env, cwd=ROOT, nice=NICE))
    return ours, theirs


def parts_table(name: str, ours: list[Run], theirs: list[Run]) -> str:
    """A row for each part: its CPU time, and its share of json.load's whole process."""
    told = [json.loads(done.output.splitlines()[-1]) for done in ours]
    least = {part: min(float(one[part]) for one in told) for part in told[0]}
    json_load = min((done.cpu_s for done in theirs), default=None)
    rows = [[part, seconds(spent), share(spent / json_load) if json_load else NOTHING] for part, spent in least.items()]
    if json_load is not None:
        rows.append(["json.load, whole process", seconds(json_load), share(1.0)])
    return table([f"{name}: least CPU of {len(ours)} runs", "CPU", "of json.load"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100], metavar="MB", help="of the traces' text (default: 100)")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each")
    parser.add_argument("--profiles", type=Path, nargs="+", default=[], metavar="FILE", help="profiles to try beside the traces")
    parser.add_argument("--data", type=Path, default=default_home() / "data", help="where the traces are kept")
    args = parser.parse_args()
    traces = make_traces(args.sizes, args.data)
    compile_packages()
    cache = Path(tempfile.mkdtemp(prefix="cache-", dir=args.data))
    wanted: list[tuple[str, Path, Path | None]] = [(f"{trace.megabytes:,} MB", trace.packed, trace.plain) for trace in traces]
    wanted += [(path.name, path.resolve(), None) for path in args.profiles]
    loads, tables = [], []
    try:
        for name, profile, plain in wanted:
            ours, theirs = measured(profile, plain, cache, args.rounds)
            loads += [done.load for done in (*ours, *theirs)]
            tables.append(parts_table(name, ours, theirs))
    finally:
        shutil.rmtree(cache, ignore_errors=True)
    print(f"{machine()}; {load_text(loads)}\n")
    print("\n\n".join(tables))


if __name__ == "__main__":
    main()
