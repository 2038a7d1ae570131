"""Where kept profiles lie, and under which names. Free of frames, so that a file is known to be new before polars is imported."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from roofterm_parsers.inputs import Input
from roofterm_parsers.records import PARSER_VERSION

FORMAT = 2
"""Of the entries themselves."""
WORTH_BYTES = 8_000_000
WORTH_SECONDS = 0.5
"""A profile is kept if its files are larger than this, or took longer to read; below, reading anew is as fast."""


def directory() -> Path | None:
    """Where entries lie; None where no home is known."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(named):  # the XDG specification: a relative path is to be ignored
        named = os.path.join(os.path.expanduser("~"), ".cache")
    return Path(named) / "roofterm" / "profiles" if os.path.isabs(named) else None


def key_of(inputs: Sequence[Input]) -> str | None:
    """The name of the entry for these files; None if one of them cannot be known again (a pipe, a URL without a date)."""
    facts = [(file.location, file.bytes, file.mtime_ns) for file in inputs]
    if any(file.kind == "pipe" for file in inputs) or any(None in fact for fact in facts):
        return None
    return hashlib.blake2b(repr((FORMAT, PARSER_VERSION, facts)).encode(), digest_size=16).hexdigest()


def is_kept(key: str) -> bool:
    """Whether there is an entry of this name; whether it is sound shows when it is read."""
    home = directory()
    return home is not None and (home / key).is_dir()


def is_worth(bytes_on_disk: int, seconds: float) -> bool:
    """True if reading a profile anew costs more than keeping it."""
    return bytes_on_disk > WORTH_BYTES or seconds > WORTH_SECONDS
