"""Measured roofs between runs: one record a key, written whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from roofterm.hardware.runner import keep
from roofterm.hardware.store import MeasuredDevice, MeasuredRoofs, find_roofs, keep_roofs, load_roofs, same_node, store_path
from roofterm_parsers.errors import ProfileError

GPU = MeasuredDevice("NVIDIA H100 80GB HBM3", "gpu", "nvidia", 0, 132, 85_018_279_936, "9.0")


def _roofs(**changes: Any) -> MeasuredRoofs:
    given: dict[str, Any] = {
        "node": "box7",
        "measured_at": "2026-05-01T10:00:00Z",
        "device": GPU,
        "torch": "2.13.0",
        "driver": "570.1",
        "power_limit_w": 700.0,
        "clocks_mhz": {"sm": 1980.0},
        "partition": None,
        "threads": None,
        "peaks": {"bf16": 795e12},
        "bandwidths": {"hbm": 3.0e12},
        "links": {},
        "launch_s": {},
        "noisy": [],
        "notes": [],
        "seconds": 25.0,
        "details": {"gemm": {"bf16": {}}},
    }
    return MeasuredRoofs(**{**given, **changes})


def test_the_file_lies_with_the_users_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert store_path() == tmp_path / "roofterm" / "roofs.json"
    assert keep_roofs(_roofs()) == store_path()
    assert load_roofs()[0].peaks == {"bf16": 795e12}


def test_a_new_measurement_replaces_one_with_the_same_key(tmp_path: Path) -> None:
    path = tmp_path / "a" / "roofs.json"
    keep_roofs(_roofs(), path)
    keep_roofs(_roofs(measured_at="2026-06-01T10:00:00Z", peaks={"bf16": 1.0}), path)
    (record,) = load_roofs(path)
    assert record.peaks == {"bf16": 1.0}


@pytest.mark.parametrize(
    "change",
    [
        {"node": "box8"},
        {"device": MeasuredDevice("NVIDIA H100 80GB HBM3", "gpu", units=66)},
        {"power_limit_w": 350.0},
        {"clocks_mhz": {"sm": 1200.0}},
        {"partition": "MPS"},
        {"driver": "575.0"},
        {"torch": "2.14.0"},
        {"threads": 8},
    ],
)
def test_whatever_changes_the_roofs_is_part_of_the_key(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "roofs.json"
    keep_roofs(_roofs(), path)
    keep_roofs(_roofs(**change), path)
    assert len(load_roofs(path)) == 2


def test_the_file_is_json_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = keep_roofs(_roofs(), tmp_path / "roofs.json")
    assert json.loads(path.read_text())["schema"] == "roofterm.roofs/1"
    assert json.loads(path.read_text())["records"][0]["details"] == {"gemm": {"bf16": {}}}
    assert [file.name for file in tmp_path.iterdir()] == ["roofs.json"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = keep_roofs(_roofs(), tmp_path / "roofs.json")
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ProfileError, match="no space left"):
        keep(_roofs(node="box8"), path=path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["roofs.json"]


def test_a_file_that_is_no_store_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    path = tmp_path / "roofs.json"
    path.write_text('{"records": [{"node": 5}]}')
    with pytest.raises(ProfileError, match="remove the file"):
        load_roofs(path)
    assert load_roofs(tmp_path / "none.json") == []


def test_noisy_roofs_are_kept_only_by_force(tmp_path: Path) -> None:
    path = tmp_path / "roofs.json"
    noisy = _roofs(noisy=["copy: the best three samples differ by 23%"])
    with pytest.raises(ProfileError, match="23%"):
        keep(noisy, path=path)
    assert not path.exists()
    assert keep(noisy, force=True, path=path) == path


def test_a_record_is_found_by_node_and_device() -> None:
    cpu = _roofs(device=MeasuredDevice("AMD EPYC", "cpu", units=64), threads=64)
    records = [_roofs(), cpu]
    assert find_roofs(records, "BOX7.example.org", GPU.name, 132, 85_000_000_000) is records[0]
    assert find_roofs(records, "box7", GPU.name) is records[0]  # an old profile names the device only
    assert find_roofs(records, "box7", None, 132) is records[0]
    assert find_roofs(records, "box7", None) is None  # nothing to know it by
    assert find_roofs(records, "box7", GPU.name, 132, 42_000_000_000) is None
    assert find_roofs(records, "box70", GPU.name) is None
    assert find_roofs(records, "box7", None, kind="cpu") is cpu


def test_a_node_is_the_same_with_its_domain() -> None:
    assert same_node("gpu-01.cluster", "GPU-01")
    assert not same_node("gpu-01", "gpu-011")
