"""Kineto's estimate of achieved occupancy, by its own formula, on every real file that states one beside the launch."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from roofterm.analysis.occupancy import kineto_occupancy, occupancies
from roofterm_parsers import open_profile
from tests.reference import reference

STATED = [
    "hta_a100_2gpu_resnet_nccl_meta.json.gz",
    "hta_a100_alexnet_critical_path.json.gz",
    "hta_a100_rank3of8_train.json.gz",
    "hta_gp100_gpu_user_annotation.json.gz",
    "hta_v100_resnet_ns_absolute_ts.pt.trace.json.gz",
    "kineto_v100_resnet50_2021_workers0.pt.trace.json.gz",
    "kineto_v100_resnet50_2021_workers4.pt.trace.json.gz",
    "param_2080ti_resnet.json.gz",
    "tracelens_h100_bert_small.json.gz",
    "tracelens_h100_qwen05b_chat.json.gz",
    "tracelens_h100_timesformer.json.gz",
]
"""GP100, V100, RTX 2080 Ti, A100 and H100: compute capabilities 6.0, 7.0, 7.5, 8.0 and 9.0."""


@pytest.mark.parametrize("name", STATED)
def test_kineto_says_what_its_formula_gives(name: str):
    profile = open_profile(reference(f"traces/torch/{name}"))
    stated = profile.kernels["occupancy_pct"].cast(pl.Int64)
    assert stated.len() > 0
    assert stated.null_count() == 0
    assert kineto_occupancy(profile).to_list() == stated.to_list()


def test_kernels_that_kineto_calls_empty_are_estimated():
    """H100 Qwen: 241 of the 245 kernels of 0 % take more than 48 KiB a block, GEMMs mostly; no kernel that ran fills nothing."""
    profile = open_profile(reference("traces/torch/tracelens_h100_qwen05b_chat.json.gz"))
    zero = profile.kernels.filter(pl.col("occupancy_pct") == 0)
    refused = zero.filter(pl.col("shared_bytes") > 48 * 1024)
    assert (zero.height, refused.height) == (245, 241)
    found = occupancies(profile).join(refused.select("slice"), on="slice", how="semi")
    assert found["estimated"].all()
    assert found["occupancy_pct"].min() > 0  # type: ignore[operator]


def test_rocm_kernels_with_a_grid_have_an_occupancy():
    """ROCm states none: every kernel of an eager MI300X trace has its grid, graph replays have theirs now and then."""
    whole = occupancies(open_profile(reference("traces/torch/tracelens_mi300x_owlv2.json.gz")))
    assert (whole.height, whole["occupancy_pct"].null_count(), whole["estimated"].sum()) == (4255, 0, 4255)
    assert whole["occupancy_pct"].max() <= 100  # type: ignore[operator]
    replayed = open_profile(reference("traces/torch/tracelens_mi300x_sglang_qwen3_8b_decode.json.gz"))
    assert occupancies(replayed)["occupancy_pct"].null_count() == replayed.kernels["grid_x"].null_count() > 0


def test_library_kernels_of_the_sample_fill_what_its_maker_worked_out():
    """The maker's card rounds down; a kernel with more than 48 KiB a block (H100: up to 227) has its figure there too."""
    path = Path(__file__).resolve().parents[2] / "samples" / "transformer_h100_synthetic.pt.trace.json.gz"
    profile = open_profile(path)
    stated = profile.kernels["occupancy_pct"].to_numpy()
    profile.kernels = profile.kernels.with_columns(occupancy_pct=pl.lit(None, pl.Float32))
    above = occupancies(profile)["occupancy_pct"].to_numpy() - stated
    assert ((above > -1e-6) & (above < 1)).all()
