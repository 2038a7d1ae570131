"""A second profile to compare with: opened beside the one shown, matched with it once, and joined to the tables that speak of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roofterm.tui.options import Options

if TYPE_CHECKING:
    from roofterm.analysis.compare import Comparison
    from roofterm.analysis.study import Study


@dataclass(frozen=True, eq=False)
class Baseline:
    """Two are never equal: what was drawn with one is drawn anew with another."""

    title: str
    study: Study
    comparison: Comparison
    """from the baseline to the profile shown"""


def open_baseline(paths: Sequence[str], options: Options) -> Study:
    """Read a profile to compare with, held against the same roofs. Raises ProfileError."""
    from roofterm.analysis.clocks import aligned_study
    from roofterm.analysis.study import Study
    from roofterm.captures import open_captures
    from roofterm_parsers.opening import open_profile

    profile = open_profile(list(paths), cache=options.cache)
    return aligned_study(Study(profile, options.roofs, open_captures(profile, options.capture, cache=options.cache)))


def matched(study: Study, base: Study, title: str) -> Baseline:
    """The baseline with what `roofterm compare` tells of the two."""
    from roofterm.analysis.compare import compare

    return Baseline(title, base, compare(base, study))
