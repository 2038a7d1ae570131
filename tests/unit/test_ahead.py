"""A large trace is read while its command is imported: the same answer, the same faults, and nothing is left running."""

from __future__ import annotations

import gc
import gzip
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from roofterm.cli import ahead
from roofterm.cli.ahead import begin, reads_little
from roofterm.cli.arguments import parse
from roofterm.cli.errors import UNUSABLE, UsageError
from roofterm.cli.loading import load
from roofterm.cli.main import main
from roofterm_parsers.chrome.crew import Crew
from roofterm_parsers.errors import Interrupted, ProfileError
from roofterm_parsers.opening import open_profile
from tests.unit.chrome_traces import x
from tests.xspace import Plane, space, tpu_plane

EVENTS = 500


@pytest.fixture(autouse=True)
def crews(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[Crew]]:
    """Every crew that was started; small traces count as large ones, on as many cores as it takes."""
    started: list[Crew] = []
    start = Crew.__init__

    def remember(crew: Crew, count: int) -> None:
        start(crew, count)
        started.append(crew)

    monkeypatch.setattr(Crew, "__init__", remember)
    monkeypatch.setattr(ahead, "LARGE_BYTES", 1000)
    monkeypatch.setattr(ahead, "workers_beside", lambda: 1)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield started
    assert all(process.poll() is not None for crew in started for process in crew.processes)


def trace(path: Path, events: int = EVENTS) -> Path:
    text = json.dumps({"schemaVersion": 1, "traceEvents": [x(f"op{i % 7}", 10 * i, 5) for i in range(events)]}).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_a_large_trace_is_begun_and_is_the_same_profile(tmp_path: Path, crews: list[Crew], name: str) -> None:
    path = trace(tmp_path / name)
    args = parse(["ops", str(path), "--no-cache"])
    with begin(args) or pytest.fail("nothing was begun") as args.ahead:
        profile = load(args)
    assert len(crews) == 1
    crews.clear()
    plain = open_profile(path, cache=False, workers=0)
    assert not crews
    assert profile.slices.height == EVENTS
    for frame, held in plain.frames().items():
        assert held.equals(profile.frames()[frame]), frame


def test_a_large_xplane_file_is_begun_by_threads_and_is_the_same_profile(
    tmp_path: Path, crews: list[Crew], monkeypatch: pytest.MonkeyPatch
) -> None:
    tpu, host = tpu_plane(), Plane("/host:CPU", id=1)
    tpu.line("XLA Ops", [tpu.event("op", 10 * i, 5) for i in range(EVENTS)], id=2)
    host.line("python", [host.event("call", 0, 50)], id=7)
    path = tmp_path / "t.xplane.pb"
    path.write_bytes(space(tpu, host))
    assert begin(parse(["ops", str(path), "--no-cache"])) is None  # it is small
    monkeypatch.setattr(ahead, "LARGE_XPLANE_BYTES", 1000)
    for words, tracks in ((["ops"], 2), (["roofline", "--xprof", "2.24.2"], 1), (["ops", "--by", "op_profile"], 1)):
        args = parse([words[0], str(path), "--no-cache", *words[1:]])
        with begin(args) or pytest.fail("nothing was begun") as args.ahead:
            profile = load(args)
        assert profile.slices.filter(pl.col("track") == 0).height == EVENTS
        assert profile.tracks.height == tracks  # XProf's tables need the device alone
    assert not crews


def test_nothing_is_begun_for_what_is_small_or_no_json_or_more_than_one_or_not_there(tmp_path: Path, crews: list[Crew]) -> None:
    path = trace(tmp_path / "trace.json.gz")
    (tmp_path / "small.json").write_bytes(b"[]")
    (tmp_path / "a.xplane.pb.gz").write_bytes(gzip.compress(space(Plane("/host:CPU")) + os.urandom(2000)))
    (tmp_path / "damaged.json.gz").write_bytes(b"\x1f\x8b" + bytes(2000))
    for words in (
        ["ops", str(tmp_path / "small.json")],
        ["ops", str(tmp_path / "a.xplane.pb.gz")],
        ["ops", str(tmp_path / "damaged.json.gz")],
        ["ops", str(tmp_path)],
        ["ops", "-"],
        ["ops", str(tmp_path / "absent.json")],
        ["compare", str(path), str(path)],
        [str(path)],
        ["devices", "H100"],
    ):
        assert begin(parse(words)) is None, words
    assert not crews


def test_nothing_is_begun_for_what_is_kept(tmp_path: Path, crews: list[Crew], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roofterm_parsers.cache_keys.WORTH_BYTES", 0)
    path = trace(tmp_path / "trace.json")
    for begun in (1, 1):
        args = parse(["ops", str(path)])
        reading = begin(args)
        if reading is not None:
            with reading as args.ahead:
                load(args)
        assert len(crews) == begun


def test_a_fault_is_told_where_the_profile_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "none.json"
    path.write_text(json.dumps({"nothing": ["of the kind"] * 500}))
    args = parse(["ops", str(path)])
    with begin(args) or pytest.fail("nothing was begun") as args.ahead, pytest.raises(ProfileError, match="traceEvents"):
        load(args)
    assert main(["ops", str(path)]) == UNUSABLE
    assert "traceEvents" in capsys.readouterr().err


def test_a_command_that_ends_before_it_asks_stops_the_reading(tmp_path: Path, crews: list[Crew]) -> None:
    path = trace(tmp_path / "trace.json")
    with pytest.raises(UsageError), begin(parse(["ops", str(path), "--no-cache"])) or pytest.fail("nothing was begun"):
        raise UsageError("as a wrong option does")
    assert len(crews) == 1
    assert all(thread.name != "reading" for thread in threading.enumerate())
    with pytest.raises(UsageError, match="max-memory"):
        begin(parse(["ops", str(path), "--no-cache", "--max-memory", "much"]))


def test_reading_that_is_told_to_stop_is_an_interrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = trace(tmp_path / "trace.json")
    args = parse(["ops", str(path), "--no-cache"])
    may_read = threading.Event()

    def waiting(*_: object, **options: object) -> None:
        may_read.wait()
        assert options["cancelled"]() is True  # type: ignore[operator]
        raise Interrupted("loading was stopped")

    monkeypatch.setattr("roofterm.cli.loading.open_profile", waiting)
    with begin(args) or pytest.fail("nothing was begun") as args.ahead:
        args.ahead.stop.set()
        may_read.set()
        with pytest.raises(Interrupted):
            load(args)


def test_an_interrupt_before_reading_has_begun_leaves_no_process(
    tmp_path: Path, crews: list[Crew], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ahead, "import_numpy", interrupted)
    with pytest.raises(KeyboardInterrupt):
        begin(parse(["ops", str(trace(tmp_path / "trace.json")), "--no-cache"]))
    assert len(crews) == 1


def test_how_often_threads_give_way_is_put_back(tmp_path: Path) -> None:
    before = sys.getswitchinterval()
    args = parse(["ops", str(trace(tmp_path / "trace.json")), "--no-cache"])
    with begin(args) or pytest.fail("nothing was begun"):
        assert sys.getswitchinterval() < before
    assert sys.getswitchinterval() == pytest.approx(before)


def test_the_collector_is_on_again_once_a_profile_is_there(tmp_path: Path) -> None:
    args = parse(["ops", str(trace(tmp_path / "trace.json")), "--no-cache"])
    gc.disable()
    try:
        load(args)
        assert gc.isenabled()
    finally:
        gc.unfreeze()
        gc.enable()


def test_numpy_is_imported_without_threads_and_the_environment_is_left_as_it_was() -> None:
    code = """
import os
from roofterm.start_up import import_numpy
import_numpy()
import numpy
print(len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1, os.environ.get("OPENBLAS_NUM_THREADS"))
"""
    for told, expected in ((None, "None"), ("2", "2")):
        env = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
        env |= {"PYTHONPATH": os.pathsep.join(sys.path)} | ({"OPENBLAS_NUM_THREADS": told} if told else {})
        threads, said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env).stdout.split()
        assert said == expected
        assert told or threads == "1"


def test_polars_has_one_thread_for_little_and_the_environment_is_left_as_it_was(tmp_path: Path) -> None:
    path = trace(tmp_path / "trace.json")
    code = (
        "import os, sys; from roofterm.cli.main import main; main(sys.argv[1:]); import polars; "
        "print(polars.thread_pool_size(), os.environ.get('POLARS_MAX_THREADS'))"
    )
    environment = {name: value for name, value in os.environ.items() if name != "POLARS_MAX_THREADS"}
    for told, expected in (({}, "1 None"), ({"POLARS_MAX_THREADS": "3"}, "3 3")):
        command = [sys.executable, "-c", code, "report", str(path), "--no-cache"]
        done = subprocess.run(command, capture_output=True, check=True, text=True, env=environment | told)
        assert done.stdout.splitlines()[-1] == expected


def test_little_is_a_file_or_several_that_are_small_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = [str(trace(tmp_path / f"{name}.json")) for name in "ab"]
    assert reads_little(parse(["ops", *small]))
    assert not reads_little(parse(["ops", str(tmp_path)]))  # a folder, of which nobody knows yet
    assert not reads_little(parse(["ops", str(tmp_path / "missing.json")]))
    assert not reads_little(parse([small[0]]))  # the explorer, in which a person opens other files
    assert not reads_little(parse(["devices"]))
    monkeypatch.setattr(ahead, "LITTLE_BYTES", os.path.getsize(small[0]) + 1)
    assert reads_little(parse(["ops", small[0]]))
    assert not reads_little(parse(["ops", *small]))


def test_a_trace_is_begun_before_polars_is_there() -> None:
    code = (
        "import sys, roofterm_parsers.chrome.reader; from roofterm.cli.arguments import parse; "
        "from roofterm.cli.loading import reading_of; reading_of(parse(['ops', 'x.json'])); print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split()
    assert "roofterm_parsers.opening" in loaded
    assert "polars" not in loaded


def test_a_thread_that_hears_late_is_not_waited_for(tmp_path: Path, crews: list[Crew], monkeypatch: pytest.MonkeyPatch) -> None:
    """Told to stop, it goes on for as long as it likes: the profile is refused, and the workers are gone."""
    goes_on, reads = threading.Event(), threading.Event()

    def read(*_: object, **__: object) -> None:
        reads.set()
        goes_on.wait(60)

    monkeypatch.setattr("roofterm.cli.loading.open_profile", read)
    args = parse(["ops", str(trace(tmp_path / "trace.json")), "--no-cache"])
    with begin(args) or pytest.fail("nothing was begun") as args.ahead:
        assert reads.wait(60)
        args.ahead.stop.set()
        with pytest.raises(Interrupted):
            load(args)
        assert all(process.poll() is not None for crew in crews for process in crew.processes)
    goes_on.set()
