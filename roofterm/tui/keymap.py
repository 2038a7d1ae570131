"""Every key of the explorer, as data: bindings, footer and help derive from this table, and each id can be given other keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from textual.binding import Binding

EVERYWHERE: tuple[str, ...] = ()
TABLES = ("ops", "steps", "device")
LISTS = ("overview", *TABLES)


class Action(msgspec.Struct, frozen=True):
    """Something that a key does."""

    id: str
    keys: str
    """keys that do it, apart by blanks, as a person writes them"""
    action: str
    """Textual's action string"""
    text: str
    """one line for the help"""
    screens: tuple[str, ...] = EVERYWHERE
    short: str = ""
    """label in the footer; empty: not there"""
    weight: int = 5
    """place in the footer when room is short: smaller stays longer"""


SCREENS: tuple[tuple[str, str, str], ...] = (
    ("overview", "1", "Overview"),
    ("roofline", "2", "Roofline"),
    ("ops", "3", "Ops"),
    ("timeline", "4", "Timeline"),
    ("steps", "5", "Steps"),
    ("device", "9", "Device"),
)
"""Name, key and title of each screen, in the order of the tabs."""

ACTIONS: tuple[Action, ...] = (
    *(Action(f"screen.{name}", key, f"screen('{name}')", f"go to {title}") for name, key, title in SCREENS),
    Action("screen.next", "tab", "screen_beside(1)", "next screen"),
    Action("screen.previous", "shift+tab", "screen_beside(-1)", "previous screen"),
    Action("filter", "/", "filter", "filter everything: words, /regex/, cat:gemm, dur>10us, time>1%", short="filter", weight=2),
    Action("clear", "escape", "clear", "clear filter, step and time window"),
    Action("back", "backspace", "back", "back to the earlier screen, place and filter", short="back", weight=7),
    Action("category", "c", "category(1)", "only the next category", short="category", weight=6),
    Action("category.back", "C", "category(-1)", "only the previous category"),
    Action("bound", "b", "bound(1)", "only ops held back by the next limit: compute, memory, latency, ...", short="bound", weight=6),
    Action("bound.back", "B", "bound(-1)", "only ops held back by the previous limit"),
    Action("step.next", "]", "step(1)", "only the next step"),
    Action("step.previous", "[", "step(-1)", "only the previous step"),
    Action("copy", "y", "copy", "copy the selected name"),
    Action("theme", "T", "theme", "next theme: dark, light, contrast, ansi"),
    Action("help", "? f1", "help", "this help", short="help", weight=1),
    Action("palette", "ctrl+p :", "palette", "find any action by name"),
    Action("quit", "q", "leave", "quit", short="quit", weight=0),
    Action("stop", "ctrl+c", "stop_or_leave", "stop what is running, else quit"),
    Action("suspend", "ctrl+z", "app.suspend_process", "to the shell; fg returns"),
    Action("down", "j down", "move(0, 1)", "down"),
    Action("up", "k up", "move(0, -1)", "up"),
    Action("left", "h left", "move(-1, 0)", "left; in tables: earlier columns"),
    Action("right", "l right", "move(1, 0)", "right; in tables: later columns"),
    Action("page.down", "pagedown ctrl+f space", "page(1.0)", "page down"),
    Action("page.up", "pageup ctrl+b", "page(-1.0)", "page up"),
    Action("half.down", "ctrl+d", "page(0.5)", "half a page down"),
    Action("half.up", "ctrl+u", "page(-0.5)", "half a page up"),
    Action("first", "g home", "end(-1)", "to the first"),
    Action("last", "G end", "end(1)", "to the last"),
    Action("open", "enter", "open", "open the evidence of this line", ("overview",), "open", 3),
    Action("details", "enter", "open", "details with definitions", ("roofline", "ops", "timeline", "device"), "details", 3),
    Action("limit", "enter", "open", "limit every screen to this step", ("steps",), "only this step", 3),
    Action("sort", "s", "sort(1)", "sort by the next column", TABLES, "sort", 4),
    Action("sort.back", "S", "sort(-1)", "sort by the previous column", TABLES),
    Action("reverse", "r", "reverse", "reverse the order", TABLES, "reverse", 5),
    Action("view", "v", "view(1)", "next table: kernels, host ops, categories, collectives, gaps, iterations", ("ops",), "view", 3),
    Action("view.back", "V", "view(-1)", "previous table", ("ops",)),
    Action("next", "n", "next(1)", "next point, by time", ("roofline",), "next", 4),
    Action("previous", "N", "next(-1)", "previous point, by time", ("roofline",)),
    Action("level", "p", "level", "program (total, average, steps) or ops", ("roofline",), "program/ops", 4),
    Action("table", "t", "table", "table instead of the plot and back; with both shown, from one to the other", ("roofline",), "table", 5),
    Action("roofs", "x", "roofs", "which roofs are drawn", ("roofline",), "roofs", 5),
    Action("infeed", "i", "infeed", "with or without infeed and outfeed", ("roofline",)),
    Action("zoom.in", "+ =", "zoom(1)", "zoom in", ("roofline", "timeline"), "zoom", 4),
    Action("zoom.out", "-", "zoom(-1)", "zoom out", ("roofline", "timeline")),
    Action("zoom.fit", "0", "zoom(0)", "fit everything", ("roofline", "timeline"), "fit", 6),
    Action("pan.left", "H shift+left", "pan(-1, 0)", "move the window left", ("roofline",)),
    Action("pan.right", "L shift+right", "pan(1, 0)", "move the window right", ("roofline",)),
    Action("pan.down", "J shift+down", "pan(0, -1)", "move the window down", ("roofline",)),
    Action("pan.up", "K shift+up", "pan(0, 1)", "move the window up", ("roofline",)),
    Action("same.next", "n", "same(1)", "next slice of the same name", ("timeline",), "same name", 4),
    Action("same.previous", "N", "same(-1)", "previous slice of the same name", ("timeline",)),
    Action("time.left", "h", "pan(-1, 0)", "earlier by a quarter of the window", ("timeline",)),
    Action("time.right", "l", "pan(1, 0)", "later by a quarter of the window", ("timeline",)),
    Action("slice.previous", "left", "move(-1, 0)", "previous slice on this lane", ("timeline",)),
    Action("slice.next", "right", "move(1, 0)", "next slice on this lane", ("timeline",)),
    Action("fold", "f", "fold", "open or close a thread's depths", ("timeline",), "fold", 6),
    Action("launch", "u", "launch", "from a kernel to its launch and back", ("timeline",), "launch", 5),
    Action("gap", "w", "gap(1)", "to the longest gap, then the next longest", ("timeline",), "gap", 5),
    Action("gap.back", "W", "gap(-1)", "to the gap before that", ("timeline",)),
    Action("window.from", "<", "mark_window('from')", "start a time window here: every screen obeys it", ("timeline",), "window", 6),
    Action("window.to", ">", "mark_window('to')", "end the time window here", ("timeline",)),
)

_ALWAYS = ("stop", "suspend")
"""Work even where text is typed."""

_SYMBOLS = {"backspace": "bksp", "escape": "esc", "pagedown": "pgdn", "pageup": "pgup", "shift+tab": "S-tab", "space": "spc"}


class KeymapError(ValueError):
    """A wrong entry in the user's keys, in a sentence."""


def for_screen(screen: str) -> tuple[Action, ...]:
    """Actions that work on a screen; one of its own wins over one that works everywhere with the same key."""
    own = [a for a in ACTIONS if screen in a.screens]
    taken = {key for a in own for key in a.keys.split()}
    everywhere = [a for a in ACTIONS if a.screens == EVERYWHERE and not taken.issuperset(a.keys.split())]
    return (*own, *everywhere)


def page_actions(screen: str) -> tuple[Action, ...]:
    """Actions that the page of a screen carries out itself: its own, and moving."""
    own = [a for a in ACTIONS if screen in a.screens]
    taken = {key for a in own for key in a.keys.split()}
    moves = [a for a in ACTIONS if a.screens == EVERYWHERE and is_motion(a) and not taken.issuperset(a.keys.split())]
    return (*own, *moves)


def is_motion(action: Action) -> bool:
    return action.action.startswith(("move(", "page(", "end("))


def bindings(actions: Iterable[Action]) -> list[Binding]:
    """Textual's bindings for these actions."""
    from textual.binding import Binding

    return [
        Binding(",".join(map(_long_key, a.keys.split())), a.action, a.text, show=False, id=a.id, priority=a.id in _ALWAYS) for a in actions
    ]


def keymap(keys: Mapping[str, str]) -> dict[str, str]:
    """A user's keys by action id, checked, as `App.set_keymap` takes them. Raises KeymapError."""
    known = {a.id for a in ACTIONS}
    for name, value in keys.items():
        if name not in known:
            near = get_close_matches(name, known, n=1)
            raise KeymapError(f"no action is called {name!r}" + (f": did you mean {near[0]!r}?" if near else ""))
        if not value.split():
            raise KeymapError(f"action {name!r} is given no key")
    return {name: ",".join(map(_long_key, value.split())) for name, value in keys.items()}


def keys_of(action: Action, keys: Mapping[str, str]) -> list[str]:
    """Keys of an action as a person writes them, the user's own if they gave some."""
    return [_SYMBOLS.get(key, key.replace("ctrl+", "^")) for key in keys.get(action.id, action.keys).split()]


def _long_key(key: str) -> str:
    from textual.keys import _character_to_key

    return _character_to_key(key) if len(key) == 1 else key
