"""The profiles opened last, for the next time that one is asked for."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from roofterm.tui.state_files import read_state, write_state

FILE = "recent.json"
MOST = 30


class Recent(msgspec.Struct, frozen=True):
    paths: list[str] = []
    """absolute, the last opened first"""


def recent_paths() -> list[str]:
    """Those that are still there, the last opened first; URLs are taken to be."""
    kept = read_state(FILE, Recent)
    return [] if kept is None else [path for path in kept.paths[:MOST] if "://" in path or os.path.exists(path)]


def remember(paths: Sequence[str]) -> None:
    """Put what was opened first; standard input cannot be opened again."""
    named = [path if "://" in path else os.path.abspath(path) for path in paths if path != "-"]
    if named:
        kept = read_state(FILE, Recent) or Recent()
        write_state(FILE, Recent(list(dict.fromkeys([*named, *kept.paths]))[:MOST]))
