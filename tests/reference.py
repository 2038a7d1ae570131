"""Where reference data (real traces, other tools' answers) lies: `ROOFTERM_REFERENCE`, else `../shared` if it exists.

Set and missing is a failure; unset and absent skips the test, and the run says how many were skipped for it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REASON = "no reference data (set ROOFTERM_REFERENCE)"


def root() -> Path | None:
    """The reference folder, or None where there is none."""
    named = os.environ.get("ROOFTERM_REFERENCE")
    if named:
        return Path(named)
    beside = Path(__file__).resolve().parents[2] / "shared"
    return beside if beside.is_dir() else None


def reference(name: str) -> Path:
    """A file or folder of the reference data; skips the test where there is no reference data at all."""
    folder = root()
    if folder is None:
        pytest.skip(REASON)
    path = folder / name
    if not path.exists():
        pytest.fail(f"reference data lacks {name} (in {folder})")
    return path
