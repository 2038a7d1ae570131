"""What the command palette holds: every action of the screen shown, the themes, and what each figure means."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from roofterm.glossary import Entry, glossary
from roofterm.tui import keymap, themes
from roofterm.tui.screens.details import DetailScreen
from roofterm.tui.screens.picker import Choice, Picker
from roofterm.tui.widgets.detail import Details, Fact

if TYPE_CHECKING:
    from roofterm.tui.app import RooftermApp
    from roofterm.tui.explorer import Explorer


Command = Callable[[], Awaitable[None] | None]


KEYS = 7
"""cells of the keys before an action's id"""


class Palette(Picker[Command]):
    """The explorer's own list of them, and not Textual's, which is laid out six times until it stands."""

    def __init__(self, app: RooftermApp, explorer: Explorer) -> None:
        super().__init__("Find an action, a theme, a figure's meaning", actions(app, explorer), more=found_by_typing(app))


def actions(app: RooftermApp, explorer: Explorer) -> list[Choice[Command]]:
    """Those of the screen shown, with their keys and ids."""
    return [
        Choice(action.text, _runner(app, explorer, action.action), f"{' '.join(keymap.keys_of(action)):<{KEYS}} {action.id}")
        for action in keymap.for_screen(explorer.state.screen, app.options.keys)
    ]


def found_by_typing(app: RooftermApp) -> list[Choice[Command]]:
    """Themes and definitions, which are too many to be listed."""
    names = themes.NAMES if app.look.colour else ()
    return [
        *(Choice[Command](f"theme {name}", partial(app.use_theme, name), "colours of the explorer") for name in names),
        *(Choice[Command](f"what is {entry.name}", partial(_explain, app, entry), entry.text) for entry in glossary().values()),
    ]


def _runner(app: RooftermApp, explorer: Explorer, action: str) -> Command:
    """Does what a key's action string says, wherever that action lives."""
    name = action.removeprefix("app.").split("(")[0]

    async def perform() -> None:
        node = next(node for node in (explorer.page, explorer, app) if hasattr(node, f"action_{name}"))
        await app.run_action(action, default_namespace=node)

    return perform


def _explain(app: RooftermApp, entry: Entry) -> None:
    facts = [Fact("means", entry.text), *([Fact("source", entry.source)] if entry.source else [])]
    app.push_screen(DetailScreen(Details(entry.name, facts), app.options.keys))
