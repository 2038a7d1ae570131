"""Start-up is budgeted: nothing heavy is imported before it is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from roofterm import __version__

HEAVY = ("torch", "textual", "rich", "polars", "numpy", "plotext")

RUN = """
import runpy, sys
sys.argv = ["roofterm", *sys.argv[1:]]
try:
    runpy.run_module("roofterm.cli.main", run_name="__main__", alter_sys=True)
finally:
    print(*sorted(sys.modules), file=sys.stderr)
"""


def loaded_by(code: str, *arguments: str) -> tuple[str, set[str]]:
    """Standard output of Python code and the modules it had loaded at its end."""
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return done.stdout, set(done.stderr.split())


def test_version_is_printed_without_heavy_imports():
    output, modules = loaded_by(RUN, "--version")
    assert __version__ in output
    assert modules.isdisjoint(HEAVY)


def test_help_is_printed_without_heavy_imports():
    output, modules = loaded_by(RUN, "--help")
    assert "roofterm" in output
    assert modules.isdisjoint(HEAVY)


@pytest.mark.parametrize("module", ["roofterm", "roofterm.cli", "roofterm.cli.main", "roofterm_parsers"])
def test_importing_a_front_door_loads_nothing_heavy(module):
    _, modules = loaded_by(f"import sys, {module}; print(*sys.modules, file=sys.stderr)")
    assert module in modules
    assert modules.isdisjoint(HEAVY)


def test_the_explorer_is_painted_before_the_analysis_is_imported():
    _, modules = loaded_by("import sys, roofterm.cli.open, roofterm.tui.app; print(*sys.modules, file=sys.stderr)")
    assert "textual" in modules
    assert modules.isdisjoint({"torch", "polars", "numpy", "plotext"})


def test_garbage_is_collected_again_once_the_explorer_is_painted():
    code = """
import asyncio, gc, sys
from unittest import mock
from roofterm.tui import app as program
from roofterm.tui.options import Options

async def opened():
    gc.disable()
    app = program.RooftermApp(["x"], Options(cache=False))
    async with app.run_test() as pilot:
        await pilot.pause()
        for _ in range(100):
            if gc.isenabled():
                break
            await pilot.pause(0.01)
    print(gc.isenabled(), gc.get_freeze_count() > 0, file=sys.stderr)

with mock.patch.object(program, "open_study", side_effect=OSError("nothing there")):
    asyncio.run(opened())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.split()[-2:] == ["True", "True"]
