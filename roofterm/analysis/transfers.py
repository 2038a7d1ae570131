"""Asynchronous ops of XLA: one transfer from where its start op begins to where its done op ends.

The two ops stand apart on a core's line, and other work runs between them. The compiler counts the bytes for both; here the
done op has them, and its own length, often nanoseconds, says nothing of how fast they moved.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.hlo_costs import on_device_clock
from roofterm_parsers.profile import Kind, Profile

I64 = NDArray[np.int64]

NONE = -1
_DONE = re.compile(r"-done(?=\.\d+$|$)")
_OPERAND = re.compile(r"%([\w.\-]*start[\w.\-]*)")

TRANSFERS = pl.Schema({"slice": pl.UInt32(), "transfer_ps": pl.Int64()})
"""A done op, and how long the whole transfer took, by the device's own clock."""


def transfers(profile: Profile) -> pl.DataFrame:
    """The transfers of which both ends ran, schema `TRANSFERS`.

    A done op ends what the latest run of its start op before it has begun on the same device. In order of slices.
    """
    pairs = _pairs(profile)
    if pairs.height == 0:
        return pl.DataFrame(schema=TRANSFERS)
    ends = np.zeros(profile.hlo_ops.height, np.bool_)
    ends[pl.concat([pairs["start"], pairs["done"]]).to_numpy()] = True
    ran = profile.hlo[np.flatnonzero(ends[profile.hlo["op"].to_numpy()])]
    slices = ran["slice"].to_numpy()
    if not np.all(slices[1:] > slices[:-1]):
        ran = ran.unique("slice", keep="first", maintain_order=True)
    taken = profile.slices[ran["slice"]]
    ran = ran.with_columns(
        device=profile.tracks["device"][taken["track"]],
        start_ps=taken["start_ps"],
        end_ps=taken["start_ps"] + taken["dur_ps"],
        own_ps=taken["dur_ps"],
    )
    ran = on_device_clock(profile, ran.filter((taken["kind"] == int(Kind.KERNEL)) & ran["device"].is_not_null()))
    start, end = ran["start_ps"].to_numpy(), ran["end_ps"].to_numpy()
    number, number_of_done = np.full((2, profile.hlo_ops.height), NONE, np.int64)
    number[pairs["start"].to_numpy()] = np.arange(pairs.height)  # several done ops may have one start
    number_of_done[pairs["done"].to_numpy()] = number[pairs["start"].to_numpy()]
    begun, done = _Runs(ran, number, pairs.height), _Runs(ran, number_of_done, pairs.height)
    transfer = np.full(ran.height, NONE, np.int64)
    for before, rows in zip(begun.groups(), done.groups(), strict=True):
        if before.size and rows.size:
            since = np.sort(start[before])
            latest = np.searchsorted(since, start[rows], side="right") - 1
            transfer[rows] = np.where(latest >= 0, end[rows] - since[latest], NONE)
    known = transfer != NONE
    return pl.DataFrame({"slice": ran["slice"].to_numpy()[known], "transfer_ps": transfer[known]}, schema=TRANSFERS)


class _Runs:
    """Runs of some ops by their number and the device."""

    def __init__(self, ran: pl.DataFrame, number: I64, count: int) -> None:
        """`ran`: columns op, device; `number`: of each op, below `count`, NONE for others."""
        code, device = number[ran["op"].to_numpy()], ran["device"].to_numpy()
        devices = int(device.max()) + 1 if device.size else 1
        rows = np.flatnonzero(code != NONE)
        key = code[rows] * devices + device[rows]
        order = np.argsort(key.astype(np.uint16) if count * devices <= 1 << 16 else key, kind="stable")
        self._rows = rows[order]
        self._bounds = np.searchsorted(key[order], np.arange(count * devices + 1)).tolist()

    def groups(self) -> Iterator[I64]:
        """Rows of `ran` of each number on each device, in order of both."""
        return (self._rows[a:b] for a, b in pairwise(self._bounds))


def _pairs(profile: Profile) -> pl.DataFrame:
    """Rows of hlo_ops: `start` and `done` of one asynchronous op of a program."""
    ops = profile.hlo_ops.with_row_index("op").join(profile.hlo_facts.select("op", "operands"), on="op", how="left", maintain_order="left")
    ops = ops.filter(pl.col("name").str.contains(r"-(start|done)(\.\d+)?$"))
    by_name = {(program, name): op for op, program, name in ops.select("op", "program_id", "name").iter_rows()}
    found = []
    for op, program, name, operands, text in ops.select("op", "program_id", "name", "operands", "text").iter_rows():
        if _DONE.search(name):
            told = msgspec.json.decode(operands, type=list[str]) if operands else _OPERAND.findall(text or "")[-1:]
            likely = _DONE.sub("-start", name)
            start = next((by_name[program, one] for one in (*told, likely) if (program, one) in by_name), None)
            if start is not None and start != op:
                found.append((start, op))
    return pl.DataFrame(found, schema={"start": pl.UInt32, "done": pl.UInt32}, orient="row")
