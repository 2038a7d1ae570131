"""Fuzz one target: with atheris where it is installed, which looks for inputs that reach new code, else by chance.

    python -m tests.fuzz scanner [--seconds 600] [--seed 1] [--keep FOLDER]
    python -m tests.fuzz scanner --once FILE

An input that breaks a promise is kept as a file, whose name is said, and the program ends with the fault.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.mutation import mutants
from tests.fuzz.targets import MOST_BYTES, TARGETS, Target


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=None, help="of chance; by default another one each time, which is said")
    parser.add_argument("--keep", type=Path, default=Path(), help="where an input that breaks a promise is kept")
    parser.add_argument("--once", type=Path, help="run the target on this file alone")
    args = parser.parse_args()
    target, seeds = TARGETS[args.target]
    if args.once:
        target(args.once.read_bytes())
    elif importlib.util.find_spec("atheris"):
        _watched(target, seeds, args)
    else:
        _by_chance(target, seeds, args)


def _by_chance(target: Target, seeds: Any, args: argparse.Namespace) -> None:
    seed = args.seed if args.seed is not None else time.time_ns() & 0xFFFFFFFF
    print(f"{args.target}: by chance, with --seed {seed} (with atheris installed it would be watched)", flush=True)
    end = time.monotonic() + args.seconds
    count = 0
    for data in mutants(seeds, Random(seed), MOST_BYTES):
        if time.monotonic() > end:
            break
        _tried(target, data, args)
        count += 1
    print(f"{args.target}: {count} inputs, no promise broken")


def _watched(target: Target, seeds: Any, args: argparse.Namespace) -> None:
    atheris: Any = importlib.import_module("atheris")
    corpus = args.keep / f"corpus-{args.target}"
    corpus.mkdir(parents=True, exist_ok=True)
    for i, seed in enumerate(seeds):
        (corpus / f"seed-{i}").write_bytes(seed)
    atheris.instrument_all()
    options = [sys.argv[0], f"-max_total_time={args.seconds}", f"-max_len={MOST_BYTES}", f"-artifact_prefix={args.keep}/", str(corpus)]
    if args.seed is not None:
        options.insert(1, f"-seed={args.seed}")
    atheris.Setup(options, target)
    atheris.Fuzz()


def _tried(target: Target, data: bytes, args: argparse.Namespace) -> None:
    try:
        target(data)
    except BaseException:
        path = args.keep / f"broken-{args.target}-{hashlib.sha256(data).hexdigest()[:12]}"
        path.write_bytes(data)
        print(f"{args.target}: a promise is broken by {path}; again with --once {path}", file=sys.stderr)
        raise


if __name__ == "__main__":
    main()
