"""A command that has read little works on one core, and leaves all threads as they were."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.chrome_traces import x

WHERE = """
import os, sys, time
from roofterm.start_up import import_polars_for_little
from roofterm.cli.one_core import OneCore

def cores():
    names = {int(thread): open(f"/proc/self/task/{thread}/comm").read().strip() for thread in os.listdir("/proc/self/task")}
    asked = [os.getpid(), *(thread for thread, name in names.items() if name == "polars-0")]
    return [sorted(os.sched_getaffinity(thread)) for thread in asked]

alone = import_polars_for_little()
until = time.monotonic() + 20
while alone and len(cores()) < 2 and time.monotonic() < until:
    time.sleep(0.01)  # a thread gives itself its name
"""


def told_by(code: str, **environment: str) -> list[str]:
    env = {name: value for name, value in os.environ.items() if name != "POLARS_MAX_THREADS"} | environment
    done = subprocess.run([sys.executable, "-c", WHERE + code], capture_output=True, check=True, text=True, env=env)
    return done.stdout.splitlines()


needs_affinity = pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system binds no thread to cores")


@needs_affinity
def test_this_thread_and_polars_stay_on_one_core_of_those_allowed_until_they_leave() -> None:
    before, during, twice, after = map(
        json.loads,
        told_by("core = OneCore(); print(cores()); core.stay(); print(cores()); core.stay(); print(cores()); core.leave(); print(cores())"),
    )
    assert len(before) == 2
    assert during[0] == during[1] == twice[0]
    assert len(during[0]) == 1
    assert set(during[0]) <= set(before[0])
    assert after == before


@needs_affinity
def test_a_command_stays_while_it_works_and_leaves_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": [x("a", i, 1) for i in range(10)]}))
    code = f"""
import roofterm.analysis.study as study
from roofterm.cli.main import main
before, during, table = cores(), [], study.Study.table
study.Study.table = lambda *args, **options: (during.append(cores()), table(*args, **options))[1]
code = main(["ops", {str(path)!r}, "--no-cache", "--format", "json", "-o", {str(tmp_path / "out.json")!r}])
print(code); print(before == cores(), all(len(one) == 1 for one in during[0]), during[0][0] == during[0][1])
"""
    assert told_by(code) == ["0", "True True True"]


@needs_affinity
def test_where_polars_has_several_threads_it_keeps_them() -> None:
    assert told_by("print(alone)") == ["True"]
    assert told_by("print(alone)", POLARS_MAX_THREADS="2") == ["False"]
