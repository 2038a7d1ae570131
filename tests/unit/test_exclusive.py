"""Time that a piece of work had its device to itself, against a count over every picosecond."""

from __future__ import annotations

import random

import polars as pl
import pytest

from roofterm.analysis.exclusive import exclusive

Piece = tuple[int, int, int]
"""device, start, end"""


def frame(pieces: list[Piece]) -> pl.DataFrame:
    return pl.DataFrame(pieces, schema={"device": pl.UInt16, "start_ps": pl.Int64, "end_ps": pl.Int64}, orient="row")


def counted(pieces: list[Piece]) -> list[int]:
    alone = [0] * len(pieces)
    for device in {piece[0] for piece in pieces}:
        for time in range(60):
            running = [i for i, (on, start, end) in enumerate(pieces) if on == device and start <= time < end]
            if len(running) == 1:
                alone[running[0]] += 1
    return alone


@pytest.mark.parametrize(
    ("pieces", "alone"),
    [
        ([(0, 0, 10), (0, 2, 4), (0, 3, 6)], [6, 0, 0]),  # what lies inside is never alone
        ([(0, 0, 10), (0, 5, 15)], [5, 5]),
        ([(0, 0, 10), (0, 0, 10)], [0, 0]),
        ([(0, 0, 10), (1, 2, 4), (0, 10, 10)], [10, 2, 0]),  # devices do not share their time
        ([(0, 20, 30), (0, 0, 25)], [5, 20]),  # in any order
    ],
)
def test_pieces_alone(pieces: list[Piece], alone: list[int]) -> None:
    assert exclusive(frame(pieces)).to_list() == alone == counted(pieces)


@pytest.mark.parametrize("nested", [True, False])
def test_many_pieces(nested: bool) -> None:
    rng = random.Random(3)
    for _ in range(150):
        pieces: list[Piece] = []
        for _ in range(rng.randint(0, 6)):
            device, start = rng.randint(0, 1), rng.randint(0, 30)
            end = start + rng.randint(0, 20)
            pieces.append((device, start, end))
            inside = sorted(rng.randint(start, end) for _ in range(2))
            pieces.append((device, *inside) if nested else (device, inside[0], inside[1] + rng.randint(0, 9)))  # type: ignore[arg-type]
        if rng.random() < 0.7:
            pieces.sort(key=lambda piece: (piece[1], -piece[2]))
        assert exclusive(frame(pieces)).to_list() == counted(pieces)
