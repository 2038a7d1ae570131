"""A program that ends without waiting for its threads leaves no process and no folder behind.

In interpreters of their own: once cleared up, a program can start nothing any more.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CODE = """
import os, sys, threading
from pathlib import Path
from roofterm_parsers import leftovers, processes
from roofterm_parsers.errors import Interrupted

folder, writing, go_on = Path(sys.argv[1]) / "tmp-1", threading.Event(), threading.Event()
worker = processes.start("roofterm_parsers.abreast_worker", environment={})

def write():
    with leftovers.half_made(folder):
        (folder / "slices.arrow").write_bytes(b"half")
        writing.set()
        go_on.wait()

threading.Thread(target=write, daemon=True).start()
writing.wait()
leftovers.clear_up()
refused = 0
for attempt in (lambda: processes.start("roofterm_parsers.abreast_worker", environment={}), leftovers.half_made(folder).__enter__):
    try:
        attempt()
    except Interrupted:
        refused += 1
print(worker.pid, refused, flush=True)
os._exit(130)
"""


def test_nothing_is_left_behind_and_nothing_new_begun(tmp_path: Path):
    parsers = Path(__file__).resolve().parents[2] / "parsers"
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(parsers)},
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "")
    pid, refused = map(int, done.stdout.split())
    assert refused == 2
    assert not Path(f"/proc/{pid}").exists()
    assert os.listdir(tmp_path) == []
