"""HolisticTraceAnalysis 0.5.0 (without its rounding of nanoseconds) on the same traces, under its own definitions."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest

from roofterm.analysis import hta
from roofterm.analysis.study import Study
from roofterm_parsers import open_profile
from roofterm_parsers.profile import Profile
from tests.golden import slow_reader
from tests.reference import reference

SINGLE = {
    "hta_a100_2gpu_resnet_nccl_meta": ".json.gz",
    "hta_a100_event_sync_multi_stream": ".json.gz",
    "hta_a100_rank3of8_train": ".json.gz",
    "hta_v100_resnet_ns_absolute_ts": ".pt.trace.json.gz",
    "kineto_v100_resnet50_2021_workers0": ".pt.trace.json.gz",
    "param_2080ti_resnet": ".json.gz",
    "tracelens_h100_qwen05b_chat": ".json.gz",
    "tracelens_h100_timesformer": ".json.gz",
    "tracelens_mi300x_owlv2": ".json.gz",
    "tracelens_mi300x_qwen05b_chat": ".json.gz",
    "tracelens_mi300x_resnet_act_ckpt_rank0of8": ".json.gz",
    "tracelens_mi300x_xdit_flux1_aiter": ".json.gz",
}
SETS = [*SINGLE, "hta_sampled_2ranks_of128", "param_v100_dlrm_8ranks"]
"""Every set of oracle/hta_ns; the last two hold several ranks."""

US = 1_000_000
ABSOLUTE = "hta_v100_resnet_ns_absolute_ts"


@cache
def profile(name: str) -> Profile:
    if name == "param_v100_dlrm_8ranks":
        return open_profile(reference(f"traces/torch/{name}"))
    if name == "hta_sampled_2ranks_of128":
        return open_profile([reference(f"traces/torch/hta_sampled_rank{rank}of128.json.gz") for rank in (0, 1)])
    opened = open_profile(reference(f"traces/torch/{name}{SINGLE[name]}"))
    return in_doubles(opened) if name == ABSOLUTE else opened


@cache
def oracle(name: str) -> dict[str, Any]:
    results: dict[str, Any] = json.loads(reference(f"oracle/hta_ns/{name}.json").read_text())["results"]
    return results


def in_doubles(opened: Profile) -> Profile:
    """The profile with starts as HTA holds them: doubles of microseconds since 1970, which resolve a quarter of one."""
    assert opened.zero_unix_ns is not None
    since_1970_ns = opened.zero_unix_ns + opened.slices["start_ps"].to_numpy() // 1000
    # At 7e15 a double holds whole numbers alone: the sum rounds to whole quarters.
    quarters = (since_1970_ns // 1000 * 4).astype(np.float64) + since_1970_ns % 1000 / 250
    start_ps = (quarters.astype(np.int64) * 250 - opened.zero_unix_ns) * 1000
    opened.slices = opened.slices.with_columns(start_ps=pl.Series(start_ps))
    return opened


def source_of(name: str, rank: int) -> int:
    """The source that HTA calls this rank; files that name none are its rank 0."""
    ranks = [source.rank for source in profile(name).sources]
    return ranks.index(rank) if rank in ranks else 0


def test_every_answer_of_hta_is_held_against():
    assert {path.stem for path in reference("oracle/hta_ns").glob("*.json")} == set(SETS)


@pytest.mark.parametrize("name", SETS)
def test_temporal_breakdown(name: str):
    rows = {row["source"]: row for row in hta.temporal_breakdown(hta.events(profile(name))).iter_rows(named=True)}
    want = oracle(name)["temporal_breakdown"]
    assert len(rows) == len(want)
    for theirs in want:
        mine = rows[source_of(name, theirs["rank"])]
        for part in ("idle", "compute", "non_compute", "kernel"):
            # Their sums of doubles are off by up to a nanosecond, and by more where a double holds a quarter of a microsecond.
            assert mine[f"{part}_ps"] / 1e6 == pytest.approx(theirs[f"{part}_time(us)"], abs=0.1 if name == ABSOLUTE else 2e-3)


@pytest.mark.parametrize("name", SETS)
def test_idle_breakdown(name: str):
    times, gaps = oracle(name)["idle_time_breakdown"]
    want = {(source_of(name, row["rank"]), row["stream"], row["idle_category"]): row["idle_time"] for row in times}
    rows = hta.idle_breakdown(profile(name), hta.events(profile(name))).filter(pl.col("source").is_in({source for source, _, _ in want}))
    got = {(row["source"], row["stream"], row["idle_category"]): row for row in rows.iter_rows(named=True)}
    assert set(got) == set(want)
    assert {key: round(row["idle_ps"] / 1e6, 2) for key, row in got.items()} == pytest.approx(want, abs=0.011)
    # The second table has the count of gaps, row for row with the first.
    counts = {key: int(row["count"]) for key, row in zip(want, gaps, strict=True)}
    assert {key: row["gaps"] for key, row in got.items()} == counts


@pytest.mark.parametrize("name", SETS)
def test_overlap_of_communication_and_computation(name: str):
    got = dict(hta.comm_comp_overlap(hta.events(profile(name))).iter_rows())
    for theirs in oracle(name)["comm_comp_overlap"]:
        mine, want = got[source_of(name, theirs["rank"])], theirs["comp_comm_overlap_pctg"]
        assert mine is None if want is None else mine == pytest.approx(want, abs=0.005 + 1e-9)


def test_hta_leaves_the_last_step_out_and_roofterm_does_not():
    """A100, rank 3 of 8, six steps. HTA sees five: 383,404 us from first to last event less 62,119 idle are 321,285 us busy.

    The file holds 388,587 us of busy device, which a slow reader of it finds too.
    """
    name = "hta_a100_rank3of8_train"
    (row,) = hta.temporal_breakdown(hta.events(profile(name))).iter_rows(named=True)
    assert row["kernel_ps"] - row["idle_ps"] == 321_285 * US
    whole = slow_reader.read(reference(f"traces/torch/{name}.json.gz")).busy()
    assert whole == 388_587 * US
    assert Study(profile(name)).summary().gpu_busy_us == whole / US


def test_hta_lets_streams_idle_one_by_one_and_roofterm_the_device():
    """MI300X with checkpointing: while one stream waits for the other, the device works.

    HTA's temporal breakdown and roofterm's steps agree on 0.28 ms of idle device (its last step stays, since its projection on
    the device starts after all launches). HTA's idle breakdown adds up 44.3 ms over two streams.
    """
    name = "tracelens_mi300x_resnet_act_ckpt_rank0of8"
    (row,) = hta.temporal_breakdown(hta.events(profile(name))).iter_rows(named=True)
    steps = Study(profile(name)).steps()
    assert sum(step.idle_us or 0 for step in steps) == pytest.approx(row["idle_ps"] / US, abs=0.01)
    assert row["idle_ps"] / US == pytest.approx(283.54, abs=0.01)
    assert hta.idle_breakdown(profile(name), hta.events(profile(name)))["idle_ps"].sum() / US == pytest.approx(44_335.5, abs=0.1)


def test_hidden_communication_is_the_same_over_the_same_work():
    """HTA's 25.25 % of communication under computation are roofterm's over the steps: 1 - exposed / all.

    Over the whole file 22 % are hidden: five collectives were launched before the window, which HTA leaves out.
    """
    name = "tracelens_mi300x_resnet_act_ckpt_rank0of8"
    study = Study(profile(name))
    exposed = sum(step.exposed_comm_us or 0 for step in study.steps())
    whole = sum(step.comm_us or 0 for step in study.steps())
    assert 100 * (1 - exposed / whole) == pytest.approx(25.25, abs=0.005)
    kernels = slow_reader.read(reference(f"traces/torch/{name}.json.gz")).kernels
    spans = {collective: [(p.start, p.end) for p in kernels if p.name.startswith("nccl") is collective] for collective in (True, False)}
    assert (len(spans[True]), sum(p.launch is None for p in kernels if p.name.startswith("nccl"))) == (17, 5)
    summary = study.summary()
    assert summary.comm_us == sum(end - start for start, end in spans[True]) / US
    assert summary.exposed_comm_us == (slow_reader.length(spans[True] + spans[False]) - slow_reader.length(spans[False])) / US
    assert 1 - summary.exposed_comm_us / summary.comm_us < 0.23
