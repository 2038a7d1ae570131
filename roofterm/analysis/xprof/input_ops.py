"""The host's side of XProf's input pipeline analysis: ops that read, prepare and send input (op_stats_to_input_pipeline_analysis.cc)."""

from __future__ import annotations

from typing import Any

from roofterm.analysis.xprof.host_ops import HostOps
from roofterm.analysis.xprof.record import divide

ENQUEUE, DEMANDED, ADVANCED, PREPROCESSING = "Enqueue", "Demanded file read", "Advanced file read", "Preprocessing"
_READERS = tuple(f"::{name}" for name in ("TFRecord", "TextLine", "FixedLengthRecord", "SSTable", "RecordIO", "ArrayRecord"))
_AHEAD = tuple(f"::{name}" for name in ("MemoryReader", "MemoryWriter", "Interleave", "Prefetch", "ParallelMap"))
"""Iterators of tf.data around a reader that read in advance"""


def input_category(name: str, kind: str) -> str | None:
    """What an op of this name and framework type does for the input; None for any other op."""
    if kind.startswith("InfeedEnqueue") or kind == "MemcpyHToD":
        return ENQUEUE
    if kind != "Dataset":
        return None
    if name.endswith(_READERS):
        return ADVANCED if any(part in name for part in _AHEAD) else DEMANDED
    return PREPROCESSING


def input_ops(host: HostOps) -> list[dict[str, Any]]:
    """XProf's rows, most self time first: `opName`, `count`, `timeInMs`, `selfTimeInMs`, `category`; both times also as fractions of all
    self time."""
    ops = [
        (category, *row)
        for row in host.ops.select("name", "type", "occurrences", "time_ps", "self_ps").iter_rows()
        if (category := input_category(row[0], row[1])) is not None
    ]
    whole = sum(self_ps for *_, self_ps in ops)
    return [
        {
            "opName": name,
            "count": float(occurrences),
            "timeInMs": time_ps / 1e9,
            "timeInPercent": divide(time_ps, whole),
            "selfTimeInMs": self_ps / 1e9,
            "selfTimeInPercent": divide(self_ps, whole),
            "category": category,
        }
        for category, name, _, occurrences, time_ps, self_ps in sorted(ops, key=lambda op: (-op[5], op[1]))
    ]


def input_breakdown(rows: list[dict[str, Any]], to_device: float) -> dict[str, float]:
    """The host's input time (us) by what it did: `enqueue_us`, `demanded_file_read_us`, `advanced_file_read_us`, `preprocessing_us`,
    `unclassified_nonequeue_us`.

    `rows` of `input_ops`. `to_device`: the share of a step in which the host sends to the device; the rest of the time is divided
    as the ops' self times are, and without any sending these stand as they are.
    """
    known = dict.fromkeys((ENQUEUE, DEMANDED, ADVANCED, PREPROCESSING), 0.0)
    for row in rows:
        known[row["category"]] += row["selfTimeInMs"] * 1e3
    prepared = known[DEMANDED] + known[ADVANCED] + known[PREPROCESSING]
    ratio = min(1.0, to_device)
    beside = known[ENQUEUE] * (1.0 - ratio) / ratio if ratio else prepared
    parts = {category: divide(beside * known[category], prepared) for category in (DEMANDED, ADVANCED, PREPROCESSING)}
    return {
        "enqueue_us": known[ENQUEUE],
        "demanded_file_read_us": parts[DEMANDED],
        "advanced_file_read_us": parts[ADVANCED],
        "preprocessing_us": parts[PREPROCESSING],
        "unclassified_nonequeue_us": max(0.0, beside - sum(parts.values())),
    }
