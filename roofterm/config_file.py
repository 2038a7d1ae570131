"""The user's one configuration file, `config.toml`: read here, strictly; what its tables mean is said where they are used.

Imports nothing heavy: every command that needs a device's peaks reads it.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from roofterm_parsers.errors import ProfileError

TABLES = ("explorer", "keys", "devices")
"""What the file may hold at its top."""


def config_path() -> Path:
    """`roofterm/config.toml` in XDG_CONFIG_HOME, by default `~/.config`."""
    home = os.environ.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "roofterm" / "config.toml"


def read_tables(path: Path | None = None) -> dict[str, Any]:
    """The file's tables by name; none without a file. Raises ProfileError for a file that cannot be used."""
    path = path or config_path()
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ProfileError(f"cannot read {path}: {error}", str(path)) from error
    return parse_tables(text, str(path))


def parse_tables(text: str, path: str = "config.toml") -> dict[str, Any]:
    """The tables of a configuration's text. Raises ProfileError that names the place and the nearest valid key."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ProfileError(f"{path} is not valid TOML: {error}", path) from error
    known_keys(tables, TABLES, path, path)
    for name, table in tables.items():
        if not isinstance(table, dict):
            written = "[devices.NAME]" if name == "devices" else f"[{name}]"
            raise ProfileError(f"{path}: `{name}` must hold tables: write {written}", path)
    return tables


def known_keys(given: Mapping[str, Any], known: Iterable[str], where: str, path: str) -> None:
    """Raises ProfileError, with the nearest valid key, for a key that is not known."""
    valid = tuple(known)
    for key in given:
        if key not in valid:
            near = difflib.get_close_matches(key.casefold(), valid, n=1, cutoff=0.4)
            hint = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(valid)}"
            raise ProfileError(f"{where}: there is no `{key}`; {hint}", path)
