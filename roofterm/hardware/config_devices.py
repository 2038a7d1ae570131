"""Devices that the table lacks, and corrections of its figures, from the user's `config.toml`.

[devices.my-accelerator]             # a new device: give the names that profiles carry
names = ["ARTEMIS"]
peaks_tflops = { bf16 = 177.0, int8 = 354.0 }
bandwidths_gbps = { hbm = 204.8 }

[devices.h100-sxm5-80gb]             # an id of the table: corrects the figures that are given
bandwidths_gbps = { hbm = 3300 }
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from roofterm.config_file import config_path, known_keys, parse_tables, read_tables
from roofterm.hardware.table import DTYPES, LEVELS, LINKS
from roofterm_parsers.errors import ProfileError


class UserDevice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One `[devices.NAME]` table. Figures are for the device as profiles show it."""

    names: list[str] = []
    like: str | None = None
    """id of the table's entry whose other figures hold for this device too"""
    arch: str | None = None
    units: int | None = None
    memory_bytes: int | None = None
    peaks_tflops: dict[str, float] = {}
    bandwidths_gbps: dict[str, float] = {}
    links_gbps: dict[str, float] = {}
    note: str | None = None

    def peaks(self) -> dict[str, float]:
        """dtype: FLOP/s"""
        return {dtype: value * 1e12 for dtype, value in self.peaks_tflops.items()}

    def bandwidths(self) -> dict[str, float]:
        """level: bytes/s"""
        return {level: value * 1e9 for level, value in self.bandwidths_gbps.items()}

    def links(self) -> dict[str, float]:
        """link: bytes/s in one direction"""
        return {link: value * 1e9 for link, value in self.links_gbps.items()}


def load_user_devices(path: Path | None = None) -> dict[str, UserDevice]:
    """The user's devices by name; none without a file. Raises ProfileError for a file that cannot be used."""
    return _devices(read_tables(path), str(path or config_path()))


def parse_user_devices(text: str, path: str = "config.toml") -> dict[str, UserDevice]:
    """The `[devices.NAME]` tables of a configuration's text. Raises ProfileError that names the place and the nearest valid key."""
    return _devices(parse_tables(text, path), path)


def match_user_device(devices: dict[str, UserDevice], name: str | None, model: str | None) -> tuple[str, UserDevice] | None:
    """The user's entry for a device: by the name in the profile first, then as a correction of the table's `model`."""
    wanted = (name or "").casefold().strip()
    for key, device in devices.items():
        if wanted and wanted in {known.casefold().strip() for known in (key, *device.names)}:
            return key, device
    if model is not None and model in devices:
        return model, devices[model]
    return None


def _devices(tables: dict[str, Any], path: str) -> dict[str, UserDevice]:
    return {name: _device(name, table, path) for name, table in tables.get("devices", {}).items()}


def _device(name: str, table: Any, path: str) -> UserDevice:
    where = f"{path}, [devices.{name}]"
    if not isinstance(table, dict):
        raise ProfileError(f"{where} must be a table", path)
    known_keys(table, UserDevice.__struct_fields__, where, path)
    for field, keys in (("peaks_tflops", DTYPES), ("bandwidths_gbps", LEVELS), ("links_gbps", LINKS)):
        figures = table.get(field, {})
        if isinstance(figures, dict):
            known_keys(figures, keys, f"{where} {field}", path)
            for key, value in figures.items():
                if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < float("inf"):
                    raise ProfileError(f"{where} {field}: `{key}` must be a number above 0, not {value!r}", path)
    try:
        return msgspec.convert(table, UserDevice)
    except msgspec.ValidationError as error:
        raise ProfileError(f"{where}: {error}", path) from error
