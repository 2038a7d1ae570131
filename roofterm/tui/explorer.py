"""The explorer's one screen: header, tabs, the page shown, and the lines below. It holds the state; pages are projections of it."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Literal, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingsMap
from textual.containers import Container
from textual.events import Key, Resize
from textual.reactive import Reactive
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.worker import Worker

from roofterm.analysis.filters import FilterError, parse
from roofterm.analysis.limit_values import LIMITERS
from roofterm.results import TABLES
from roofterm.tui import errands, keymap, limits
from roofterm.tui.baseline import Baseline
from roofterm.tui.kept_view import KeptView, first_view
from roofterm.tui.marks import is_marked
from roofterm.tui.messages import FilterAsked, FilterLeft, RowHighlighted
from roofterm.tui.opened import Opened
from roofterm.tui.page import Page
from roofterm.tui.screens.too_small import TooSmall
from roofterm.tui.state import History, Selection, ViewState, changed, cleared, cycled, is_limited, limits_text
from roofterm.tui.turning import turn_to
from roofterm.tui.widgets.filter_bar import PROMPT_CELLS, FilterBar
from roofterm.tui.widgets.footer import Footer
from roofterm.tui.widgets.header import Header, Tabs
from roofterm.tui.widgets.lines import Target
from roofterm.tui.widgets.status import Status

if TYPE_CHECKING:
    from roofterm.tui.app import RooftermApp

DETAIL_PAUSE_SECONDS = 0.03
"""Rest of the cursor before the details beside it follow: keys that repeat do not send them again and again."""

EXPORT = "export"
STOPPABLE = ("load-", "pick", "command", "words", EXPORT)
"""groups of workers, by how their names begin, that `stop` ends"""


class Explorer(Screen[None], inherit_bindings=False):
    AUTO_FOCUS = ""  # else Textual gives the keys to the filter's line until the first page is there

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    """As Textual has it, but a change of focus does not send the whole screen again."""

    def __init__(self, opened: Opened, kept: KeptView | None = None) -> None:
        """`kept`: where this profile was left, and its marks."""
        super().__init__()
        self.opened = opened
        self._bindings = BindingsMap(keymap.bindings(keymap.program_actions(opened.options.keys)))
        self._kept = kept
        self.state = first_view(opened, kept.view if kept else None)
        self.marks = list(kept.marks) if kept else []
        self.history = History()
        self.baseline: Baseline | None = None
        self._showing = asyncio.Lock()
        self._screen_shown: str | None = None
        """the screen whose page has the keys"""
        self._keys_ahead: list[Key] = []
        self.arrived_with: Selection | None = None
        """what the cursor of the page shown stood on when it was shown"""
        self._detail_timer: Timer | None = None
        self._before_filter = self.state

    # Layout

    def compose(self) -> ComposeResult:
        yield Header(self.opened.title)
        yield Tabs()
        yield Container(id="body")
        yield Status()
        yield Footer(self.opened.options.keys)
        yield FilterBar()
        yield TooSmall()

    def on_mount(self) -> None:
        self.query_one(Header).show(self.opened.title, self.opened.header)
        self._show()
        if self._kept is not None:
            self.notice("as you left it")

    def on_resize(self, event: Resize) -> None:
        self.app_.fit_screen(self, event.size)
        self.call_after_refresh(self.tell)  # there may be room for details now

    # State

    def change(self, state: ViewState, keep: bool = True) -> None:
        """Show another state; the one left is kept in the history unless it differs in nothing that a person would go back for."""
        if keep and state != self.state:
            self.history.keep(self.with_place())
        self.state = state
        self._show()

    def select(self, selection: Selection | None) -> None:
        """The selection that travels; it alone is nothing to go back to."""
        if selection is not None:
            self.state = changed(self.state, selection=selection)

    def follow(self, target: Target) -> None:
        """Go where a line leads."""
        fields = {name: getattr(target, name) for name in ("filter", "by", "level", "step") if getattr(target, name) is not None}
        self.change(changed(self.with_place(), screen=target.screen, **fields))

    @property
    def page(self) -> Page:
        return cast(Page, self.query_one(f"#page-{self.state.screen}"))

    @property
    def app_(self) -> RooftermApp:
        from roofterm.tui.app import RooftermApp

        return cast(RooftermApp, self.app)

    def tabs(self) -> list[tuple[str, str, str]]:
        """The screens that this profile has something for."""
        absent = set() if self.baseline else {"compare"}
        return [(name, key, title) for name, key, title in keymap.SCREENS if name in self.opened.pages and name not in absent]

    def with_place(self) -> ViewState:
        page = self._ready_page()
        if page is None:
            return self.state
        chosen = page.selection()
        looked_at = chosen == self.arrived_with and (self.state.selection is not None or self.state.screen in ("roofline", "timeline"))
        if chosen is None or looked_at:
            chosen = self.state.selection  # the cursor was not moved: what was selected before travels on
        return changed(self.state, places={**self.state.places, self.state.screen: page.place()}, selection=chosen)

    def _page_or_none(self) -> Page | None:
        found = self.query(f"#page-{self.state.screen}")
        return cast(Page, found.first()) if found else None

    def _ready_page(self) -> Page | None:
        """The page of the state, once it has its widgets."""
        page = self._page_or_none()
        return page if page is not None and page.is_mounted else None

    def _show(self) -> None:
        self.query_one(Tabs).show(self.tabs(), self.state.screen)
        self.query_one(Footer).show(self.state.screen)
        self.query_one(Status).quiet()
        _: Worker[None] = self.run_worker(partial(self._show_newest, self.state), group="page", description=self.state.screen)

    async def _show_newest(self, wanted: ViewState) -> None:
        """One page is mounted and shown at a time, and none for a state that has been left already."""
        async with self._showing:
            if wanted is self.state:
                await self._show_page()

    async def _show_page(self) -> None:
        body = self.query_one("#body")
        page = self._page_or_none()
        if page is None:
            page = self.opened.pages[self.state.screen](self.opened)
            page.display = not body.query(Page)
            await body.mount(page)
        if page.display:
            page.show(self.state)
        else:
            with self.app_.drawn_at_once():
                await turn_to(self, page)
        if not self.query_one(FilterBar).has_class("-open"):
            self.set_focus(page.focus_target(), scroll_visible=False)
        self._screen_shown = self.state.screen
        self._take_keys_ahead()

    # Keys typed ahead

    def keeps(self, event: Key) -> bool:
        """Whether a key waits for the page that is on its way; what stops or suspends the program never does."""
        urgent = any(binding.priority for binding in self._bindings.key_to_bindings.get(event.key, ()))
        waits = self._screen_shown != self.state.screen and not urgent
        if waits:
            self._keys_ahead.append(event)
        return waits

    def _take_keys_ahead(self) -> None:
        ahead, self._keys_ahead = self._keys_ahead, []
        for event in ahead:
            self.app.post_message(Key(event.key, event.character))

    # What is said below

    def tell(self) -> None:
        """Bring the line above the footer and the details beside up to date with the page."""
        page = self._ready_page()
        if page is None:
            return
        text, place = page.status()
        if self.marks and is_marked(self.marks, page.selection(), self.state.screen):
            place = f"marked {place}"
        limits = limits_text(self.state)
        self.query_one(Status).show(text, f"{limits} · {page.all_again}" if limits else "", place)
        if self._detail_timer is not None:
            self._detail_timer.stop()
        self._detail_timer = self.set_timer(DETAIL_PAUSE_SECONDS, self._tell_details)

    def _tell_details(self) -> None:
        page = self._ready_page()
        if page is not None and (self.has_class("-wide") or page.TELLS_BELOW):
            page.show_side()

    def notice(self, text: str, kind: Literal["info", "bad"] = "info") -> None:
        self.query_one(Status).notice(text, kind)

    def show_details(self) -> None:
        """All about what the cursor stands on, over the whole screen."""
        details = self.page.details()
        if details is None:
            self.notice("nothing is selected here")
            return
        from roofterm.tui.screens.details import DetailScreen

        self.app.push_screen(DetailScreen(details, self.opened.options.keys, self.page.more_details()))

    @on(RowHighlighted)
    def _highlighted(self) -> None:
        self.tell()

    # Filter

    @on(FilterBar.Typed)
    def _typed(self, event: FilterBar.Typed) -> None:
        if self._understood(event.expression):
            self.change(changed(self.state, filter=event.expression.strip()), keep=False)
        if event.offers:
            self.notice("  ".join(event.offers))

    @on(FilterAsked)
    def _asked(self, event: FilterAsked) -> None:
        if not self._understood(event.expression):
            return
        self._close_filter()
        before = self._before_filter
        if event.expression != before.filter:
            self.history.keep(before)
        self.change(changed(self.state, filter=event.expression), keep=False)

    @on(FilterLeft)
    def _left(self) -> None:
        self._close_filter()
        self.query_one(Status).quiet()
        self.change(changed(self.state, filter=self._before_filter.filter), keep=False)

    def _understood(self, expression: str) -> bool:
        status = self.query_one(Status)
        try:
            parse(expression)
        except FilterError as fault:
            status.point_at(fault.message, PROMPT_CELLS + fault.at)
            return False
        status.quiet()
        return True

    def _close_filter(self) -> None:
        self.query_one(FilterBar).close()
        self.query_one(Footer).display = True
        self.set_focus(self.page.focus_target(), scroll_visible=False)

    # Keys

    def action_screen(self, name: str) -> None:
        if name == "compare" and (self.baseline is None or self.state.screen == name):
            errands.choose_baseline(self)
        elif name not in self.opened.pages:
            title = next(title for known, _, title in keymap.SCREENS if known == name)
            self.notice(f"no {title} here: {self.opened.absent.get(name, 'the profile holds nothing of it')}")
        elif name != self.state.screen:
            left = self.with_place()
            kind = left.selection.kind if left.selection else ""
            self.change(changed(left, screen=name, by=kind if name == "ops" and kind in TABLES else left.by))

    def action_screen_beside(self, by: int) -> None:
        names = [name for name, _, _ in self.tabs()]
        self.action_screen(names[(names.index(self.state.screen) + by) % len(names)])

    def action_filter(self) -> None:
        self._before_filter = self.with_place()
        self.query_one(Footer).display = False
        self.query_one(FilterBar).open(self.state.filter)

    @on(FilterBar.WordsWanted)
    def _words_wanted(self, event: FilterBar.WordsWanted) -> None:
        _: Worker[None] = self.run_worker(self._learn_words(event.by), group="words", exclusive=True)

    async def _learn_words(self, by: int) -> None:
        self.query_one(FilterBar).learn(await self.app_.desk.ask(self.opened.study.vocabulary), by)

    def action_clear(self) -> None:
        if self._stop((EXPORT,)):
            self.notice("stopped: no file was written")
        elif is_limited(self.state):
            self.change(cleared(self.state))
        else:
            self.query_one(Status).quiet()

    def action_back(self) -> None:
        earlier = self.history.back()
        while earlier is not None and earlier.screen == "compare" and self.baseline is None:
            earlier = self.history.back()
        if earlier is None:
            self.notice("there is nothing earlier")
            return
        self.state = earlier
        self._show()

    def action_category(self, by: int) -> None:
        if not self.opened.categories:
            self.notice("no device work to tell apart")
            return
        self.change(cycled(self.state, "cat", self.opened.categories, by))

    def action_bound(self, by: int) -> None:
        self.change(cycled(self.state, "bound", list(LIMITERS), by))

    def action_step(self, by: int) -> None:
        found = limits.step_beside(self.opened, self.state.step, by)
        if found.step is None:
            self.notice(found.why)
        else:
            self.change(changed(self.state, step=found.step))

    def set_baseline(self, baseline: Baseline | None) -> None:
        """Hold every table against another profile from now on, or against none."""
        self.baseline = baseline
        here = self.with_place()
        if baseline is not None:
            self.change(changed(here, screen="compare"))
        else:
            self.change(changed(here, screen="overview") if here.screen == "compare" else here, keep=False)
            self.notice("no baseline any more")

    def action_copy(self) -> None:
        chosen = self.page.selection()
        if chosen is None:
            self.notice("nothing is selected here")
        else:
            self.notice(self.app_.copy(chosen.name))

    def action_mark(self) -> None:
        errands.toggle_mark(self)

    def action_marks(self) -> None:
        errands.go_to_mark(self)

    def action_pick(self, kind: str = "") -> None:
        errands.pick(self, kind)

    def action_export(self) -> None:
        errands.export(self)

    def action_next_command(self) -> None:
        errands.show_next_command(self)

    def action_open_other(self) -> None:
        errands.open_other(self)

    def action_theme(self) -> None:
        self.notice(f"theme {self.app_.next_theme()}")

    def action_redraw(self) -> None:
        self.app_.draw_anew()

    def action_help(self) -> None:
        from roofterm.tui.screens.help import HelpScreen

        self.app.push_screen(HelpScreen(self.state.screen, self.opened.options.keys))

    def action_palette(self) -> None:
        errands.find_action(self)

    def action_stop_or_leave(self) -> None:
        if self._stop(STOPPABLE):
            self.notice("stopped")
        else:
            self.app_.action_leave()

    def _stop(self, groups: tuple[str, ...]) -> bool:
        """End the workers of these groups; whether any was running."""
        running = [worker for worker in self.workers if worker.group.startswith(groups) and worker.is_running]
        for worker in running:
            worker.cancel()
        return bool(running)
