"""Where a profile was left, and the marks set in it: brought back when the same files are opened again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from roofterm.analysis.filters import FilterError, parse
from roofterm.results import TABLES
from roofterm.tui.state import ViewState, changed
from roofterm.tui.state_files import keep_newest, read_state, write_state

if TYPE_CHECKING:
    from roofterm.tui.opened import Opened

FOLDER = "views"
MOST_PROFILES = 300
MOST_MARKS = 100
SCHEMA = "roofterm.view/1"


class Mark(msgspec.Struct, frozen=True):
    """A place to come back to."""

    name: str
    """what stood there, as in the file"""
    view: ViewState


class KeptView(msgspec.Struct, frozen=True):
    schema: str = SCHEMA
    view: ViewState = ViewState()
    marks: list[Mark] = []


def read_view(key: str | None, opened: Opened) -> KeptView | None:
    """What was kept for these files, as far as this profile still has it."""
    kept = read_state(_file(key), KeptView) if key is not None else None
    if kept is None or kept.schema != SCHEMA:
        return None
    marks = [msgspec.structs.replace(mark, view=fitted(mark.view, opened)) for mark in kept.marks[:MOST_MARKS]]
    return KeptView(view=fitted(kept.view, opened), marks=marks)


def keep_view(key: str | None, view: ViewState, marks: list[Mark]) -> None:
    """Keep it for the next time."""
    if key is not None:
        write_state(_file(key), KeptView(view=view, marks=marks[-MOST_MARKS:]))
        keep_newest(FOLDER, MOST_PROFILES)


def first_view(opened: Opened, kept: ViewState | None) -> ViewState:
    """What is shown first: what the command line asks for, else where the profile was left, else the first screen."""
    options = opened.options
    asked = options.scope
    if kept is not None and not (asked.where or asked.window_ps or asked.step != "steady" or not asked.infeed):
        return kept
    return ViewState(
        screen=options.start if options.start in opened.pages else next(iter(opened.pages)),
        filter=asked.where,
        step=None if asked.step == "steady" else asked.step,
        window_ps=asked.window_ps,
        infeed=asked.infeed,
        by=opened.first_table,
    )


def fitted(view: ViewState, opened: Opened) -> ViewState:
    """A kept view without what this profile does not have: a kept file may come from anywhere."""
    profile = opened.study.profile
    chosen = view.selection
    if chosen is not None and chosen.slice is not None and not 0 <= chosen.slice < profile.slices.height:
        chosen = None
    known_step = view.step == "all" or view.step in {str(number) for number in opened.step_numbers}
    window = view.window_ps if view.window_ps is not None and view.window_ps[0] < view.window_ps[1] else None
    return changed(
        view,
        screen=view.screen if view.screen in opened.pages and view.screen != "compare" else next(iter(opened.pages)),
        by=view.by if view.by in TABLES else opened.first_table,
        level=view.level if view.level in ("op", "program") else "op",
        filter=view.filter if _is_filter(view.filter) else "",
        step=view.step if known_step else None,
        window_ps=window,
        selection=chosen,
        places={name: place for name, place in view.places.items() if place >= 0},
    )


def _file(key: str) -> str:
    return f"{FOLDER}/{key}.json"


def _is_filter(text: str) -> bool:
    try:
        parse(text)
    except FilterError:
        return False
    return True
