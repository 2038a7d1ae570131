"""Collectives over ranks: the sample's own bookkeeping, and eight real ranks of one DLRM job read by plain Python."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from roofterm.analysis.overlap import slowdown
from roofterm.analysis.scope import ALL
from roofterm.analysis.study import Study
from roofterm.cli.main import main
from roofterm_parsers import open_profile
from tests.golden.slow_reader import exact_ps, length
from tests.reference import reference

SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "transformer_h100_2ranks_synthetic"
DLRM = "traces/torch/param_v100_dlrm_8ranks"
US = 1_000_000
NANOSECOND_US = 0.0005


@cache
def sample() -> Study:
    return Study(open_profile(SAMPLE))


@cache
def dlrm() -> Study:
    return Study(open_profile(reference(DLRM)))


def played() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(SAMPLE.with_name(f"{SAMPLE.name}.ranks.expected.json").read_text())["collectives"]
    return rows


def test_wait_and_transfer_of_each_all_reduce_are_what_was_played():
    study = sample()
    met = study.matched_calls.join(study.collective_calls.select("slice", "source", "message_bytes"), on="slice").sort("match", "source")
    got = [
        {
            "message_bytes": group["message_bytes"][0],
            "wait_us": pytest.approx((group["wait_ps"] / US).to_list(), abs=NANOSECOND_US),
            "transfer_us": pytest.approx(group["transfer_ps"][0] / US, abs=NANOSECOND_US),
        }
        for _, group in met.group_by("match", maintain_order=True)
    ]
    assert got == played()
    assert len(got) == 18


def test_bus_bandwidth_of_the_sample_follows_from_the_transfers_that_were_played():
    """2 x 7/8 of the message over the time of the shortest call; 450 GB/s of NVLink in one direction."""
    for row in sample().table("collective", ALL).iter_rows(named=True):
        calls = [one for one in played() if one["message_bytes"] == row["message_bytes"]]
        seconds = sum(one["transfer_us"] for one in calls) / 1e6
        assert row["calls"] == 2 * len(calls)
        assert row["bus_bw"] == pytest.approx(1.75 * row["message_bytes"] * len(calls) / seconds, rel=1e-9)
        assert row["pct_of_link"] == pytest.approx(100 * row["bus_bw"] / 450e9)
        assert row["note"] == "2 of 8 ranks seen: rates are lower limits"
        assert row["latency_bound"] is False


def test_exposed_and_hidden_communication_add_up_to_the_summary():
    study = sample()
    table = study.table("collective", ALL)
    assert table["exposed_us"].sum() == pytest.approx(study.summary().exposed_comm_us, abs=1e-6)
    assert table["total_us"].sum() == pytest.approx(study.summary().comm_us, abs=1e-6)


def test_what_hiding_costs_is_the_five_percent_that_were_played():
    """The sample's kernels take 5 % longer if they start under an all-reduce; each length then varies by a few percent more."""
    study = sample()
    table = study.hiding().filter((pl.col("calls_alone") >= 8) & (pl.col("calls_overlapped") >= 8))
    assert table.height > 5
    assert slowdown(table) == pytest.approx(1.05, abs=0.01)


def test_the_rank_that_was_slowed_down_is_the_late_one():
    """Rank 1 computes a third slower in step 11, and rank 0 waits for it in that step's all-reduces."""
    rows = {row.rank: row for row in sample().ranks()}
    assert {rank: row.late for rank, row in rows.items()} == {0: False, 1: True}
    waits = [sum(one["wait_us"][rank] for one in played()) / 3 for rank in (0, 1)]
    assert [rows[rank].wait_us for rank in (0, 1)] == [pytest.approx(us, abs=NANOSECOND_US) for us in waits]
    # Of two ranks one waits, and that is what the other alone costs.
    assert (rows[0].kept_waiting_us, rows[1].kept_waiting_us) == (rows[1].wait_us, rows[0].wait_us)
    for row in rows.values():
        assert row.exposed_wait_us + row.exposed_transfer_us == pytest.approx(row.exposed_comm_us, abs=1e-3)  # type: ignore[operator]


def ps(us: str | int) -> int:
    exact = exact_ps(us)
    assert exact is not None
    return exact


def read_rank(path: Path) -> tuple[int, list[tuple[str, int, int]], list[tuple[int, int]]]:
    """Rank, its NCCL kernels in order of start (which of two, start, end), and its compute kernels, in ps since 1970."""
    document = json.loads(gzip.decompress(path.read_bytes()), parse_float=str)
    kernels = [e for e in document["traceEvents"] if e.get("cat") == "kernel"]
    spans = [(e["name"], ps(e["ts"]), ps(e["ts"]) + ps(e["dur"])) for e in kernels]
    nccl = sorted((s, e, "AllReduce" if "AllReduce" in name else "SendRecv") for name, s, e in spans if name.startswith("nccl"))
    compute = [(s, e) for name, s, e in spans if not name.startswith("nccl")]
    return int(document["distributedInfo"]["rank"]), [(name, start, end) for start, end, name in nccl], compute


@cache
def meetings() -> list[dict[int, tuple[int, int]]]:
    """The collectives of the job by plain Python: the n-th NCCL kernel of one name on each rank is the same call."""
    by_call: dict[tuple[str, int], dict[int, tuple[int, int]]] = defaultdict(dict)
    for path in sorted(reference(DLRM).glob("*.json.gz")):
        rank, kernels, _ = read_rank(path)
        count: dict[str, int] = defaultdict(int)
        for name, start, end in kernels:
            by_call[name, count[name]][rank] = (start, end)
            count[name] += 1
    return sorted(by_call.values(), key=lambda call: min(start for start, _ in call.values()))


def test_dlrm_collectives_meet_as_plain_python_finds_them():
    """Eight calls of eight ranks, which all leave within 7 us of each other: the clocks of one host."""
    study = dlrm()
    rank_of = [source.rank for source in study.profile.sources]
    met = study.matched_calls.join(study.collective_calls.select("slice", "source"), on="slice")
    got = [
        {rank_of[source]: (wait, transfer) for source, wait, transfer in group.select("source", "wait_ps", "transfer_ps").iter_rows()}
        for _, group in met.group_by("match", maintain_order=True)
    ]
    want = []
    for call in meetings():
        latest, transfer = max(start for start, _ in call.values()), min(end - start for start, end in call.values())
        want.append({rank: (latest - start, transfer) for rank, (start, _) in call.items()})
    assert got == want
    assert [len(call) for call in want] == [8] * 8
    ends = [[end for _, end in call.values()] for call in meetings()]
    assert met["end_spread_ps"].max() == max(max(one) - min(one) for one in ends) == 7 * US
    assert met["meets"].all()


def test_dlrm_ranks_wait_for_rank_7():
    """It comes last to five of the eight calls; the others wait 1.3 ms for it alone, of steps of 12.5 to 18.7 ms."""
    rows = {row.rank: row for row in dlrm().ranks() if row.rank is not None}
    assert [rank for rank, row in rows.items() if row.late] == [7]
    last: dict[int, int] = defaultdict(int)
    kept: dict[int, int] = defaultdict(int)
    for call in meetings():
        starts = sorted((start, rank) for rank, (start, _) in call.items())
        for start, rank in starts:
            last[rank] += start == starts[-1][0]
        kept[starts[-1][1]] += starts[-1][0] - starts[-2][0]
    assert last[7] == 5
    assert {rank: row.last_pct for rank, row in rows.items()} == {rank: 100 * last[rank] / 8 for rank in rows}
    assert {rank: row.kept_waiting_us for rank, row in rows.items()} == {rank: kept[rank] / US for rank in rows}


def test_dlrm_exposed_communication_splits_at_the_last_arrival():
    """Exposed until the last rank has come, and from then on, by unions of plain intervals, for each rank."""
    rows = {row.rank: row for row in dlrm().ranks()}
    for path in sorted(reference(DLRM).glob("*.json.gz")):
        rank, _, compute = read_rank(path)
        waiting, moving = [], []
        for call in meetings():
            latest = max(start for start, _ in call.values())
            start, end = call[rank]
            waiting.append((start, latest))
            moving.append((latest, end))
        exposed = [length(spans + compute) - length(compute) for spans in (waiting, moving)]
        assert [rows[rank].exposed_wait_us, rows[rank].exposed_transfer_us] == [ps / US for ps in exposed]


def test_ranks_command_marks_the_late_one(capsysbinary: pytest.CaptureFixture[bytes]):
    assert main(["ranks", str(SAMPLE), "--format", "json", "--no-cache", "-q"]) == 0
    answer = json.loads(capsysbinary.readouterr().out)
    assert answer["schema"] == "roofterm.ranks/1"
    assert [(row["rank"], row["late"]) for row in answer["rows"]] == [(0, False), (1, True)]
    assert main(["ranks", str(SAMPLE), "--sort", "kept_waiting_us", "--top", "1", "--format", "csv", "--no-cache", "-q"]) == 0
    lines = capsysbinary.readouterr().out.decode().splitlines()
    assert [line.split(",")[0] for line in lines] == ["rank", "1"]


def test_ops_command_says_what_the_rates_are_worth(capsysbinary: pytest.CaptureFixture[bytes]):
    assert main(["ops", str(SAMPLE), "--by", "collective", "--where", "coll:allreduce", "--format", "json", "--no-cache", "-q"]) == 0
    answer = json.loads(capsysbinary.readouterr().out)
    assert [row["message_bytes"] for row in answer["rows"]] == [436224000, 262144000]
    assert answer["notes"][0] == "2 of 8 ranks seen: rates are lower limits (2 rows)"
    assert all(row["calls_alone"] >= 3 for row in answer["hiding"])
    assert main(["ops", str(SAMPLE), "--by", "collective", "--step", "11", "--no-cache", "-q"]) == 0
    text = capsysbinary.readouterr().out.decode()
    assert "416.0 MiB" in text
    assert "times as long under collectives as alone" in text
