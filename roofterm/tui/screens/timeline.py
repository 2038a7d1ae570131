"""Timeline: what ran when, on each stream and thread."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.filters import parse
from roofterm.analysis.scope import Scope
from roofterm.analysis.slice_filter import slice_mask, split_for_slices
from roofterm.analysis.slice_table import chosen_slices
from roofterm.text.units import count
from roofterm.tui.exporting import Export, SliceExport
from roofterm.tui.opened import Opened
from roofterm.tui.page import Page
from roofterm.tui.slice_details import recorded_facts, slice_details
from roofterm.tui.state import Selection, ViewState, changed
from roofterm.tui.widgets.detail import DetailPanel, Details, MoreDetails
from roofterm.tui.widgets.glyphs import CategoryKey
from roofterm.tui.widgets.lanes import Lanes
from roofterm.tui.widgets.line_widget import LineWidget
from roofterm.tui.widgets.timeline import SliceHighlighted, SliceSelected, TimelineView, WindowMarked
from roofterm.tui.widgets.timeline_place import Step
from roofterm_parsers.profile import Kind
from roofterm_parsers.recorded import may_be_read_again

SELECTION_KINDS = {int(Kind.OP): "op", int(Kind.KERNEL): "kernel", int(Kind.COPY): "kernel", int(Kind.MEMSET): "kernel"}


class Answer(NamedTuple):
    lanes: Lanes
    shown: int
    """slices that the filter lets through"""
    first: int | None
    """the first of them"""
    not_asked: str


class TimelinePage(Page):
    SCREEN = "timeline"
    DRAWS_UNSEEN = False

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self._answer: Answer | None = None
        self._steps = timeline_steps(self.opened.study.profile.steps)
        self._settled: tuple[object, ...] = ()

    def compose(self) -> ComposeResult:
        with Vertical(classes="framed"):
            yield TimelineView(self._key(), id="lanes")
        with Vertical(id="slice-panel", classes="framed roomy") as below:
            below.border_title = "Slice"
            yield DetailPanel("slice-details", definitions=False)

    def key(self, state: ViewState) -> Hashable:
        return state.filter

    async def load(self, state: ViewState) -> None:
        answer = await self.explorer.app_.desk.ask(lambda: self._ask(state.filter))
        self.lanes.show(answer.lanes, self._steps, keep_window=self._answer is not None)
        self._answer = answer
        if state.filter and self.lanes.slice_id is None and answer.first is not None:
            self.lanes.reveal(answer.first)

    def settle(self, state: ViewState) -> None:
        """Follow the state's step, window and selection, each when it changes, so that panning stays free."""
        if self._answer is None:
            return
        step, window, chosen = self._settled or (None, None, None)
        self._settled = (state.step, state.window_ps, state.selection)
        if state.window_ps != window:
            self._show_window(state.window_ps)
        if state.step != step and (at := self._step_index(state.step)) is not None:
            self.lanes.go_to_step(at)
        if state.selection != chosen and state.selection is not None and state.selection != self.selection():
            slice_id = self._slice_of(state.selection)
            if slice_id is not None:
                self.lanes.reveal(slice_id)

    def focus_target(self) -> LineWidget:
        return self.lanes

    def status(self) -> tuple[str, str]:
        if self._answer is None:
            return "laying out the lanes ...", ""
        whole = self.opened.study.profile.slices.height
        shown = self._answer.shown
        parts = [f"{count(shown)} of {count(whole)} slices" if shown != whole else f"{count(whole)} slices"]
        if self._answer.not_asked:
            parts.insert(0, f"not asked here: {self._answer.not_asked}")
        return " · ".join(parts), f"{self.key_of('fold')} opens this thread" if self.lanes.folded else ""

    def selection(self) -> Selection | None:
        slice_id = self.lanes.slice_id
        if slice_id is None or self._answer is None:
            return None
        kind = SELECTION_KINDS.get(int(self.opened.study.kind[slice_id]), "slice")
        return Selection(kind, self._answer.lanes.text(slice_id), slice_id)

    def details(self) -> Details | None:
        slice_id = self.lanes.slice_id
        return None if slice_id is None else slice_details(self.opened.study, slice_id)

    def more_details(self) -> MoreDetails | None:
        slice_id, study = self.lanes.slice_id, self.opened.study
        if slice_id is None or not may_be_read_again(study.profile, slice_id):
            return None
        return lambda cancelled: recorded_facts(study, slice_id, cancelled)

    def export(self) -> Export | None:
        study, state, asked = self.opened.study, self.explorer.state, self.opened.options.scope
        answered, _ = split_for_slices(parse(state.filter))
        scope = Scope(step=state.step or "all", where=answered.text, window_ps=state.window_ps, rank=asked.rank)
        return SliceExport(study, lambda: chosen_slices(study, scope))

    def restyle(self) -> None:
        self.lanes.key = self._key()
        if self._answer is not None:
            self.lanes.show(self._answer.lanes, self._steps, keep_window=True)

    @property
    def lanes(self) -> TimelineView:
        return self.query_one("#lanes", TimelineView)

    @on(SliceHighlighted)
    def _moved(self) -> None:
        self.explorer.tell()

    @on(SliceSelected)
    def _chosen(self) -> None:
        self.explorer.show_details()

    @on(WindowMarked)
    def _marked(self, event: WindowMarked) -> None:
        state = self.explorer.state
        if event.window_ps != state.window_ps:
            self._settled = (state.step, event.window_ps, state.selection)
            self.explorer.change(changed(state, window_ps=event.window_ps))
            self.explorer.notice(f"every screen now shows this window; {self.all_again}")

    def action_zoom(self, direction: int) -> None:
        self.lanes.zoom(direction)

    def action_pan(self, right: int, down: int) -> None:
        self.lanes.pan(right, down)

    def action_fold(self) -> None:
        self.lanes.fold()

    def action_same(self, direction: int) -> None:
        self.lanes.same(direction)

    def action_launch(self) -> None:
        before = self.lanes.slice_id
        self.lanes.launch()
        if self.lanes.slice_id == before:
            self.explorer.notice("the file links this slice to no launch and no kernel")

    def action_gap(self, direction: int) -> None:
        self.lanes.gap(direction)

    def action_mark_window(self, side: str) -> None:
        self.lanes.mark_window(side)

    def _ask(self, expression: str) -> Answer:
        study = self.opened.study
        wanted, rest = split_for_slices(parse(expression))
        keep = slice_mask(wanted, study) if wanted else None
        lanes = Lanes.build(study.profile, study.category, keep=keep, collective=study.category == int(Category.COMMUNICATION))
        if keep is None:
            return Answer(lanes, study.profile.slices.height, None, rest.text)
        ids = np.flatnonzero(keep)
        return Answer(lanes, ids.size, int(ids[np.argmin(study.start_ps[ids])]) if ids.size else None, rest.text)

    def _show_window(self, window_ps: tuple[int, int] | None) -> None:
        if window_ps is None:
            self.lanes.marked = (None, None)
            self.lanes.refresh()
        else:
            self.lanes.marked = window_ps
            self.lanes.show_window(*window_ps)

    def _step_index(self, step: str | None) -> int | None:
        numbers = [str(number) for number in self.opened.step_numbers]
        return numbers.index(step) if step in numbers and len(numbers) == len(self._steps) else None

    def _slice_of(self, chosen: Selection) -> int | None:
        """The slice meant, or the first one of that name in the window shown, else anywhere."""
        if chosen.slice is not None:
            return chosen.slice
        profile = self.opened.study.profile
        names = np.flatnonzero((profile.names["text"] == chosen.name).to_numpy())
        ids = np.flatnonzero(np.isin(profile.slices["name"].to_numpy(), names)) if names.size else names
        if ids.size == 0:
            return None
        launched = ids[np.isin(ids, self._launched_in_steps())]
        ids = launched if launched.size else ids
        start = profile.slices["start_ps"].to_numpy()[ids]
        place = self.lanes.place
        inside = ids[(start >= place.start_ps) & (start < place.start_ps + place.span_ps)] if place else ids[:0]
        candidates = inside if inside.size else ids
        return int(candidates[np.argmin(profile.slices["start_ps"].to_numpy()[candidates])])

    def _launched_in_steps(self) -> NDArray[np.uint32]:
        """Device work whose launch is in the file, in a step if there are any: it has a way back to its op, and is no warm-up."""
        study = self.opened.study
        known = study.work.drop_nulls("launch")
        in_steps = known.drop_nulls("step")
        return (in_steps if in_steps.height else known)["slice"].to_numpy()

    def _key(self) -> CategoryKey:
        return self.explorer.app_.category_key or CategoryKey((), (), ())


def timeline_steps(steps: pl.DataFrame) -> list[Step]:
    """Start, end and name of each step number, in order; the host's annotation where there is one."""
    firsts = steps.sort("device", nulls_last=False, maintain_order=True).unique("number", keep="first", maintain_order=True).sort("number")
    return [
        (start, start + dur, name)
        for start, dur, name in zip(firsts["start_ps"].to_list(), firsts["dur_ps"].to_list(), firsts["name"].to_list(), strict=True)
    ]
