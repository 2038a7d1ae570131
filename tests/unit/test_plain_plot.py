"""The roofline as text: what a pipe gets."""

from __future__ import annotations

import re

import pytest

from roofterm.tui.widgets.glyphs import Look
from roofterm.tui.widgets.plain_plot import plain_plot
from tests.unit.roofline_rows import KEY, compute, memory, row

ROWS = [
    row(category="gemm", intensity=300.0, flops_per_s=5e14, time_us=50),
    row(category="norm", intensity=1.0, flops_per_s=1e12, time_us=30),
    row(category="copy", bytes_per_s=2e12, time_us=10),
    row(category="gemm", time_us=5),
]
ROOFS = [compute(1e15), memory(3e12)]


def test_the_text_has_points_roofs_and_their_legend() -> None:
    lines = plain_plot(ROWS, ROOFS, KEY, width=70, height=16).split("\n")
    assert len(lines) == 16 + 2 + 1
    assert sum(line.count("g") for line in lines[:15] if line[4] in "|+" and "FLOP" not in line) >= 1
    assert "1P bf16" in "\n".join(lines)
    assert "3TB/s HBM" in "\n".join(lines)
    assert lines[-3] == "g gemm  n norm  m copy"  # most time first
    assert lines[-2] == "2 points, 1 > with bytes only, 1 with time only, roofs: vendor"


def test_plain_text_is_ascii_without_escapes() -> None:
    text = plain_plot(ROWS, ROOFS, KEY)
    assert text.isascii()
    assert "\x1b" not in text
    assert max(map(len, text.split("\n"))) <= 78


def test_colours_change_nothing_but_the_colours() -> None:
    colour = plain_plot(ROWS, ROOFS, KEY, look=Look("ascii", colour=True))
    assert "\x1b[" in colour
    bare = re.sub(r"\x1b\[[0-9;]*m", "", colour)
    assert [line.rstrip() for line in bare.split("\n")] == plain_plot(ROWS, ROOFS, KEY).split("\n")


@pytest.mark.parametrize("look", [Look(), Look("quadrant"), Look("ascii", colour=False)])
@pytest.mark.parametrize("rows", [[], ROWS[3:], ROWS[2:3]], ids=["none", "time only", "bytes only"])
def test_rows_without_points_still_give_a_plot(rows: list, look: Look) -> None:
    assert plain_plot(rows, ROOFS, KEY, look=look).count("\n") == 22
    assert plain_plot(rows, [], KEY, look=look).endswith("no roofs\n")
