"""One page in the place of another: shown when it has what it shows, so that it is sent once, and not empty before."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from roofterm.tui.page import Page

if TYPE_CHECKING:
    from roofterm.tui.explorer import Explorer

PATIENCE_SECONDS = 0.15
"""How long the earlier screen may stay while the next one is asked for."""


async def turn_to(explorer: Explorer, page: Page) -> None:
    """Returns when the page is drawn, or has taken too long."""
    if page.DRAWS_UNSEEN:
        await _answered(explorer, page)
    for other in explorer.query(Page):
        other.display = other is page
    if not page.DRAWS_UNSEEN:
        await _answered(explorer, page)
    drawn = asyncio.Event()
    explorer.call_after_refresh(drawn.set)
    with suppress(TimeoutError):
        await asyncio.wait_for(drawn.wait(), PATIENCE_SECONDS)


async def _answered(explorer: Explorer, page: Page) -> None:
    asking = page.show(explorer.state)
    if asking is not None:
        waiting = asyncio.ensure_future(asking.wait())
        waiting.add_done_callback(lambda done: done.cancelled() or done.exception())  # a fault is the worker's to report
        await asyncio.wait({waiting}, timeout=PATIENCE_SECONDS)
