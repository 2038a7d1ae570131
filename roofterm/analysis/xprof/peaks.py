"""What XProf takes a device to be capable of (its device_caps, cuda_type and rocm_type tables; reference: openxla/xprof)."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any

import msgspec

from roofterm_parsers.errors import ProfileError
from roofterm_parsers.profile import Profile

GIBI = 1.073741824
"""GB in a GiB, as a factor"""

# FLOP per cycle and SM or CU: the largest of the plain and the tensor-core rates of fp32 and fp16, dense.
_CUDA_FLOPS = (
    (20, 64), (30, 384), (50, 256), (60, 256), (61, 256), (70, 1024),
    (75, 1024), (80, 2048), (86, 1024), (89, 1024), (90, 4096), (100, 8192),
)  # fmt: skip
_ROCM_FLOPS = {"gfx908": 1024, "gfx90a": 1024, "gfx942": 2048, "gfx950": 4096}
_NVIDIA = {2: "Fermi", 3: "Kepler", 5: "Maxwell", 6: "Pascal", 9: "Hopper", 10: "Blackwell"}
_BANDWIDTHS = ("hbm", "sram_rd", "sram_wr", "cmem_rd", "cmem_wr", "vmem_rd", "vmem_wr")


VERSIONS = ("2.22.3", "2.23.1", "2.24.2")
"""Versions of XProf whose rules are known."""


def version_numbers(version: str) -> tuple[int, ...]:
    """(2, 24, 2) for "2.24.2"; ProfileError for a version whose rules are not known."""
    if version not in VERSIONS:
        raise ProfileError(f"XProf {version}: only the rules of {', '.join(VERSIONS)} are known.")
    return tuple(int(part) for part in version.split("."))


class Peaks(msgspec.Struct, frozen=True):
    """Peaks of the first device, which XProf uses for all."""

    hardware: str
    """TPU, GPU or CPU"""
    device_type: str
    cores: int
    """device planes: what XProf divides by for `per core`"""
    gflops: float
    hbm: float
    """GB/s, as all that follow"""
    sram_read: float = 0.0
    sram_write: float = 0.0
    cmem_read: float = 0.0
    cmem_write: float = 0.0
    vmem_read: float = 0.0
    vmem_write: float = 0.0
    merged_vmem: bool = False
    megacore: bool = False

    @property
    def has_cmem(self) -> bool:
        return self.cmem_read > 0 or self.cmem_write > 0


def peaks(profile: Profile, version: tuple[int, ...]) -> Peaks:
    """Peaks by the rules of an XProf version: the first TPU's, else the first GPU's."""
    tpus, gpus = planes(profile, "tpu"), planes(profile, "gpu")
    if tpus:
        return _tpu(tpus[0], len(tpus))
    if gpus:
        return _gpu(gpus[0], len(gpus), version)
    return Peaks(hardware="CPU", device_type="", cores=0, gflops=0.0, hbm=0.0)


def planes(profile: Profile, kind: str) -> list[dict[str, Any]]:
    """Stats of the planes of the devices of a kind, in file order."""
    found = []
    rows = profile.devices.filter(profile.devices["kind"] == kind).select("source", "id")
    for source, number in rows.iter_rows():
        stats = profile.sources[source].metadata.get("planes", {})
        found.append(dict(stats.get(f"/device:{kind.upper()}:{number}", {})))
    return found


def _tpu(stats: dict[str, Any], cores: int) -> Peaks:
    gbps = {name: _number(stats.get(f"peak_{name}_bw_gigabytes_per_second")) for name in _BANDWIDTHS}
    return Peaks(
        hardware="TPU",
        device_type=str(stats.get("device_type_string", "")),
        cores=cores,
        gflops=_number(stats.get("peak_teraflops_per_second")) * 1e3,
        hbm=gbps["hbm"],
        sram_read=gbps["sram_rd"],
        sram_write=gbps["sram_wr"],
        cmem_read=gbps["cmem_rd"],
        cmem_write=gbps["cmem_wr"],
        vmem_read=gbps["vmem_rd"],
        vmem_write=gbps["vmem_wr"],
        merged_vmem=bool(_number(stats.get("has_merged_vmem"))),
        megacore=bool(_number(stats.get("has_megacore"))),
    )


def _gpu(stats: dict[str, Any], cores: int, version: tuple[int, ...]) -> Peaks:
    vendor = str(stats.get("device_vendor", ""))
    major, minor = int(_number(stats.get("compute_cap_major"))), int(_number(stats.get("compute_cap_minor")))
    units, ghz = _number(stats.get("core_count")), _number(stats.get("clock_rate")) / 1e6
    amd_known = version >= (2, 24)
    gfx = _gfx(stats, major, minor) if amd_known else ""
    flops = 0
    shared = 256
    device_type = "GPU"
    if vendor == "Nvidia":
        flops = _cuda_flops(major * 10 + minor)
        shared = 64 if major <= 2 else 256
        device_type = _nvidia_name(major, minor)
    elif vendor == "AMD":
        flops = _ROCM_FLOPS.get(gfx, 0)
        shared = 256 if gfx == "gfx950" or not amd_known else 128 if gfx in _ROCM_FLOPS else 0
        device_type = f"AMD GPU - {gfx}" if gfx else f"AMD GPU - gfx-{major}XX series" if major in (9, 10, 11) else "AMD GPU"
    elif amd_known:
        shared = 0
    stated = {name: _number(stats.get(f"peak_{name}_per_second")) for name in _STATED} if amd_known else dict.fromkeys(_STATED, 0.0)
    sram = units * ghz * shared
    return Peaks(
        hardware="GPU",
        device_type=device_type,
        cores=cores,
        gflops=stated["teraflops"] * 1e3 or units * ghz * flops,
        hbm=_number(stats.get("memory_bandwidth")) / 1e9,
        sram_read=stated["sram_rd_bw_gigabytes"] or sram,
        sram_write=stated["sram_wr_bw_gigabytes"] or sram,
    )


_STATED = ("teraflops", "sram_rd_bw_gigabytes", "sram_wr_bw_gigabytes")
"""Peaks that a GPU's plane may state, as TPUs' do."""


def _gfx(stats: dict[str, Any], major: int, minor: int) -> str:
    name = str(stats.get("gpu_device_name", ""))
    return name if re.fullmatch(r"gfx[0-9a-f]+", name) else {(9, 4): "gfx942", (9, 5): "gfx950"}.get((major, minor), "")


def _cuda_flops(capability: int) -> int:
    """FLOP per cycle and SM of a compute capability (times 10): that one's, else the next lower one's."""
    at = bisect_right(_CUDA_FLOPS, (capability, 1 << 30))
    return _CUDA_FLOPS[at - 1][1] if at else 0


def _nvidia_name(major: int, minor: int) -> str:
    if major == 7:
        return f"Nvidia GPU ({'Volta' if minor < 5 else 'Turing'})"
    if major == 8:
        return f"Nvidia GPU ({'Ampere' if minor < 9 else 'Ada Lovelace'})"
    return f"Nvidia GPU ({_NVIDIA[major]})" if major in _NVIDIA else "Nvidia GPU"


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return 0.0
