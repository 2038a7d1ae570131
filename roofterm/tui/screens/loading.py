"""The first frame: what is being opened, how far it is, how fast and how long it will still take."""

from __future__ import annotations

import asyncio
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.events import Key, Resize
from textual.screen import Screen
from textual.strip import Strip

from roofterm.text.units import bytes_text, duration_us
from roofterm.tui.keymap import SCREENS
from roofterm.tui.screens.too_small import TooSmall
from roofterm.tui.widgets.footer import Footer
from roofterm.tui.widgets.header import Header, Tabs
from roofterm.tui.widgets.line_widget import LineWidget, Piece
from roofterm.tui.widgets.status import Status

if TYPE_CHECKING:
    from roofterm.tui.app import RooftermApp
    from roofterm.tui.kept_figures import KeptFigures
    from roofterm_parsers.opening import Progress

POLL_SECONDS = 0.2
READING = "as last time; reading ..."


class LoadingScreen(Screen[None], inherit_bindings=False):
    """Polls what the loading thread has last said, so that its pace does not become the screen's."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,ctrl+c", "cancel", show=False),
        Binding("ctrl+z", "app.suspend_process", show=False),
    ]

    def __init__(self, title: str) -> None:
        super().__init__()
        self._file = title
        self.stopping = Event()
        self._latest: Progress | None = None
        self._figures: KeptFigures | None = None
        self._shown = ""
        """what the figures speak of"""
        self.typed: list[Key] = []
        """keys that wait for the profile"""

    def compose(self) -> ComposeResult:
        yield Header(self._file)
        yield Tabs()
        with Container(id="body"):
            yield ProgressView(self._file)
        yield Status()
        yield Footer({})
        yield TooSmall()

    def on_mount(self) -> None:
        self._polling = self.set_interval(POLL_SECONDS, self._poll)

    def on_screen_suspend(self) -> None:
        self._polling.pause()

    def on_screen_resume(self) -> None:
        self._polling.resume()

    def on_resize(self, event: Resize) -> None:
        cast("RooftermApp", self.app).fit_screen(self, event.size)

    def report(self, progress: Progress) -> None:
        """Called by the loading thread."""
        self._latest = progress

    async def show_figures(self, kept: KeptFigures) -> None:
        """Show the first screen as it was kept; returns when it is painted, so that reading does not hold it up."""
        from roofterm.tui.overview_parts import first_table_text
        from roofterm.tui.screens.kept_overview import KeptOverview

        self._figures = kept
        self._shown = "" if kept.outline else first_table_text(kept.part, kept.first_table, kept.kernels.rows, kept.nests)
        self.query_one(Header).show(self._file, kept.header)
        self.query_one(Tabs).show([tab for tab in SCREENS if tab[0] in kept.screens], "overview")
        self._say(READING)
        await self.query_one(ProgressView).remove()
        await self.query_one("#body").mount(KeptOverview(kept))
        painted = asyncio.Event()
        self.call_after_refresh(lambda: self.call_after_refresh(painted.set))  # the lines are written once the room for them is known
        await painted.wait()

    def keeps(self, event: Key) -> bool:
        """With kept figures to look at, keys are pressed already: they wait for the profile."""
        waits = self._figures is not None and event.key not in self._bindings.key_to_bindings
        if waits:
            self.typed.append(Key(event.key, event.character))
            named = (key.character if key.is_printable and key.character else key.key for key in self.typed)
            self.query_one(Status).notice(f"{' '.join(named)} follows when the profile is read")
        return waits

    def action_cancel(self) -> None:
        cast("RooftermApp", self.app).stop_reading(self)

    def _poll(self) -> None:
        if self._latest is None:
            return
        for view in self.query(ProgressView):
            view.show(self._latest)
        if self._figures is not None and self._latest.bytes_total:
            self._say(f"{READING} {100 * self._latest.bytes_done // self._latest.bytes_total}%")

    def _say(self, what: str) -> None:
        self.query_one(Status).show(self._shown, what, "")


class ProgressView(LineWidget):
    def __init__(self, title: str) -> None:
        super().__init__(id="progress")
        self._title = title
        self._progress: Progress | None = None
        self._started = monotonic()
        self._elapsed = 0.0

    def show(self, progress: Progress) -> None:
        self._progress = progress
        self._elapsed = monotonic() - self._started
        self.refresh()

    def render_line(self, y: int) -> Strip:
        lines = self._lines(min(self.size.width - 6, 64))
        at = y - max((self.size.height - len(lines)) // 3, 1)
        return self.strip([("   ", self.palette.text), *lines[at]]) if 0 <= at < len(lines) else self.blank()

    def _lines(self, width: int) -> list[list[Piece]]:
        p = self.palette
        opening: list[Piece] = [("opening ", p.muted), (self._title, p.strong)]
        if self._progress is None:
            return [opening, [], [("starting ...", p.muted)]]
        share, text = progress_text(self._progress, self._elapsed)
        lines: list[list[Piece]] = [opening, []]
        if share is not None:
            done = round(share * width)
            full, rest = ("#", ".") if self.look.ascii else ("█", "░")
            lines.append([(full * done, p.accent), (rest * (width - done), p.rule), (f" {100 * share:3.0f}%", p.text)])
        return [*lines, [(text, p.text)], [], [("esc", p.key), (" stops", p.muted)]]


def progress_text(progress: Progress, elapsed_s: float) -> tuple[float | None, str]:
    """Share done (None: unknown) and a line: bytes of bytes, rate, time left, phase, files."""
    done, total = progress.bytes_done, progress.bytes_total
    parts = [f"{bytes_text(done)} of {bytes_text(total)}" if total else bytes_text(done)]
    rate = done / elapsed_s if elapsed_s > 0 else 0
    if rate:
        parts.append(f"{bytes_text(rate)}/s")
        if total and done < total:
            parts.append(f"{duration_us((total - done) / rate * 1e6)} left")
    parts.append(progress.phase)
    if progress.files_total > 1:
        parts.append(f"file {min(progress.files_done + 1, progress.files_total)} of {progress.files_total}")
    return (min(done / total, 1.0) if total else None), "  ".join(parts)
