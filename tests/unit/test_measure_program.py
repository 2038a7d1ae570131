"""The program `measure` and what runs it: alone in another interpreter, and right by a loop written here."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from roofterm.hardware import runner
from roofterm.hardware.runner import PROGRAM, Progress, find_python, measure
from roofterm_parsers.errors import ProfileError

RESULT = """{"result": {"node": "n", "measured_at": "2026-01-01T00:00:00Z", "device": {"name": "d", "kind": "gpu"}, "torch": "2.13",
"driver": null, "power_limit_w": null, "clocks_mhz": {}, "partition": null, "threads": null, "peaks": {"bf16": 1e12}, "bandwidths": {},
"links": {}, "launch_s": {}, "noisy": [], "notes": [], "seconds": 1.0, "details": {"gemm": {"any": ["thing"]}}}}""".replace("\n", " ")


def _python_that_prints(folder: Path, text: str, code: int = 0, complaint: str = "") -> str:
    """An interpreter that has torch (it says yes to every `-c`) and, asked to measure, prints this."""
    (folder / "answer").write_text(text)
    script = folder / "python"
    script.write_text(f'#!/bin/sh\n[ "$1" = -c ] && exit 0\ncat {folder}/answer\necho "{complaint}" >&2\nexit {code}\n')
    script.chmod(0o755)
    return str(script)


def test_progress_is_passed_on_and_the_result_is_read(tmp_path: Path) -> None:
    line = '{"progress": {"stage": "gemm bf16", "share": 0.5, "elapsed_s": 9.0, "figure": 1e12, "unit": "FLOP/s"}}\n'
    heard: list[Progress] = []
    roofs = measure(_python_that_prints(tmp_path, line + RESULT), 1, heard.append)
    assert heard == [Progress("gemm bf16", 0.5, 9.0, 1e12, "FLOP/s")]
    assert (roofs.peaks, roofs.details) == ({"bf16": 1e12}, {"gemm": {"any": ["thing"]}})


@pytest.mark.parametrize(
    ("text", "complaint", "says"),
    [
        ('{"error": "RuntimeError: CUDA error: out of memory"}', "", "out of memory"),
        ("", "Segmentation fault", "Segmentation fault"),
        ("", "", "code 3"),
        ("hello", "", "cannot be read"),
    ],
)
def test_a_failure_is_told_in_a_sentence(tmp_path: Path, text: str, complaint: str, says: str) -> None:
    with pytest.raises(ProfileError, match=says):
        measure(_python_that_prints(tmp_path, text, 3, complaint), 1, lambda _: None)


def test_an_interpreter_must_be_there_and_have_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProfileError, match="no interpreter /nowhere/python"):
        find_python("/nowhere/python")
    without = tmp_path / "python"
    without.write_text("#!/bin/sh\nexit 1\n")
    without.chmod(0o755)
    with pytest.raises(ProfileError, match="has no torch"):
        find_python(str(without))
    monkeypatch.setattr(runner, "_interpreters", lambda: [str(without)])
    with pytest.raises(ProfileError, match="no interpreter here has torch"):
        find_python()


def test_our_own_interpreter_comes_first() -> None:
    assert runner._interpreters()[0] == sys.executable


ALONE = """
import runpy, sys
program, sys.argv = sys.argv[1], ["measure", "--help"]
sys.path.insert(0, program)  # as if the folder had been run
try:
    runpy.run_path(program + "/__main__.py", run_name="__main__")
except SystemExit as end:
    status = end.code
ours = [name for name in sys.modules if name.split(".")[0] in ("roofterm", "roofterm_parsers", "msgspec", "numpy", "torch")]
sys.exit(f"{status} {ours} {program in sys.path}")
"""


def test_the_program_imports_nothing_of_ours_and_stays_off_the_path(tmp_path: Path) -> None:
    """Run isolated and without site-packages: the standard library is all there is."""
    run = subprocess.run([sys.executable, "-I", "-S", "-c", ALONE, str(PROGRAM)], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.stderr.strip() == "0 [] False"


@pytest.mark.parametrize("file", sorted(PROGRAM.glob("*.py")), ids=lambda file: file.name)
def test_the_program_is_written_for_the_jobs_older_interpreter(file: Path) -> None:
    """Python 3.9: a job's image is often years behind ours."""
    tree = ast.parse(file.read_text(), feature_version=(3, 9))
    assert any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)


def test_gemm_and_copy_agree_with_a_loop_written_here() -> None:
    """Within 15 % of the loops before and after it (their range: other work on the machine changes it by the second); three tries."""
    torch = pytest.importorskip("torch")
    apart: dict[str, tuple[float, list[float]]] = {}
    for _ in range(3):
        before = _by_hand(torch)
        roofs = measure(sys.executable, 6, lambda _: None, device="cpu")
        details = roofs.details
        after = _by_hand(torch)
        theirs = {
            "copy": details["bandwidth"]["copy"]["per_s"],
            "gemm": max(details["gemm"]["fp32"][size]["per_s"] for size in ("512", "1024") if size in details["gemm"]["fp32"]),
        }
        apart = {
            name: (figure, sorted([before[name], after[name]]))
            for name, figure in theirs.items()
            if not 0.85 * min(before[name], after[name]) <= figure <= 1.15 * max(before[name], after[name])
        }
        if not apart:
            break
    if apart and roofs.noisy:
        pytest.skip(f"the machine is too busy to measure on, and the program says so: {roofs.noisy}")
    assert apart == {}


def _by_hand(torch: Any) -> dict[str, float]:
    a, b = torch.ones(64 << 20), torch.ones(64 << 20)  # 256 MiB each
    copy = 2 * a.numel() * 4 / _shortest(lambda: b.copy_(a), 1.2)
    gemm = []
    for size in (512, 1024):
        x, y, out = torch.randn(size, size), torch.randn(size, size), torch.empty(size, size)
        gemm.append(2 * size**3 / _shortest(functools.partial(torch.mm, x, y, out=out), 0.6))
    return {"copy": copy, "gemm": max(gemm)}


def _shortest(call: Callable[[], object], seconds: float) -> float:
    shortest, end = float("inf"), time.perf_counter() + seconds
    call()
    while time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        shortest = min(shortest, time.perf_counter() - begin)
    return shortest
