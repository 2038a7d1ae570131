"""The profile model: frames as `schemas` describes them, and what `records` says of their files.

Inside a profile all times are integer picoseconds (`_ps`) from the profile's zero, which is the earliest time on its
axis; `Profile.zero_unix_ns` places that zero on the wall clock where the file tells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy.ma  # noqa: F401  polars asks it about each array that it is given; imported here, and not in the midst of reading
import polars as pl

from roofterm_parsers.kinds import HOST_CALL_KINDS, WORK_KINDS, Kind, TrackKind
from roofterm_parsers.records import DEVICE_ALONE, PARSER_VERSION, Source, Warning
from roofterm_parsers.schemas import (
    ALLOCATIONS,
    BACKWARD,
    CALLED,
    CALLERS,
    COLLECTIVES,
    COPIES,
    COUNTED,
    COUNTERS,
    DEVICE_CLOCK,
    DEVICES,
    FLOWS,
    FRAMES,
    HLO,
    HLO_EVENTS,
    HLO_FACTS,
    HLO_OPS,
    HLO_ROLES,
    INSTANTS,
    KERNELS,
    LAUNCHES,
    LINKS,
    MEMORY,
    NAMES,
    OPS,
    PYTHON,
    ROOT,
    RUNTIME,
    SIGNATURES,
    SLICES,
    STEPS,
    TRACKS,
    WAITS,
)

__all__ = [
    "ALLOCATIONS",
    "BACKWARD",
    "CALLED",
    "CALLERS",
    "COLLECTIVES",
    "COPIES",
    "COUNTED",
    "COUNTERS",
    "DEVICES",
    "DEVICE_ALONE",
    "DEVICE_CLOCK",
    "FLOWS",
    "FRAMES",
    "HLO",
    "HLO_EVENTS",
    "HLO_FACTS",
    "HLO_OPS",
    "HLO_ROLES",
    "HOST_CALL_KINDS",
    "INSTANTS",
    "KERNELS",
    "LAUNCHES",
    "LINKS",
    "MEMORY",
    "NAMES",
    "OPS",
    "PARSER_VERSION",
    "PYTHON",
    "ROOT",
    "RUNTIME",
    "SIGNATURES",
    "SLICES",
    "STEPS",
    "TRACKS",
    "WAITS",
    "WORK_KINDS",
    "Kind",
    "Profile",
    "Source",
    "TrackKind",
    "Warning",
    "empty",
]

_READING = Lock()


def empty(frame: str) -> pl.DataFrame:
    """An empty frame of the model, by its name in `FRAMES`."""
    return pl.DataFrame(schema=FRAMES[frame])


def _frame(name: str) -> Any:
    return field(default_factory=lambda: empty(name))


@dataclass(slots=True)
class Profile:
    """A profile as frames. Side tables are keyed by slice id and ordered by it. Frames of a kept profile are read as they are used."""

    sources: list[Source] = field(default_factory=list)
    warnings: list[Warning] = field(default_factory=list)
    zero_unix_ns: int | None = None
    from_cache: bool = False
    seconds: float = 0.0
    """time that loading took"""
    key: str | None = None
    """tells these files, as they are, from all others; None: they cannot be told (a pipe, a URL without a date)"""
    slices: pl.DataFrame = _frame("slices")
    tracks: pl.DataFrame = _frame("tracks")
    names: pl.DataFrame = _frame("names")
    ops: pl.DataFrame = _frame("ops")
    signatures: pl.DataFrame = _frame("signatures")
    called: pl.DataFrame = _frame("called")
    callers: pl.DataFrame = _frame("callers")
    kernels: pl.DataFrame = _frame("kernels")
    copies: pl.DataFrame = _frame("copies")
    runtime: pl.DataFrame = _frame("runtime")
    launches: pl.DataFrame = _frame("launches")
    waits: pl.DataFrame = _frame("waits")
    collectives: pl.DataFrame = _frame("collectives")
    python: pl.DataFrame = _frame("python")
    hlo: pl.DataFrame = _frame("hlo")
    hlo_ops: pl.DataFrame = _frame("hlo_ops")
    hlo_facts: pl.DataFrame = _frame("hlo_facts")
    hlo_roles: pl.DataFrame = _frame("hlo_roles")
    hlo_events: pl.DataFrame = _frame("hlo_events")
    device_clock: pl.DataFrame = _frame("device_clock")
    links: pl.DataFrame = _frame("links")
    backward: pl.DataFrame = _frame("backward")
    counters: pl.DataFrame = _frame("counters")
    counted: pl.DataFrame = _frame("counted")
    memory: pl.DataFrame = _frame("memory")
    allocations: pl.DataFrame = _frame("allocations")
    flows: pl.DataFrame = _frame("flows")
    instants: pl.DataFrame = _frame("instants")
    devices: pl.DataFrame = _frame("devices")
    steps: pl.DataFrame = _frame("steps")

    _pending: dict[str, Callable[[], pl.DataFrame]] = field(default_factory=dict, repr=False, compare=False)

    def defer(self, name: str, read: Callable[[], pl.DataFrame]) -> None:
        """Have a frame read when it is first asked for, by `read`, which must not fail."""
        self._pending[name] = read
        delattr(self, name)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Python asks here for what is not there: a frame that waits to be read."""
            if name not in FRAMES:
                raise AttributeError(f"a Profile has no {name}")
            with _READING:  # of threads that ask at once, the second finds it read
                if name in self._pending:
                    setattr(self, name, self._pending[name]())
                    del self._pending[name]
            return object.__getattribute__(self, name)

    def frames(self) -> dict[str, pl.DataFrame]:
        """All frames by name, in the order of `FRAMES`."""
        return {name: getattr(self, name) for name in FRAMES}

    def check(self) -> None:
        """Raise ValueError if a frame does not follow its schema or the slices are out of order (for tests)."""
        for name, schema in FRAMES.items():
            frame: pl.DataFrame = getattr(self, name)
            if frame.schema != schema:
                raise ValueError(f"{name}: {frame.schema} is not {schema}")
        order = self.slices.select("track", "start_ps", -pl.col("dur_ps"))
        if not order.equals(order.sort("track", "start_ps", "dur_ps", maintain_order=True)):
            raise ValueError("slices are not sorted by track, start and falling length")
