"""A device's roofs: which source counts, how each figure is labelled, and what a reader is warned of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from roofterm.hardware.choice import RoofChoice
from roofterm.hardware.config_devices import parse_user_devices
from roofterm.hardware.host import host_info
from roofterm.hardware.roofs import device_info, device_infos, device_warnings, mfu_peak, named_device
from roofterm.hardware.store import MeasuredDevice, MeasuredRoofs, keep_roofs
from roofterm_parsers.errors import ProfileError
from roofterm_parsers.profile import DEVICES, Profile, Source

H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "kind": "gpu", "units": 132, "memory_bytes": 85_018_279_936, "capability": "9.0"}
MIG = {"id": 0, "name": "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "kind": "gpu", "units": 14, "memory_bytes": 5_100_273_664, "capability": "8.0"}
UNKNOWN = {"id": 0, "name": "NVIDIA Graphics Device", "kind": "gpu", "units": 7, "memory_bytes": 85_045_346_304, "capability": "13.0"}
V6E = {
    "id": 3,
    "name": "TPU v6 Lite",
    "kind": "tpu",
    "peak_flops": 946.7e12,
    "bandwidths": '{"hbm": 1637993152512, "vmem_read": 23296009987686, "cmem_read": 0}',
}


def _measured(name: str = "NVIDIA H100 80GB HBM3", **changes: Any) -> MeasuredRoofs:
    given: dict[str, Any] = {
        "node": "box7",
        "measured_at": "2026-05-01T10:00:00Z",
        "device": MeasuredDevice(name, "gpu", "nvidia", 0, 132, 85_018_279_936, "9.0"),
        "torch": "2.13.0",
        "driver": "570.1",
        "power_limit_w": 700.0,
        "clocks_mhz": {"sm": 1980.0},
        "partition": None,
        "threads": None,
        "peaks": {"bf16": 795e12},
        "bandwidths": {"hbm": 3.0e12},
        "links": {"pcie": 55e9},
        "launch_s": {"spacing": 2e-6},
        "noisy": [],
        "notes": [],
        "seconds": 25.0,
    }
    return MeasuredRoofs(**{**given, **changes})


def _profile(*rows: dict[str, Any], host: str | None = None) -> Profile:
    blank = dict.fromkeys(DEVICES)
    devices = pl.DataFrame([{**blank, "source": 0, "worked": True, **row} for row in rows], schema=DEVICES)
    return Profile(sources=[Source("t.json", "kineto", "plain", host=host)], devices=devices)


@pytest.fixture(autouse=True)
def _empty_home(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))


def test_vendor_roofs_with_their_labels_and_ridge() -> None:
    info = device_info(H100)
    assert (info.model, info.roofs_from, info.matched_by) == ("h100-sxm5-80gb", "vendor", "exact name")
    assert info.peaks["bf16"] == 989.4e12
    assert info.bandwidths["hbm"] == 3.35232e12
    assert info.links["nvlink"] == 450e9
    # 989.4e12 FLOP/s over 3.35232e12 B/s
    assert info.ridge["bf16"]["hbm"] == pytest.approx(295.14, abs=0.01)
    # no vendor states an L2 bandwidth, and L1 is 132 SMs x 128 B x 1.98 GHz
    assert (info.sources["bf16"], info.sources["hbm"], info.sources["l2"], info.sources["l1"]) == ("vendor", "vendor", "derived", "derived")
    assert info.bandwidths["l1"] == pytest.approx(132 * 128 * 1.98e9, rel=1e-6)
    assert device_warnings([info]) == []


def test_a_mig_slice_is_scaled_labelled_derived_and_warned_of() -> None:
    info = device_info(MIG)
    # 14 of 108 SMs, one of eight memory slices
    assert info.peaks["bf16"] == pytest.approx(312e12 * 14 / 108)
    assert info.bandwidths["hbm"] == 1.555e12 / 8
    assert info.bandwidths["l2"] == 7.219e12 / 8
    assert info.bandwidths["l1"] == pytest.approx(19.49184e12 * 14 / 108)
    assert set(info.links) == {"pcie"}
    assert info.roofs_from == "derived"
    assert set(info.sources.values()) == {"derived"}
    (warning,) = device_warnings([info])
    assert warning.code == "partition"
    assert "MIG 1g.5gb" in warning.message


def test_an_unknown_device_has_no_roof_and_one_warning_for_all_of_its_kind() -> None:
    infos = [device_info({**UNKNOWN, "id": number}) for number in range(8)]
    assert (infos[0].model, infos[0].peaks, infos[0].roofs_from) == (None, {}, None)
    (warning,) = device_warnings(infos)
    assert (warning.code, warning.count) == ("unknown-device", 8)
    assert "--device" in warning.message


def test_a_tpu_uses_what_its_profile_states_for_the_core_that_ran() -> None:
    info = device_info(V6E)
    assert info.roofs_from == "trace"
    assert (info.peaks["bf16"], info.sources["bf16"]) == (946.7e12, "trace")
    assert info.bandwidths["vmem_read"] == 23296009987686
    assert "cmem_read" not in info.bandwidths  # 0: there is none on this chip
    # what the profile does not state comes from the table
    assert (info.peaks["int8"], info.sources["int8"]) == (1836e12, "vendor")
    assert info.memory_bytes == 32 * 2**30  # of the table: a TPU's plane states none
    assert device_info({**V6E, "name": "TPU v5"}).memory_bytes == pytest.approx(102e9 / 2, rel=0.02)  # half a chip
    vendor = device_info(V6E, RoofChoice(roofs="vendor"))
    assert (vendor.peaks["bf16"], vendor.roofs_from) == (918e12, "vendor")


def test_a_gpus_profile_does_not_override_the_vendor() -> None:
    """XLA states 2.66e12 B/s for MI300X, half of the 5.3e12 it has."""
    row = {"id": 0, "name": None, "kind": "gpu", "units": 304, "memory_bytes": 206_141_652_992, "capability": "9.4"}
    info = device_info({**row, "bandwidths": '{"hbm": 2662400000000}'})
    assert info.bandwidths["hbm"] == 5.3e12
    assert info.sets["trace"].bandwidths == {"hbm": 2.6624e12}
    assert device_info({**row, "bandwidths": '{"hbm": 2662400000000}'}, RoofChoice(roofs="trace")).bandwidths["hbm"] == 2.6624e12


def test_options_come_before_everything() -> None:
    info = device_info(V6E, RoofChoice(peaks={"bf16": 1e15}, bandwidths={"hbm": 2e12}))
    assert (info.peaks["bf16"], info.bandwidths["hbm"]) == (1e15, 2e12)
    assert (info.sources["bf16"], info.sources["hbm"], info.sources["int8"]) == ("given", "given", "vendor")
    assert info.roofs_from == "option"
    assert info.ridge["bf16"]["hbm"] == 500
    unknown = device_info(UNKNOWN, RoofChoice(peaks={"bf16": 1e15}))
    assert (unknown.peaks, unknown.roofs_from, device_warnings([unknown])) == ({"bf16": 1e15}, "option", [])


def test_another_devices_peaks_may_be_used() -> None:
    info = device_info(UNKNOWN, RoofChoice(device="h200-sxm"))
    assert (info.model, info.matched_by, info.roofs_from) == ("h200-sxm", "--device h200-sxm", "vendor")
    assert info.bandwidths["hbm"] == 4.8e12
    assert info.name == "NVIDIA Graphics Device"
    assert any("--device" in note for note in info.notes)
    # of a chip's figures a TPU profile's device is one core
    assert device_info(V6E, RoofChoice(device="tpu-v5p")).peaks["bf16"] == 459e12 / 2


@pytest.mark.parametrize(("name", "says"), [("a100", "a100-sxm4-80gb"), ("nonsense", "roofterm devices")])
def test_a_device_that_is_not_known_is_an_error_that_helps(name: str, says: str) -> None:
    with pytest.raises(ProfileError, match=says):
        device_info(H100, RoofChoice(device=name))


def test_measured_roofs_of_the_same_node_and_device_count_and_the_vendors_stand_beside() -> None:
    info = device_info(H100, store=[_measured()], host="box7.cluster.example")
    assert (info.peaks["bf16"], info.bandwidths["hbm"], info.roofs_from) == (795e12, 3.0e12, "measured")
    assert (info.sources["bf16"], info.sources["fp8"]) == ("measured", "vendor")
    assert info.sets["vendor"].peaks["bf16"] == 989.4e12
    assert any("measured on box7" in note for note in info.notes)
    assert device_info(H100, RoofChoice(roofs="vendor"), [_measured()], host="box7").peaks["bf16"] == 989.4e12


@pytest.mark.parametrize(("row", "host"), [(H100, "box8"), ({**H100, "units": 114}, "box7"), ({**H100, "name": "NVIDIA H100 NVL"}, "box7")])
def test_measured_roofs_of_another_node_or_device_do_not_count(row: dict[str, Any], host: str) -> None:
    assert "measured" not in device_info(row, store=[_measured()], host=host).sets


def test_the_newest_measurement_counts() -> None:
    old, new = _measured(measured_at="2026-01-01T00:00:00Z", peaks={"bf16": 1.0}), _measured()
    assert device_info(H100, store=[new, old], host="box7").peaks["bf16"] == 795e12


def test_the_users_corrections_come_before_measured_and_vendor() -> None:
    user = parse_user_devices("[devices.h100-sxm5-80gb]\nbandwidths_gbps = { hbm = 3300 }\n")
    info = device_info(H100, store=[_measured()], user=user, host="box7")
    assert (info.bandwidths["hbm"], info.sources["hbm"], info.peaks["bf16"]) == (3.3e12, "given", 795e12)


def test_the_users_own_devices_are_found_by_their_names() -> None:
    user = parse_user_devices('[devices.mtia-2]\nnames = ["ARTEMIS"]\npeaks_tflops = { bf16 = 177 }\nbandwidths_gbps = { hbm = 204.8 }\n')
    info = device_info({"id": 0, "name": "ARTEMIS", "kind": "mtia"}, user=user)
    assert (info.model, info.peaks, info.bandwidths) == ("mtia-2", {"bf16": 177e12}, {"hbm": 204.8e9})
    assert device_info(UNKNOWN, RoofChoice(device="mtia-2"), user=user).peaks == {"bf16": 177e12}
    like = parse_user_devices(
        '[devices.h100-96gb]\nnames = ["NVIDIA Graphics Device"]\nlike = "h100-nvl"\nbandwidths_gbps = { hbm = 3900 }\n'
    )
    info = device_info(UNKNOWN, user=like)
    assert (info.peaks["bf16"], info.bandwidths["hbm"]) == (835e12, 3.9e12)


def test_mfu_is_held_against_the_vendors_dense_peak_whatever_was_measured() -> None:
    assert mfu_peak(device_info(H100, store=[_measured()], host="box7")) == ("bf16", 989.4e12)
    assert mfu_peak(device_info(V6E)) == ("bf16", 918e12)
    assert mfu_peak(device_info({"name": "Tesla T4", "kind": "gpu"})) == ("fp16", 65e12)
    assert mfu_peak(device_info(H100, RoofChoice(peaks={"bf16": 1e15}))) == ("bf16", 1e15)
    assert mfu_peak(device_info({"name": "Tesla P100-SXM2-16GB", "kind": "gpu"})) is None  # no tensor unit, neither dtype
    assert mfu_peak(device_info(UNKNOWN)) is None


def test_devices_of_a_profile_are_those_that_worked() -> None:
    rows = [{**H100, "id": number, "worked": number == 2} for number in range(4)]
    assert [info.id for info in device_infos(_profile(*rows))] == [2]
    idle = [{**row, "worked": False} for row in rows]
    assert len(device_infos(_profile(*idle))) == 4
    assert device_infos(_profile()) == []


def test_roofs_that_no_device_has_are_an_error() -> None:
    with pytest.raises(ProfileError, match="roofterm measure"):
        device_infos(_profile(H100), RoofChoice(roofs="measured"))
    with pytest.raises(ProfileError, match="states no peaks"):
        device_infos(_profile(H100), RoofChoice(roofs="trace"))
    with pytest.raises(ProfileError, match="measured, vendor or trace"):
        device_infos(_profile(H100), RoofChoice(roofs="guess"))


def test_kept_roofs_are_used_for_a_profile_of_that_node() -> None:
    keep_roofs(_measured())
    (info,) = device_infos(_profile(H100, host="box7"))
    assert info.roofs_from == "measured"
    (info,) = device_infos(_profile(H100, host="elsewhere"))
    assert info.roofs_from == "vendor"


def test_a_cpu_has_the_roofs_that_were_measured_on_its_host_or_none() -> None:
    cpu = _measured(
        "AMD EPYC", device=MeasuredDevice("AMD EPYC", "cpu", units=64), threads=64, peaks={"fp32": 4e12}, bandwidths={"hbm": 4e11}
    )
    assert host_info("box7", store=[], user={}).peaks == {}
    info = host_info("box7", store=[cpu], user={})
    assert (info.peaks, info.roofs_from, info.ridge["fp32"]["hbm"]) == ({"fp32": 4e12}, "measured", 10)
    assert host_info("box8", store=[cpu], user={}).peaks == {}
    assert host_info(None, store=[cpu], user={}).peaks == {}  # recorded who knows where
    given = host_info("box7", RoofChoice(peaks={"fp32": 5e12}), store=[cpu], user={})
    assert (given.peaks["fp32"], given.sources["hbm"], given.roofs_from) == (5e12, "measured", "option")


def test_a_users_device_can_be_asked_about_by_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "roofterm"
    folder.mkdir()
    (folder / "config.toml").write_text(
        "[devices.mine]\npeaks_tflops = { bf16 = 100 }\nbandwidths_gbps = { hbm = 200 }\nmemory_bytes = 16_000_000_000\n"
    )
    info = named_device("mine")
    assert (info.peaks, info.bandwidths, info.memory_bytes) == ({"bf16": 100e12}, {"hbm": 200e9}, 16_000_000_000)
