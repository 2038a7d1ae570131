"""Through worker processes as in one process: the same profile, frame for frame; and every end of a worker is a sentence."""

from __future__ import annotations

import io
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

from roofterm_parsers import processes
from roofterm_parsers.chrome import reader, splitting
from roofterm_parsers.chrome.crew import Crew
from roofterm_parsers.chrome.decoding import Decoder
from roofterm_parsers.chrome.pool import Pool
from roofterm_parsers.chrome.store import Table
from roofterm_parsers.chrome.transport import packed, unpacked
from roofterm_parsers.cores import usable_cores
from roofterm_parsers.errors import Interrupted, ProfileError, TooLarge
from roofterm_parsers.profile import Profile, Source
from tests.unit.chrome_traces import call, kernel, x

BLOCK = 4096


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few events, and workers from the first one on."""
    monkeypatch.setattr(reader, "ALONE_BYTES", 0)
    cut_small(monkeypatch)
    monkeypatch.setattr(Pool, "is_ready", wait_until_ready)


def cut_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitting, "BLOCK_BYTES", BLOCK)
    monkeypatch.setattr(splitting, "_READ_BYTES", BLOCK)  # what has been read is never put back


def wait_until_ready(pool: Pool) -> bool:
    """So that the workers have something left to do."""
    while not all(pool._ready):
        pool._wait()
    return True


def trace(steps: int) -> bytes:
    """Ops with shapes, launches, kernels, arrows, marks, counters, collectives, and some damage, over many blocks."""
    events: list[dict[str, Any]] = []
    for i in range(steps):
        t = 100 * i
        shapes: dict[str, Any] = {"External id": i, "Input Dims": [[i % 7, 4]], "Input type": ["float"], "Sequence number": i}
        other: dict[str, Any] = {"External id": 10_000 + i}
        events += [
            x("aten::linear", t, 40, **shapes),
            x(f"aten::op{i % 11}", t + 1, 30, tid=i % 3, **other),
            call("cudaLaunchKernel", t + 2, 5, i),
            kernel(f"kernel{i % 13}", t + 10, 20, i, grid=[i % 5, 1, 1], block=[32, 1, 1], **{"Collective name": f"c{i % 3}"}),
            {"ph": "s", "id": i, "cat": "ac2g", "name": "ac2g", "pid": 1, "tid": 1, "ts": t + 2},
            {"ph": "C", "name": "load", "pid": 1, "ts": t, "args": {"a": i, "b": 1}},
            {"ph": "i", "name": f"mark{i % 4}", "pid": 1, "tid": 1, "ts": t, "s": "t"},
            {"ph": "B", "name": "range", "pid": 1, "tid": 9, "ts": t},
            {"ph": "E", "name": "range", "pid": 1, "tid": 9, "ts": t + 50},
        ]
    text = json.dumps({"schemaVersion": 1, "traceEvents": events, "displayTimeUnit": "ms"})
    return text.replace('"aten::op3"', '"aten::op"3"').encode()  # a quote that was not escaped


def load(text: bytes, workers: int, cancelled: Callable[[], bool] = lambda: False) -> Profile:
    source = Source(path="made.json", format="", container="plain")
    return reader.read(io.BytesIO(text), source, lambda _: None, workers=workers, cancelled=cancelled)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("workers", [1, 3])
def test_through_workers_the_profile_is_the_same(workers: int) -> None:
    text = trace(200)
    alone, together = load(text, 0), load(text, workers)
    assert alone.slices.height == 200 * 5
    for name, frame in alone.frames().items():
        assert frame.equals(together.frames()[name]), name
    assert alone.warnings == together.warnings
    assert alone.sources == together.sources


@pytest.mark.usefixtures("small_blocks")
def test_the_size_of_blocks_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    text = trace(60)
    small = load(text, 0)
    monkeypatch.setattr(splitting, "BLOCK_BYTES", 1 << 22)
    large = load(text, 0)
    for name, frame in small.frames().items():
        assert frame.equals(large.frames()[name]), name


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("workers", [0, 2])
def test_what_stands_behind_the_events_is_no_damage(workers: int) -> None:
    frames = ",".join(f'"{i}":{{"name":"f{i}","category":"c"}}' for i in range(2000))
    samples = ",".join(f'{{"name":"s{i}","cpu":{i},"weight":1}}' for i in range(2000))
    events = json.dumps([x("a", i, 1) for i in range(200)])
    for behind in (f'"stackFrames":{{{frames}}}', f'"samples":[{samples}]', f'"samples":[{samples}],"displayTimeUnit":"ns"'):
        profile = load(f'{{"traceEvents":{events},{behind}}}'.encode(), workers)
        assert profile.slices.height == 200
        assert profile.warnings == []


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("workers", [0, 2])
def test_a_second_trace_blocks_behind_the_first_is_read_and_said(workers: int) -> None:
    def document(name: str) -> str:
        header = ",".join(f'"fact {i}": {i}' for i in range(500))
        return f'{{{header}, "traceEvents": {json.dumps([x(name, i, 1) for i in range(150)])}}}'

    profile = load(f"{document('a')}\n{document('b')}".encode(), workers)
    assert profile.names["text"].gather(profile.slices["name"]).value_counts().sort("text").rows() == [("a", 150), ("b", 150)]
    assert [warning.code for warning in profile.warnings] == ["mended"]


@pytest.mark.usefixtures("small_blocks")
def test_an_event_longer_than_a_slot_is_decoded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "BUFFER_BYTES", 2 * BLOCK)
    long = json.dumps([x("a", 0, 1), x("b", 5, 1, note="x" * 100_000), *(x("c", 10 + i, 1) for i in range(300))]).encode()
    assert load(long, 0).slices.height == 302
    assert load(long, 2).slices.height == 302


@pytest.mark.usefixtures("small_blocks")
def test_a_worker_that_is_killed_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    submit = Pool.submit

    def submit_and_kill(pool: Pool, length: int, offset: int, *, last: bool, xla: bool, long: bool) -> None:
        submit(pool, length, offset, last=last, xla=xla, long=long)
        if not killed:
            killed.append(pool._processes[0].pid)
            os.kill(killed[0], signal.SIGKILL)

    monkeypatch.setattr(Pool, "submit", submit_and_kill)
    with pytest.raises(ProfileError, match=r"made\.json.*killed \(SIGKILL\).*memory"):
        load(trace(300), 1)


def test_where_no_worker_comes_up_it_goes_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "ALONE_BYTES", 0)
    cut_small(monkeypatch)
    monkeypatch.setattr(processes, "START", "raise SystemExit(7)  # {path}{module}")
    assert load(trace(300), 2).slices.height == 300 * 5


def test_where_no_process_can_be_started_it_goes_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise BlockingIOError("no process is left to us")

    monkeypatch.setattr(reader, "ALONE_BYTES", 0)
    cut_small(monkeypatch)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert load(trace(50), 2).slices.height == 50 * 5


@pytest.mark.usefixtures("small_blocks")
def test_a_fault_in_a_worker_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = processes.START.replace(
        "main(sys.argv[1:])", "import roofterm_parsers.chrome.decoding as d; d.Decoder.block = None; main(sys.argv[1:])"
    )
    monkeypatch.setattr(processes, "START", broken)
    with pytest.raises(ProfileError, match=r"made\.json could not be decoded: TypeError"):
        load(trace(300), 1)


@pytest.mark.usefixtures("small_blocks")
def test_loading_stops_when_it_is_told_to_and_leaves_no_process() -> None:
    stop = threading.Event()
    started: list[subprocess.Popen[bytes]] = []

    def cancelled() -> bool:
        return stop.is_set()

    class Endless(io.RawIOBase):
        """A trace without an end."""

        def read(self, n: int = -1) -> bytes:
            return (b"[" if not started else b"") + json.dumps(x("a", 1, 1)).encode() * 1 + b","

    original = Crew.__init__

    def remember(crew: Crew, count: int) -> None:
        original(crew, count)
        started.extend(crew.processes)

    pytest.MonkeyPatch().setattr(Crew, "__init__", remember)
    threading.Timer(0.5, stop.set).start()
    with pytest.raises(Interrupted):
        reader.read(Endless(), Source(path="endless", format="", container="plain"), lambda _: None, workers=2, cancelled=cancelled)
    pytest.MonkeyPatch().setattr(Crew, "__init__", original)
    assert all(process.poll() is not None for process in started)


def test_workers_end_with_their_parent() -> None:
    program = """
import io, json, os, sys, time
from roofterm_parsers.chrome.crew import Crew
from roofterm_parsers.chrome.pool import Pool
pool = Pool(Crew(2), path="x", cancelled=lambda: False)
while not pool.is_ready():
    time.sleep(0.01)
print(*(process.pid for process in pool._processes), flush=True)
os.kill(os.getpid(), 9)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False
    )
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 2
    deadline = time.monotonic() + 10
    while any(alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(alive(pid) for pid in pids)


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_a_worker_imports_nothing_big() -> None:
    modules = ", ".join(f"roofterm_parsers.chrome.{name}" for name in ("worker", "decoding", "transport"))
    program = f"import sys, {modules}; print(*sys.modules)"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, env=env, check=True, text=True).stdout.split()
    assert not {"polars", "torch", "textual", "multiprocessing"} & set(loaded)


def test_too_large_for_the_memory_allowed_is_said_before_it_is_taken(small_blocks: None) -> None:
    with pytest.raises(TooLarge, match=r"made\.json.*--max-memory"):
        reader.read(
            io.BytesIO(trace(300)), Source(path="made.json", format="", container="plain"), lambda _: None, workers=0, max_memory=50_000
        )


def test_a_block_crosses_unchanged() -> None:
    text = trace(40)[text_start(trace(40)) :]
    block = Decoder(xla=False).block(text, 17, last=True)
    other = unpacked(memoryview(b"".join(packed(block))))
    assert other.columns.keys() == block.columns.keys()
    assert other.groups.keys() == block.groups.keys()
    for held, got in [(block.columns, other.columns), *((block.groups[g], other.groups[g]) for g in block.groups)]:
        for name, values in held.items():
            assert values.dtype == got[name].dtype
            assert values.tolist() == got[name].tolist() or name == "occupancy" or values.dtype.kind == "f"
    assert (other.new_lanes, other.new_names, other.new_texts) == (block.new_lanes, block.new_names, block.new_texts)
    assert (other.damage, other.trailers, other.ended, other.lists) == (block.damage, block.trailers, block.ended, block.lists)


def text_start(text: bytes) -> int:
    return text.index(b"[") + 1


@pytest.mark.parametrize(
    "parts",
    [
        [[1, 2, 3], [7], [5, 5, 5]],
        [[-(1 << 63), 4, -5], [1 << 40, (1 << 40) + 9]],
        [[-(1 << 63)] * 3, [0, 1 << 62]],
        [[1_731_000_000_000_000, 1_731_000_000_000_009], [3]],
        [[-(1 << 31), 0], [-(1 << 31) + 1, (1 << 31) - 1]],
    ],
)
def test_columns_are_kept_small_and_come_out_whole(parts: list[list[int]]) -> None:
    import numpy as np

    table = Table()
    for part in parts:
        table.add({"v": np.array(part, np.int64)})
    assert table.column("v").tolist() == [value for part in parts for value in part]
    assert table.bytes == 0


def test_cores_are_those_of_affinity_quota_and_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quota = tmp_path / "cpu.max"
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.delenv("SLURM_CPUS_PER_TASK", raising=False)
    assert usable_cores(quota) == 8
    quota.write_text("max 100000\n")
    assert usable_cores(quota) == 8
    quota.write_text("350000 100000\n")
    assert usable_cores(quota) == 3
    quota.write_text("50000 100000\n")
    assert usable_cores(quota) == 1
    quota.write_text("max 100000\n")
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "2")
    assert usable_cores(quota) == 2


@pytest.mark.usefixtures("small_blocks")
def test_a_busy_parent_leaves_the_decoding_to_the_workers_until_it_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two blocks are taken in while the parent is busy; of the others it decodes some itself. The profile is the same."""
    crew, taken, decoded_here = Crew(1), 0, []
    crew.alone = True
    take_in, decode = reader._Gathering._take_in, reader._Gathering._decoded

    def taking(gathering: Any, *args: Any, **options: Any) -> bool:
        nonlocal taken
        done = take_in(gathering, *args, **options)
        taken += done
        crew.alone = taken < 2
        return done

    def decoding_here(gathering: Any, piece: Any) -> Any:
        decoded_here.append(taken)
        return decode(gathering, piece)

    monkeypatch.setattr(reader._Gathering, "_take_in", taking)
    monkeypatch.setattr(reader._Gathering, "_decoded", decoding_here)
    source = Source(path="made.json", format="", container="plain")
    profile = reader.read(io.BytesIO(trace(200)), source, lambda _: None, workers=crew)
    assert taken > 2
    assert all(before >= 2 for before in decoded_here)
    assert profile.slices.equals(load(trace(200), 0).slices)


def test_a_busy_parent_goes_without_workers_that_do_not_come_up(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_small(monkeypatch)
    monkeypatch.setattr(processes, "START", "raise SystemExit(7)  # {path}{module}")
    crew = Crew(2)
    crew.alone = True
    source = Source(path="made.json", format="", container="plain")
    assert reader.read(io.BytesIO(trace(100)), source, lambda _: None, workers=crew).slices.height == 500
