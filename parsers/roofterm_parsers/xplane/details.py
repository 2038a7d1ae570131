"""The texts `kernel_details` and `memcpy_details` of GPU events.

CUDA: `regs:38 static_shared:0 dynamic_shared:49152 grid:160,1,1 block:1024,1,1 occ_pct:50`, older `shm:0`; ROCm:
`grid:4,64,1 block:256,1,1 private_mem:0 group_mem:8704 occ_pct:0`, whose 0 % means unknown. Copies: `size:112 dest:4 async:0`.
"""

from __future__ import annotations

from typing import NamedTuple

Dim = tuple[int, int, int]


class Launch(NamedTuple):
    registers: int | None
    shared_bytes: int | None
    grid: Dim | None
    block: Dim | None
    occupancy_pct: float | None


class Copy(NamedTuple):
    bytes: int | None
    peer: int | None


def launch_of(details: str) -> Launch:
    words = _words(details)
    shared = [size for key in ("shm", "static_shared", "dynamic_shared", "group_mem") if (size := _whole(words.get(key))) is not None]
    occupancy = _number(words.get("occ_pct"))
    return Launch(
        registers=_whole(words.get("regs")),
        shared_bytes=sum(shared) if shared else None,
        grid=_dim(words.get("grid")),
        block=_dim(words.get("block")),
        occupancy_pct=occupancy if occupancy else None,
    )


def copy_of(details: str) -> Copy:
    """Size and other device; the profiler says size 0 where it does not know."""
    words = _words(details)
    size = _whole(words.get("size"))
    if size is None:
        size = _whole(words.get("num_bytes"))
    return Copy(size if size else None, None)


def _words(details: str) -> dict[str, str]:
    return dict(word.split(":", 1) for word in details.split() if ":" in word)


def _whole(value: str | None) -> int | None:
    return int(value) if value is not None and value.isdecimal() else None


def _number(value: str | None) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return None


def _dim(value: str | None) -> Dim | None:
    parts = value.split(",") if value is not None else []
    if len(parts) != 3 or not all(part.isdecimal() for part in parts):
        return None
    return int(parts[0]), int(parts[1]), int(parts[2])
