"""What every screen can be limited to by choosing: category, limit, step, window, rank, stream, phase."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from roofterm.analysis import limit_values
from roofterm.analysis.filters import term_value, with_term
from roofterm.analysis.scope import ScopeError
from roofterm.analysis.window_text import parse_window
from roofterm.text.units import count, duration_us
from roofterm.tui.screens.picker import Choice
from roofterm.tui.state import ViewState, changed, limits_text

if TYPE_CHECKING:
    from roofterm.analysis.study import Study
    from roofterm.tui.opened import Opened

KINDS: tuple[tuple[str, str], ...] = (
    ("category", "what the work computes"),
    ("bound", "what holds ops back"),
    ("step", "one step"),
    ("window", "a window of time"),
    ("rank", "one process of a distributed job"),
    ("stream", "one stream of the devices"),
    ("phase", "forward, backward, optimizer; prefill, decode"),
)
"""What can be chosen, in the order in which it is listed."""

_FIELDS = {"category": "cat", "bound": "bound", "rank": "rank", "stream": "stream", "phase": "phase"}
"""The filter's field of a kind that the filter speaks of."""

_VALUES: dict[str, Callable[[Study], list[limit_values.LimitValue]]] = {
    "category": limit_values.category_values,
    "bound": limit_values.limiter_values,
    "rank": limit_values.rank_values,
    "stream": limit_values.stream_values,
    "phase": limit_values.phase_values,
}


def kind_choices(view: ViewState) -> list[Choice[str]]:
    """What can be chosen, with what is set now."""
    return [Choice(kind, kind, _now(view, kind) or about) for kind, about in KINDS]


def value_choices(opened: Opened, kind: str) -> list[Choice[str | None]]:
    """What there is of a kind, after the choice of all; empty if there is nothing to choose. Asks the study."""
    if kind == "step":
        found = _steps(opened)
    else:
        found = [
            Choice(
                value.label, value.value, f"{duration_us(value.time_us):>9}  {count(value.pieces)} {'ops' if kind == 'bound' else 'pieces'}"
            )
            for value in _VALUES[kind](opened.study)
        ]
    return [Choice("all", None, "no limit"), *found] if found else []


def limited(view: ViewState, kind: str, value: str | None) -> ViewState:
    """The state limited to a value, or no longer."""
    return changed(view, step=value) if kind == "step" else changed(view, filter=with_term(view.filter, _FIELDS[kind], value))


class Beside(NamedTuple):
    """The step beside another one, or why there is none."""

    step: str | None
    why: str = ""


def step_beside(opened: Opened, step: str | None, by: int) -> Beside:
    """The next (1) or the previous (-1) step; where none is chosen yet, the first or the last."""
    numbers = [str(number) for number in opened.step_numbers]
    if not numbers:
        return Beside(None, "the profile marks no steps")
    at = numbers.index(step) + by if step in numbers else (0 if by > 0 else len(numbers) - 1)
    if 0 <= at < len(numbers):
        return Beside(numbers[at])
    return Beside(None, "that was the last step" if by > 0 else "that was the first step")


def current(view: ViewState, kind: str) -> str | None:
    """The value that a state is limited to."""
    return view.step if kind == "step" else term_value(view.filter, _FIELDS[kind])


def wrong_window(text: str) -> str | None:
    """Why a text is no window of time; None if it is one."""
    try:
        parse_window(text)
    except ScopeError as why:
        return str(why)
    return None


def _now(view: ViewState, kind: str) -> str:
    if kind == "window":
        return limits_text(ViewState(window_ps=view.window_ps))
    value = current(view, kind)
    return "" if value is None else f"now {value}"


def _steps(opened: Opened) -> list[Choice[str | None]]:
    """One for each number, in the order of the steps, with the length that its first row tells."""
    found: dict[str, Choice[str | None]] = {}
    for row, number in zip(opened.steps, opened.numbers_of_rows, strict=True):
        if number is not None:
            note = "" if row.steady else "  not steady" if row.complete else "  incomplete"
            found.setdefault(str(number), Choice(row.name, str(number), duration_us(row.dur_us) + note))
    return list(found.values())
