"""Every device that the real traces name is found in the hardware table, or is unknown for a reason given here."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from roofterm.hardware.lookup import Facts, resolve
from roofterm.hardware.roofs import device_info, device_infos
from roofterm_parsers import open_profile
from tests.reference import reference

# name, units, memory bytes, capability, warp size, clock in Hz, model; read off the files' deviceProperties and planes.
SEEN: list[tuple[str | None, int | None, int | None, str | None, int | None, float | None, str]] = [
    ("NVIDIA A100-PG509-200", 108, 42_297_524_224, "8.0", 32, None, "a100-sxm4-40gb"),
    ("NVIDIA A100-PG509-200", 108, 42_505_273_344, "8.0", 32, None, "a100-sxm4-40gb"),
    ("Quadro GP100", 56, 17_069_309_952, "6.0", 32, None, "quadro-gp100"),
    # 104 CUs and 64 GiB are an MI210 as well as one die of an MI250: their peaks are the same
    ("AMD Radeon Graphics", 104, 68_702_699_520, "9.0", 64, None, "mi210 or mi250-gcd"),
    ("Tesla V100-SXM2-32GB", 80, 34_079_637_504, "7.0", 32, None, "v100-sxm2-32gb"),
    ("Tesla V100-SXM2-32GB", 80, 34_079_899_648, "7.0", 32, None, "v100-sxm2-32gb"),
    ("Tesla V100-DGXS-32GB", 80, 34_084_028_416, "7.0", 32, None, "v100-dgxs-32gb"),
    ("Tesla V100-DGXS-32GB", 80, 34_087_305_216, "7.0", 32, None, "v100-dgxs-32gb"),
    ("NVIDIA GeForce RTX 2080 Ti", 68, 11_554_586_624, "7.5", 32, None, "rtx-2080ti"),
    ("NVIDIA H100 80GB HBM3", 132, 85_018_279_936, "9.0", 32, None, "h100-sxm5-80gb"),
    ("AMD Instinct MI210", 104, 68_702_699_520, "9.0", 64, None, "mi210"),
    ("", 304, 206_141_652_992, "9.4", 64, None, "mi300x"),
    ("AMD Instinct MI300X VF", 304, 205_571_227_648, "9.4", 64, None, "mi300x"),
    ("AMD Instinct MI300X", 304, 206_141_652_992, "9.4", 64, None, "mi300x"),
    # XPlane files: GPU planes have no name; the clock tells SXM2 (1.53 GHz) from PCIe (1.38), MI355X (2.4) from MI350X (2.2)
    (None, 80, 16_945_512_448, "7.0", None, 1.53e9, "v100-sxm2-16gb"),
    (None, 304, 206_141_652_992, "9.4", None, 2.1e9, "mi300x"),
    (None, 256, 309_220_868_096, "9.5", None, 2.4e9, "mi355x"),
    ("TPU v6 Lite", None, None, None, None, None, "tpu-v6e"),
]

UNKNOWN = {
    "ARTEMIS": "Meta's MTIA, recorded without units, memory or capability; its peak is in no source of the table",
}


@pytest.mark.parametrize(("name", "units", "memory", "capability", "warp", "clock", "model"), SEEN)
def test_a_device_of_the_real_traces_is_found(
    name: str | None, units: int | None, memory: int | None, capability: str | None, warp: int | None, clock: float | None, model: str
) -> None:
    match = resolve(Facts(name, units, memory, capability, warp, clock_hz=clock))
    assert match.model == model


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_device_has_no_roof_and_is_told_what_to_do(name: str) -> None:
    info = device_info({"id": 0, "name": name, "kind": "mtia"})
    assert (info.model, info.peaks, info.bandwidths, info.roofs_from) == (None, {}, {}, None)
    assert any("--device" in note and "--peak" in note and "roofterm measure" in note for note in info.notes)


def test_every_name_in_the_torch_traces_is_among_them() -> None:
    known = {name for name, *_ in SEEN} | UNKNOWN.keys()
    found = {name for path in sorted(reference("traces/torch").rglob("*.gz")) for name in _device_names(path)}
    assert len(found) >= 10
    assert found - known == set()


def test_every_device_that_worked_in_the_xplane_files_is_found() -> None:
    known = {name for name, *_ in SEEN} | UNKNOWN.keys()
    models = {model for *_, model in SEEN}
    found: dict[str | None, set[str | None]] = {}
    for path in sorted(reference("traces/xplane").glob("*.xplane.pb")):
        for info in device_infos(open_profile(path)):
            found.setdefault(info.name, set()).add(info.model)
    assert found.keys() - known == set()
    assert {model for all_of_name in found.values() for model in all_of_name} <= models
    assert found["TPU v6 Lite"] == {"tpu-v6e"}
    assert found[None] == {"mi300x", "mi355x", "v100-sxm2-16gb"}


def _device_names(path: Path) -> list[str]:
    """Names in the first `deviceProperties` (2021: `computeProperties`) of a trace."""
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
        text = file.read(1 << 16)
    block = re.search(r'"(?:deviceProperties|computeProperties)"\s*:\s*(\[.*?\])', text, re.DOTALL)
    if block is None:
        return []
    devices: list[dict[str, Any]] = json.loads(block[1])
    return [device["name"] for device in devices]
