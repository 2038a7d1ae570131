"""Keys are answered one after the other, as they were typed: over a slow line, or while the screen is busy, they come in bunches.

Textual chooses the widget that a key goes to when the key arrives, before the keys ahead of it have been answered: of `/cat`
the letters would go to the table, and not to the line that `/` opens.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from textual.events import Key
from textual.widgets import Input

if TYPE_CHECKING:
    from textual.dom import DOMNode
    from textual.widget import Widget

    from roofterm.tui.app import RooftermApp

PATIENCE_SECONDS = 0.25
"""after which a key no longer waits for what the keys before it have set going"""


@runtime_checkable
class KeepsKeys(Protocol):
    """A screen that is not ready yet for what is typed."""

    def keeps(self, event: Key) -> bool:
        """Whether this key waits; the screen posts it again later."""
        ...


async def answer(app: RooftermApp, event: Key) -> bool:
    """Answer a key that has just come. False: it is a letter for the line that is typed in."""
    screen, line = app.screen, app.focused
    if isinstance(screen, KeepsKeys) and screen.keeps(event):
        return True
    if not isinstance(line, Input):
        await app.run_binding(event.key)
        return True
    if event.is_printable:
        return False
    await _passed(line)  # the letters before this key stand in the line now
    await app.run_binding(event.key)
    if event.key in ("enter", "escape"):
        await _told(line)
    return True


async def _told(line: Widget) -> None:
    """Until those around the line have heard what was done in it: what they say themselves takes a second round."""
    around: list[DOMNode] = [line, *line.ancestors]
    for _ in range(2):
        for node in around:
            if not await _passed(node):
                return


async def _passed(node: DOMNode) -> bool:
    """Until the node has taken all messages that wait for it now."""
    taken = asyncio.Event()
    if node.is_attached and node is not node.app and node.call_later(taken.set):
        with suppress(TimeoutError):
            await asyncio.wait_for(taken.wait(), PATIENCE_SECONDS)
            return True
        return False
    return True
