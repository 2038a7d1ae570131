"""Where a step's time goes: one bar that adds up, with its legend."""

from __future__ import annotations

from roofterm.results import StepRow
from roofterm.text.units import duration_us, pct

PICOSECOND_US = 1e-6
"""what is shorter is the rounding of a difference of floats"""

PARTS = (
    ("compute", "compute", "#"),
    ("exposed_comm", "exposed communication", "x"),
    ("exposed_copy", "exposed copies", "="),
    ("host_wait", "host wait", "."),
    ("kernel_gap", "kernel gaps", ","),
    ("idle_other", "idle, unexplained", " "),
)
"""Parts of the breakdown in order: key, name, glyph. They add up to the step."""


def mean_breakdown(steps: list[StepRow]) -> dict[str, float] | None:
    """Mean time (us) of each part over steps; None where no device worked."""
    known = [s for s in steps if s.idle_us is not None and s.compute_us is not None]
    if not known:
        return None
    sums = dict.fromkeys((key for key, _, _ in PARTS), 0.0)
    for step in known:
        for key, _, _ in PARTS:
            sums[key] += part_of(step, key) / len(known)
    return sums


def part_of(step: StepRow, key: str) -> float:
    """Time (us) of one part of a step's breakdown."""
    if key == "idle_other":
        rest = (step.idle_us or 0.0) - (step.host_wait_us or 0.0) - (step.kernel_gap_us or 0.0)
        return rest if rest >= PICOSECOND_US else 0.0
    return float(getattr(step, f"{key}_us") or 0.0)


def breakdown_lines(shares: dict[str, float], width: int) -> list[str]:
    """The bar and its legend, at most `width` cells wide."""
    total = sum(shares.values())
    cells = cell_shares([shares[key] for key, _, _ in PARTS], max(width - 13, 10))
    bar = "".join(glyph * n for (_, _, glyph), n in zip(PARTS, cells, strict=True))
    lines = [f"{'mean step':11}[{bar}]"]
    for key, name, glyph in PARTS:
        if shares[key] > 0:
            lines.append(f"{'':11}{glyph} {name:24}{duration_us(shares[key]):>10}  {pct(100 * shares[key] / total):>6}")
    return lines


def cell_shares(values: list[float], cells: int) -> list[int]:
    """Whole cells for each value that add up to `cells`: largest remainders win."""
    total = sum(values)
    if total <= 0:
        return [0] * len(values)
    exact = [value / total * cells for value in values]
    whole = [int(x) for x in exact]
    order = sorted(range(len(values)), key=lambda i: exact[i] - whole[i], reverse=True)
    for i in order[: cells - sum(whole)]:
        whole[i] += 1
    return whole
