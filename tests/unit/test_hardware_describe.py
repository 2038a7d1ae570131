"""What `roofterm devices [NAME]` shows."""

from __future__ import annotations

import polars as pl
import pytest

from roofterm.hardware.config_devices import parse_user_devices
from roofterm.hardware.describe import DEVICES_TABLE, describe, devices_frame
from roofterm.hardware.table import load_table


def test_the_table_has_a_row_for_each_device() -> None:
    frame = devices_frame(user={})
    assert frame.schema == DEVICES_TABLE
    assert frame["id"].to_list() == [device.id for device in load_table().devices]
    h100 = frame.row(by_predicate=pl.col("id") == "h100-sxm5-80gb", named=True)
    assert (h100["bf16_tflops"], h100["fp8_tflops"], h100["units"], h100["memory_tbps"]) == (989.4, 1978.9, 132, 3.35232)
    assert h100["ridge_flop_per_byte"] == pytest.approx(989.4 / 3.35232)
    p100 = frame.row(by_predicate=pl.col("id") == "p100-sxm2", named=True)
    assert (p100["bf16_tflops"], p100["fp16_tflops"]) == (None, None)  # unknown is null, never 0


def test_the_users_devices_and_corrections_are_in_it() -> None:
    user = parse_user_devices(
        '[devices.mine]\nlike = "h200-sxm"\nnames = ["X"]\npeaks_tflops = { bf16 = 500 }\n[devices.l4]\nbandwidths_gbps = { hbm = 250 }'
    )
    frame = devices_frame(user)
    assert len(frame) == len(load_table().devices) + 1
    mine, l4 = (frame.row(by_predicate=pl.col("id") == name, named=True) for name in ("mine", "l4"))
    assert (mine["bf16_tflops"], mine["memory_tbps"], mine["confidence"]) == (500, 4.8, "config.toml")
    assert (l4["bf16_tflops"], l4["memory_tbps"], l4["confidence"]) == (121, 0.25, "config.toml")


def test_a_name_is_described_with_its_reasons_and_sources() -> None:
    found = describe("NVIDIA H100 80GB HBM3", user={}, store=[])
    assert (found.model, found.matched_by) == ("h100-sxm5-80gb", "exact name")
    assert found.peaks["bf16"] == 989.4e12
    assert "xla" in found.sources["memory"]
    assert any("1070.5" in text for text in found.disagreements)
    assert found.measured_by_others["bf16_flops"] == "794.5 TFLOP/s"


def test_a_slice_is_described_as_it_would_be_shown() -> None:
    found = describe("NVIDIA A100-SXM4-40GB MIG 1g.5gb", units=14, user={}, store=[])
    assert found.model == "a100-sxm4-40gb"
    assert found.peaks["bf16"] == pytest.approx(312e12 * 14 / 108)
    assert "MIG" in found.notes[0]


def test_what_is_not_known_names_what_comes_near() -> None:
    near = describe("a100", user={}, store=[])
    assert (near.model, near.peaks) == (None, {})
    assert "a100-pcie-40gb" in near.near
    assert "a100-pcie-40gb" in near.notes[0]
    nothing = describe("nonsense", user={}, store=[])
    assert (nothing.model, nothing.near) == (None, [])
    assert "roofterm measure" in nothing.notes[0]


def test_a_user_device_and_a_correction_are_described() -> None:
    user = parse_user_devices(
        '[devices.mine]\nnames = ["ARTEMIS"]\npeaks_tflops = { bf16 = 177 }\n[devices.l4]\npeaks_tflops = { bf16 = 100 }'
    )
    assert (describe("artemis", user=user, store=[]).model, describe("artemis", user=user, store=[]).peaks) == ("mine", {"bf16": 177e12})
    corrected = describe("NVIDIA L4", user=user, store=[])
    assert (corrected.model, corrected.peaks["bf16"], corrected.peaks["fp8"]) == ("l4", 100e12, 242e12)
    assert any("config.toml" in note for note in corrected.notes)


def test_a_cpu_is_described_by_its_formula() -> None:
    found = describe("cpu", user={}, store=[])
    assert any("amx" in note for note in found.notes)
    assert "measure" in found.matched_by
