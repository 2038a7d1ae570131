"""Ranks read side by side are what they are when read in turn; and every end of a process that reads is a sentence."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from roofterm_parsers import abreast, open_profile, processes
from roofterm_parsers.errors import Interrupted, ProfileError, TooLarge
from roofterm_parsers.inputs import Input
from roofterm_parsers.profile import Profile
from tests.unit.chrome_traces import call, kernel, x
from tests.unit.test_chrome_workers import alive

Started = list[subprocess.Popen[bytes]]


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """Files are read side by side however small they are; gives the processes that were started."""
    every: Started = []
    begin = processes.start

    def remember(*args: Any, **options: Any) -> subprocess.Popen[bytes]:
        every.append(begin(*args, **options))
        return every[-1]

    monkeypatch.setattr(abreast, "LEAST_BYTES", 0)
    monkeypatch.setattr(processes, "start", remember)
    return every


def write_rank(folder: Path, rank: int, steps: int = 20) -> Path:
    events: list[dict[str, Any]] = []
    for i in range(steps):
        events += [
            x(f"aten::op{i % 3 + rank}", 100 * i, 40, External=i),
            call("cudaLaunchKernel", 100 * i + 2, 5, i),
            kernel(f"kernel{i % 5}", 100 * i + 10, 20 + rank, i, grid=[1, 1, 1], block=[32, 1, 1]),
        ]
    text = json.dumps({"distributedInfo": {"rank": rank, "world_size": 4}, "traceEvents": events}).encode()
    path = folder / f"rank{rank}.pt.trace.json{'.gz' if rank % 2 else ''}"
    path.write_bytes(gzip.compress(text) if rank % 2 else text)
    return path


def opened(paths: list[Path], workers: int, **options: Any) -> Profile:
    return open_profile(paths, cache=False, workers=workers, **options)


def test_side_by_side_the_profile_is_the_same(tmp_path: Path, started: Started) -> None:
    paths = [write_rank(tmp_path, rank) for rank in range(4)]
    (tmp_path / "rank2.pt.trace.json").write_text('{"traceEvents": [')
    in_turn = opened(paths, 0)
    assert not started
    together = opened(paths, 3)
    assert len(started) == 3
    assert [source.rank for source in together.sources] == [0, 1, 3]
    assert in_turn.slices.height == 3 * 20 * 3
    for name, frame in in_turn.frames().items():
        assert frame.equals(together.frames()[name]), name
    assert together.sources == in_turn.sources
    assert together.warnings == in_turn.warnings
    assert [warning.code for warning in together.warnings][:1] == ["left_out"]
    assert all(process.poll() is not None for process in started)


def test_a_name_that_is_no_text_is_read_all_the_same(tmp_path: Path) -> None:
    paths = [write_rank(tmp_path, 0), write_rank(tmp_path, 2)]
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/rank\xff2.json"))
    paths[1].rename(odd)
    profile = opened([paths[0], odd], 2)
    assert [source.path for source in profile.sources] == [str(paths[0]), str(odd)]


def test_bytes_and_files_are_told_as_they_come(tmp_path: Path) -> None:
    paths = [write_rank(tmp_path, rank, steps=200) for rank in range(4)]
    told: list[tuple[int, int | None, int]] = []
    opened(paths, 2, progress=lambda moment: told.append((moment.bytes_done, moment.bytes_total, moment.files_done)))
    size = sum(path.stat().st_size for path in paths)
    assert told == sorted(told)
    assert told[-1] == (size, size, 4)


def test_who_is_too_large_for_its_share_is_read_with_all_that_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [write_rank(tmp_path, rank) for rank in (0, 2)]
    begin = abreast._Reader.begin

    def scarce(reader: abreast._Reader, number: int, file: Input, *, max_memory: int, device_alone: bool) -> None:
        begin(reader, number, file, max_memory=1000 if number == 0 else max_memory, device_alone=device_alone)

    monkeypatch.setattr(abreast._Reader, "begin", scarce)
    profile = opened(paths, 2)
    assert [source.rank for source in profile.sources] == [0, 2]
    with pytest.raises(TooLarge, match="--max-memory"):
        opened(paths, 0, max_memory=1000)


def test_which_files_are_read_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    def files(*megabytes: float, kind: Any = "file", name: str = "a.json") -> list[Input]:
        return [Input(path=name, location="/" + name, kind=kind, bytes=int(size * (1 << 20))) for size in megabytes]

    monkeypatch.setattr(abreast, "LEAST_BYTES", 48 << 20)
    plenty = 100 << 30
    assert abreast.count_for(files(30, 30, 30), plenty, 2) == 2
    assert abreast.count_for(files(30, 30, 30), plenty, 8) == 3
    assert abreast.count_for(files(3, 3, 3, name="a.json.gz"), plenty, 8) == 3
    assert abreast.count_for(files(100), plenty, 8) == 0
    assert abreast.count_for(files(30, 30), plenty, 1) == 0
    assert abreast.count_for(files(3, 3), plenty, 8) == 0, "sooner read than another process has come up"
    assert abreast.count_for(files(30, 1000), plenty, 8) == 0, "the large one is decoded by all processes"
    assert abreast.count_for(files(30, 30), 60 << 20, 8) == 0, "memory for one of them alone"
    assert abreast.count_for(files(30, 30, 30, 30), 100 << 20, 8) == 2, "memory for two of them"
    assert abreast.count_for(files(30, 30, kind="pipe"), plenty, 8) == 0


def test_where_no_process_comes_up_they_are_read_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "START", "raise SystemExit(7)  # {path}{module}")
    assert len(opened([write_rank(tmp_path, rank) for rank in range(4)], 2).sources) == 4


def test_where_no_process_can_be_started_they_are_read_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise BlockingIOError("no process is left to us")

    monkeypatch.setattr(processes, "start", refuse)
    assert len(opened([write_rank(tmp_path, rank) for rank in range(4)], 2).sources) == 4


def faulty(statement: str) -> str:
    """The start of a process that has another `read_input`."""
    return processes.START.replace("main(sys.argv[1:])", f"import os, roofterm_parsers.reading as r; {statement}; main(sys.argv[1:])")


def test_a_fault_leaves_the_file_out_with_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "START", faulty("r.read_input = None"))
    with pytest.raises(ProfileError, match=r"rank0.*could not be read: TypeError.*fault of roofterm's"):
        opened([write_rank(tmp_path, rank) for rank in range(4)], 2)


def test_a_process_that_is_killed_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kill = "r._read_chrome = lambda *_, **__: os.kill(os.getpid(), 9)"
    monkeypatch.setattr(processes, "START", faulty(kill))
    with pytest.raises(TooLarge, match=r"rank\d.*was killed \(SIGKILL\).*out of memory"):
        opened([write_rank(tmp_path, rank) for rank in range(4)], 2)


def test_reading_stops_when_it_is_told_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: Started) -> None:
    stop = threading.Event()
    monkeypatch.setattr(processes, "START", faulty("import time; r._read_chrome = lambda *_, **__: time.sleep(60)"))
    threading.Timer(0.5, stop.set).start()
    with pytest.raises(Interrupted):
        opened([write_rank(tmp_path, rank) for rank in range(4)], 2, cancelled=stop.is_set)
    assert all(process.returncode == -signal.SIGKILL for process in started)


def test_readers_end_with_their_parent(tmp_path: Path) -> None:
    paths = [str(write_rank(tmp_path, rank)) for rank in range(4)]
    program = f"""
import os, threading, time
from roofterm_parsers import abreast, open_profile, processes
abreast.LEAST_BYTES = 0
begin, pids = processes.start, []
def remember(*args, **options):
    process = begin(*args, **options)
    pids.append(process.pid)
    if len(pids) == 2:
        print(*pids, flush=True)
        os.kill(os.getpid(), 9)
    return process
processes.start = remember
open_profile({paths!r}, cache=False, workers=2)
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, env=env, check=False)
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 2
    wait_for(lambda: not any(alive(pid) for pid in pids))


def wait_for(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.02)
