"""What the explorer shows, as one immutable value: screens are projections of it, history is a list of such values.

Pure: knows neither a terminal nor a profile.
"""

from __future__ import annotations

from typing import Any

import msgspec

from roofterm.analysis.filters import term_value, with_term

PS_PER_MS = 1_000_000_000


class Selection(msgspec.Struct, frozen=True):
    """The one thing that travels from screen to screen."""

    kind: str
    """kernel, op, category, slice or step"""
    name: str
    slice: int | None = None
    """slice id, where one piece of work is meant"""
    op: str | None = None
    """of a kernel: the op that launches it"""


class Sort(msgspec.Struct, frozen=True):
    column: str
    descending: bool = True


class ViewState(msgspec.Struct, frozen=True):
    """Screen, selection, filter and limits. Change it with `msgspec.structs.replace`."""

    screen: str = "overview"
    by: str = "kernel"
    """table of the Ops screen"""
    level: str = "op"
    """points of the Roofline screen: program or op"""
    filter: str = ""
    step: str | None = None
    """a step's number as `Scope.step` takes it; None: each screen's own default"""
    window_ps: tuple[int, int] | None = None
    infeed: bool = True
    selection: Selection | None = None
    sorts: dict[str, Sort] = {}
    """by table"""
    views: dict[str, str] = {}
    """what a screen with several tables shows, by screen; without an entry its first"""
    places: dict[str, int] = {}
    """cursor by screen"""


def changed(state: ViewState, **fields: Any) -> ViewState:
    return msgspec.structs.replace(state, **fields)


def cleared(state: ViewState) -> ViewState:
    """Everything shown again: no filter, no step, no window."""
    return changed(state, filter="", step=None, window_ps=None)


def is_limited(state: ViewState) -> bool:
    return bool(state.filter or state.step is not None or state.window_ps)


def rank_of(state: ViewState) -> int | None:
    """The one rank that the filter leaves; None: all, or several."""
    rank = term_value(state.filter, "rank")
    return int(rank) if rank is not None and rank.isdigit() else None


def without_rank(expression: str) -> str:
    """The filter without the term that a scope answers by itself."""
    rank = term_value(expression, "rank")
    return with_term(expression, "rank", None) if rank is not None and rank.isdigit() else expression


def cycled(state: ViewState, field: str, values: list[str], by: int) -> ViewState:
    """The filter with its term `field:VALUE` moved on by `by` through `values` and, after the last, through none."""
    ring: list[str | None] = [None, *values]
    now = term_value(state.filter, field)
    at = ring.index(now) if now in ring else 0
    return changed(state, filter=with_term(state.filter, field, ring[(at + by) % len(ring)]))


def limits_text(state: ViewState) -> str:
    """What is filtered and limited, in words for the line above the footer; empty if nothing is."""
    parts = []
    if state.filter:
        parts.append(f"filter {state.filter}")
    if state.step is not None:
        parts.append(f"step {state.step}")
    if state.window_ps:
        start, end = state.window_ps
        parts.append(f"window {start / PS_PER_MS:.3f} to {end / PS_PER_MS:.3f} ms")
    if not state.infeed:
        parts.append("no infeed")
    return " · ".join(parts)


class History:
    """Earlier states, as a browser keeps them: `backspace` returns to the last one."""

    def __init__(self, limit: int = 200) -> None:
        self._states: list[ViewState] = []
        self._limit = limit

    def keep(self, state: ViewState) -> None:
        if not self._states or self._states[-1] != state:
            self._states.append(state)
        del self._states[: -self._limit]

    def back(self) -> ViewState | None:
        return self._states.pop() if self._states else None

    def __len__(self) -> int:
        return len(self._states)
