"""A second profile to compare with: opened beside the one shown, matched with it once, and joined to every table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from roofterm.tui.options import Options

if TYPE_CHECKING:
    import polars as pl

    from roofterm.analysis.compare import Comparison
    from roofterm.analysis.study import Study

LEVELS = {"kernel": "kernel", "category": "category", "module": "module", "op": "host op"}
"""Tables whose rows a comparison tells, and its level of them: times of one step."""

KEYS: dict[str, tuple[tuple[str, ...], str]] = {
    "hlo": (("name", "hlo_category"), "mean_us"),
    "collective": (("name", "group", "group_size", "message_bytes"), "mean_us"),
    "iteration": (("name",), "mean_us"),
    "ranks": (("rank",), "step_us"),
    "groups": (("name",), "total_us"),
    "findings": (("id",), "time_at_stake_us"),
    "roofline": (("level", "name", "shapes"), "pct_of_roof"),
    "memory_op": (("name",), "peak_bytes"),
    "memory_pool": (("rank", "name"), "peak_bytes"),
    "memory_step": (("name",), "peak_bytes"),
    "memory_pressure": (("name",), "us_per_step"),
}
"""Tables that are matched row by row: by which columns, and the figure that is held against the baseline's."""

MOST_KEPT = 12


@dataclass(frozen=True, eq=False)
class Baseline:
    """Two are never equal: what was drawn with one is drawn anew with another. Asked by the desk's thread."""

    title: str
    study: Study
    comparison: Comparison
    """from the baseline to the profile shown"""
    notes: Sequence[str] = ()
    """what it comes to, in sentences"""
    _kept: dict[tuple[str, int], tuple[pl.DataFrame, pl.DataFrame]] = field(default_factory=dict)
    """a table as it was given, which keeps its id, and as it was joined"""

    def joined(self, table: str, frame: pl.DataFrame, base: Callable[[Study], pl.DataFrame] | None = None) -> pl.DataFrame:
        """The frame with the columns of `against.ADDED`, as it is where the table is not compared; `base` makes the baseline's own."""
        from roofterm.analysis.against import against_changes, against_rows, against_value

        known = self._kept.get((table, id(frame)))
        if known is not None:
            return known[1]
        if table == "step":
            found = against_value(frame, self.comparison.facts["step_us"][0], "dur_us")
        elif table in LEVELS:
            found = against_changes(frame, self.comparison.changes, LEVELS[table])
        elif table in KEYS and base is not None:
            found = against_rows(frame, base(self.study), *KEYS[table])
        else:
            return frame
        while len(self._kept) >= MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[table, id(frame)] = frame, found
        return found


def open_baseline(paths: Sequence[str], options: Options, cancelled: Callable[[], bool] = lambda: False) -> Study:
    """Read a profile to compare with, held against the same roofs. Raises ProfileError; Interrupted if cancelled."""
    from roofterm.analysis.clocks import aligned_study
    from roofterm.analysis.study import Study
    from roofterm.captures import open_captures
    from roofterm_parsers.opening import open_profile

    profile = open_profile(list(paths), cancelled=cancelled, cache=options.cache)
    captures = open_captures(profile, options.capture, cache=options.cache, cancelled=cancelled)
    return aligned_study(Study(profile, options.roofs, captures))


def matched(study: Study, base: Study, title: str) -> Baseline:
    """The baseline with what `roofterm compare` tells of the two."""
    from roofterm.analysis.compare import compare
    from roofterm.analysis.compare_notes import notes

    found = compare(base, study)
    return Baseline(title, base, found, notes(found))
