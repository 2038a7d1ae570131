"""The first screen from what was kept: believed only for the same files, options and roofs, and replaced by what is read."""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from threading import Event

import msgspec
import pytest

from roofterm.analysis.scope import RoofChoice, Scope
from roofterm.cli import keeping
from roofterm.cli.main import main
from roofterm.tui import app as program
from roofterm.tui import kept_figures
from roofterm.tui.app import RooftermApp
from roofterm.tui.explorer import Explorer
from roofterm.tui.kept_figures import KeptFigures, clear_figures, keep_figures, key_of, read_figures
from roofterm.tui.opened import open_study
from roofterm.tui.options import Options
from roofterm.tui.screens.loading import READING, LoadingScreen
from roofterm.tui.widgets.filter_bar import FilterBar
from roofterm.tui.widgets.records import Records
from tests.tui.harness import screen_lines, settled

SAMPLE = Path(__file__).parents[2] / "samples" / "transformer_h100_synthetic.pt.trace.json.gz"
PLAIN = Options(restore=False)


@pytest.fixture(autouse=True)
def own_folders(monkeypatch, tmp_path):
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))


@pytest.fixture
def trace(tmp_path) -> Path:
    return Path(shutil.copy(SAMPLE, tmp_path / "step.pt.trace.json.gz"))


async def opened(app: RooftermApp, pilot) -> None:
    for _ in range(600):
        await settled(pilot)
        if isinstance(app.screen, Explorer):
            break
        await asyncio.sleep(0.01)
    await settled(pilot)


async def open_once(trace: Path, options: Options = PLAIN) -> list[str]:
    """Open a profile from beginning to end; the lines of its first screen."""
    app = RooftermApp([str(trace)], options)
    async with app.run_test(size=(100, 30)) as pilot:
        await opened(app, pilot)
        lines = screen_lines(pilot)
    assert app.fault is None
    return lines


@pytest.fixture
def held(monkeypatch) -> Event:
    """Reading waits for it."""
    go = Event()

    def open_later(*arguments):
        go.wait(20)
        return open_study(*arguments)

    monkeypatch.setattr(program, "open_study", open_later)
    return go


async def kept_is_shown(app: RooftermApp, pilot) -> bool:
    for _ in range(40):
        await pilot.pause(0.02)
        lines = screen_lines(pilot)
        if READING in lines[-2] and lines[2].strip():
            return True
    return False


async def test_a_profile_opened_again_shows_its_figures_before_it_is_read(trace, held):
    held.set()
    first = await open_once(trace)
    held.clear()
    app = RooftermApp([str(trace)], PLAIN)
    async with app.run_test(size=(100, 30)) as pilot:
        assert await kept_is_shown(app, pilot)
        assert isinstance(app.screen, LoadingScreen)
        kept = screen_lines(pilot)
        held.set()
        await opened(app, pilot)
        last = screen_lines(pilot)
    assert last == first
    # All but the last two lines, which say what is going on, and the mark of the cursor.
    assert [line[1:] for line in kept[:-2]] == [line[1:] for line in first[:-2]]
    assert "steady steps" in kept[-2]


async def test_keys_pressed_meanwhile_follow_once_the_profile_is_read(trace, held):
    held.set()
    await open_once(trace)
    held.clear()
    app = RooftermApp([str(trace)], PLAIN)
    async with app.run_test(size=(100, 30)) as pilot:
        assert await kept_is_shown(app, pilot)
        await pilot.press("3", "slash", *"nccl", "enter")
        await pilot.pause()
        assert "3 / n c c l enter follows" in screen_lines(pilot)[-2]
        held.set()
        await opened(app, pilot)
        await opened(app, pilot)
        assert isinstance(app.screen, Explorer)
        assert (app.screen.state.screen, app.screen.state.filter) == ("ops", "nccl")
        assert not app.screen.query_one(FilterBar).has_class("-open")


async def test_reading_is_stopped_while_kept_figures_are_shown(trace, held):
    held.set()
    await open_once(trace)
    held.clear()
    app = RooftermApp([str(trace)], PLAIN)
    async with app.run_test(size=(100, 30)) as pilot:
        assert await kept_is_shown(app, pilot)
        await pilot.press("escape")
        held.set()
        for _ in range(200):
            await pilot.pause(0.01)
            if not app.is_running:
                break
    assert app.return_code == program.INTERRUPTED


async def test_another_file_of_the_same_name_shows_none_of_them(trace, held):
    held.set()
    await open_once(trace)
    held.clear()
    os.utime(trace, ns=(0, 1_700_000_000_000_000_000))
    app = RooftermApp([str(trace)], PLAIN)
    async with app.run_test(size=(100, 30)) as pilot:
        assert not await kept_is_shown(app, pilot)
        held.set()
        await opened(app, pilot)


def test_figures_are_known_by_files_options_roofs_and_program(trace, tmp_path, monkeypatch):
    def key(*paths: Path, **options) -> str | None:
        return key_of([str(path) for path in paths or (trace,)], Options(**options))

    plain = key()
    assert plain is not None
    assert key() == plain
    others = [key(roofs=RoofChoice(device="h100")), key(top=5)]
    roofs = tmp_path / "XDG_DATA_HOME" / "roofterm" / "roofs.json"
    roofs.parent.mkdir(parents=True)
    roofs.write_text("{}")
    others.append(key())
    captures = tmp_path / "capture_traces"
    captures.mkdir()
    (captures / "bs_8.json").write_text("{}")
    others.append(key())
    monkeypatch.setattr(kept_figures, "__version__", "0")
    others.append(key())
    os.truncate(trace, 100)
    others.append(key())
    others.append(key(captures))
    assert len({plain, *others}) == len(others) + 1
    assert None not in others


@pytest.mark.parametrize(
    "options",
    [Options(cache=False), Options(capture="x"), Options(scope=Scope(step="3")), Options(scope=Scope(step="steady", where="gemm"))],
    ids=["no cache", "capture", "step", "filter"],
)
def test_none_are_kept_of_a_part_or_against_the_users_will(trace, options):
    assert key_of([str(trace)], options) is None


@pytest.mark.parametrize("word", ["-", "https://host/x.json", "/nowhere/x.json"])
def test_none_are_kept_of_what_cannot_be_known_again(word):
    assert key_of([word], Options()) is None


async def test_a_damaged_file_is_no_figures(trace, tmp_path):
    await open_once(trace)
    key = key_of([str(trace)], PLAIN)
    figures = read_figures(key)
    assert figures is not None
    (path,) = (tmp_path / "XDG_CACHE_HOME" / "roofterm" / "figures").iterdir()
    assert path.name == key
    whole = path.read_bytes()
    for damaged in (b"", whole[:10], whole[:-1], whole + b"\0", whole[:200] + bytes([whole[200] ^ 1]) + whole[201:]):
        path.write_bytes(damaged)
        assert read_figures(key) is None
    path.write_bytes(whole)
    assert read_figures(key) == figures
    assert clear_figures() == len(whole)
    assert read_figures(key) is None


async def test_figures_come_back_as_they_were(trace):
    await open_once(trace)
    figures = read_figures(key_of([str(trace)], PLAIN))
    assert figures is not None
    odd = msgspec.structs.replace(figures.digest, p99_us=math.inf, mfu_pct=math.nan, p50_us=None)
    changed = msgspec.structs.replace(figures, digest=odd)
    keep_figures("a" * 32, changed)
    back = read_figures("a" * 32)
    assert back is not None
    assert (back.digest.p99_us, back.digest.p50_us) == (math.inf, None)
    assert math.isnan(back.digest.mfu_pct or 0)
    assert back.kernels == figures.kernels


async def test_a_report_keeps_the_figures_that_the_explorer_would(trace, capsys):
    assert main(["report", str(trace), "--format", "json"]) == 0
    of_report = read_figures(key_of([str(trace)], PLAIN))
    assert of_report is not None
    clear_figures()
    await open_once(trace)
    assert read_figures(key_of([str(trace)], PLAIN)) == of_report
    capsys.readouterr()


@pytest.mark.parametrize("option", [["--no-cache"], ["--step", "all"], ["--where", "gemm"]], ids=lambda option: option[0])
def test_a_report_of_a_part_or_against_the_users_will_keeps_none(trace, option, tmp_path, capsys):
    assert main(["report", str(trace), *option]) == 0
    assert not (tmp_path / "XDG_CACHE_HOME" / "roofterm" / "figures").exists()
    capsys.readouterr()


@pytest.mark.parametrize(
    "command", [["steps"], ["ops", "--by", "op"], ["roofline"], ["report", "--where", "gemm"]], ids=lambda words: words[0]
)
async def test_other_commands_keep_the_outline_of_a_large_file(trace, command, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(keeping, "LEAST_BYTES", 0)
    key = key_of([str(trace)], PLAIN)
    name, *options = command
    assert main([name, str(trace), *options]) == 0
    outline = read_figures(key)
    assert outline is not None
    assert outline.outline
    assert main(["report", str(trace)]) == 0
    whole = read_figures(key)
    assert whole is not None
    assert not whole.outline
    assert [path.name for path in (tmp_path / "XDG_CACHE_HOME" / "roofterm" / "figures").iterdir()] == [key]
    assert (outline.header, outline.screens, outline.devices) == (whole.header, whole.screens, whole.devices)
    for part, of_whole in [(outline.summary, whole.summary), *zip(outline.steps, whole.steps, strict=True)]:
        told, known = msgspec.structs.asdict(part), msgspec.structs.asdict(of_whole)
        assert {name: value for name, value in told.items() if value not in (None, known[name])} == {}
    capsys.readouterr()


def test_no_outline_is_kept_of_a_small_file(trace, tmp_path, capsys):
    assert main(["steps", str(trace)]) == 0
    assert not (tmp_path / "XDG_CACHE_HOME" / "roofterm" / "figures").exists()
    capsys.readouterr()


async def test_an_outline_is_shown_until_the_rest_is_known(trace, held, monkeypatch, capsys):
    monkeypatch.setattr(keeping, "LEAST_BYTES", 0)
    assert main(["steps", str(trace)]) == 0
    capsys.readouterr()
    app = RooftermApp([str(trace)], PLAIN)
    async with app.run_test(size=(100, 30)) as pilot:
        assert await kept_is_shown(app, pilot)
        outline = screen_lines(pilot)
        held.set()
        await opened(app, pilot)
        whole = screen_lines(pilot)
    for label in ("health", "device", "step", "busy"):
        first, last = (next(line for line in screen if line[1:].startswith(label))[1:].rstrip() for screen in (outline, whole))
        assert last.startswith(first)
        assert (first == last) is (label != "busy")  # what costs tell of, MFU and coverage, is not said before it is known
    kept = read_figures(key_of([str(trace)], PLAIN))
    assert kept is not None
    assert not kept.outline


async def test_the_longest_unseen_go(trace, monkeypatch, tmp_path):
    await open_once(trace)
    figures = read_figures(key_of([str(trace)], PLAIN))
    assert isinstance(figures, KeptFigures)
    clear_figures()
    monkeypatch.setattr(kept_figures, "MOST_FILES", 2)
    home = tmp_path / "XDG_CACHE_HOME" / "roofterm" / "figures"
    for at, key in enumerate(("a", "b")):
        keep_figures(key, figures)
        os.utime(home / key, (at + 1, at + 1))
    assert read_figures("a") is not None  # seen just now
    keep_figures("c", figures)
    assert sorted(path.name for path in home.iterdir()) == ["a", "c"]


async def test_figures_that_are_too_many_are_not_kept(trace, monkeypatch):
    monkeypatch.setattr(kept_figures, "MOST_BYTES", 10_000)
    await open_once(trace)
    assert read_figures(key_of([str(trace)], PLAIN)) is None


def test_records_hold_nothing_of_a_column_that_is_not_there():
    records = Records(["name", "a"], [["x", 1], ["long", None]])
    assert records.values([1, 0], ["a", "b", "name"]) == [(None, None, "long"), (1, None, "x")]
    assert records.longest("name") == 4
    assert records.longest("b") == 0


def test_figures_are_kept_without_textual():
    code = "import sys, roofterm.cli.report, roofterm.tui.keeping, roofterm.tui.kept_figures"
    done = subprocess.run([sys.executable, "-c", code + "; print(*sys.modules)"], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()).isdisjoint({"textual", "rich", "torch", "plotext"})


def test_kept_figures_are_shown_without_polars_and_numpy():
    code = "import sys, roofterm.tui.app, roofterm.tui.kept_figures, roofterm.tui.screens.kept_overview, roofterm.tui.category_colours"
    done = subprocess.run([sys.executable, "-c", code + "; print(*sys.modules)"], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()).isdisjoint({"polars", "numpy", "torch", "plotext"})
