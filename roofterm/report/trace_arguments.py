"""Arguments of a profile's slices as Kineto writes them, so that what reads a trace finds the same facts again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import polars as pl

from roofterm_parsers.profile import Profile

Fragments = dict[int, dict[str, Any]]
"""Arguments by slice."""

_KERNEL = {
    "External id": "external_id",
    "device": "device",
    "stream": "stream",
    "correlation": "correlation",
    "registers per thread": "registers",
    "shared memory": "shared_bytes",
    "blocks per SM": "blocks_per_unit",
    "warps per SM": "warps_per_unit",
    "est. achieved occupancy %": "occupancy_pct",
    "graph id": "graph",
    "graph node id": "graph_node",
}
_COPY = {
    "External id": "external_id",
    "device": "device",
    "stream": "stream",
    "correlation": "correlation",
    "bytes": "bytes",
    "toDevice": "peer",
}
_CALL = {"External id": "external_id", "correlation": "correlation"}
_WAIT = {
    "device": "device", "stream": "stream", "correlation": "correlation", "wait_on_stream": "on_stream",
    "wait_on_cuda_event_record_corr_id": "event_correlation",
}  # fmt: skip
_OP = {"External id": "external_id", "Sequence number": "sequence", "Fwd thread id": "forward_thread"}
_CALLER = {"Call stack": "stack", "Module Hierarchy": "modules"}
_SIGNATURE = {"Concrete Inputs": "concrete", "Input type": "types", "Input Strides": "strides", "Input Dims": "dims"}
_PYTHON = {"Python parent id": "python_parent", "Python id": "python_id", "Python module id": "module_id"}
_COLLECTIVE = {
    "Collective name": "collective",
    "In msg nelems": "in_elements",
    "Out msg nelems": "out_elements",
    "Group size": "group_size",
    "dtype": "dtype",
    "Process Group Name": "group",
    "Process Group Description": "group_description",
    "Process Group Ranks": "ranks",
    "Seq": "sequence",
}


class KinetoArguments:
    """Arguments of slices, a stretch of ids at a time."""

    def __init__(self, profile: Profile) -> None:
        number = profile.devices["id"]
        self._sides: list[tuple[pl.DataFrame, Callable[[dict[str, Any]], dict[str, Any]]]] = [
            (_told(profile.ops), _named(_OP)),
            (_told(profile.called.with_columns(profile.callers[profile.called["caller"]])), _named(_CALLER)),
            (_told(profile.runtime), _named(_CALL)),
            (_told(profile.kernels, number), _kernel),
            (_told(profile.copies, number), _named(_COPY)),
            (_told(profile.waits, number), _named(_WAIT)),
            (_told(profile.python), _named(_PYTHON)),
            (_told(profile.collectives), _named(_COLLECTIVE)),
            (_told(profile.launches), _launch),
            (_told(profile.counted), _counter),
        ]
        self._signatures = [_signature(row) for row in profile.signatures.iter_rows(named=True)]

    def of(self, first: int, last: int) -> Fragments:
        """Arguments of the slices from `first` to before `last` that have any."""
        found: Fragments = {}
        for frame, told in self._sides:
            start, end = (frame["slice"].search_sorted(bound) for bound in (first, last))
            for row in frame[start:end].iter_rows(named=True):
                arguments = found.setdefault(row["slice"], {})
                arguments.update(told(row))
                if row.get("signature") is not None:
                    arguments.update(self._signatures[row["signature"]])
        return found


def _told(frame: pl.DataFrame, numbers: pl.Series | None = None) -> pl.DataFrame:
    """A side table in order of slice, devices by the file's numbers."""
    if numbers is not None and frame.height:
        frame = frame.with_columns(device=numbers.gather(frame["device"]))
    return frame.sort("slice", maintain_order=True)


def _named(columns: dict[str, str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What a row holds, under Kineto's words."""

    def told(row: dict[str, Any]) -> dict[str, Any]:
        return {word: row[column] for word, column in columns.items() if row[column] is not None}

    return told


_kernel_facts = _named(_KERNEL)


def _kernel(row: dict[str, Any]) -> dict[str, Any]:
    return _kernel_facts(row) | dict(_shape(row))


def _launch(row: dict[str, Any]) -> dict[str, Any]:
    facts = {"kernel": row["kernel"], "shared memory": row["shared_bytes"]}
    return {word: value for word, value in facts.items() if value is not None} | dict(_shape(row))


def _shape(row: dict[str, Any]) -> Iterator[tuple[str, Sequence[int]]]:
    for word in ("grid", "block"):
        if row[f"{word}_x"] is not None:
            yield word, [row[f"{word}_{axis}"] for axis in "xyz"]


def _counter(row: dict[str, Any]) -> dict[str, Any]:
    return {row["counter"]: row["value"]}


def _signature(row: dict[str, Any]) -> dict[str, Any]:
    """Input description as recorded: each part is JSON already, or the text of what was none."""
    return {word: _json(row[column]) for word, column in _SIGNATURE.items() if row[column] is not None}


def _json(text: str) -> Any:
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    return msgspec.Raw(text.encode())
