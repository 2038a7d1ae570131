"""What the command palette holds: every action of the screen shown, the themes, and what each figure means."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from rich.markup import escape
from textual.app import SystemCommand

from roofterm.glossary import Entry, glossary
from roofterm.tui import keymap, themes
from roofterm.tui.screens.details import DetailScreen
from roofterm.tui.widgets.detail import Details, Fact

if TYPE_CHECKING:
    from roofterm.tui.app import RooftermApp
    from roofterm.tui.explorer import Explorer


def commands(app: RooftermApp, explorer: Explorer) -> Iterator[SystemCommand]:
    """Actions with their keys and ids; themes and definitions are found by typing and not listed before."""
    for action in keymap.for_screen(explorer.state.screen, app.options.keys):
        keys = " ".join(keymap.keys_of(action))
        yield SystemCommand(f"{action.text}  ({keys})", action.id, _runner(app, explorer, action.action))
    if app.look.colour:
        for name in themes.NAMES:
            yield SystemCommand(f"theme {name}", "colours of the explorer", partial(app.use_theme, name), discover=False)
    for entry in glossary().values():
        yield SystemCommand(f"what is {entry.name}", escape(entry.text), partial(_explain, app, entry), discover=False)


def _runner(app: RooftermApp, explorer: Explorer, action: str) -> Callable[[], Awaitable[None]]:
    """Does what a key's action string says, wherever that action lives."""
    name = action.removeprefix("app.").split("(")[0]

    async def perform() -> None:
        node = next(node for node in (explorer.page, explorer, app) if hasattr(node, f"action_{name}"))
        await app.run_action(action, default_namespace=node)

    return perform


def _explain(app: RooftermApp, entry: Entry) -> None:
    facts = [Fact("means", entry.text), *([Fact("source", entry.source)] if entry.source else [])]
    app.push_screen(DetailScreen(Details(entry.name, facts), app.options.keys))
