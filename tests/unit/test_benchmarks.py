"""The benchmarks' generators make valid profiles, the same each time; what measures, measures the whole tree of processes."""

from __future__ import annotations

import gzip
import json
import sys

import numpy as np
import polars as pl
import pytest

from benchmarks import make_trace, xplane_seeds
from benchmarks.byte_rows import beside, constants, sized, varints
from benchmarks.explorer import Measured, keys_table
from benchmarks.figures import share, table, verdict
from benchmarks.gestures import Gesture
from benchmarks.large_profile import FAMILIES, STEP_COUNT, large_profile
from benchmarks.loading import Trace, contenders, ratios_table, results_table
from benchmarks.make_xplane import GAP_PS, inflate
from benchmarks.process_tree import CommandFailed, Run, run
from benchmarks.pseudo_terminal import Answer, PseudoTerminal, TerminalEnded
from benchmarks.ranks import Taken, make_ranks, rate_ratio, rates_table
from roofterm.analysis.scope import ALL
from roofterm.analysis.study import Study
from roofterm_parsers.opening import open_profile
from roofterm_parsers.profile import Kind, Profile, TrackKind
from tests.xspace import Plane, number, space, text, varint

MB = 1 << 20


def opened(content: bytes, folder, name: str = "a.xplane.pb") -> Profile:
    path = folder / name
    path.write_bytes(content)
    profile = open_profile(path, cache=False)
    profile.check()
    return profile


# Rows of bytes


def test_varints_are_those_of_a_writer_of_one_at_a_time():
    values = [0, 1, 127, 128, 16_383, 16_384, 2**35 - 1, 2**62, 2**64 - 1]
    assert varints(np.array(values, np.uint64)).joined() == b"".join(map(varint, values))


def test_rows_beside_each_other_in_a_sized_field():
    rows = sized(0x22, beside(constants([b"ab", b"", b"c"]), varints(np.array([1, 300, 0]))))
    assert rows.joined() == b"\x22\x03ab\x01" + b"\x22\x02\xac\x02" + b"\x22\x02c\x00"
    assert rows.lengths.tolist() == [5, 4, 4]


def test_constants_without_any_byte():
    assert beside(constants([b"", b""]), varints(np.array([5, 6]))).joined() == b"\x05\x06"


# XPlane


def test_one_copy_of_a_space_reads_as_the_space_itself(tmp_path):
    small = xplane_seeds.training()
    once = opened(b"".join(inflate(small, 1)), tmp_path)
    assert opened(small, tmp_path).slices.drop("offset").equals(once.slices.drop("offset"))


def test_copies_of_a_uniform_plane(tmp_path):
    # 20 ops, a step and a module, and 20 // 20 host calls are 23 events: 60 need 3 copies.
    small = xplane_seeds.uniform(ops=5, per_step=20)
    profile = opened(b"".join(inflate(small, 60)), tmp_path)
    assert profile.slices.height == 3 * 23
    assert profile.device_clock.height == 3 * 20
    assert profile.steps["number"].to_list() == [0, 1, 2]


def test_each_copy_begins_where_the_one_before_ended(tmp_path):
    plane = Plane("/device:TPU:0")
    op = plane.op("%a = f32[] add()", "a", hlo_category="add", program_id=1, symbol_id=2)
    plane.line("XLA Ops", [plane.event(op, 5_000, 2_000, device_offset_ps=4_000, device_duration_ps=2_000)])
    profile = opened(b"".join(inflate(space(plane), 3)), tmp_path)
    starts = profile.slices["start_ps"]
    assert (starts - starts[0]).to_list() == [0, 2_000 + GAP_PS, 2 * (2_000 + GAP_PS)]
    assert profile.device_clock["start_ps"].diff().drop_nulls().to_list() == [2_000 + GAP_PS] * 2
    assert profile.slices["dur_ps"].to_list() == [2_000] * 3


def test_what_is_no_event_is_kept_as_it_is():
    plane = Plane("/device:TPU:0")
    plane.line("XLA Ops", [plane.event("a", 1, 1)], id=3)
    small = space(plane, errors=("lost",), host="h") + text(99, b"not known") + number(98, 7)
    assert b"".join(inflate(small, 1)) == small


@pytest.mark.parametrize("seed", ["uniform", "training", "serving"])
def test_planes_are_the_same_bytes_each_time(seed):
    small = [getattr(xplane_seeds, seed)() for _ in range(2)]
    assert small[0] == small[1]
    assert list(inflate(small[0], 30_000)) == list(inflate(small[1], 30_000))


def test_the_training_run_has_what_a_roofline_needs(tmp_path):
    profile = opened(xplane_seeds.training(), tmp_path)
    assert profile.devices["kind"].to_list() == ["tpu"] * xplane_seeds.CORES
    assert profile.steps["number"].unique().sort().to_list() == list(range(xplane_seeds.STEPS))
    assert (profile.slices["kind"] == int(Kind.ASYNC)).any()
    assert (profile.slices["depth"] > 0).any()
    total = next(row for row in Study(profile).roofline(ALL).program if row.step == "Total")
    assert total.flops is not None
    assert total.flops > 0


def test_serving_has_work_without_steps_beside_a_host_with_more_events(tmp_path):
    profile = opened(xplane_seeds.serving(), tmp_path)
    assert profile.steps.height == 0
    assert profile.devices["worked"].to_list() == [True] * xplane_seeds.CORES
    on_host = profile.tracks["kind"].gather(profile.slices["track"]) == int(TrackKind.HOST)
    assert int(on_host.sum()) > profile.slices.height / 2
    total = next(row for row in Study(profile).roofline(ALL).program if row.step == "Total")
    assert total.flops is not None
    assert total.flops > 0


# Chrome traces

TINY = """{
  "schemaVersion": 1,
  "traceEvents": [
  {
    "ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 1, "tid": 1, "ts": 10.000, "dur": 9.000
  },
  {
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 12.500, "dur": 1.000,
    "args": { "External id": 7, "correlation": 20 }
  },
  {
    "ph": "s", "id": 20, "pid": 1, "tid": 1, "ts": 12.500, "cat": "ac2g", "name": "ac2g"
  }
  ],
  "traceName": "tiny.json"
}
"""


@pytest.fixture
def tiny_sample(tmp_path, monkeypatch):
    path = tmp_path / "tiny.json.gz"
    path.write_bytes(gzip.compress(TINY.encode()))
    monkeypatch.setattr(make_trace, "SAMPLE", path)


def test_a_trace_repeats_its_sample_with_times_and_ids_carried_on(tiny_sample):
    trace = json.loads(b"".join(make_trace.blocks(len(TINY))))
    events = trace["traceEvents"]
    assert len(events) % 3 == 0
    assert len(events) >= 6
    assert events[:3] == json.loads(TINY)["traceEvents"]
    # Times run from 10.000 to 12.500, so the next copy lies 2.501 later; of one step, external id and correlation the next is one on.
    assert [event["ts"] for event in events[3:6]] == [12.501, 15.001, 15.001]
    assert events[3]["name"] == "ProfilerStep#4"
    assert events[4]["args"] == {"External id": 8, "correlation": 21}
    assert events[5]["id"] == 21
    assert trace["traceName"] == "tiny.json"


def test_a_trace_is_the_same_bytes_each_time(tiny_sample):
    assert list(make_trace.blocks(5000)) == list(make_trace.blocks(5000))


# The profile of the explorer


def test_the_large_profile_follows_the_schema_and_is_the_same_each_time():
    profile, again = (large_profile(1000, 64) for _ in range(2))
    profile.check()
    assert all(frame.equals(again.frames()[name]) for name, frame in profile.frames().items())


def test_each_kernel_of_the_large_profile_hangs_on_the_call_in_its_op():
    profile = large_profile(1000, 64)
    launches = (1000 - STEP_COUNT) // 3
    assert profile.slices.height == 3 * launches + STEP_COUNT
    start, end = profile.slices["start_ps"].to_numpy(), (profile.slices["start_ps"] + profile.slices["dur_ps"]).to_numpy()
    work, launch, op = (profile.links[name].to_numpy() for name in ("work", "launch", "op"))
    assert profile.slices["kind"].to_numpy()[work].tolist() == [int(Kind.KERNEL)] * launches
    assert (profile.slices["parent"].to_numpy()[launch] == op).all()
    assert (start[op] <= start[launch]).all()
    assert (end[launch] <= end[op]).all()
    assert (start[work] > start[launch]).all()
    # a kernel's family is that of the op it was launched by
    names = profile.slices["name"].to_numpy()
    assert ((names[work] - len(FAMILIES) - 1 - STEP_COUNT) % len(FAMILIES) == names[op]).all()


def test_kernels_of_the_large_profile_do_not_overlap_on_their_stream():
    slices = large_profile(1000, 64).slices.filter(pl.col("kind") == int(Kind.KERNEL))
    ends_before = (slices["start_ps"] + slices["dur_ps"]).shift(1)
    same = slices["track"] == slices["track"].shift(1)
    assert (slices["start_ps"] >= ends_before).filter(same).all()


def test_the_large_profile_fills_the_kernel_table_and_the_roofline():
    study = Study(large_profile(1000, 64))
    assert study.table("kernel", ALL).height == 64
    assert len(study.steps()) == STEP_COUNT
    placed = [row for row in study.roofline(ALL).ops if row.intensity]
    assert {row.name for row in placed} >= {"aten::mm", "aten::bmm", "aten::mul"}


# Measuring


def test_memory_and_cpu_time_are_of_all_processes_together():
    child = f"import time; kept = bytearray(b'x') * {48 * MB}; time.sleep(0.5); sum(range(2_000_000))"
    parent = f"import subprocess, sys; kept = bytearray(b'x') * {64 * MB}; subprocess.run([sys.executable, '-c', {child!r}]); print('done')"
    alone = run([sys.executable, "-c", "print('done')"])
    done = run([sys.executable, "-c", parent])
    assert done.output == "done\n"
    assert alone.peak_bytes < 64 * MB
    assert done.peak_bytes > (64 + 48) * MB
    assert done.cpu_s > alone.cpu_s


def test_a_command_that_fails_says_why():
    with pytest.raises(CommandFailed, match="ended with 3: lost"):
        run([sys.executable, "-c", "import sys; sys.stderr.write('lost'); sys.exit(3)"])


RAW_PROGRAM = r"""
import os, sys, tty
tty.setraw(0)
os.write(1, b"\x1b[?2026$p")
answer = b""
while not answer.endswith(b"y"):
    answer += os.read(0, 1)
os.write(1, b"\x1b[1mheard\x1b[0m " + answer[2:])
while (key := os.read(0, 1)) != b"q":
    os.write(1, b"\x1b[7m" + key * 10 + b"\x1b[0m")
"""


@pytest.mark.terminal
def test_a_terminal_answers_counts_bytes_and_says_when_the_program_has_ended():
    with PseudoTerminal([sys.executable, "-c", RAW_PROGRAM], 80, 24, {}) as terminal:
        terminal.seconds_until(r"heard +\?2026;2\$y")
        answer = terminal.press("k")
        assert answer.bytes == len("\x1b[7m") + 10 + len("\x1b[0m")
        assert terminal.text().rstrip().endswith("k" * 10)
        with pytest.raises(TerminalEnded):
            terminal.press("q")


# Figures


def test_a_table_is_aligned_markdown():
    assert table(["what", "time"], [["a", "1.5 s"], ["longer", "10 s"]]).splitlines() == [
        "| what   |  time |",
        "| ------ | ----: |",
        "| a      | 1.5 s |",
        "| longer |  10 s |",
    ]


def test_a_promise_is_held_at_the_limit_itself():
    assert (verdict(0.30, 0.30), verdict(0.31, 0.30), verdict(None, 0.30)) == ("held", "missed", "--")
    assert (share(0.334), share(0.0334), share(None)) == ("0.33", "0.033", "--")


def ran(load_s: float, wall_s: float, peak_bytes: int = 0) -> Run:
    return Run(wall_s, 2 * wall_s, peak_bytes, 1.0, f'{{"load_s": {load_s}}}\n')


@pytest.fixture
def gigabyte(tmp_path) -> Trace:
    trace = Trace(1000, tmp_path / "a.json.gz", tmp_path / "a.json")
    # gzip ends with the size of the text; 1,000,000,000 bytes are not written for this test
    trace.packed.write_bytes(b"\x1f\x8b" + (10**9).to_bytes(4, "little"))
    return trace


def test_a_ratio_is_of_the_medians_of_one_run(gigabyte, tmp_path):
    found = contenders(tmp_path, tmp_path, without=["json.load"])
    by_name = {one.name: one for one in found}
    assert "json.load" not in by_name
    by_name["roofterm, to a Profile"].runs[1000] = [ran(9, 10, 400_000_000), ran(12, 13, 480_000_000), ran(3, 4, 400_000_000)]
    by_name["HTA 0.5.0"].runs[1000] = [ran(300, 310)]
    by_name["Perfetto 52 WASM"].runs[1000] = [ran(30, 32)]
    lines = {line.split("|")[1].strip(): line for line in ratios_table(found, [gigabyte]).splitlines()}
    # 9 / 300 is within 1/30, 9 / 30 is not within 1/4; 400 MB of 1000 are within 0.45
    assert [part.strip() for part in lines["1,000 MB: load / HTA 0.5.0's load"].split("|")[2:-1]] == ["0.033", "0.030", "0.032", "held"]
    assert "missed" in lines["1,000 MB: load / Perfetto 52 WASM's load"]
    assert [part.strip() for part in lines["1,000 MB: peak memory / text"].split("|")[2:-1]] == ["0.45", "0.40", "--", "held"]
    assert lines["1,000 MB: opening from the cache, in process"].split("|")[3].strip() == "--"
    row = results_table(found, [gigabyte]).splitlines()[2]
    assert [part.strip() for part in row.split("|")[1:-1]] == [
        "roofterm, to a Profile, 1,000 MB",
        "3",
        "9.00 s",
        "10.0 s",
        "20.0 s",
        "400 MB",
        "0.40",
    ]


def test_the_text_of_a_packed_trace_can_be_larger_than_gzip_can_say(tmp_path):
    packed = tmp_path / "a.json.gz"
    packed.write_bytes((5_000_000_123 % 2**32).to_bytes(4, "little"))
    assert Trace(5000, packed, packed).expanded_bytes == 5_000_000_123


def test_a_key_is_held_by_time_at_both_sizes_and_by_bytes_at_the_small_one():
    def line(small_s: float, large_s: float, sent: int) -> list[str]:
        answers = {(80, 24): [Answer(small_s, sent)] * 3, (200, 60): [Answer(large_s, 10 * sent)] * 3}
        cpu_s = dict.fromkeys(answers, 0.010)
        made = keys_table([Measured(Gesture("page", ("k",), most_bytes=600), answers, cpu_s)]).splitlines()[-1]
        return [part.strip() for part in made.split("|")[1:-1]]

    assert line(0.05, 0.1, 600) == ["page", "50 ms", "100 ms", "10 ms", "10 ms", "100 ms", "50 / 100", "held", "600", "600", "held"]
    assert line(0.05, 0.101, 601)[7:] == ["missed", "601", "600", "missed"]


def test_ranks_are_made_once_and_told_apart(tmp_path):
    paths, size = make_ranks(tmp_path, 2, 1)
    assert [open_profile(path, cache=False).sources[0].rank for path in paths] == [0, 1]
    assert size == sum(len(gzip.decompress(path.read_bytes())) for path in paths)
    before = [path.stat().st_mtime_ns for path in paths]
    make_ranks(tmp_path, 2, 1)
    assert [path.stat().st_mtime_ns for path in paths] == before


def test_rates_are_bytes_by_wall_time():
    """Two files of 50 MB in 2 s are 50 MB/s alone; together in 2.5 s they come to 0.8 of that."""
    alone, together = [Taken(2.0, 3.0)], [Taken(2.5, 3.0)]
    assert rate_ratio(alone, together) == pytest.approx(0.8)
    assert "50 MB/s" in rates_table(alone, together, 100_000_000)
