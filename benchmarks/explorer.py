"""The explorer in the hand: from key to final content, and how many bytes a key sends, on a pseudo-terminal.

    python -m benchmarks.explorer [--slices 5000000] [--rows 1000000] [--ranks 16] [--presses 9] [--cached-mb 1000]

Also: first paint and first figures of a cached profile against an empty Textual program, and the CPU time of --version.
Prints medians as Markdown, with what is promised.
"""

from __future__ import annotations

import argparse
import operator
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.checkout import compile_packages
from benchmarks.figures import NOTHING, load_text, machine, table, verdict
from benchmarks.gestures import OF_ONE_PROFILE, Gesture, of_a_job
from benchmarks.loading import make_traces
from benchmarks.peers import default_home
from benchmarks.pseudo_terminal import SIZES, Answer, PseudoTerminal, terminal_environment
from benchmarks.ranks import make_ranks
from benchmarks.starts import measure_starts, starts_table

RANK_MB, BASELINE_MB = 30, 100


@dataclass
class Measured:
    """All presses of a gesture, by the size of the terminal."""

    gesture: Gesture
    answers: dict[tuple[int, int], list[Answer]] = field(default_factory=dict)
    cpu_s: dict[tuple[int, int], float] = field(default_factory=dict)
    """a press, on average, what the program does beside it included"""


def measure_keys(
    command: Sequence[str | Path], presses: int, gestures: Sequence[Gesture], folders: dict[str, str] | None = None
) -> list[Measured]:
    """Every gesture at every size, each size in a run of the explorer of its own; `folders`: where it keeps things."""
    measured = [Measured(gesture) for gesture in gestures]
    for size in SIZES:
        _say(f"{size[0]}x{size[1]}: opening")
        with PseudoTerminal(command, *size, {**terminal_environment(), **(folders or {})}) as terminal:
            terminal.seconds_until(r"busy +[\d.]+%", patience=1800)
            terminal.rest()
            for one in measured:
                _press(terminal, one, size, presses)
                _say(f"{size[0]}x{size[1]} {one.gesture.name}: {_ms(one, size):.0f} ms, {_bytes(one, size):,.0f} bytes")
    return measured


def _press(terminal: PseudoTerminal, one: Measured, size: tuple[int, int], presses: int) -> None:
    gesture = one.gesture
    for keys in gesture.before:
        terminal.press(keys)
    if gesture.once:
        presses = 1
    else:
        terminal.press(gesture.keys[0])  # the first one may have to compute what the others find
    worked, first = terminal.cpu_seconds(), 0 if gesture.once else 1
    answers = [terminal.press(gesture.keys[(at + first) % len(gesture.keys)]) for at in range(presses)]
    one.cpu_s[size] = (terminal.cpu_seconds() - worked) / presses
    one.answers[size] = [answer for answer in answers if answer.bytes]  # at the end of a range a key does nothing
    for keys in gesture.after:
        terminal.press(keys)


def keys_table(measured: Sequence[Measured]) -> str:
    head = [
        "key to last byte, median",
        *(f"{width}x{height}" for width, height in SIZES),
        *(f"CPU {width}x{height}" for width, height in SIZES),
        "worst",
        "at most",
        "",
        f"most bytes at {SIZES[0][0]}x{SIZES[0][1]}",
        "at most",
        "",
    ]
    rows = []
    for one in measured:
        gesture = one.gesture
        medians = [_ms(one, size) for size in SIZES]
        worst = max((answer.seconds for answers in one.answers.values() for answer in answers), default=0.0) * 1000
        most = gesture.most_ms
        held = "" if most is None else "held" if all(map(operator.le, medians, most)) else "missed"
        sent = _bytes(one, SIZES[0])
        rows.append(
            [
                gesture.name,
                *(f"{median:.0f} ms" for median in medians),
                *(f"{one.cpu_s[size] * 1000:.0f} ms" for size in SIZES),
                f"{worst:.0f} ms",
                NOTHING if most is None else " / ".join(map(str, most)),
                held,
                f"{sent:,.0f}",
                f"{gesture.most_bytes:,}",
                verdict(sent, gesture.most_bytes),
            ]
        )
    return table(head, rows)


def _ms(one: Measured, size: tuple[int, int]) -> float:
    """Median time; not a number if no press was answered."""
    answers = one.answers[size]
    return statistics.median(answer.seconds for answer in answers) * 1000 if answers else float("nan")


def _bytes(one: Measured, size: tuple[int, int]) -> float:
    """The most that a press sent."""
    answers = one.answers[size]
    return max((answer.bytes for answer in answers), default=float("nan"))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _over_a_job(ranks: int, data: Path, presses: int) -> list[Measured]:
    """Keys on the screens that want several files: ranks of 30 MB, held against a trace of 100 MB."""
    make_ranks(folder := data / f"ranks_{ranks}x{RANK_MB}mb", ranks, RANK_MB)
    (baseline,) = make_traces([BASELINE_MB], data)
    kept = Path(tempfile.mkdtemp(prefix="job-", dir=data))
    try:
        folders = {"XDG_CACHE_HOME": str(kept), "XDG_STATE_HOME": str(kept / "state")}
        command: list[str | Path] = [sys.executable, "-m", "roofterm.cli.main", folder, "--no-state"]
        return measure_keys(command, presses, of_a_job(str(baseline.packed)), folders)
    finally:
        shutil.rmtree(kept, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slices", type=int, default=5_000_000, help="in the profile that the keys are pressed over; 0: none")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of its table of kernels")
    parser.add_argument("--ranks", type=int, default=16, help="of the job that the screens of ranks and comparisons are tried on; 0: none")
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
        large = [sys.executable, "-m", "benchmarks.contenders.large_explorer", str(args.slices), str(args.rows)]
        print(keys_table(measure_keys(large, args.presses, OF_ONE_PROFILE)), end="\n\n", flush=True)
        loads.append(os.getloadavg()[0])
    if args.ranks:
        print(keys_table(_over_a_job(args.ranks, args.data, args.presses)), end="\n\n", flush=True)
        loads.append(os.getloadavg()[0])
    print(load_text(loads))


if __name__ == "__main__":
    main()
