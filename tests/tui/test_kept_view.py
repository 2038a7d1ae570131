"""What is kept of a profile between runs: brought back where it was, bounded, and never a fault whatever is wrong with the files."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from roofterm.analysis.scope import Scope
from roofterm.tui import kept_view, state_files
from roofterm.tui.app import RooftermApp
from roofterm.tui.kept_view import KeptView, Mark, fitted, keep_view, read_view
from roofterm.tui.options import Options
from roofterm.tui.recent import recent_paths, remember
from roofterm.tui.state import Selection, Sort, ViewState
from roofterm.tui.state_files import read_state, write_state
from tests.tui.fake_study import FakeStudy
from tests.tui.harness import PLAIN, TITLE, explorer, opened_fake, press, screen_text, settled, state, the_explorer, type_text

KEY = "0" * 32


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "roofterm"


@pytest.fixture
def known() -> FakeStudy:
    """A study of files that can be told from others."""
    study = FakeStudy()
    study.profile.key = KEY
    return study


async def test_screen_filter_sort_window_and_marks_come_back(home, known):
    async with explorer((80, 24), "3", study=known) as pilot:
        await press(pilot, "slash")
        await type_text(pilot, "cat:gemm")
        await press(pilot, "enter s m j q")
    async with explorer((80, 24), study=known) as pilot:
        back = state(pilot)
        assert (back.screen, back.filter) == ("ops", "cat:gemm")
        assert "kernel" in back.sorts
        assert the_explorer(pilot).page.place() == 1
        assert [mark.view.selection.name for mark in the_explorer(pilot).marks if mark.view.selection] == [
            "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NNT"
        ]
        assert "as you left it" in screen_text(pilot)


async def test_ended_by_a_signal_it_is_kept_too(home, known):
    async with explorer((80, 24), "4", study=known) as pilot:
        app = pilot.app
        assert isinstance(app, RooftermApp)
        app.end()
        await pilot.pause()
    kept = read_state(f"views/{KEY}.json", KeptView)
    assert kept is not None
    assert kept.view.screen == "timeline"


async def test_what_the_command_line_asks_for_wins(home, known):
    keep_view(KEY, ViewState(screen="ops", filter="nvjet"), [])
    async with explorer((80, 24), options=Options(scope=Scope(step="steady", where="flash")), study=known) as pilot:
        assert (state(pilot).screen, state(pilot).filter) == ("overview", "flash")


async def test_without_restore_nothing_is_read_or_written(home, known):
    keep_view(KEY, ViewState(screen="ops"), [])
    before = {path: path.read_bytes() for path in home.rglob("*.json")}
    async with explorer((80, 24), options=Options(restore=False, start="steps"), study=known) as pilot:
        assert state(pilot).screen == "steps"
        await press(pilot, "4 q")
    assert {path: path.read_bytes() for path in home.rglob("*.json")} == before


async def test_a_profile_without_a_key_keeps_nothing(home):
    async with explorer((80, 24), "3 q"):
        pass
    assert not (home / "views").exists()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b'{"schema": "other/1"}',
        b'{"schema":"roofterm.view/1","view":{"screen":5}}',
        b"\xff\xfe",
        b"[" * 100_000,
        b" " * 400_000,
    ],
    ids=["empty", "cut", "a-list", "foreign", "wrong-types", "no-utf8", "deep", "large"],
)
async def test_a_damaged_or_foreign_file_is_as_none(home, known, data):
    path = home / "views" / f"{KEY}.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    async with explorer((80, 24), study=known) as pilot:
        assert state(pilot) == ViewState()


async def test_a_home_that_cannot_be_written_is_no_fault(tmp_path, monkeypatch, known):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(blocked))
    async with explorer((80, 24), "3 m q", study=known) as pilot:
        assert pilot.app.return_code == 0
    assert blocked.read_text() == ""


def test_what_the_profile_does_not_have_is_left_out(known):
    opened = opened_fake(Options(), TITLE, known)
    wrong = ViewState(
        screen="nowhere",
        by="nothing",
        level="x",
        filter="/(/",
        step="99",
        window_ps=(5, 5),
        selection=Selection("slice", "x", 10**9),
        places={"ops": -3},
    )
    assert fitted(wrong, opened) == ViewState()
    good = ViewState(
        screen="ops", filter="gemm", step="3", window_ps=(1, 2), sorts={"kernel": Sort("calls")}, selection=Selection("kernel", "x")
    )
    assert fitted(good, opened) == good


def test_it_is_bounded(home, monkeypatch):
    marks = [Mark(str(number), ViewState()) for number in range(kept_view.MOST_MARKS + 50)]
    keep_view(KEY, ViewState(), marks)
    kept = read_state(f"views/{KEY}.json", KeptView)
    assert kept is not None
    assert [mark.name for mark in kept.marks] == [mark.name for mark in marks[50:]]
    write_state("large.json", "x" * state_files.MOST_BYTES)
    assert not (home / "large.json").exists()
    monkeypatch.setattr(kept_view, "MOST_PROFILES", 3)
    for number in range(6):
        keep_view(f"{number:032}", ViewState(), [])
        os.utime(home / "views" / f"{number:032}.json", (number, number))
    keep_view(f"{9:032}", ViewState(), [])
    assert len(list((home / "views").iterdir())) == 3


def test_a_file_is_replaced_whole(home, monkeypatch):
    write_state("x.json", {"a": 1})
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    write_state("x.json", {"a": 2})
    assert msgspec.json.decode((home / "x.json").read_bytes()) == {"a": 1}
    assert [path.name for path in home.iterdir()] == ["x.json"]


def test_recent_profiles_are_those_still_there_the_last_first(home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.json", "b.json", "c.json"):
        (tmp_path / name).write_text("")
    remember(["a.json"])
    remember(["b.json", "c.json"])
    remember(["a.json"])
    remember(["-"])
    remember(["https://host/x.json"])
    (tmp_path / "b.json").unlink()
    assert recent_paths() == ["https://host/x.json", str(tmp_path / "a.json"), str(tmp_path / "c.json")]


async def test_two_runs_of_one_profile_do_not_disturb_each_other(home, known):
    opened = opened_fake(Options(), TITLE, known)
    keep_view(KEY, ViewState(screen="ops"), [])
    keep_view(KEY, ViewState(screen="steps"), [])
    kept = read_view(KEY, opened)
    assert kept is not None
    assert kept.view.screen == "steps"
    async with explorer((80, 24), capabilities=PLAIN, study=known) as pilot:
        await settled(pilot)
        assert state(pilot).screen == "steps"
