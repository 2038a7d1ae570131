"""Devices that the table lacks, and corrections of its figures, from the user's `config.toml`.

[devices.my-accelerator]             # a new device: give the names that profiles carry
names = ["ARTEMIS"]
peaks_tflops = { bf16 = 177.0, int8 = 354.0 }
bandwidths_gbps = { hbm = 204.8 }

[devices.h100-sxm5-80gb]             # an id of the table: corrects the figures that are given
bandwidths_gbps = { hbm = 3300 }
"""

from __future__ import annotations

import difflib
import os
import tomllib
from pathlib import Path
from typing import Any

import msgspec

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


def config_path() -> Path:
    """`roofterm/config.toml` in XDG_CONFIG_HOME, by default `~/.config`."""
    home = os.environ.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "roofterm" / "config.toml"


def load_user_devices(path: Path | None = None) -> dict[str, UserDevice]:
    """The user's devices by name; none without a file. Raises ProfileError for a file that cannot be used."""
    path = path or config_path()
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ProfileError(f"cannot read {path}: {error}", str(path)) from error
    return parse_user_devices(text, str(path))


def parse_user_devices(text: str, path: str = "config.toml") -> dict[str, UserDevice]:
    """The `[devices.NAME]` tables of a configuration's text; other tables are not looked at.

    Raises ProfileError that names the place and the nearest valid key.
    """
    try:
        tables = tomllib.loads(text).get("devices", {})
    except tomllib.TOMLDecodeError as error:
        raise ProfileError(f"{path} is not valid TOML: {error}", path) from error
    if not isinstance(tables, dict):
        raise ProfileError(f"{path}: `devices` must hold tables: write [devices.NAME]", path)
    return {name: _device(name, table, path) for name, table in tables.items()}


def match_user_device(devices: dict[str, UserDevice], name: str | None, model: str | None) -> tuple[str, UserDevice] | None:
    """The user's entry for a device: by the name in the profile first, then as a correction of the table's `model`."""
    wanted = (name or "").casefold().strip()
    for key, device in devices.items():
        if wanted and wanted in {known.casefold().strip() for known in (key, *device.names)}:
            return key, device
    if model is not None and model in devices:
        return model, devices[model]
    return None


def _device(name: str, table: Any, path: str) -> UserDevice:
    where = f"{path}, [devices.{name}]"
    if not isinstance(table, dict):
        raise ProfileError(f"{where} must be a table", path)
    _known_keys(table, UserDevice.__struct_fields__, where, path)
    for field, keys in (("peaks_tflops", DTYPES), ("bandwidths_gbps", LEVELS), ("links_gbps", LINKS)):
        figures = table.get(field, {})
        if isinstance(figures, dict):
            _known_keys(figures, keys, f"{where} {field}", path)
            for key, value in figures.items():
                if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < float("inf"):
                    raise ProfileError(f"{where} {field}: `{key}` must be a number above 0, not {value!r}", path)
    try:
        return msgspec.convert(table, UserDevice)
    except msgspec.ValidationError as error:
        raise ProfileError(f"{where}: {error}", path) from error


def _known_keys(given: dict[str, Any], known: tuple[str, ...], where: str, path: str) -> None:
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(key.casefold(), known, n=1, cutoff=0.4)
            hint = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(known)}"
            raise ProfileError(f"{where}: there is no `{key}`; {hint}", path)
