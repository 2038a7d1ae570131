"""Training loops made by hand for the tests of findings: times in microseconds, every figure chosen so that it can be checked on paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import polars as pl

from roofterm.analysis.findings import find_all
from roofterm.analysis.scope import Scope
from roofterm.analysis.study import Study
from roofterm.results import Finding
from roofterm_parsers.profile import FRAMES, Kind, Profile
from tests.build import Build

STEP = 10_000.0
"""length of a step"""
GEMM = "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT"
"""a bf16 product on the tensor cores"""
KERNELS = 30
KERNEL = 330.0


def findings(profile: Profile, step: str = "steady") -> dict[str, Finding]:
    """The findings by id, in their order."""
    return {finding.id: finding for finding in find_all(Study(profile), Scope(step=step))}


def launched(build: Build, name: str, at: float, start: float, dur: float, op: str | None = "aten::mm", **facts: Any) -> int:
    """Device work with the call that launches it and the op around the call: the op from `at` on for 8 us, the call for 3 us within.

    `facts` of a kernel go to the kernel; `shape` (a dict with dims, types) to the op, `call` names the call.
    """
    shape, call = facts.pop("shape", {}), facts.pop("call", "cudaLaunchKernel")
    around = build.host(op, at, 8, external_id=1, **shape) if op is not None else None
    launch = build.call(at + 2, 3, call)
    return build.kernel(name, start, dur, launch=launch, op=around, **facts)


def healthy_step(build: Build, number: int, start: float, kernels: Iterable[str] = (GEMM,) * KERNELS, dur: float = KERNEL) -> float:
    """A step whose host launches all its kernels in its first 300 us; they run back to back from 50 us after its start.

    30 kernels of 330 us: the device is busy from start + 50 to start + 9,950. Returns the end of the device's work.
    """
    build.step(number, start, STEP)
    at = start + 50
    for row, name in enumerate(kernels):
        launched(build, name, start + 10 + 10 * row, at, dur)
        at += dur
    return at


def healthy(steps: int = 4, build: Build | None = None) -> Build:
    """A loop that leaves nothing to find: 99 % busy with products on the tensor cores, every step alike."""
    build = build or Build()
    for number in range(steps):
        healthy_step(build, number, number * STEP)
    return build


Piece = tuple[str, str, float]
"""Device work: its name, the op that launches it, its length in us"""


def ahead(
    pieces: Sequence[Piece], steps: int = 3, build: Build | None = None, shape: dict[str, str] | None = None, **facts: Any
) -> Profile:
    """A loop whose host runs ahead: it launches a piece every 9 us, the device runs them back to back from 6 us on.

    The device is the bound: it never waits but for the first launch, and each step lasts as long as its device work.
    `facts` go to the kernels.
    """
    build = build or Build()
    host, free = 0.0, 6.0
    for number in range(steps):
        build.step(number, host, 9 * len(pieces))
        for name, op, dur in pieces:
            kind = Kind.COPY if name.startswith("Memcpy") else Kind.KERNEL
            own = {"bytes": facts.get("bytes")} if kind == Kind.COPY else {key: value for key, value in facts.items() if key != "bytes"}
            launched(build, name, host, max(free, host + 6), dur, op, kind=kind, shape=shape or {}, **own)
            free = max(free, host + 6) + dur
            host += 9
    return build.profile()


def with_flags(profile: Profile, **flags: int) -> Profile:
    """The profile with metadata of its source set, as the profiler's flags are."""
    profile.sources = [msgspec.structs.replace(source, metadata={**source.metadata, **flags}) for source in profile.sources]
    return profile


def with_collectives(profile: Profile, name: str, **facts: Any) -> Profile:
    """The profile with arguments of a collective on all kernels of a name."""
    texts = profile.names["text"].gather(profile.slices["name"])
    rows = (texts == name).arg_true()
    schema = FRAMES["collectives"]
    same = {key: pl.Series(key, [facts.get(key)] * rows.len(), dtype=kind) for key, kind in schema.items()}
    profile.collectives = pl.DataFrame({**same, "slice": rows.cast(pl.UInt32)})
    return profile


def idle_host(build: Build, start: float, end: float, name: str = "step code", kind: Kind = Kind.ANNOTATION) -> None:
    """Something that the host does for a while."""
    build.host(name, start, end - start, kind)
