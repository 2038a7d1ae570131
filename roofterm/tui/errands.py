"""What the explorer does by way of a screen of its own: marks, limits to choose, files to write, profiles to open."""

from __future__ import annotations

import os
from threading import Event
from typing import TYPE_CHECKING

from roofterm.analysis.filters import FilterError
from roofterm.analysis.scope import ScopeError
from roofterm.analysis.window_text import parse_window, window_text
from roofterm.report.files import WriteError
from roofterm.tui import keymap, limits
from roofterm.tui.baseline import matched, open_baseline
from roofterm.tui.desk import Desk
from roofterm.tui.exporting import Export, abandon, default_path, refused, would_overwrite, write_export
from roofterm.tui.kept_view import Mark
from roofterm.tui.marks import mark_choices, toggled
from roofterm.tui.opened import title_of
from roofterm.tui.paths import completions
from roofterm.tui.recent import recent_paths
from roofterm.tui.screens.details import DetailScreen
from roofterm.tui.screens.picker import Choice, Picker
from roofterm.tui.screens.prompt import TextPrompt
from roofterm.tui.state import Selection, changed
from roofterm.tui.widgets.detail import Details, Fact

if TYPE_CHECKING:
    from textual.worker import Worker

    from roofterm.tui.explorer import Explorer


def find_action(explorer: Explorer) -> None:
    """Do what is chosen from the palette."""
    from roofterm.tui.palette import Command, Palette

    def chosen(choice: Choice[Command] | None) -> None:
        if choice is not None:
            explorer.app.call_later(choice.value)

    explorer.app.push_screen(Palette(explorer.app_, explorer), chosen)


def toggle_mark(explorer: Explorer) -> None:
    """Mark this place, or take its mark away."""
    explorer.marks, done = toggled(explorer.marks, explorer.with_place())
    explorer.tell()
    explorer.notice(f"{done}; {keymap.first_key('marks', explorer.opened.options.keys)} lists the marks" if explorer.marks else done)


def go_to_mark(explorer: Explorer) -> None:
    """One of the marks, chosen from a list."""
    if not explorer.marks:
        explorer.notice(f"no marks yet: {keymap.first_key('mark', explorer.opened.options.keys)} sets one")
        return

    def chosen(choice: Choice[Mark] | None) -> None:
        if choice is not None:
            explorer.change(choice.value.view)

    explorer.app.push_screen(Picker("Marks", mark_choices(explorer.marks)), chosen)


def pick(explorer: Explorer, kind: str) -> None:
    """Limit every screen to a value chosen from a list; without a kind, that is chosen first."""
    if kind == "window":
        _ask_window(explorer)
    elif kind:
        _: Worker[None] = explorer.run_worker(_pick(explorer, kind), group="pick", exclusive=True)
    else:

        def chosen(choice: Choice[str] | None) -> None:
            if choice is not None:
                pick(explorer, choice.value)

        explorer.app.push_screen(Picker("Limit every screen by", limits.kind_choices(explorer.state)), chosen)


async def _pick(explorer: Explorer, kind: str) -> None:
    choices = await explorer.app_.desk.ask(lambda: limits.value_choices(explorer.opened, kind))
    if not choices:
        explorer.notice(f"there is no {kind} to choose in this profile")
        return
    now = limits.current(explorer.state, kind)
    at = next((at for at, choice in enumerate(choices) if choice.value == now), 0)

    def chosen(choice: Choice[str | None] | None) -> None:
        if choice is not None:
            explorer.change(limits.limited(explorer.with_place(), kind, choice.value))

    explorer.app.push_screen(Picker(f"Only one {kind}, on every screen", choices, at), chosen)


def _ask_window(explorer: Explorer) -> None:
    def given(text: str | None) -> None:
        if text is not None:
            explorer.change(changed(explorer.with_place(), window_ps=parse_window(text)))

    now = explorer.state.window_ps
    title = "Window of time for every screen, from the profile's start, such as 10ms..25ms"
    explorer.app.push_screen(TextPrompt(title, window_text(now) if now else "", refuse=limits.wrong_window), given)


def export(explorer: Explorer) -> None:
    """Write what the page shows to a file whose name is asked for."""
    try:
        what = explorer.page.export()
    except FilterError as fault:
        explorer.notice(str(fault), "bad")
        return
    if what is None:
        explorer.notice("there is nothing to export here yet")
        return

    def given(path: str | None) -> None:
        if path is not None:
            _: Worker[None] = explorer.run_worker(_write(explorer, what, path), group="export", exclusive=True)

    prompt = TextPrompt(
        f"Write all {what.noun} shown to (the ending tells the format)",
        default_path(explorer.opened.title, what.noun),
        complete=completions,
        refuse=refused(what),
        doubt=would_overwrite,
    )
    explorer.app.push_screen(prompt, given)


async def _write(explorer: Explorer, what: Export, path: str) -> None:
    explorer.notice(f"writing ... {keymap.first_key('stop', explorer.opened.options.keys)} stops it")
    stopping, scribe = Event(), Desk()
    try:
        await explorer.app_.desk.ask(what.prepare)
        done = await scribe.ask(lambda: write_export(what, path, stopping.is_set))
    except (WriteError, FilterError, ScopeError) as fault:
        explorer.notice(str(fault), "bad")
    else:
        explorer.notice(done)
    finally:
        stopping.set()
        abandon(path)
        scribe.close()


def show_next_command(explorer: Explorer) -> None:
    """Copy what to run next for what is selected, and show it: not every terminal lets a copy through."""
    _: Worker[None] = explorer.run_worker(_show_next_command(explorer), group="command", exclusive=True)


async def _show_next_command(explorer: Explorer) -> None:
    chosen = explorer.page.selection() or Selection("", "")
    command = await explorer.app_.desk.ask(lambda: explorer.opened.study.next_command(chosen.kind, chosen.name, chosen.slice))
    if command is None:
        explorer.notice("everything that a profiler can record is recorded; choose a kernel for its counters")
        return
    copied = explorer.app_.copy(command.text)
    facts = [Fact("command", command.text), Fact("answers", command.why), Fact("", copied)]
    explorer.app.push_screen(DetailScreen(Details("Next command to run", facts), explorer.opened.options.keys))


def choose_baseline(explorer: Explorer) -> None:
    """Another profile to hold every table against; it is read beside, and the screen stays in use."""

    def given(path: str | None) -> None:
        if path is not None:
            explorer.notice(f"reading {title_of([path])} ...")
            _: Worker[None] = explorer.run_worker(_read_baseline(explorer, path), group="load-baseline", exclusive=True)

    recent = [path for path in recent_paths() if path not in explorer.app_.paths]
    explorer.app.push_screen(
        TextPrompt("Compare with a baseline: a file, a folder, a glob, a URL", complete=completions, offers=recent), given
    )


async def _read_baseline(explorer: Explorer, path: str) -> None:
    from roofterm_parsers.errors import ProfileError

    opened, stopping, reader = explorer.opened, Event(), Desk()
    try:
        base = await reader.ask(lambda: open_baseline([os.path.expanduser(path)], opened.options, stopping.is_set))
        found = await explorer.app_.desk.ask(lambda: matched(opened.study, base, title_of([path])))
    except (ProfileError, OSError) as fault:
        explorer.notice(str(fault), "bad")
    else:
        explorer.set_baseline(found)
    finally:
        stopping.set()
        reader.close()


def open_other(explorer: Explorer) -> None:
    """Another profile in the place of this one, which stays if that cannot be opened."""

    def given(path: str | None) -> None:
        if path is not None:
            explorer.app_.open_other(path)

    recent = [path for path in recent_paths() if path not in explorer.app_.paths]
    prompt = TextPrompt("Open another profile: a file, a folder, a glob, a URL", complete=completions, offers=recent)
    explorer.app.push_screen(prompt, given)
