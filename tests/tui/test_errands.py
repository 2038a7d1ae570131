"""Marks, limits chosen from lists, files written, profiles opened: each by way of a screen of its own."""

from __future__ import annotations

import csv
import io
import json
import time
from pathlib import Path
from threading import Event

import polars as pl
import pytest

from roofterm.cli.main import main
from roofterm.report.files import json_pieces
from roofterm.tui.app import RooftermApp
from roofterm.tui.exporting import TableExport, default_path, write_export
from roofterm.tui.options import Options
from roofterm.tui.screens.loading import LoadingScreen
from roofterm.tui.screens.picker import Picker
from roofterm.tui.screens.prompt import TextPrompt
from tests.tui.fake_study import FakeStudy
from tests.tui.harness import (
    explorer,
    press,
    screen_lines,
    screen_text,
    settled,
    state,
    status_line,
    the_app,
    the_explorer,
    the_page,
    type_text,
)

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
SAMPLE = SAMPLES / "transformer_h100_synthetic.pt.trace.json.gz"
OTHER = SAMPLES / "decoder_tpu_synthetic.xplane.pb"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


# Marks


async def test_a_mark_is_set_listed_gone_to_and_taken_away():
    async with explorer((80, 24), "3 j m") as pilot:
        assert "marked" in screen_lines(pilot)[-2]
        marked = state(pilot).selection, the_explorer(pilot).page.selection()
        await press(pilot, "2 apostrophe")
        assert "Ops" in screen_text(pilot)
        await press(pilot, "enter")
        assert state(pilot).screen == "ops"
        assert the_explorer(pilot).page.selection() == marked[1]
        await press(pilot, "backspace")
        assert state(pilot).screen == "roofline"
        await press(pilot, "3 m")
        assert the_explorer(pilot).marks == []


async def test_without_marks_it_is_said_how_to_set_one():
    async with explorer((80, 24), "apostrophe") as pilot:
        assert "no marks yet: m sets one" in status_line(pilot)


# Limits


async def test_a_category_is_chosen_by_typing_a_part_of_it():
    async with explorer((80, 24), "3 C") as pilot:
        assert isinstance(pilot.app.screen, Picker)
        assert "gemm" in screen_text(pilot)
        await type_text(pilot, "atten")
        await press(pilot, "enter")
        assert state(pilot).filter == "cat:attention"
        await press(pilot, "C")
        await type_text(pilot, "no limit")
        await press(pilot, "enter")
        assert state(pilot).filter == ""


@pytest.mark.parametrize(
    ("kind", "typed", "filter_", "step"),
    [("step", "#3", "", "3"), ("bound", "memory", "bound:memory", None)],
)
async def test_each_kind_of_limit_is_chosen_from_its_list(kind, typed, filter_, step):
    async with explorer((80, 24), "3 F") as pilot:
        await type_text(pilot, kind)
        await press(pilot, "enter")
        await type_text(pilot, typed)
        await press(pilot, "enter")
        assert (state(pilot).filter, state(pilot).step) == (filter_, step)


async def test_a_window_is_typed_and_a_wrong_one_is_refused_in_words():
    async with explorer((80, 24), "4 F") as pilot:
        await type_text(pilot, "window")
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, TextPrompt)
        await type_text(pilot, "2ms..1ms")
        await press(pilot, "enter")
        assert "the end must lie after the start" in screen_text(pilot)
        await press(pilot, " ".join(["backspace"] * 8))
        await type_text(pilot, "1ms..2500us")
        await press(pilot, "enter")
        assert state(pilot).window_ps == (10**9, 2_500_000_000)


async def test_a_kind_that_the_profile_lacks_is_said():
    async with explorer((80, 24), "F", study=FakeStudy(ranks=1)) as pilot:
        await type_text(pilot, "rank")
        await press(pilot, "enter")
        assert "there is no rank to choose" in status_line(pilot)


async def test_escape_leaves_a_list_and_changes_nothing():
    async with explorer((80, 24), "3 C") as pilot:
        before = state(pilot)
        await press(pilot, "down down escape")
        assert state(pilot) == before


# Files


async def exported(pilot, path: str) -> None:
    await press(pilot, "e")
    await press(pilot, "ctrl+u")
    await type_text(pilot, path)
    await press(pilot, "enter")
    await settled(pilot)


async def test_all_rows_go_to_the_file_not_those_that_fit():
    async with explorer((60, 16), "3") as pilot:
        await exported(pilot, "out.csv")
        assert "13 kernels written to out.csv" in status_line(pilot)
    assert len(pl.read_csv("out.csv")) == 13


async def exported_soon(pilot, path: str) -> None:
    """As `exported`, but it is not waited until all is written."""
    await press(pilot, "e ctrl+u")
    await type_text(pilot, path)
    await pilot.press("enter")


class Endless:
    """An export that never ends by itself."""

    noun = "rows"

    def prepare(self) -> None:
        """There is nothing to ask."""

    def write(self, file, _path) -> int:
        while True:
            file.write(b"row")
            time.sleep(0.001)


@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
async def test_writing_is_stopped_and_leaves_no_file(folder, key, monkeypatch):
    async with explorer((80, 24), "3") as pilot:
        monkeypatch.setattr(type(the_page(pilot)), "export", lambda _: Endless())
        await exported_soon(pilot, "out.csv")
        while not list(folder.glob(".out*")):
            await pilot.pause(0.01)
        await pilot.press("5")  # the screen is in use meanwhile
        await pilot.pause(0.1)
        assert "Steps]" in screen_lines(pilot)[1]
        await pilot.press(key)
        await pilot.pause()
        assert "stopped" in status_line(pilot)
        while list(folder.glob(".out*")):
            await pilot.pause(0.01)
        assert not (folder / "out.csv").exists()
        await press(pilot, "3")
        assert pilot.app.is_running


class Deaf(Endless):
    """An export in the midst of one long operation."""

    def __init__(self) -> None:
        self.go_on = Event()

    def write(self, file, _path) -> int:
        file.write(b"half")
        self.go_on.wait(5)
        file.write(b"the rest")
        return 1


async def test_of_a_writing_that_does_not_hear_nothing_is_left_either(folder, monkeypatch):
    async with explorer((80, 24), "3") as pilot:
        deaf = Deaf()
        monkeypatch.setattr(type(the_page(pilot)), "export", lambda _: deaf)
        await exported_soon(pilot, "out.csv")
        while not list(folder.glob(".out*")):
            await pilot.pause(0.01)
        await pilot.press("escape")
        await pilot.pause()
        assert list(folder.glob("*out*")) + list(folder.glob(".out*")) == []
        deaf.go_on.set()
        await pilot.pause(0.1)
        assert list(folder.glob("*out*")) + list(folder.glob(".out*")) == []


@pytest.mark.parametrize("ending", ["csv", "json", "parquet", "arrow"])
def test_each_format_ends_where_it_is_told_to(folder, ending):
    table = pl.DataFrame({"name": ["x"] * 100_000})
    written: list[int] = []

    def told() -> bool:
        written.append(1)
        return len(written) > 1

    export = TableExport("rows", lambda: table, lambda rows: json_pieces(rows, {}))
    with pytest.raises(BaseException):  # noqa: B017, PT011 (polars wraps it)
        write_export(export, f"out.{ending}", told)
    assert [path for path in folder.iterdir() if "out" in path.name] == []


async def test_a_file_that_is_there_needs_a_second_enter(folder):
    (folder / "out.csv").write_text("mine")
    async with explorer((80, 24), "3") as pilot:
        await exported(pilot, "out.csv")
        assert "enter again overwrites it" in screen_text(pilot)
        assert (folder / "out.csv").read_text() == "mine"
        await press(pilot, "enter")
        await settled(pilot)
    assert len(pl.read_csv("out.csv")) == 13


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("out.xyz", "it must be one of .csv"),
        ("nowhere/out.csv", "there is no folder nowhere"),
        ("/proc/out.csv", "cannot write"),
        ("~nobody-of-that-name/x.csv", "there is no folder"),
        ("x" * 300 + ".csv", "cannot write"),
    ],
)
async def test_what_cannot_be_written_is_said(path, says):
    async with explorer((120, 40), "3") as pilot:
        await exported(pilot, path)
        assert says in screen_text(pilot)
        assert pilot.app.is_running


@pytest.mark.parametrize("key", ["1", "2", "3", "4", "5", "9"])
async def test_every_screen_offers_a_name_of_its_own(key):
    async with explorer((80, 24), f"{key} e") as pilot:
        prompt = pilot.app.screen
        assert isinstance(prompt, TextPrompt)
        assert "llama_step." in screen_text(pilot)
        await press(pilot, "escape")


def test_default_names_are_safe():
    assert default_path("llama_step.trace.json.gz", "kernels") == "llama_step.kernels.csv"
    assert default_path("../odd name [bold] \x1b[0m.json", "host ops") == "odd_name_bold_0m.host-ops.csv"
    assert default_path("host.xplane.pb", "slices") == "host.slices.csv"


async def opened(pilot) -> None:
    for _ in range(400):
        await settled(pilot)
        if not isinstance(pilot.app.screen, LoadingScreen) and the_app(pilot).opened is not None:
            return
        await pilot.pause(0.02)
    pytest.fail("it was never opened")


async def test_files_hold_what_the_commands_write(folder, capsysbinary):
    """The same filter on the screen and on the command line gives the same file, byte for byte."""
    app = RooftermApp([str(SAMPLE)], Options(cache=False))
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        await press(pilot, "3 slash")
        await type_text(pilot, "cat:gemm")
        await press(pilot, "enter")
        for name in ("ops.csv", "ops.json", "ops.parquet"):
            await exported(pilot, name)
        await press(pilot, "4")
        await exported(pilot, "slices.csv")
        await press(pilot, "escape 2")
        await exported(pilot, "roofline.json")
        await press(pilot, "5")
        await exported(pilot, "steps.json")
    assert app.fault is None

    def answer(*words: str) -> bytes:
        assert main([words[0], str(SAMPLE), "--no-cache", *words[1:]]) == 0
        return capsysbinary.readouterr().out

    assert (folder / "ops.csv").read_bytes() == answer("ops", "--where", "cat:gemm", "--top", "0", "--format", "csv")
    assert (folder / "ops.json").read_bytes() == answer("ops", "--where", "cat:gemm", "--top", "0", "--format", "json")
    told = csv.DictReader(io.StringIO((folder / "ops.csv").read_text()))
    assert pl.read_parquet(folder / "ops.parquet")["name"].to_list() == [row["name"] for row in told]
    assert main(["export", str(SAMPLE), "--no-cache", "-q", "--where", "cat:gemm", "-o", "same.csv"]) == 0
    assert (folder / "slices.csv").read_bytes() == (folder / "same.csv").read_bytes()
    assert json.loads((folder / "roofline.json").read_text()) == json.loads(answer("roofline", "--format", "json", "--top", "0"))
    assert json.loads((folder / "steps.json").read_text())["rows"] == json.loads(answer("steps", "--format", "json"))["rows"]


# The next command


async def test_the_next_command_is_copied_and_shown(folder):
    app = RooftermApp([str(SAMPLE)], Options(cache=False))
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        await press(pilot, "3 Y")
        await settled(pilot)
        shown = screen_text(pilot)
        assert "ncu --set full --kernel-name" in shown
        assert "add those of the steps" in " ".join(shown.split())
        assert app.clipboard.startswith("ncu --set full --kernel-name 'regex:^")
        assert "--launch-count 1 -o " in app.clipboard
        await press(pilot, "escape")
        assert "[3 Ops]" in screen_text(pilot)


# Another profile


async def test_another_profile_takes_the_place_of_this_one_and_is_remembered(folder):
    app = RooftermApp([str(SAMPLE)], Options(cache=False))
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        first = the_app(pilot).opened
        await press(pilot, "3 o")
        await type_text(pilot, str(OTHER)[:-6])
        await press(pilot, "tab enter")
        for _ in range(400):
            await settled(pilot)
            if the_app(pilot).opened is not first:
                break
            await pilot.pause(0.02)
        await settled(pilot)
        assert OTHER.name in screen_lines(pilot)[0]
        assert state(pilot).screen == "overview"
        await press(pilot, "o")
        assert str(SAMPLE) in screen_text(pilot).replace("\n", "")  # the last one is offered
        await press(pilot, "down")
        assert isinstance(app.screen, TextPrompt)
        await press(pilot, "escape")
    assert app.fault is None


async def test_one_that_cannot_be_opened_leaves_this_one(folder):
    (folder / "bad.json").write_text("no profile")
    async with explorer((80, 24), "3 o") as pilot:
        await type_text(pilot, "bad.json")
        await press(pilot, "enter")
        for _ in range(200):
            await settled(pilot)
            if not isinstance(pilot.app.screen, (LoadingScreen, TextPrompt)):
                break
            await pilot.pause(0.02)
        assert "bad.json" in status_line(pilot)
        assert "[3 Ops]" in screen_text(pilot)
        assert pilot.app.is_running
