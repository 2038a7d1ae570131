"""Every key of the explorer, as data: bindings, footer and help derive from this table, and each id can be given other keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from textual.binding import Binding

EVERYWHERE: tuple[str, ...] = ()
TABLES = ("ops", "steps", "findings", "ranks", "memory", "device", "compare")


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
    ("findings", "6", "Findings"),
    ("ranks", "7", "Ranks"),
    ("memory", "8", "Memory"),
    ("device", "9", "Device"),
    ("compare", "B", "Compare"),
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
    Action("pick.category", "C", "pick('category')", "choose a category from a list"),
    Action("bound", "b", "bound(1)", "only ops held back by the next limit: compute, memory, latency, ...", short="bound", weight=6),
    Action("bound.back", "alt+b", "bound(-1)", "only ops held back by the previous limit"),
    Action("step.next", "]", "step(1)", "only the next step"),
    Action("step.previous", "[", "step(-1)", "only the previous step"),
    Action(
        "pick", "F", "pick", "limit everything by choosing: category, limit, step, window, rank, stream, phase", short="limit", weight=8
    ),
    Action("copy", "y", "copy", "copy the selected name"),
    Action("export", "e", "export", "write all rows shown to a file: csv, json, parquet or arrow", short="export", weight=7),
    Action("command", "Y", "next_command", "copy the next command to run: ncu, rocprof-compute, or the profiler's missing flag"),
    Action("mark", "m", "mark", "mark this place, or take its mark away"),
    Action("marks", "'", "marks", "go to a mark"),
    Action("open.other", "o", "open_other", "open another profile"),
    Action("theme", "T", "theme", "next theme: dark, light, contrast, colorblind, ansi"),
    Action("redraw", "ctrl+l", "redraw", "draw the screen anew, if something else wrote on it"),
    Action("help", "? f1", "help", "this help", short="help", weight=1),
    Action("palette", "ctrl+p :", "palette", "find any action by name"),
    Action("quit", "q", "app.leave", "quit", short="quit", weight=0),
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
    Action("details", "enter", "open", "details with definitions", ("roofline", "ops", "timeline", "device", "compare"), "details", 3),
    Action("evidence", "enter", "open", "to the view and filter that show it", ("findings",), "evidence", 3),
    Action(
        "limit.rank", "enter", "open", "limit every screen to this rank; on a cell of the strip to its step too", ("ranks",), "only this", 3
    ),
    Action("holder", "enter", "open", "to the op, the step or the peak of this line", ("memory",), "go there", 3),
    Action("about", "d", "details", "details with definitions", ("steps", "findings", "ranks", "memory"), "details", 4),
    Action("baseline.close", "X", "close_baseline", "without the baseline again", ("compare",), "close", 4),
    Action("limit", "enter", "open", "limit every screen to this step", ("steps",), "only this step", 3),
    Action("sort", "s", "sort(1)", "sort by the next column", TABLES, "sort", 4),
    Action("sort.back", "S", "sort(-1)", "sort by the previous column", TABLES),
    Action("reverse", "r", "reverse", "reverse the order", TABLES, "reverse", 5),
    Action(
        "view",
        "v",
        "view(1)",
        "next table: kernels, launches, host ops, framework ops, categories, modules, HLO, collectives, gaps, iterations, counters",
        ("ops",),
        "view",
        3,
    ),
    Action("group", "u", "group(1)", "host ops apart by input shapes, Python stack or module, then together again", ("ops",), "group", 6),
    Action("group.back", "U", "group(-1)", "the grouping before that", ("ops",)),
    Action("tree", "t", "tree", "XProf's op profile as a tree: what each program, category and op takes and wastes", ("ops",)),
    Action("view.back", "V", "view(-1)", "previous table", ("ops", "ranks", "memory", "compare", "roofline")),
    Action("view.ranks", "v", "view(1)", "next table: ranks, groups of collectives", ("ranks",), "view", 3),
    Action("heat", "x", "heat(1)", "what the strip of steps shows: step, compute, kept waiting, ...", ("ranks",), "strip", 4),
    Action(
        "view.memory",
        "v",
        "view(1)",
        "next table: by op, allocators, by step, calls to the driver, blocks held at the peak",
        ("memory",),
        "view",
        3,
    ),
    Action("pool.next", "n", "pool(1)", "next allocator", ("memory",), "allocator", 4),
    Action("pool.previous", "N", "pool(-1)", "previous allocator", ("memory",)),
    Action("peak", "w", "peak", "to the peak", ("memory",), "peak", 5),
    Action("view.compare", "v", "view(1)", "next level: figures, categories, kernels, ops, host ops", ("compare",), "level", 3),
    Action("next", "n", "next(1)", "next point, by time", ("roofline",), "next", 4),
    Action("previous", "N", "next(-1)", "previous point, by time", ("roofline",)),
    Action("level", "p", "level", "program (total, average, steps) or ops", ("roofline",), "program/ops", 4),
    Action("table", "t", "table", "table instead of the plot and back; with both shown, from one to the other", ("roofline",), "table", 5),
    Action("roofs", "x", "roofs", "which roofs are drawn", ("roofline",), "roofs", 5),
    Action("infeed", "i", "infeed", "with or without infeed and outfeed", ("roofline",)),
    Action("view.roofline", "v", "view(1)", "intensity against the next level of memory: HBM, L2, L1; VMEM", ("roofline",), "memory", 6),
    Action("zoom.in", "+ =", "zoom(1)", "zoom in", ("roofline", "timeline", "memory"), "zoom", 4),
    Action("zoom.out", "-", "zoom(-1)", "zoom out", ("roofline", "timeline", "memory")),
    Action("zoom.fit", "0", "zoom(0)", "fit everything", ("roofline", "timeline", "memory"), "fit", 6),
    Action("pan.left", "H shift+left", "pan(-1, 0)", "move the window left", ("roofline",)),
    Action("pan.right", "L shift+right", "pan(1, 0)", "move the window right", ("roofline",)),
    Action("pan.down", "J shift+down", "pan(0, -1)", "move the window down", ("roofline",)),
    Action("pan.up", "K shift+up", "pan(0, 1)", "move the window up", ("roofline",)),
    Action("same.next", "n", "same(1)", "next slice of the same name", ("timeline",), "same name", 5),
    Action("same.previous", "N", "same(-1)", "previous slice of the same name", ("timeline",)),
    Action("time.left", "h", "pan(-1, 0)", "earlier by a quarter of the window", ("timeline",)),
    Action("time.right", "l", "pan(1, 0)", "later by a quarter of the window", ("timeline",)),
    Action("slice.previous", "left", "move(-1, 0)", "previous slice on this lane", ("timeline",)),
    Action("slice.next", "right", "move(1, 0)", "next slice on this lane", ("timeline",)),
    Action("fold", "f", "fold", "open or close a thread's depths", ("timeline",), "unfold", 6),
    Action("launch", "u", "launch", "from a kernel to its launch and back", ("timeline",), "launch", 5),
    Action("gap", "w", "gap(1)", "to the longest gap, then the next longest", ("timeline",), "gap", 4),
    Action("gap.back", "W", "gap(-1)", "to the gap before that", ("timeline",)),
    Action("window.from", "<", "mark_window('from')", "start a time window here: every screen obeys it", ("timeline",), "window", 6),
    Action("window.to", ">", "mark_window('to')", "end the time window here", ("timeline",)),
)

_ALWAYS = ("stop", "suspend")
"""Work even where text is typed."""

_SYMBOLS = {"backspace": "bksp", "escape": "esc", "pagedown": "pgdn", "pageup": "pgup", "shift+tab": "S-tab", "space": "spc"}


class KeymapError(ValueError):
    """A wrong entry in the user's keys, in a sentence."""


NO_KEYS: Mapping[str, str] = {}
"""No keys of the user's own, by action id: the ones of the table hold."""


def with_keys(keys: Mapping[str, str]) -> tuple[Action, ...]:
    """All actions, with the user's keys for those that have some."""
    return tuple(msgspec.structs.replace(a, keys=keys[a.id]) if a.id in keys else a for a in ACTIONS)


def for_screen(screen: str, keys: Mapping[str, str] = NO_KEYS) -> tuple[Action, ...]:
    """Actions that work on a screen; one of its own wins over one that works everywhere with the same key."""
    own = [a for a in with_keys(keys) if screen in a.screens]
    return (*own, *_left_by(own, [a for a in with_keys(keys) if a.screens == EVERYWHERE]))


def page_actions(screen: str, keys: Mapping[str, str] = NO_KEYS) -> tuple[Action, ...]:
    """Actions that the page of a screen carries out itself: its own, and moving."""
    own = [a for a in with_keys(keys) if screen in a.screens]
    return (*own, *_left_by(own, motions(keys)))


def motions(keys: Mapping[str, str] = NO_KEYS) -> list[Action]:
    """What moves a cursor, on every screen."""
    return [a for a in with_keys(keys) if a.screens == EVERYWHERE and a.action.startswith(("move(", "page(", "end("))]


def program_actions(keys: Mapping[str, str] = NO_KEYS) -> list[Action]:
    """What works everywhere and moves nothing."""
    moving = {a.id for a in motions()}
    return [a for a in with_keys(keys) if a.screens == EVERYWHERE and a.id not in moving]


def bindings(actions: Iterable[Action]) -> list[Binding]:
    """Textual's bindings for these actions."""
    from textual.binding import Binding

    return [
        Binding(",".join(map(long_key, a.keys.split())), a.action, a.text, show=False, id=a.id, priority=a.id in _ALWAYS) for a in actions
    ]


def check(keys: Mapping[str, str]) -> None:
    """Raises KeymapError for a user's keys by action id that name no action or no key, or give one key to two actions of a screen."""
    known = {a.id for a in ACTIONS}
    for name, value in keys.items():
        if name not in known:
            near = get_close_matches(name, known, n=1)
            raise KeymapError(f"no action is called {name!r}" + (f": did you mean {near[0]!r}?" if near else ""))
        if not value.split():
            raise KeymapError(f"action {name!r} is given no key")
        for key in value.split():
            _check_name(name, key)
    for screen, _, title in SCREENS:
        _check_conflicts(screen, title, keys)


def keys_of(action: Action, keys: Mapping[str, str] = NO_KEYS) -> list[str]:
    """Keys of an action as a person writes them, the user's own if they gave some."""
    return [_SYMBOLS.get(key, key.replace("ctrl+", "^")) for key in keys.get(action.id, action.keys).split()]


def first_key(action: str, keys: Mapping[str, str] = NO_KEYS) -> str:
    """The first key of an action by its id, as a person writes it."""
    return next(keys_of(a)[0] for a in with_keys(keys) if a.id == action)


def _left_by(own: Iterable[Action], others: Iterable[Action]) -> list[Action]:
    """The others with the keys that the own ones leave them; without those that have none left."""
    taken = {key for a in own for key in a.keys.split()}
    left = [msgspec.structs.replace(a, keys=" ".join(key for key in a.keys.split() if key not in taken)) for a in others]
    return [a for a in left if a.keys]


def _check_name(action: str, key: str) -> None:
    from textual.keys import Keys

    *modifiers, last = key.split("+") if len(key) > 1 else [key]
    named = {str(k.value) for k in Keys} | {f"f{n}" for n in range(1, 25)} | {"space"}
    if set(modifiers) <= {"ctrl", "shift", "alt"} and (len(last) == 1 or last in named or long_key(last) in named):
        return
    near = get_close_matches(key, [name for name in named if "<" not in name], n=1)
    raise KeymapError(f"{key!r}, given to {action!r}, is no key" + (f": did you mean {near[0]!r}?" if near else ""))


def _check_conflicts(screen: str, title: str, keys: Mapping[str, str]) -> None:
    """The table's own order of precedence holds for its own keys only."""
    held: dict[str, list[Action]] = {}
    for action in with_keys(keys):
        if action.screens == EVERYWHERE or screen in action.screens:
            for key in action.keys.split():
                held.setdefault(long_key(key), []).append(action)
    for key, actions in held.items():
        first, *others = actions
        if others and any(a.id in keys for a in actions):
            raise KeymapError(f"key {key!r} is given to both {first.id!r} and {others[0].id!r} on {title}: give one of them another key")


def long_key(key: str) -> str:
    """A key's name as Textual writes it."""
    from textual.keys import _character_to_key

    return _character_to_key(key) if len(key) == 1 else key
