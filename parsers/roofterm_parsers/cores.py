"""How many processor cores a guest on a busy box may use."""

from __future__ import annotations

import os

CPU_MAX = "/sys/fs/cgroup/cpu.max"


def usable_cores(cpu_max: str | os.PathLike[str] = CPU_MAX) -> int:
    """The least of what affinity, the container's quota and SLURM leave to this process."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        cores = os.cpu_count() or 1
    return max(1, min(cores, _quota(cpu_max) or cores, _slurm() or cores))


def _slurm() -> int | None:
    told = os.environ.get("SLURM_CPUS_PER_TASK", "")
    return int(told) if told.isdecimal() and int(told) > 0 else None


def _quota(cpu_max: str | os.PathLike[str]) -> int | None:
    """Whole cores of the container's quota ("200000 100000": two), at least one."""
    try:
        with open(cpu_max, encoding="ascii") as file:
            quota, period = file.read().split()
        return max(1, int(quota) // int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return None
