"""XProf's op profile as rows of a table: each node with its depth, shares and what is wasted in it.

Utilisation and waste are those of XProf's own page: a node's FLOPs over the device's in its time, and the time that neither the
arithmetic nor the main memory would have needed.
"""

from __future__ import annotations

from typing import Any

import polars as pl

NODES = pl.Schema(
    {
        "node": pl.String,  # names from the root on, apart by tabs
        "depth": pl.Int64,
        "children": pl.Int64,  # all of them, also those that XProf leaves out
        "name": pl.String,
        "total_us": pl.Float64,
        "pct": pl.Float64,  # of the root's time
        "flops_pct": pl.Float64,  # of the device's peak
        "hbm_pct": pl.Float64,  # of the main memory's bandwidth
        "wasted_us": pl.Float64,
        "calls": pl.Int64,  # null: XProf counts none for programs and for the whole
        "mean_us": pl.Float64,
        "hlo_category": pl.String,
        "long_name": pl.String,
    }
)
"""One row a node, each before its children, those with most time first."""

US_PS = 1e6


def op_profile_rows(tree: dict[str, Any]) -> pl.DataFrame:
    """The nodes of a tree that `xprof_op_profile` gave: frame of schema `NODES`."""
    whole = tree["metrics"]["rawTime"]
    rows: list[dict[str, Any]] = []
    _add(rows, tree, whole, "", 0)
    return pl.DataFrame(rows, schema=NODES)


def _add(rows: list[dict[str, Any]], node: dict[str, Any], whole_ps: float, above: str, depth: int) -> None:
    metrics, known = node["metrics"], node.get("xla", {})
    time_ps = metrics["rawTime"]
    share = time_ps / whole_ps if whole_ps else 0.0
    flops = metrics["flops"] / share if share else 0.0
    hbm = metrics["bandwidthUtils"][0]
    place = f"{above}\t{node['name']}" if above else node["name"]
    rows.append(
        {
            "node": place,
            "depth": depth,
            "children": node["numChildren"],
            "name": node["name"],
            "total_us": time_ps / US_PS,
            "pct": 100 * share,
            "flops_pct": 100 * flops,
            "hbm_pct": 100 * hbm,
            "wasted_us": time_ps * max(1 - max(flops, hbm), 0.0) / US_PS,
            "calls": int(metrics["occurrences"]) or None,
            "mean_us": metrics["avgTimePs"] / US_PS if metrics["occurrences"] else None,
            "hlo_category": known.get("category"),
            "long_name": known.get("expression"),
        }
    )
    for child in node["children"]:
        _add(rows, child, whole_ps, place, depth + 1)
