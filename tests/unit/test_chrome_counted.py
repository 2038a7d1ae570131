"""Ranges of hardware counters: every number in their arguments is kept, by the slice."""

from __future__ import annotations

import json
from pathlib import Path

from roofterm_parsers import open_profile
from roofterm_parsers.merging import merge
from roofterm_parsers.profile import Kind

ADD, FMA = "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"


def counted(name: str, ts: int, **counters: object) -> dict[str, object]:
    return {"ph": "X", "cat": "cuda_profiler_range", "name": name, "pid": 0, "tid": 0, "ts": ts, "dur": 5, "args": counters}


def test_the_counters_of_each_range_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "counted.json"
    op = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 3, "args": {"External id": 4}}
    events = [op, counted("second", 20, **{ADD: 7, FMA: 39142369720, "note": "text"}), counted("first", 10, **{ADD: 1})]
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    profile = open_profile(str(path), cache=False)
    profile.check()
    names = profile.names["text"].gather(profile.slices["name"])
    rows = [(names[row], counter, value) for row, counter, value in profile.counted.iter_rows()]
    assert rows == [("first", ADD, 1.0), ("second", ADD, 7.0), ("second", FMA, 39142369720.0)]
    assert set(profile.slices["kind"].gather(profile.counted["slice"])) == {int(Kind.COUNTED)}

    both = merge([profile, open_profile(str(path), cache=False)])
    names = both.names["text"].gather(both.slices["name"])
    assert names.gather(both.counted["slice"]).to_list() == ["first", "second", "second"] * 2
