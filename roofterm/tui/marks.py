"""Marks: places of a profile to come back to, set and taken away by one key, listed by another."""

from __future__ import annotations

from collections.abc import Sequence

from roofterm.tui.kept_view import MOST_MARKS, Mark
from roofterm.tui.keymap import SCREENS
from roofterm.tui.screens.picker import Choice
from roofterm.tui.state import Selection, ViewState, limits_text

_TITLES = {name: title for name, _, title in SCREENS}


def toggled(marks: Sequence[Mark], view: ViewState) -> tuple[list[Mark], str]:
    """The marks with one more for this place, or without the one that it has; and what was done, in words."""
    here = [mark for mark in marks if is_same_place(mark.view, view)]
    if here:
        return [mark for mark in marks if mark not in here], "mark taken away"
    if len(marks) >= MOST_MARKS:
        return list(marks), f"there are {MOST_MARKS} marks already: take some away first"
    name = view.selection.name if view.selection else _TITLES.get(view.screen, view.screen)
    return [*marks, Mark(name, view)], "marked"


def is_marked(marks: Sequence[Mark], selection: Selection | None, screen: str) -> bool:
    """Whether what is selected has a mark on this screen."""
    return selection is not None and any(mark.view.screen == screen and mark.view.selection == selection for mark in marks)


def is_same_place(one: ViewState, other: ViewState) -> bool:
    """Whether a mark of the one is a mark of the other."""
    if one.screen != other.screen or one.by != other.by:
        return False
    if one.selection is not None or other.selection is not None:
        return one.selection == other.selection
    return one.places.get(one.screen) == other.places.get(other.screen)


def mark_choices(marks: Sequence[Mark]) -> list[Choice[Mark]]:
    """The marks as a list to choose from, the last set first."""
    return [
        Choice(mark.name, mark, " · ".join(filter(None, (_TITLES.get(mark.view.screen, ""), limits_text(mark.view)))))
        for mark in marks[::-1]
    ]
