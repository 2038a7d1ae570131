"""Runs the folder as a program, `python .../measure`: as a package of its own, found by no search path.

The folder itself must not stay on the path, or its modules' names would stand in for somebody's.
"""

from __future__ import annotations

import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "roofterm_measure"


def run() -> int:
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != HERE]
    spec = importlib.util.spec_from_file_location(NAME, os.path.join(HERE, "__init__.py"), submodule_search_locations=[HERE])
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = package
    spec.loader.exec_module(package)
    status: int = package.main()
    return status


if __name__ == "__main__":
    sys.exit(run())
