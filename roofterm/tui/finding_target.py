"""Where a finding's evidence is seen."""

from __future__ import annotations

from roofterm.results import Finding
from roofterm.tui.widgets.lines import Target


def target_of(finding: Finding, first_table: str) -> Target:
    """The view and filter that show it; of the tables of ops, `first_table` unless the finding names another."""
    where = finding.where
    screen = where.get("view", "ops")
    by = where.get("by") or (first_table if screen == "ops" else None)
    return Target(screen, filter=where.get("filter", ""), by=by)
