"""Open the ranks of a job as one profile, and each of their files alone: the same bytes at which rate?

    python -m benchmarks.ranks [--ranks 16] [--megabytes 30] [--rounds 3] [--data FOLDER]

Prints medians of the turns, and whether the promise held: the ranks together at no less than 0.8 of a single file's rate.
"""

from __future__ import annotations

import argparse
import gzip
import os
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.figures import load_text, machine, seconds, share, table
from benchmarks.make_trace import blocks
from benchmarks.peers import default_home
from roofterm_parsers import open_profile

LEAST_RATE = 0.8


class Taken(NamedTuple):
    """What one way of opening them took, children included."""

    wall_s: float
    cpu_s: float


def make_ranks(folder: Path, ranks: int, megabytes: float) -> tuple[list[Path], int]:
    """The traces of the ranks, made if they are not there, and the bytes of their text together."""
    folder.mkdir(parents=True, exist_ok=True)
    text = b"".join(blocks(int(megabytes * 1e6)))
    paths = [folder / f"rank{rank}.pt.trace.json.gz" for rank in range(ranks)]
    for rank, path in enumerate(paths):
        if not path.exists():
            path.write_bytes(gzip.compress(text.replace(b'"rank": 0', b'"rank": %d' % rank, 1), 3, mtime=0))
    return paths, len(text) * ranks


def taken(do: Callable[[], object]) -> Taken:
    cpu, wall = _cpu_s(), time.perf_counter()
    do()
    return Taken(time.perf_counter() - wall, _cpu_s() - cpu)


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def rates_table(alone: Sequence[Taken], together: Sequence[Taken], size: int) -> str:
    """Medians of both ways, with MB/s and the ratio of the rates in each round."""
    rows = []
    for name, turns in (("one file after the other", alone), ("together, as one profile", together)):
        wall = median(turn.wall_s for turn in turns)
        rows.append([name, seconds(wall), seconds(median(turn.cpu_s for turn in turns)), f"{size / 1e6 / wall:,.0f} MB/s"])
    return table(["medians", "wall", "CPU", "rate"], rows)


def rate_ratio(alone: Sequence[Taken], together: Sequence[Taken]) -> float:
    """The rate of the ranks together over that of single files, median of the rounds."""
    return median(one.wall_s / both.wall_s for one, both in zip(alone, together, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--megabytes", type=float, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", type=Path, default=default_home() / "data")
    args = parser.parse_args()
    paths, size = make_ranks(args.data / f"ranks_{args.ranks}x{args.megabytes:g}mb", args.ranks, args.megabytes)
    names = [str(path) for path in paths]
    loads, alone, together = [os.getloadavg()[0]], [], []
    for _ in range(args.rounds):
        alone.append(taken(lambda: [open_profile(name, cache=False).slices.height for name in names]))
        together.append(taken(lambda: open_profile(names, cache=False)))
        loads.append(os.getloadavg()[0])
    print(f"{args.ranks} ranks, {size / 1e6:,.0f} MB of text, {args.rounds} rounds; {machine()}; {load_text(loads)}\n")
    print(rates_table(alone, together, size))
    ratio = rate_ratio(alone, together)
    print(f"\nrate together / alone: {share(ratio)}, promised at least {LEAST_RATE}: {'held' if ratio >= LEAST_RATE else 'missed'}")


if __name__ == "__main__":
    main()
