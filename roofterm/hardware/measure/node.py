"""What the device and its node are, and who else uses them: from torch, the vendor's tool and the kernel's files."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from .box import Box

MIB = 1 << 20

BUSY_PCT = 20
"""A device that others use by this much before we start is not measured without force."""


def neighbours(box: Box) -> tuple[list[str], list[str]]:
    """What others do on the device before we start: notes, and reasons not to trust the figures."""
    if not box.accelerator:
        load, available = os.getloadavg()[0], len(cpus())
        return ([f"load average {load:.1f} on {available} CPUs before the start"] if load > available / 2 else []), []
    facts = smi(box)
    used = facts.get("busy_pct")
    notes, busy = [], []
    if used is not None and used >= BUSY_PCT:
        busy.append(f"the device was {used:.0f} % busy with others' work before the start")
    if hasattr(box.module, "mem_get_info"):
        free, total = box.module.mem_get_info(box.index)
        taken = total - free - box.module.memory_reserved(box.index)
        if taken > total * 0.1:
            notes.append(f"{taken / 1e9:.1f} of {total / 1e9:.1f} GB were taken before the start: others have the device too")
    return notes, busy


def contended(box: Box) -> list[str]:
    """How often others took the CPU from us in the middle of a sample."""
    if not box.samples:
        return []
    share = box.preempted / box.samples
    return (
        [f"{share:.0%} of {box.samples} samples were interrupted by other processes (load average {os.getloadavg()[0]:.1f})"]
        if share > 0.1
        else []
    )


def smi(box: Box) -> dict[str, Any]:
    """What the vendor's tool or the kernel says: driver, power limit, highest clocks, use; only what is known."""
    if not box.accelerator:
        limit = _number(Path("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"))
        return {"clocks_mhz": {"cpu": limit / 1e3}} if limit else {}
    if box.hip:
        return _amd(box)
    tool = shutil.which("nvidia-smi")
    if box.kind != "cuda" or tool is None:
        return {}
    fields = ("uuid", "driver_version", "power.limit", "clocks.max.sm", "clocks.max.mem", "utilization.gpu")
    which = str(getattr(box.properties, "uuid", "") or "")
    which = which if which.startswith("GPU-") or not which else f"GPU-{which}"
    try:
        text = subprocess.run(
            [tool, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits", *(["-i", which] if which else [])],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    lines = [line for line in text.splitlines() if line.strip()] or [""]
    values = [value.strip() for value in lines[0 if which else min(box.index, len(lines) - 1)].split(",")]
    if len(values) != len(fields):
        return {}
    clocks = {"sm": _float(values[3]), "memory": _float(values[4])}
    return {
        "uuid": values[0],
        "driver": values[1],
        "power_limit_w": _float(values[2]),
        "clocks_mhz": {name: value for name, value in clocks.items() if value},
        "busy_pct": _float(values[5]),
    }


def taken_devices() -> int:
    """NVIDIA devices of this node with more than a tenth of their memory in use besides ours; 0 where nothing tells."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return 0
    query = [tool, "--query-gpu=memory.used,memory.total", "--format=csv,noheader,nounits"]
    try:
        text = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return 0
    used = [tuple(_float(value.strip()) or 0.0 for value in line.split(",")) for line in text.splitlines()]
    return max(0, sum(len(pair) == 2 and pair[0] > 0.1 * pair[1] for pair in used) - 1)


def _amd(box: Box) -> dict[str, Any]:
    card = _amd_card(box)
    if card is None:
        return {}
    limits = [_number(path) for path in card.glob("hwmon/hwmon*/power1_cap")]
    clocks = {}
    for name, file in (("sm", "pp_dpm_sclk"), ("memory", "pp_dpm_mclk")):
        try:
            steps = [float(found) for found in re.findall(r"(\d+)\s*Mhz", (card / file).read_text(), re.IGNORECASE)]
        except OSError:
            continue
        if steps:
            clocks[name] = max(steps)
    return {
        "driver": _text(Path("/sys/module/amdgpu/version")),
        "power_limit_w": next((limit / 1e6 for limit in limits if limit), None),
        "clocks_mhz": clocks,
        "busy_pct": _number(card / "gpu_busy_percent"),
    }


def _amd_card(box: Box) -> Path | None:
    """The device's folder in sysfs: by PCI bus where torch tells it, else the only AMD card."""
    cards = [card / "device" for card in Path("/sys/class/drm").glob("card[0-9]*") if _text(card / "device" / "vendor") == "0x1002"]
    bus = getattr(box.properties, "pci_bus_id", None)
    if bus is not None:
        for card in cards:
            if re.search(rf":{int(bus):02x}:", os.path.realpath(card).rsplit("/", 1)[-1]):
                return card
    return cards[0] if len(cards) == 1 else None


def driver(box: Box) -> str | None:
    if not box.accelerator:
        return f"{platform.system()} {platform.release()}"
    loaded = re.search(r"Kernel Module\s+(?:for \S+\s+)?([\d.]+)", _text(Path("/proc/driver/nvidia/version")) or "")
    return loaded[1] if loaded else None


def partition(box: Box) -> str | None:
    """MIG, MPS or a compute partition that the device is under."""
    if box.kind == "cuda" and not box.hip:
        mig = re.search(r"MIG \S+", str(box.properties.name))
        if mig or os.environ.get("CUDA_VISIBLE_DEVICES", "").startswith("MIG"):
            return mig[0] if mig else "MIG"
        percentage = os.environ.get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE")
        pipes = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"))
        if percentage or (pipes / "control").exists():
            return f"MPS {percentage} %" if percentage else "MPS"
        return None
    card = _amd_card(box) if box.hip else None
    if card is None:
        return None
    modes = [_text(card / "current_compute_partition"), _text(card / "current_memory_partition")]
    named = "/".join(mode for mode in modes if mode)
    return named if named and named != "SPX/NPS1" else None


def identity(box: Box, uuid: str | None) -> dict[str, Any]:
    if not box.accelerator:
        return {
            "name": cpu_name(),
            "kind": "cpu",
            "vendor": platform.machine(),
            "units": len(cpus()),
            "memory_bytes": memory_bytes()[0],
        }
    units = getattr(box.properties, "multi_processor_count", None) or getattr(box.properties, "max_compute_units", None)
    capability = box.capability()
    return {
        "name": str(box.properties.name),
        "kind": "gpu",
        "vendor": "amd" if box.hip else "nvidia" if box.kind == "cuda" else "intel",
        "index": box.index,
        "units": units,
        "memory_bytes": int(box.properties.total_memory),
        "capability": None if capability is None else f"{capability[0]}.{capability[1]}",
        "uuid": uuid or (str(box.properties.uuid) if hasattr(box.properties, "uuid") else None),
        "count": box.count,
    }


def cpu_name() -> str:
    for line in (_text(Path("/proc/cpuinfo")) or "").splitlines():
        if line.lower().startswith(("model name", "hardware")):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def cpus() -> set[int]:
    """CPUs that we may run on."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def llc_bytes(box: Box) -> int:
    """The device's L2, or the last-level caches of the CPUs that we may run on, together."""
    if box.accelerator:
        return int(getattr(box.properties, "L2_cache_size", 0) or getattr(box.properties, "last_level_cache_size", 0) or 32 * MIB)
    found: dict[str, tuple[int, int]] = {}
    for cpu in cpus():
        for index in Path(f"/sys/devices/system/cpu/cpu{cpu}/cache").glob("index*"):
            size = re.fullmatch(r"(\d+)([KM])", _text(index / "size") or "")
            if size and _text(index / "type") != "Instruction":
                level = int(_text(index / "level") or 0)
                found[f"{level} {_text(index / 'shared_cpu_list')}"] = (level, int(size[1]) * {"K": 1 << 10, "M": MIB}[size[2]])
    last = max((level for level, _ in found.values()), default=0)
    return sum(size for level, size in found.values() if level == last) or 32 * MIB


def memory_bytes() -> tuple[int, int]:
    """Total and available memory of the host, both within the container's limit."""
    page = os.sysconf("SC_PAGE_SIZE")
    total, available = os.sysconf("SC_PHYS_PAGES") * page, 0
    for line in (_text(Path("/proc/meminfo")) or "").splitlines():
        if line.startswith("MemAvailable"):
            available = int(line.split()[1]) << 10
    available = available or total // 2
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        most = _number(Path(limit))
        if most and most < total:
            total = int(most)
            available = int(min(available, most - (_number(Path(used)) or 0)))
    return total, max(available, 0)


def free_bytes(box: Box) -> int:
    if not box.accelerator:
        return memory_bytes()[1]
    if not hasattr(box.module, "mem_get_info"):
        return 8 << 30
    kept = box.module.memory_reserved(box.index) - box.module.memory_allocated(box.index)
    return int(box.module.mem_get_info(box.index)[0]) + int(kept)


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def _number(path: Path) -> float | None:
    return _float(_text(path) or "")


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
