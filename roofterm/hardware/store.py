"""Measured roofs, kept between runs: one record for each node, device, power limit, clocks, partition, driver and torch.

They lie in `roofs.json` under XDG_DATA_HOME, since they are not cheap to make again and `roofterm cache clear` must not
take them. A record counts for a profile only if node and device are the same; the newest one wins.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from roofterm_parsers.errors import ProfileError

SAME_MEMORY = 0.03
"""Total memory differs by this much between a driver's and a profiler's figure of one device."""


class MeasuredDevice(msgspec.Struct, frozen=True):
    """The device as torch names it."""

    name: str
    kind: str
    """gpu or cpu"""
    vendor: str | None = None
    index: int = 0
    units: int | None = None
    memory_bytes: int | None = None
    capability: str | None = None
    uuid: str | None = None
    count: int = 1
    """devices of this kind on the node"""


class MeasuredRoofs(msgspec.Struct, frozen=True):
    """What `measure.py` found, as it prints it. Rates are FLOP/s and bytes/s, times seconds."""

    node: str
    measured_at: str
    """ISO 8601, UTC"""
    device: MeasuredDevice
    torch: str
    driver: str | None
    power_limit_w: float | None
    clocks_mhz: dict[str, float]
    """highest clocks the device may run at now (sm, memory), or the CPU's"""
    partition: str | None
    """MIG profile, MPS, CPX, ...; None: the whole device to ourselves"""
    threads: int | None
    peaks: dict[str, float]
    bandwidths: dict[str, float]
    links: dict[str, float]
    launch_s: dict[str, float]
    noisy: list[str]
    """why the figures are not trusted; empty: trusted"""
    notes: list[str]
    seconds: float
    details: dict[str, Any] = {}
    """all samples by test, for whoever doubts"""

    def key(self) -> tuple[object, ...]:
        """What a record is replaced by."""
        device = self.device
        identity = (device.name, device.units, device.memory_bytes, device.uuid)
        clocks = tuple(sorted(self.clocks_mhz.items()))
        return (self.node, identity, self.power_limit_w, clocks, self.partition, self.driver, self.torch, self.threads)


class Roofs(msgspec.Struct):
    schema: str = "roofterm.roofs/1"
    records: list[MeasuredRoofs] = []


def store_path() -> Path:
    """`roofterm/roofs.json` in XDG_DATA_HOME, by default `~/.local/share`."""
    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "roofterm" / "roofs.json"


def load_roofs(path: Path | None = None) -> list[MeasuredRoofs]:
    """All records; none without a file. Raises ProfileError for a file that cannot be read as one."""
    path = path or store_path()
    try:
        return msgspec.json.decode(path.read_bytes(), type=Roofs).records
    except FileNotFoundError:
        return []
    except (OSError, msgspec.DecodeError) as error:
        raise ProfileError(f"cannot read measured roofs in {path}: {error}; remove the file to measure anew", str(path)) from error


def keep_roofs(roofs: MeasuredRoofs, path: Path | None = None) -> Path:
    """Add a record in place of one with the same key, whole or not at all; gives the file's path.

    Raises OSError if the folder cannot be written.
    """
    path = path or store_path()
    records = [kept for kept in load_roofs(path) if kept.key() != roofs.key()]
    data = msgspec.json.format(msgspec.json.encode(Roofs(records=[*records, roofs])), indent=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".partial")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        os.unlink(partial)
        raise
    return path


def find_roofs(
    records: list[MeasuredRoofs],
    node: str,
    name: str | None,
    units: int | None = None,
    memory_bytes: int | None = None,
    kind: str = "gpu",
) -> MeasuredRoofs | None:
    """The newest record of this node and device; what the profile does not say is not compared, but a GPU must have a name or units."""
    fits = [
        record
        for record in records
        if same_node(record.node, node)
        and record.device.kind == kind
        and (kind == "cpu" or _same_device(record.device, name, units, memory_bytes))
    ]
    return max(fits, key=lambda record: record.measured_at, default=None)


def same_node(one: str, other: str) -> bool:
    """Host names are the same with and without their domain."""
    return one.casefold().split(".")[0] == other.casefold().split(".")[0]


def _same_device(device: MeasuredDevice, name: str | None, units: int | None, memory_bytes: int | None) -> bool:
    if not name and not units:
        return False
    return (
        (not name or device.name.casefold().strip() == name.casefold().strip())
        and (not units or not device.units or device.units == units)
        and (not memory_bytes or not device.memory_bytes or abs(device.memory_bytes / memory_bytes - 1) <= SAME_MEMORY)
    )
