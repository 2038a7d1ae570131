"""The op profile's tree as rows, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from roofterm.analysis.xprof.op_profile_rows import NODES, op_profile_rows


def node(name: str, time_us: float, flops: float, hbm: float, calls: int, *children: dict[str, Any], **xla: str) -> dict[str, Any]:
    """As `xprof_op_profile` gives them: `flops` is utilisation times the share of the root's time."""
    metrics = {"rawTime": time_us * 1e6, "flops": flops, "bandwidthUtils": [hbm, 0.0, 0.0], "occurrences": calls}
    metrics["avgTimePs"] = time_us * 1e6 / calls if calls else 0.0
    found = {"name": name, "metrics": metrics, "numChildren": len(children), "children": list(children)}
    return {**found, "xla": xla} if xla else found


TREE = node(
    "by_category",
    200.0,
    0.3,
    0.1,
    0,
    node("loop fusion", 100.0, 0.25, 0.2, 4, node("fusion.1", 80.0, 0.2, 0.9, 3, category="loop fusion", expression="%fusion.1 = ...")),
    node("IDLE", 50.0, 0.0, 0.0, 0),
)


def test_each_node_stands_before_its_children():
    rows = op_profile_rows(TREE)
    assert rows.schema == NODES
    assert rows["name"].to_list() == ["by_category", "loop fusion", "fusion.1", "IDLE"]
    assert rows["depth"].to_list() == [0, 1, 2, 1]
    assert rows["node"][2] == "by_category\tloop fusion\tfusion.1"


def test_utilisation_is_of_the_nodes_own_time_and_waste_what_neither_resource_needed():
    """loop fusion: half of the time, so 0.25 / 0.5 = 50 % of the peak, 20 % of HBM: 100 us x (1 - 0.5) wasted.
    fusion.1: 0.2 / 0.4 = 50 %, HBM 90 %: 80 us x 0.1. Idle time is wasted whole."""
    rows = op_profile_rows(TREE)
    assert rows["pct"].to_list() == [100.0, 50.0, 40.0, 25.0]
    assert rows["flops_pct"].to_list() == pytest.approx([30.0, 50.0, 50.0, 0.0])
    assert rows["wasted_us"].to_list() == pytest.approx([140.0, 50.0, 8.0, 50.0])
    assert rows["calls"].to_list() == [None, 4, 3, None]
    assert rows["mean_us"][1] == pytest.approx(25.0)
    assert rows["long_name"][2] == "%fusion.1 = ..."


def test_nothing_ran():
    rows = op_profile_rows(node("by_category", 0.0, 0.0, 0.0, 0))
    assert rows["pct"].to_list() == [0.0]
