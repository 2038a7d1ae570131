"""What the list of findings tells beneath each of them: what to do, what it rests on, where it is seen, how it is judged."""

from __future__ import annotations

from collections.abc import Sequence

from roofterm.analysis.findings import rules
from roofterm.report.evidence import evidence_of
from roofterm.results import Finding
from roofterm.text.safe import cell_width
from roofterm.text.units import UNKNOWN
from roofterm.tui.themes import Palette
from roofterm.tui.widgets.detail import wrapped
from roofterm.tui.widgets.glyphs import Look, marks, shown
from roofterm.tui.widgets.line_widget import Piece

LABEL = 10
"""cells of what a line tells of"""
_OF_THE_STAKE = ("claims_on", "per")
"""evidence that says what the time at stake is a part of, which stands beside it"""


def finding_notes(finding: Finding, width: int, palette: Palette, look: Look) -> list[list[Piece]]:
    """The most telling lines first, each of at most `width` cells."""
    room = width - LABEL
    lines = _labelled("to do", _plain(finding.advice, room, palette, look), palette)
    pairs = [(one.label, one.text) for one in evidence_of(finding.evidence) if one.name not in _OF_THE_STAKE and one.text != UNKNOWN]
    lines += _labelled("because", _flowing(pairs, room, palette, look), palette)
    if finding.share_of_step_pct is not None and finding.evidence.get("per", "step") != "step":
        lines += _labelled("share of", _plain(f"the {finding.evidence['per']}", room, palette, look), palette)
    where = seen_in(finding)
    if where:
        lines += _labelled("seen in", _plain(where, room, palette, look), palette)
    rule = rules().get(finding.id)
    if rule is not None:
        lines += _labelled("asked", _plain(rule.question, room, palette, look), palette)
        lines += _labelled("judged", _plain(rule.definition, room, palette, look), palette)
    return lines


def questions(asked: Sequence[str], width: int, palette: Palette, look: Look) -> list[list[Piece]]:
    """What was asked in vain, a line each."""
    return [[("  Asked, and nothing found", palette.accent)], *([("  " + shown(one, width - 2, look), palette.text)] for one in asked)]


def seen_in(finding: Finding) -> str:
    """The view and the filter that show it, in words."""
    return " ".join(part for part in (finding.where.get("view", ""), finding.where.get("filter", "")) if part)


def _labelled(label: str, lines: Sequence[list[Piece]], palette: Palette) -> list[list[Piece]]:
    heads = [" " + label, *[""] * len(lines)]
    return [[(head.ljust(LABEL), palette.muted), *line] for head, line in zip(heads, lines, strict=False)]


def _plain(text: str, width: int, palette: Palette, look: Look) -> list[list[Piece]]:
    return [[(part, palette.text)] for part in wrapped(text, width, look)]


def _flowing(pairs: Sequence[tuple[str, str]], width: int, palette: Palette, look: Look) -> list[list[Piece]]:
    """Figures with their names, as many on a line as there is room for."""
    between = f" {marks(look).dot} "
    lines: list[list[Piece]] = []
    used = width
    for label, text in pairs:
        name = shown(label, width // 2, look) + " "
        value = shown(text, width - cell_width(name), look)
        taken = cell_width(name) + cell_width(value)
        if used + len(between) + taken > width:
            lines.append([])
            used = 0
        else:
            lines[-1].append((between, palette.muted))
            used += len(between)
        lines[-1] += [(name, palette.muted), (value, palette.text)]
        used += taken
    return lines
