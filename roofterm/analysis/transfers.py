"""Asynchronous ops of XLA: one transfer from where its start op begins to where its done op ends.

The two ops stand apart on a core's line, and other work runs between them. The compiler counts the bytes for both; here the
done op has them, and its own length, often nanoseconds, says nothing of how fast they moved.
"""

from __future__ import annotations

import re

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.hlo_costs import on_device_clock
from roofterm_parsers.profile import Kind, Profile

_DONE = re.compile(r"-done(?=\.\d+$|$)")
_OPERAND = re.compile(r"%([\w.\-]*start[\w.\-]*)")

TRANSFERS = pl.Schema({"slice": pl.UInt32(), "transfer_ps": pl.Int64()})
"""A done op, and how long the whole transfer took, by the device's own clock."""


def transfers(profile: Profile) -> pl.DataFrame:
    """The transfers of which both ends ran, schema `TRANSFERS`.

    A done op ends what the latest run of its start op before it has begun on the same device.
    """
    pairs = _pairs(profile)
    if pairs.height == 0:
        return pl.DataFrame(schema=TRANSFERS)
    ends = np.zeros(profile.hlo_ops.height, np.bool_)
    ends[pl.concat([pairs["start"], pairs["done"]]).to_numpy()] = True
    ran = profile.hlo[np.flatnonzero(ends[profile.hlo["op"].to_numpy()])]
    if not _rises(ran["slice"].to_numpy()):
        ran = ran.unique("slice", keep="first")
    taken = profile.slices[ran["slice"]]
    ran = ran.with_columns(
        device=profile.tracks["device"].gather(taken["track"]),
        start_ps=taken["start_ps"],
        end_ps=taken["start_ps"] + taken["dur_ps"],
        own_ps=taken["dur_ps"],
    )
    ran = on_device_clock(profile, ran.filter(taken["kind"] == int(Kind.KERNEL)))
    if not _in_order(ran["device"].to_numpy(), ran["start_ps"].to_numpy()):
        ran = ran.sort("start_ps")
    begun = ran.select("device", "start_ps", start="op", begin_ps="start_ps")
    done = ran.join(pairs, left_on="op", right_on="done", how="inner", maintain_order="left")
    done = done.join_asof(begun, on="start_ps", by=["device", "start"], strategy="backward", check_sortedness=False)
    return done.drop_nulls("begin_ps").select("slice", transfer_ps=pl.col("end_ps") - pl.col("begin_ps")).cast(TRANSFERS)


def _rises(slices: NDArray[np.uint32]) -> bool:
    return bool(np.all(slices[1:] > slices[:-1]))


def _in_order(device: NDArray[np.uint16], start: NDArray[np.int64]) -> bool:
    """Whether one device follows the other, each in order of time: sorting would be in vain."""
    return bool(np.all((start[1:] >= start[:-1]) & (device[1:] == device[:-1]) | (device[1:] > device[:-1])))


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
