"""Figures as Markdown tables, and the words about the machine and the load that belong beside them."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path

MB = 1_000_000
NOTHING = "--"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first column is text, the others are figures."""
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    lines = [
        [cell.ljust(width) if at == 0 else cell.rjust(width) for at, (cell, width) in enumerate(zip(row, widths, strict=True))]
        for row in (head, *rows)
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in [lines[0], rule, *lines[1:]])


def seconds(value: float | None) -> str:
    if value is None:
        return NOTHING
    return f"{value:.3f} s" if value < 1 else f"{value:.2f} s" if value < 10 else f"{value:.1f} s"


def megabytes(value: float | None) -> str:
    return NOTHING if value is None else f"{value / MB:,.0f} MB"


def share(value: float | None) -> str:
    """A ratio with the digits that it deserves."""
    return NOTHING if value is None else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def verdict(value: float | None, at_most: float) -> str:
    return NOTHING if value is None else "held" if value <= at_most else "missed"


def machine() -> str:
    """Cores, processor, memory, system and Python in one line."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores, {_processor()}, {memory:.0f} GiB of memory, {platform.system()}, Python {platform.python_version()}"


def load_text(loads: Sequence[float]) -> str:
    """What the load average was while it was measured, the measured programs' own load included."""
    return f"load average {min(loads):.1f} to {max(loads):.1f}" if loads else "load average unknown"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
