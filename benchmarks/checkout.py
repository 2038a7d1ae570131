"""This checkout of roofterm, as the measured processes run it."""

from __future__ import annotations

import compileall
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (ROOT / "roofterm", ROOT / "parsers" / "roofterm_parsers")


def compile_packages() -> None:
    """Write bytecode, as an installation does: else the first contender pays for it, and every one where it cannot be kept."""
    for package in PACKAGES:
        compileall.compile_dir(package, quiet=1)


def environment() -> dict[str, str]:
    """Variables by which Python finds this checkout first."""
    return {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "parsers"), os.environ.get("PYTHONPATH", "")])}
