"""Write the synthetic H100 samples and the figures that must be found in them. The same files each time.

python make_transformer_h100.py            # beside this script
python make_transformer_h100.py FOLDER     # elsewhere
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from h100 import books, kernels, kineto, model
from h100.machine import Rank
from h100.step import WORLD, Arrival, Together, train_step

FIRST_STEP = 10
START_NS = 4_321_000_000_000
MADE_BY = "bookkeeping of samples/make_transformer_h100.py"


@dataclass(frozen=True, slots=True)
class Plan:
    steps: int
    stalled: int | None = None
    """step whose batch comes late"""
    slow: tuple[int, int] | None = None
    """rank and step whose kernels take a third longer"""


@dataclass(frozen=True, slots=True)
class Meeting:
    """One all-reduce: when each rank came, when each was through."""

    bytes: int
    starts: list[int]
    ends: list[int]


def main(folder: Path) -> None:
    alone, _ = play(Plan(steps=6, stalled=13), count=1)
    name = "transformer_h100_synthetic"
    write(folder / f"{name}.pt.trace.json.gz", folder / f"{name}.expected.json", alone[0])

    both = folder / "transformer_h100_2ranks_synthetic"
    both.mkdir(exist_ok=True)
    ranks, meetings = play(Plan(steps=3, slow=(1, 11)), count=2)
    for rank in ranks:
        stem = f"rank{rank.number}"
        write(both / f"{stem}.pt.trace.json.gz", folder / f"{both.name}.{stem}.expected.json", rank)
    write_meetings(folder / f"{both.name}.ranks.expected.json", ranks, meetings)


def play(plan: Plan, count: int) -> tuple[list[Rank], list[Meeting]]:
    """Run the plan on `count` ranks of eight; the others are there only to be waited for."""
    ranks = [start(number) for number in range(count)]
    jobs = [job(rank, plan) for rank in ranks]
    peers = Random(8)
    meetings = []
    arrivals = [next(piece) for piece in jobs]
    while arrivals:
        meeting = meet(arrivals, peers)
        if all(rank.recording for rank in ranks):
            meetings.append(meeting)
        going_on = [resumed(piece, end) for piece, end in zip(jobs, meeting.ends, strict=True)]
        arrivals = [arrival for arrival in going_on if arrival]
    return ranks, meetings


def resumed(piece: Together, end: int) -> Arrival | None:
    """The rank's next all-reduce, or None if it has come to the end of its steps."""
    try:
        return piece.send(end)
    except StopIteration:
        return None


def start(number: int) -> Rank:
    process = 5200 + number
    rank = Rank(number, Random(100 + number), START_NS + 180_000 * number, main_thread=process, autograd_thread=process + 700)
    parameters = sum(tensor.bytes for tensor in model.PARAMETERS)
    rank.allocated = 4 * parameters  # parameters, two moments, DDP's buckets
    return rank


def job(rank: Rank, plan: Plan) -> Together:
    """One step that nobody sees, then the recorded ones. The profiler starts while the tail of the unseen step still runs."""
    yield from train_step(rank, FIRST_STEP - 1, reads_loss=False)
    rank.now = max(rank.now, max(rank.ends.values()) - 3_000_000)
    rank.begin()
    for number in range(FIRST_STEP, FIRST_STEP + plan.steps):
        rank.slow = 4 / 3 if plan.slow == (rank.number, number) else 1.0
        yield from train_step(rank, number, reads_loss=number % 2 == 0, stall_us=36_000 if number == plan.stalled else 0)
    rank.finish()


def meet(arrivals: list[Arrival], peers: Random) -> Meeting:
    """All are through when the last of eight has come and the bytes have gone round."""
    first = min(arrival.start for arrival in arrivals)
    others = [first + int(150_000 * peers.random()) for _ in range(WORLD - len(arrivals))]
    done = max([*others, *(arrival.start for arrival in arrivals)]) + kernels.all_reduce_ns(arrivals[0].bytes, WORLD)
    return Meeting(arrivals[0].bytes, [arrival.start for arrival in arrivals], [done + int(1200 * peers.random()) for _ in arrivals])


def write(trace: Path, figures: Path, rank: Rank) -> None:
    events = kineto.events(rank, rank.main_thread)
    kineto.write(trace, rank, events)
    expected = {
        "made_by": MADE_BY,
        "summary": books.summary(rank, *kineto.count(events)),
        "steps": books.steps(rank),
        "ops": books.operators(rank),
        "products": books.products(rank),
        "work": books.work_by_role(rank),
    }
    write_json(figures, expected)


def write_meetings(path: Path, ranks: list[Rank], meetings: list[Meeting]) -> None:
    """Of each all-reduce, how long each rank waited for the last of these two, and the shortest call."""
    rows = [
        {
            "message_bytes": meeting.bytes,
            "wait_us": [books.us(max(meeting.starts) - start) for start in meeting.starts],
            "transfer_us": books.us(min(end - start for start, end in zip(meeting.starts, meeting.ends, strict=True))),
        }
        for meeting in meetings
    ]
    kernel_us = {str(rank.number): books.us(books.total(work for work in rank.work if work.cat == "kernel")) for rank in ranks}
    write_json(path, {"made_by": MADE_BY, "summary": {"ranks": len(ranks), "kernel_us_by_rank": kernel_us}, "collectives": rows})


def write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent)
