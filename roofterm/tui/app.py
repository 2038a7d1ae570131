"""The explorer as a program: probes the terminal, shows a first frame, opens the profile in a thread, then shows the screens.

Importing this module loads neither polars nor numpy nor the analysis: those come with the profile, in the loading thread.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import msgspec
from rich.console import RenderableType
from rich.style import Style
from textual._compositor import CompositorUpdate
from textual.app import App, ScreenStackError
from textual.binding import BindingType
from textual.driver import Driver
from textual.events import Event, Key, Resize
from textual.filter import Monochrome, NoColor
from textual.geometry import Size
from textual.screen import Screen
from textual.worker import Worker

from roofterm.text.safe import safe_text
from roofterm.tui import themes
from roofterm.tui.capabilities import Capabilities, probe
from roofterm.tui.desk import Desk
from roofterm.tui.fault_log import write_fault
from roofterm.tui.hold import drawing_on_the_terminal, ended_by_signals
from roofterm.tui.key_order import answer
from roofterm.tui.opened import Opened, open_study, title_of
from roofterm.tui.options import Options
from roofterm.tui.recent import remember
from roofterm.tui.screens.loading import LoadingScreen
from roofterm.tui.screens.too_small import LEAST
from roofterm.tui.thrifty import Changes, DrawnBefore, TerminalCells
from roofterm.tui.widgets.glyphs import CategoryKey, Look
from roofterm.tui.widgets.line_widget import LineWidget

if TYPE_CHECKING:
    from roofterm.tui.explorer import Explorer

SMALLEST = Size(*LEAST)
WIDE = 120
ROOMY_LINES = 20
"""below, lines that only orient give way"""
FRAMED = Size(120, 30)
DASHBOARD = Size(160, 40)

DONE, REFUSED, INTERRUPTED = 0, 2, 130


def run(paths: Sequence[str], options: Options) -> int:
    """Show the explorer until it is left. Returns the exit code; a fault is one line on standard error, after the terminal is restored."""
    capabilities = probe(
        ascii_only=options.ascii_only, no_color=options.no_color, mouse=options.mouse, glyphs=options.glyphs, colour=options.colour
    )
    app = RooftermApp(paths, options, capabilities)
    with drawing_on_the_terminal(), ended_by_signals(app.end):
        app.run(mouse=capabilities.mouse)
    if app.problem:
        print(f"roofterm: {app.problem}", file=sys.stderr)
    if app.fault is not None and options.debug:
        raise app.fault
    return app.return_code or DONE


class RooftermApp(App[None]):
    CSS_PATH = "roofterm.tcss"
    TITLE = "roofterm"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(
        self,
        paths: Sequence[str],
        options: Options | None = None,
        capabilities: Capabilities | None = None,
        opened: Opened | None = None,
    ) -> None:
        """`opened` is a profile that is open already."""
        self.options = options or Options()
        self.capabilities = capabilities or Capabilities()
        colour = self.capabilities.colour
        super().__init__()
        self._colour_or_not(colour != "none")
        self.paths = list(paths)
        self.opened = opened
        self.desk = Desk()
        self._cells = TerminalCells()
        self.problem: str | None = None
        self.fault: Exception | None = None
        self.look = Look(self.capabilities.glyphs, colour != "none")
        self.theme_name = themes.fitting(colour, self.options.theme)
        self.palette = themes.palette(self.theme_name)
        self.category_styles: dict[str, Style] = {}
        self.category_key: CategoryKey | None = None
        self.animation_level = "none"
        for theme in themes.textual_themes():
            self.register_theme(theme)
        self.theme = self.theme_name

    def get_driver_class(self) -> type[Driver]:
        """As Textual chooses it; on a terminal of ours that answers `esc` at once."""
        chosen = super().get_driver_class()
        if chosen.__name__ != "LinuxDriver":
            return chosen
        from roofterm.tui.keyboard import PromptDriver

        return PromptDriver

    # Opening

    def get_default_screen(self) -> Screen[Any]:
        """The first frame without another one under it: that would be styled and drawn as well."""
        return super().get_default_screen() if self.opened is not None else LoadingScreen(title_of(self.paths))

    async def on_mount(self) -> None:
        if self.opened is not None:
            await self._show(self.opened)
        elif isinstance(self.screen, LoadingScreen):
            self.screen.call_after_refresh(self._begin, self.screen, self.paths, self.options)

    async def _load(self, paths: Sequence[str], options: Options) -> None:
        loading = LoadingScreen(title_of(paths))
        await self.push_screen(loading)
        self.call_after_refresh(self._begin, loading, paths, options)

    def open_other(self, path: str) -> None:
        """Read another profile and show it; if that cannot be done, the one shown stays, with a notice that says why."""
        whole = msgspec.structs.replace(self.options.scope, where="", window_ps=None, step="steady", rank=None)
        options = msgspec.structs.replace(self.options, scope=whole, capture=None)
        _: Worker[None] = self.run_worker(self._load([path if "://" in path else os.path.expanduser(path)], options), group="open")

    def _begin(self, loading: LoadingScreen, paths: Sequence[str], options: Options) -> None:
        _: Worker[None] = self.run_worker(self._open(loading, paths, options), group="read", exclusive=True)

    async def _open(self, loading: LoadingScreen, paths: Sequence[str], options: Options) -> None:
        from roofterm_parsers.errors import ProfileError

        opened, why = None, ""
        reader = Desk()  # of its own: where it is left, whoever asks the profile that is shown need not wait for it
        try:
            await self._show_kept(loading, paths, options)
            if not loading.stopping.is_set():
                opened = await reader.ask(lambda: open_study(paths, options, loading.report, loading.stopping.is_set))
        except (ProfileError, OSError) as fault:
            why = str(fault)
        finally:
            reader.close()
        if loading.stopping.is_set():
            return  # it is left already
        if opened is None:
            self._not_opened(loading, why)
            return
        self.paths = list(paths)
        if options.restore:
            remember(paths)
        await self._show(opened)
        for key in loading.typed:
            self.post_message(key)

    async def _show_kept(self, loading: LoadingScreen, paths: Sequence[str], options: Options) -> None:
        """The first figures as they were kept, if they were, before anything is read."""
        from roofterm.tui.kept_figures import key_of, read_figures

        kept = await self.desk.ask(lambda: read_figures(key_of(paths, options)))
        if kept is not None and not loading.stopping.is_set():
            self._colour_categories()
            await loading.show_figures(kept)
        if not gc.isenabled():  # the command line's start: what it loaded stays, and no collection need look at it again
            gc.freeze()
            gc.enable()

    async def _show(self, opened: Opened) -> None:
        from roofterm.tui.explorer import Explorer
        from roofterm.tui.kept_view import read_view

        self.keep_view()
        before, self.opened = self._explorer(), opened
        kept = read_view(opened.study.profile.key, opened) if opened.options.restore else None
        self._colour_categories()
        with self.batch_update():
            if before is not None and self.screen is not before:
                await self.pop_screen()  # what was shown while reading
            takes_a_place = len(self.screen_stack) > 1 and isinstance(self.screen, (LoadingScreen, Explorer))
            await (self.switch_screen if takes_a_place else self.push_screen)(Explorer(opened, kept))

    def _explorer(self) -> Explorer | None:
        from roofterm.tui.explorer import Explorer

        return next((screen for screen in self.screen_stack if isinstance(screen, Explorer)), None)

    def stop_reading(self, loading: LoadingScreen) -> None:
        """Leave what is being read, without waiting until its thread has heard of it."""
        if not loading.stopping.is_set():
            loading.stopping.set()
            self._not_opened(loading, "")

    def _not_opened(self, loading: LoadingScreen, why: str) -> None:
        """Stopped or refused: the end of the program, unless there is a profile to go back to."""
        explorer = self._explorer()
        if explorer is not None:
            loading.dismiss()
            explorer.notice(why or "stopped", "bad" if why else "info")
        elif why:
            self.refuse(why)
        else:
            self.exit(return_code=INTERRUPTED)

    def keep_view(self) -> None:
        """Keep where the profile shown is left, for the next time."""
        explorer = self._explorer()
        if explorer is not None and explorer.opened.options.restore:
            from roofterm.tui.kept_view import keep_view

            keep_view(explorer.opened.study.profile.key, explorer.with_place(), explorer.marks)

    def refuse(self, sentence: str) -> None:
        """Leave with a sentence for standard error."""
        self.problem = safe_text(sentence)
        self.exit(return_code=REFUSED)

    def end(self) -> None:
        """Leave from a signal's handler, which runs between two steps of the loop's own thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        self.keep_view()
        self.exit(return_code=INTERRUPTED)

    # What screens ask of the program

    async def on_event(self, event: Event) -> None:
        """As Textual has it, but keys keep their order."""
        typed = isinstance(event, Key) and not event.is_forwarded and bool(self.screen_stack)
        if not typed or not await answer(self, cast(Key, event)):
            await super().on_event(event)

    async def run_binding(self, key: str) -> None:
        """Do what a key is bound to, if anything."""
        if not await self._check_bindings(key, priority=True):
            await self._check_bindings(key)

    def fit_screen(self, screen: Screen[None], size: Size) -> None:
        """Classes by which the stylesheet fits a screen to the terminal."""
        tiny = size.width < SMALLEST.width or size.height < SMALLEST.height
        screen.set_class(self.look.ascii, "-ascii")
        screen.set_class(tiny, "-tiny")
        screen.set_class(size.height < ROOMY_LINES, "-low")
        screen.set_class(not tiny and size.width >= WIDE, "-wide")
        screen.set_class(not tiny and size.width >= FRAMED.width and size.height >= FRAMED.height, "-framed")
        screen.set_class(not tiny and size.width >= DASHBOARD.width and size.height >= DASHBOARD.height, "-dash")

    def copy(self, text: str) -> str:
        """Copy to the terminal's clipboard; inside tmux and screen, which swallow that by default, to a file as well."""
        self.copy_to_clipboard(text)
        if not self.capabilities.tmux:
            return "copied"
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "roofterm"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "copied.txt").write_text(text + "\n")
        except OSError as fault:
            return f"copied, if tmux lets it through ({fault.strerror})"
        return f"copied, also to {folder / 'copied.txt'}"

    def _display(self, screen: Screen[Any], renderable: RenderableType | CompositorUpdate | None) -> None:
        """As Textual has it, but only what the terminal does not show already is sent."""
        shown = Changes(renderable, self._cells, self.size.width) if isinstance(renderable, CompositorUpdate) else renderable
        super()._display(screen, cast(RenderableType, shown))

    def on_resize(self, event: Resize) -> None:
        """What a terminal cuts off, brings back or showed of another program in between is its own affair."""
        if event.size == self.size:
            self.draw_anew()
        else:  # Textual draws everything
            self._cells.forget()

    def draw_anew(self) -> None:
        """Send the whole screen, whatever the terminal shows."""
        self._cells.forget()
        with suppress(ScreenStackError):  # nothing is shown yet
            self.screen.refresh()

    @contextmanager
    def drawn_at_once(self) -> Iterator[None]:
        """What is drawn meanwhile is sent at the end, and not piece by piece."""
        self._cells.hold()
        try:
            yield
        finally:
            self._cells.release()
            with suppress(ScreenStackError):  # the program has ended meanwhile
                self._display(self.screen, DrawnBefore())

    def next_theme(self) -> str:
        """Go to the next theme; without colours there is only one."""
        if self.look.colour:
            names = themes.NAMES
            self.use_theme(names[(names.index(self.theme_name) + 1) % len(names)])
        return self.theme_name

    def use_theme(self, name: str) -> None:
        """Draw everything in another theme of `themes.NAMES`."""
        from roofterm.tui.page import Page

        self.theme_name = name
        self.palette = themes.palette(name)
        self._colour_categories()
        self.theme = name
        for screen in self.screen_stack:
            for widget in screen.query(LineWidget):
                widget.restyle()
            for page in screen.query(Page):
                page.restyle()

    def _colour_categories(self) -> None:
        from roofterm.tui.category_colours import category_key, category_styles

        self.category_styles = {name: self.palette.text + style for name, style in category_styles(self.theme_name).items()}
        self.category_key = category_key(self.theme_name)

    def _colour_or_not(self, colour: bool) -> None:
        """The probe decides, not Textual: that takes an empty NO_COLOR for a set one, and answers a set one with greys."""
        self.no_color = not colour
        kept = [line_filter for line_filter in self._filters if not isinstance(line_filter, (Monochrome, NoColor))]
        self._filters = kept if colour else [*kept, NoColor()]

    def action_leave(self) -> None:
        self.keep_view()
        self.exit(return_code=DONE)

    # Faults

    def _fatal_error(self) -> None:
        """Textual's end of a program after an exception: one line instead of its traceback, which --debug shows."""
        fault = sys.exc_info()[1] or self._exception
        self.fault = fault if isinstance(fault, Exception) else None
        log = write_fault(fault) if fault is not None else None
        told = f"{log} tells where" if log else "--debug shows where"
        self.problem = f"internal fault: {type(fault).__name__}: {safe_text(str(fault), 200)} ({told})"
        self._close_messages_no_wait()

    async def on_unmount(self) -> None:
        self.desk.close()
