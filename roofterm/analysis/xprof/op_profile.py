"""XProf's op profile: a tree of programs, categories and ops with their times and utilisations (op_profile_builder.cc)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from roofterm.analysis.xprof.op_metrics import OpMetrics, op_metrics
from roofterm.analysis.xprof.peaks import Peaks, peaks, version_numbers
from roofterm.analysis.xprof.record import divide
from roofterm.analysis.xprof.source import framework_op
from roofterm_parsers.profile import Profile

Grouping = Literal["program", "category", "provenance"]
MOST_CHILDREN = 100
"""of a node below the levels of programs and categories"""
_LEVELS = {"program": 2, "category": 1, "provenance": 100}
_SUMS = ("time_ps", "self_ps", "normalized_ps", "flops", "model_flops", "hbm_bytes", "on_chip_read", "on_chip_write", "occurrences")
IDLE = "IDLE"


@dataclass(slots=True)
class Node:
    """A node of the tree. `op` is the instruction that a leaf shows, and of a group of duplicates the first of them."""

    name: str
    sums: dict[str, float] = field(default_factory=lambda: dict.fromkeys(_SUMS, 0))
    children: list[Node] = field(default_factory=list)
    op: dict[str, Any] | None = None
    number_of_children: int = 0
    _known: dict[tuple[str, str], Node] = field(default_factory=dict)

    def child(self, kind: str, name: str) -> Node:
        """The child of this kind and name, made if it is new."""
        found = self._known.get((kind, name))
        if found is None:
            found = self._known[kind, name] = Node(name)
            self.children.append(found)
        return found


def xprof_op_profile(profile: Profile, version: str, group: Grouping, *, idle: bool = True) -> dict[str, Any]:
    """The tree as {name, metrics, numChildren, children, xla}: times in ps, bytes [HBM, on-chip read, on-chip write].

    metrics.flops and bandwidthUtils are capped at 1, flops and uncappedFlops multiplied by the node's share of time.
    """
    numbers = version_numbers(version)
    device = peaks(profile, numbers)
    if device.hardware == "CPU":
        return _shown(Node(f"by_{group}"), device, 0)
    metrics = op_metrics(profile, device.hardware, numbers)
    total_ps = metrics.total_ps if idle else metrics.op_ps
    root = _tree(metrics, group, idle, device.hardware == "TPU")
    root.sums["time_ps"] = total_ps
    _sort_and_prune(root, _LEVELS[group])
    return _shown(_finished(root), device, total_ps)


def _tree(metrics: OpMetrics, group: Grouping, idle: bool, normalized: bool) -> Node:
    root = Node(f"by_{group}")
    for op in metrics.ops.sort("module", "name").iter_rows(named=True):
        if op["name"].startswith("region"):
            continue
        one = {
            **op,
            "normalized_ps": op["normalized_ps"] if normalized else 0,
            "hbm_bytes": op["hbm_bytes"] if op["broken_down"] else 0,
            "on_chip_read": op["on_chip_read_bytes"],
            "on_chip_write": op["on_chip_write_bytes"],
        }
        _add(root, one, group, parts=normalized)
    if idle:
        facts = dict.fromkeys(_SUMS, 0) | {"time_ps": metrics.idle_ps, "self_ps": metrics.idle_ps}
        _add_self(root, {**facts, "name": IDLE})
        leaf = Node(IDLE, op={**_NOTHING, "category": IDLE})
        _add_whole(leaf, facts)
        root.children.append(leaf)
    return root


def _add(root: Node, op: dict[str, Any], group: Grouping, parts: bool) -> None:
    _add_self(root, op)
    parent = root
    if group != "category":
        parent = root.child("program", f"{op['program']}({op['module']})" if op["program"] else "main")
        _add_self(parent, op)
    if op["time_ps"] != op["self_ps"]:
        return  # its time is that of the ops inside, which are in the tree themselves
    if group == "provenance":
        for part in _path(framework_op(op["framework_op"])):
            parent = parent.child("provenance", part)
            _add_self(parent, op)
    category = parent.child("category", op["category"])
    duplicates = category.child("op", op["deduplicated"] or op["name"])
    leaf = Node(op["name"], op=op, children=_parts(msgspec.json.decode(op["inside"])) if parts and op["inside"] else [])
    duplicates.children.append(leaf)
    for node in (category, duplicates, leaf):
        _add_whole(node, op)


def _parts(names: list[Any]) -> list[Node]:
    """The instructions of a fusion, which have no times of their own; XProf shows them for TPUs."""
    nodes = []
    for name in names:
        parts = name[1] if isinstance(name, list) else []
        node = Node(name[0] if isinstance(name, list) else name, op=_NOTHING, children=_parts(parts))
        node.sums["occurrences"] = 1
        nodes.append(node)
    return nodes


_NOTHING = {"category": "", "module": 0, "text": "", "framework_op": None, "source": None}


def _add_self(node: Node, op: dict[str, Any]) -> None:
    """To a node that holds ops of all depths: own time, and costs of those that hold no others."""
    node.sums["time_ps"] += op["self_ps"]
    node.sums["self_ps"] += op["self_ps"]
    node.sums["normalized_ps"] += op["normalized_ps"]
    if op["time_ps"] == op["self_ps"]:
        for name in ("flops", "model_flops", "hbm_bytes", "on_chip_read", "on_chip_write"):
            node.sums[name] += op[name]


def _add_whole(node: Node, op: dict[str, Any]) -> None:
    for name in _SUMS:
        node.sums[name] += op[name]


def _path(provenance: str) -> list[str]:
    parts = [part for part in provenance.split("/") if part]
    return [*parts[:-1], parts[-1].partition(":")[0]] if parts else []


def _sort_and_prune(node: Node, level: int) -> None:
    node.number_of_children = len(node.children)
    for child in node.children:
        _sort_and_prune(child, level - 1)
    node.children.sort(key=lambda child: -child.sums["time_ps"])
    if level <= 0:
        del node.children[MOST_CHILDREN:]


def _finished(node: Node) -> Node:
    """Groups of one op give way to it; groups of several are named after the one with the most time."""
    if not node.children or node.op is not None or any(child.op is None for child in node.children):
        node.children = [_finished(child) for child in node.children]
        return node
    if len(node.children) == 1:
        return node.children[0]
    first = node.children[0]
    node.name = f"{first.name} and its duplicate(s)"
    node.op = first.op
    return node


def _shown(node: Node, device: Peaks, total_ps: int) -> dict[str, Any]:
    sums = node.sums
    time_ps, ns = sums["time_ps"], sums["time_ps"] / 1000
    share = divide(time_ps, total_ps)
    uncapped = divide(divide(sums["flops"], (sums["normalized_ps"] or time_ps) / 1000), device.gflops)
    sizes = [sums["hbm_bytes"], sums["on_chip_read"], sums["on_chip_write"]]
    bandwidths = (device.hbm, device.sram_read, device.sram_write)
    shown: dict[str, Any] = {
        "name": node.name,
        "metrics": {
            "rawTime": time_ps,
            "flops": min(uncapped, 1.0) * share,
            "uncappedFlops": uncapped * share,
            "bandwidthUtils": [min(divide(divide(size, ns), peak), 1.0) for size, peak in zip(sizes, bandwidths, strict=True)],
            "rawFlops": sums["model_flops"],
            "bf16Flops": sums["flops"],
            "rawBytesAccessedArray": sizes if time_ps else [0] * len(sizes),  # there, rates times the time
            "occurrences": sums["occurrences"],
            "avgTimePs": divide(time_ps, sums["occurrences"]),
            "normalizedTimePs": sums["normalized_ps"],
        },
        "numChildren": node.number_of_children,
        "children": [_shown(child, device, total_ps) for child in node.children],
    }
    if node.op is not None:
        op = node.op
        shown["xla"] = {
            "programId": str(op["module"]),
            "expression": op["text"] or "",
            "category": op["category"],
            "provenance": framework_op(op["framework_op"]),
            "source": op["source"] or "",
        }
    return shown
