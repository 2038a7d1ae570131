"""Keys are data: no two actions of a screen share one, help and footer say them all, a user may change them, each works everywhere."""

from __future__ import annotations

from collections import Counter

import pytest
from textual.binding import Binding

from roofterm.tui import keymap
from roofterm.tui.app import RooftermApp
from roofterm.tui.explorer import Explorer
from roofterm.tui.keymap import ACTIONS, SCREENS, KeymapError, for_screen, keys_of
from roofterm.tui.opened import PAGES
from roofterm.tui.options import Options
from roofterm.tui.palette import Palette, actions
from roofterm.tui.screens.help import help_entries
from roofterm.tui.screens.picker import Choice, narrowed
from roofterm.tui.widgets.footer import footer_entries
from tests.tui.harness import PLAIN, explorer, go_to, press, screen_text, settled, state, the_app, the_explorer, type_text

NAMES = [name for name, _, _ in SCREENS]

LEAVING = {"quit", "stop", "suspend"}


def test_ids_are_unique():
    assert [name for name, n in Counter(a.id for a in ACTIONS).items() if n > 1] == []


def test_screens_of_the_keymap_are_the_programs():
    assert list(PAGES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_no_two_actions_of_a_screen_share_a_key(name):
    own = Counter(key for a in ACTIONS if name in a.screens for key in a.keys.split())
    everywhere = Counter(key for a in ACTIONS if a.screens == keymap.EVERYWHERE for key in a.keys.split())
    assert [key for key, n in (*own.items(), *everywhere.items()) if n > 1] == []


@pytest.mark.parametrize("name", NAMES)
def test_help_says_every_key_that_works_there(name):
    own, everywhere = help_entries(name, {})
    said = {key for keys, _ in (*own, *everywhere) for key in keys.split()}
    assert {key for a in for_screen(name) for key in keys_of(a, {})} <= said


@pytest.mark.parametrize("name", NAMES)
def test_footer_fits_and_always_says_how_to_get_help_and_out(name):
    for width in (58, 78, 118, 198):
        entries = footer_entries(name, {}, width)
        assert sum(len(key) + len(label) + 3 for key, label in entries) <= width
        assert {("?", "help"), ("q", "quit"), ("/", "filter")} <= set(entries)


def test_bindings_carry_the_ids():
    made = keymap.bindings(for_screen("ops"))
    assert all(isinstance(binding, Binding) and binding.id for binding in made)


def test_a_wrong_id_is_refused_with_the_nearest():
    with pytest.raises(KeymapError, match="did you mean 'reverse'"):
        keymap.check({"revers": "R"})
    with pytest.raises(KeymapError, match="no key"):
        keymap.check({"reverse": " "})


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"sort": "r"}, "key 'r' is given to both 'sort' and 'reverse' on Ops"),
        ({"filter": "n"}, "key 'n' is given to both 'filter' and 'next' on Roofline"),
        ({"sort": "ctrl+f", "reverse": "ctrl+f"}, "given to both 'page.down' and 'sort'"),
        ({"sort": "cntrl+s"}, "'cntrl\\+s', given to 'sort', is no key: did you mean 'ctrl\\+s'"),
        ({"sort": "pagedwn"}, "did you mean 'pagedown'"),
    ],
)
def test_a_wrong_or_taken_key_is_named(keys, says):
    with pytest.raises(KeymapError, match=says):
        keymap.check(keys)


def test_two_actions_may_change_their_keys():
    keys = {"sort": "r", "reverse": "s"}
    keymap.check(keys)
    assert {a.id: a.keys for a in for_screen("ops", keys) if a.id in keys} == keys


def test_a_key_given_away_leaves_its_first_action():
    keys = {"time.left": "z"}  # h is free again, and moves
    assert "h" in next(a.keys for a in for_screen("timeline", keys) if a.id == "left").split()


async def test_a_users_key_replaces_ours_in_program_footer_and_help():
    options = Options(keys={"help": "f2", "sort": "ctrl+s"})
    async with explorer((120, 40), "3", options=options) as pilot:
        assert "^s sort" in screen_text(pilot)
        assert "f2 help" in screen_text(pilot)
        await press(pilot, "s")
        assert state(pilot).sorts == {}
        await press(pilot, "ctrl+s")
        assert list(state(pilot).sorts) == ["kernel"]
        await press(pilot, "f2")
        assert "next table" in screen_text(pilot)
        await press(pilot, "f2")  # the key that opens it closes it
        assert "[3 Ops]" in screen_text(pilot)


async def test_a_users_keys_move_and_close_what_lies_over_the_explorer():
    options = Options(keys={"down": "ctrl+n", "clear": "ctrl+x"})
    async with explorer((80, 24), "3 question_mark", options=options) as pilot:
        assert "^x returns  ^n k scroll" in screen_text(pilot)
        first = screen_text(pilot)
        await press(pilot, "ctrl+n")
        assert screen_text(pilot) != first
        await press(pilot, "ctrl+x")
        assert "[3 Ops]" in screen_text(pilot)


@pytest.mark.parametrize("name", NAMES)
async def test_every_key_of_a_screen_is_pressed_once_without_a_fault(name):
    async with explorer((80, 24)) as pilot:
        await go_to(pilot, name)
        for action in for_screen(name):
            if action.id in LEAVING:
                continue
            for key in action.keys.split():
                pilot.app.simulate_key(keymap.long_key(key))  # without the pilot's pause after each key: these are hundreds
                await settled(pilot, 1)
                await _return_to(pilot, name)
        assert pilot.app.is_running


@pytest.mark.parametrize("size", [(60, 16), (200, 60)], ids=["60x16", "200x60"])
async def test_what_is_drawn_by_its_size_takes_its_own_keys_at_the_extremes(size):
    async with explorer(size) as pilot:
        for name in ("roofline", "timeline"):
            await go_to(pilot, name)
            for action in keymap.page_actions(name):
                await pilot.press(action.keys.split()[0])
                await settled(pilot, 1)
                await _return_to(pilot, name)


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
async def test_leaving(key):
    async with explorer() as pilot:
        await pilot.press(key)
        await pilot.pause()
        assert pilot.app.return_code == 0
        assert not pilot.app.is_running


async def test_suspending_is_bound(monkeypatch):
    asked = []
    monkeypatch.setattr(RooftermApp, "action_suspend_process", lambda self: asked.append(True))
    async with explorer() as pilot:
        await pilot.press("ctrl+z")
        await pilot.pause()
    assert asked == [True]


async def test_palette_does_what_the_keys_do():
    async with explorer((80, 24), capabilities=PLAIN) as pilot:
        listed = [choice.note.split() for choice in actions(the_app(pilot), the_explorer(pilot))]
        assert listed == [[*keys_of(a), a.id] for a in for_screen("overview")]
        await press(pilot, "ctrl+p")
        assert [choice.note.split() for choice in the_palette(pilot)._shown] == listed
        await type_text(pilot, "screen.ops")
        await press(pilot, "enter")
        await settled(pilot)
        assert state(pilot).screen == "ops"


async def test_palette_finds_themes_and_what_figures_mean():
    async with explorer((80, 24), "ctrl+p") as pilot:
        await type_text(pilot, "what is exposed_comm")
        await press(pilot, "enter")
        assert "exposed_comm_us" in screen_text(pilot)
        assert "means" in screen_text(pilot)
        await press(pilot, "escape ctrl+p")
        await type_text(pilot, "theme light")
        await press(pilot, "enter")
        assert pilot.app.theme == "light"


async def test_palette_is_left_as_every_list_is():
    async with explorer((80, 24), "ctrl+p escape") as pilot:
        assert isinstance(pilot.app.screen, Explorer)


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("sort", ["sort by column", "reverse the sort", "other"]),  # in the label before the note
        ("SORT rev", ["reverse the sort"]),
        ("rvs", ["reverse the sort"]),  # no such word: its letters in their order
        ("zzz", []),
    ],
)
def test_what_typing_finds_in_a_list(typed, found):
    choices = [Choice("other", 0, "sorts too"), Choice("sort by column", 1), Choice("reverse the sort", 2)]
    assert [choice.label for choice in narrowed(choices, typed)] == found


def the_palette(pilot) -> Palette:
    assert isinstance(pilot.app.screen, Palette)
    return pilot.app.screen


async def _return_to(pilot, name: str) -> None:
    while not isinstance(pilot.app.screen, Explorer):
        await pilot.press("escape")
        await pilot.pause()
    if pilot.app.screen.query("FilterBar.-open"):
        await press(pilot, "escape")
    if state(pilot).screen != name:
        await go_to(pilot, name)


async def test_what_is_said_of_filters_names_the_users_own_key():
    options = Options(keys={"clear": "ctrl+x"})
    async with explorer((80, 24), "5 enter", options=options) as pilot:
        assert "; ^x shows all" in screen_text(pilot)
        await press(pilot, "3")
        assert "step 0 · ^x shows all" in screen_text(pilot)
        await press(pilot, "slash")
        await type_text(pilot, "nowhere")
        await press(pilot, "enter")
        assert "no kernels pass the filter; ^x shows all" in screen_text(pilot)
        assert "esc shows" not in screen_text(pilot)
