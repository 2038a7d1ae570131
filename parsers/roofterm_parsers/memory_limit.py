"""How much memory a guest on a busy box may take: what is free, within the limits of its container and its shell."""

from __future__ import annotations

import os
from pathlib import Path

SHARE_OF_FREE = 0.6
UNKNOWN_BYTES = 2 << 30
"""Assumed free where the system does not tell."""
_NO_LIMIT = 1 << 60
"""cgroup v1 writes a number near 2^63 for "no limit"."""


def default_limit_bytes() -> int:
    """The default of `--max-memory`: 60 % of what is free."""
    return int(free_bytes() * SHARE_OF_FREE)


def free_bytes(proc: Path = Path("/proc")) -> int:
    """Bytes that this process may still take: the least of the machine's, the cgroups' and the shell's (ulimit)."""
    known = [free for free in (_machine_free_bytes(proc), _cgroup_free_bytes(proc), _ulimit_free_bytes(proc)) if free is not None]
    return max(min(known), 0) if known else UNKNOWN_BYTES


def taken_bytes(proc: Path = Path("/proc")) -> int:
    """Bytes of memory that are this process's own; 0 where the system does not tell."""
    fields = (_lines(proc / "self" / "statm") or [""])[0].split()
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE") if len(fields) > 2 else 0


def _machine_free_bytes(proc: Path) -> int | None:
    for line in _lines(proc / "meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _cgroup_free_bytes(proc: Path) -> int | None:
    """The least that is free in this process's memory cgroup and in those around it, versions 1 and 2."""
    mounts = _cgroup_mounts(proc)
    free: list[int] = []
    for line in _lines(proc / "self" / "cgroup"):
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
        unified = number == "0" and not controllers
        if not unified and "memory" not in controllers.split(","):
            continue
        mount = mounts.get("cgroup2" if unified else "cgroup")
        if mount is None:
            continue
        root, mounted_path = mount
        for group in _with_ancestors(root, _below(path, mounted_path)):
            left = _group_free_v2(group) if unified else _group_free_v1(group)
            if left is not None:
                free.append(left)
    return min(free) if free else None


def _cgroup_mounts(proc: Path) -> dict[str, tuple[Path, str]]:
    """File system type: (mount point, cgroup path that is mounted there)."""
    found: dict[str, tuple[Path, str]] = {}
    for line in _lines(proc / "self" / "mountinfo"):
        before, _, after = line.partition(" - ")
        fields, tail = before.split(), after.split()
        if len(fields) < 5 or not tail:
            continue
        if tail[0] == "cgroup2" or (tail[0] == "cgroup" and "memory" in tail[-1].split(",")):
            found.setdefault(tail[0], (Path(fields[4]), fields[3]))
    return found


def _below(path: str, mounted_path: str) -> str:
    """A process's cgroup path, relative to what is mounted: in a container the host's path often is the mount's root."""
    if mounted_path != "/" and path.startswith(mounted_path):
        path = path[len(mounted_path) :]
    return "" if ".." in path.split("/") else path.strip("/")


def _with_ancestors(root: Path, path: str) -> list[Path]:
    parts = [part for part in path.split("/") if part]
    return [root.joinpath(*parts[:n]) for n in range(len(parts), -1, -1)]


def _group_free_v2(group: Path) -> int | None:
    limits = [limit for limit in (_number(group / "memory.max"), _number(group / "memory.high")) if limit is not None]
    used = _number(group / "memory.current")
    if not limits or used is None:
        return None
    return min(limits) - used + _stat(group, "inactive_file")


def _group_free_v1(group: Path) -> int | None:
    limit, used = _number(group / "memory.limit_in_bytes"), _number(group / "memory.usage_in_bytes")
    if limit is None or used is None or limit >= _NO_LIMIT:
        return None
    return limit - used + _stat(group, "total_inactive_file")


def _stat(group: Path, key: str) -> int:
    """A figure of memory.stat; page cache that the kernel gives up first counts as free."""
    for line in _lines(group / "memory.stat"):
        name, _, value = line.partition(" ")
        if name == key:
            return int(value)
    return 0


def _ulimit_free_bytes(proc: Path) -> int | None:
    try:
        import resource
    except ImportError:
        return None
    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    if soft == resource.RLIM_INFINITY:
        return None
    fields = (_lines(proc / "self" / "statm") or ["0"])[0].split()
    return soft - int(fields[0]) * resource.getpagesize()


def _number(path: Path) -> int | None:
    lines = _lines(path)
    return int(lines[0]) if lines and lines[0].strip().isdigit() else None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
