"""The roofline of real and of nasty profiles: what it covers, what lies above a roof and why, and figures of other sources."""

from __future__ import annotations

import gzip
import json
from functools import lru_cache
from typing import Any

import polars as pl
import pytest

from roofterm.analysis.bounded import Bounded, bounded
from roofterm.analysis.roofline import coverage_table, flops_total, roof_warnings, roofline
from roofterm.analysis.study import Study
from roofterm.results import DeviceInfo, Roofline, RooflineRow
from roofterm_parsers import open_profile
from tests.reference import reference

COVERED = (
    "tracelens_h100_qwen05b_chat.json.gz",
    "tracelens_h100_timesformer.json.gz",
    "tracelens_h100_bert_small.json.gz",
    "tracelens_mi300x_qwen05b_chat.json.gz",
    "tracelens_mi300x_owlv2.json.gz",
    "tracelens_mi300x_resnet_act_ckpt_rank0of8.json.gz",
    "tracelens_mi300x_normalization_ops.json.gz",
    "kineto_v100_resnet50_2021_workers0.pt.trace.json.gz",
    "kineto_v100_resnet50_2021_workers4.pt.trace.json.gz",
)


@lru_cache(maxsize=2)
def study_of(name: str) -> Study:
    return Study(open_profile(str(reference(name)), cache=False))


def device_of(study: Study) -> DeviceInfo | None:
    devices = study.devices()
    return devices[0] if devices else None


@lru_cache(maxsize=2)
def whole(name: str) -> tuple[Roofline, Bounded]:
    study = study_of(name)
    device = device_of(study)
    found = bounded(study.profile, study.work, study.facts, device)
    return roofline(study.profile, found, study.work, device, top=0), found


@pytest.mark.parametrize("trace", COVERED)
def test_work_that_hangs_on_an_op_with_shapes_is_covered(trace: str) -> None:
    _, found = whole(f"traces/torch/{trace}")
    table = coverage_table(found.items).filter(pl.col("origin") == "op")
    known = table.filter(pl.col("known") != "unknown")
    assert float(known["pct"].sum()) >= 0.97 * float(table["pct"].sum()) > 0


REASONS = (
    "operands came from a cache",
    "part of the operands was still in a cache",
    "Winograd or FFT kernels",
    "an asynchronous op",
    "the clock of this file is too coarse",
)
"""Causes that were checked for the ops concerned: their bytes stand beside the device's cache, their kernels' names say the rest."""


@pytest.mark.parametrize("trace", COVERED)
def test_nothing_lies_above_its_roof_without_a_flag_and_a_reason(trace: str) -> None:
    got, _ = whole(f"traces/torch/{trace}")
    assert got.ops
    for row in got.ops:
        flagged = [flag for flag in row.flags if flag.startswith("above-roof")]
        if row.pct_of_roof is not None and row.pct_of_roof > 100.5:
            assert flagged, row.name
        for flag in flagged:
            assert any(reason in flag for reason in REASONS), (row.name, row.shapes, flag)
    assert roof_warnings(got.ops) == []


CACHE_MIB = {"kineto_v100": 6, "tracelens_h100": 50, "tracelens_mi300x": 256}
"""the last cache before memory: L2 of V100 and H100, Infinity Cache of MI300X"""

WINOGRAD_SAVES = 4.0
"""F(4x4, 3x3) needs 36 products where the direct form has 144 (Lavin 2016), the most that cuDNN's kernels save."""


def flagged(trace: str) -> list[RooflineRow]:
    got, _ = whole(f"traces/torch/{trace}")
    return [row for row in got.ops if any(flag.startswith("above-roof") for flag in row.flags)]


def said(row: RooflineRow, reason: str) -> bool:
    return any(flag.startswith("above-roof") and reason in flag for flag in row.flags)


@pytest.mark.parametrize("trace", COVERED)
def test_a_cache_is_only_named_where_it_is_large_enough(trace: str) -> None:
    """What a cache can hold need not come from memory: without it, what is left is no quicker than memory's roof."""
    cache = next(size for name, size in CACHE_MIB.items() if trace.startswith(name)) * 2**20
    for row in flagged(trace):
        size = row.bytes.get("hbm", 0.0) / row.calls
        if said(row, "operands came from a cache"):
            assert size <= cache, row.name
        if said(row, "part of the operands was still in a cache"):
            assert size > cache
            assert (row.pct_of_roof or 0.0) * (1 - cache / size) <= 100.5, (row.name, row.shapes)


@pytest.mark.parametrize("trace", COVERED)
def test_winograd_is_only_named_where_its_kernels_ran(trace: str) -> None:
    rows = [row for row in flagged(trace) if said(row, "Winograd")]
    _, found = whole(f"traces/torch/{trace}")
    profile = study_of(f"traces/torch/{trace}").profile
    pieces = found.costed.pieces.join(found.items.select("item", "text", "signature"), on="item", how="left")
    kernels = profile.names["text"].gather(profile.slices["name"].gather(pieces["slice"]))
    dims = profile.signatures["dims"].gather(pieces["signature"])
    for row in rows:
        assert row.bound_by == "compute"
        assert ",3,3]" in (row.shapes or "").replace(" ", "")  # what Winograd can do: 3 x 3 filters
        assert (row.pct_of_roof or 0.0) <= 100 * WINOGRAD_SAVES
        ran = kernels.filter((pieces["text"] == row.name) & (dims == row.shapes).fill_null(False))
        assert ran.str.contains("(?i)winograd").any()
    assert bool(rows) == trace.startswith("kineto_v100")  # cuDNN in fp32


@pytest.mark.parametrize("trace", COVERED)
def test_the_clock_is_only_blamed_where_a_microsecond_is_what_is_missing(trace: str) -> None:
    """Files of 2021 have whole microseconds: work of two kernels may have taken two more than it says."""
    _, found = whole(f"traces/torch/{trace}")
    pieces = dict(found.items.group_by("text").agg(pl.col("pieces").max()).iter_rows())
    for row in flagged(trace):
        if said(row, "too coarse"):
            assert trace.startswith("kineto_v100")
            assert (row.time_bound_us or 0.0) <= row.time_us + row.calls * pieces[row.name], row.name


def test_a_products_figures_by_hand() -> None:
    # tracelens_h100_timesformer: addmm [25089, 768] x [768, 3072], 12 calls of 1977.7 us together
    got, _ = whole("traces/torch/tracelens_h100_timesformer.json.gz")
    shapes = [[3072], [25089, 768], [768, 3072], [], []]
    row = next(row for row in got.ops if row.name == "aten::addmm" and json.loads(row.shapes or "0") == shapes)
    flops = 12 * 2 * 25089 * 768 * 3072
    assert (row.calls, row.flops) == (12, flops)
    assert row.bytes["hbm"] == 12 * 2 * (3072 + 25089 * 768 + 768 * 3072 + 25089 * 3072)
    assert row.pct_of_roof == pytest.approx(100 * flops / 989.4e12 / (row.time_us * 1e-6), rel=1e-9)
    assert row.bound_by == row.limiter == "compute"


def test_checkpointed_training_counts_its_recomputation_for_hfu_alone() -> None:
    _, found = whole("traces/torch/tracelens_mi300x_resnet_act_ckpt_rank0of8.json.gz")
    again = found.items.filter(pl.col("recomputed"))
    assert again["flops"].sum() > 0
    assert again["model_flops"].sum() == 0
    # Every block but the stem is computed twice: about a forward's work, a third of forward and backward together.
    convolutions = found.items.filter(pl.col("category") == 1)
    once = float(convolutions["model_flops"].sum())
    assert 0.2 <= float(again.filter(pl.col("category") == 1)["flops"].sum()) / once <= 0.4


FLOPS_TOTAL = {
    "roof_above.json": 274877906944,
    "gpu_op_nesting_double_count.json": 231211008,
    "xplane_tpu_good.xplane.pb": 30000000000,
}


@pytest.mark.parametrize("name", FLOPS_TOTAL)
def test_flops_of_all_launches_are_counted_once(name: str) -> None:
    study = study_of(f"nasty/{name}")
    assert flops_total(study.bounded().items) == FLOPS_TOTAL[name]


def test_a_product_of_137_petaflops_is_flagged_and_warned_of() -> None:
    got, _ = whole("nasty/roof_above.json")
    assert got.ops[0].flags[0].startswith("above-roof: 1 of 2 calls")
    warning = roof_warnings(got.ops)[0]
    assert "above" in warning.message
    assert "suspicious" in warning.message


def test_odd_shapes_are_unknown_and_never_0() -> None:
    got, _ = whole("nasty/roof_zero_and_odd_shapes.json")
    assert len(got.ops) == 6
    assert all((row.flops, row.bytes, row.pct_of_roof, row.flags) == (None, {}, None, []) for row in got.ops)


def xprof_rows(name: str) -> list[dict[str, Any]]:
    """Rows of XProf's roofline over the whole profile, infeed included; their columns by id."""
    table = json.loads(gzip.decompress(reference(f"oracle/xprof/{name}/roofline_model.json.gz").read_bytes()))[0]
    columns = [column["id"] for column in table["cols"]]
    rows = [dict(zip(columns, [cell and cell.get("v") for cell in row["c"]], strict=True)) for row in table["rows"]]
    return [row for row in rows if row["step"] == "Total" and row["include_infeed_outfeed"]]


GIB = 2**30


def test_a_tpus_figures_are_xprofs() -> None:
    """But for asynchronous copies: their bytes XProf counts at the start too, and holds against the done op's own length."""
    got, _ = whole("traces/xplane/tpu_v6e_inference.xplane.pb")
    ours = {row.name: row for row in got.ops}
    theirs = xprof_rows("tpu_v6e_inference")
    compared = 0
    for row in theirs[1:]:
        mine = ours[row["operation"]]
        assert mine.calls == row["occurrences"]
        assert mine.time_us == pytest.approx(row["total_time"], rel=1e-9)
        if row["category"] == "copy-start":
            continue
        assert (mine.flops_per_s or 0) / 1e9 == pytest.approx(row["measured_flop_rate"], rel=1e-9)
        assert mine.bytes["hbm"] / mine.time_us * 1e6 / GIB == pytest.approx(row["hbm_bw"], rel=1e-9)
        assert mine.bound_by == row["bound_by"].lower()
        compared += 1
        if row["category"] == "copy-done":
            assert mine.pct_of_roof is not None
            assert mine.pct_of_roof < 2  # from or to the host's memory, at 9 to 30 GB/s of 1,638
            continue
        assert mine.bytes_per_s["hbm"] / GIB == pytest.approx(row["hbm_bw"], rel=1e-9)
        assert mine.pct_of_roof == pytest.approx(100 * row["roofline_efficiency"], rel=1e-6)
    assert compared > 10
    program = got.program[0]
    assert program.time_us == pytest.approx(theirs[0]["total_time"], rel=1e-9)
    assert (program.flops_per_s or 0) / 1e9 == pytest.approx(theirs[0]["measured_flop_rate"], rel=1e-9)


def test_a_custom_calls_flops_count() -> None:
    """XProf 2.23.1 counts a Pallas kernel's FLOPs, 2.24.2 leaves them out: 3 calls of 1,076,887,552."""
    got, _ = whole("traces/xplane/tpu_v6e_pallas_matmul.xplane.pb")
    assert got.ops[0].flops == 3 * 1076887552


def test_a_fused_attentions_kernels_are_one_op() -> None:
    """Each of its executions launches four kernels and counts once: 5 executions of 2 layers, forward and backward."""
    got, _ = whole("traces/xplane/gpu_mi355x_jax_te_fused_attn.xplane.pb")
    attention = [row for row in got.ops if row.category == "attention"]
    assert [row.calls for row in attention] == [5] * len(attention)
    assert roof_warnings(got.ops) == []
