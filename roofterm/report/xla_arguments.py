"""Arguments of a profile's slices as the trace viewer writes those of an XPlane: every value is a text."""

from __future__ import annotations

from typing import Any

import polars as pl

from roofterm_parsers.profile import Kind, Profile, TrackKind

_HLO = {
    "hlo_op": "name",
    "hlo_module": "program",
    "hlo_category": "category",
    "long_name": "text",
    "tf_op": "framework_op",
    "source": "source",
    "source_stack": "source_stack",
    "deduplicated_name": "deduplicated",
}


class XlaArguments:
    """Arguments of slices, a stretch of ids at a time."""

    def __init__(self, profile: Profile) -> None:
        self._instructions = [_instruction(row) for row in profile.hlo_ops.iter_rows(named=True)]
        self._hlo = profile.hlo.sort("slice", maintain_order=True)
        told = _correlations(profile)
        self._kernels = _with(profile.kernels, told.select(slice="work", told="correlation"))
        self._copies = _with(profile.copies, told.select(slice="work", told="correlation"))
        calls = pl.concat([told.select(slice="launch", correlation="correlation"), profile.runtime.select("slice", "correlation")])
        self._calls = calls.unique("slice", keep="first").sort("slice")
        self._steps = _host_steps(profile)
        self._ops = _host_ops(profile)

    def of(self, first: int, last: int) -> dict[int, dict[str, Any]]:
        """Arguments of the slices from `first` to before `last` that have any."""
        found: dict[int, dict[str, Any]] = {}
        for row in _part(self._hlo, first, last).iter_rows(named=True):
            found.setdefault(row["slice"], {}).update(self._instructions[row["op"]])
        for row in _part(self._calls, first, last).iter_rows(named=True):
            found.setdefault(row["slice"], {}).update(_correlation(row))
        for row in _part(self._kernels, first, last).iter_rows(named=True):
            found.setdefault(row["slice"], {}).update(_kernel(row))
        for row in _part(self._copies, first, last).iter_rows(named=True):
            size = f"size:{row['bytes']}" if row["bytes"] is not None else "size:0"
            found.setdefault(row["slice"], {}).update(_correlation(row) | {"memcpy_details": size})
        for row in _part(self._steps, first, last).iter_rows(named=True):
            found.setdefault(row["slice"], {})["step_num"] = str(row["number"])
        for (number,) in _part(self._ops, first, last).iter_rows():
            found.setdefault(number, {})["is_eager"] = "1"
        return found


def _correlations(profile: Profile) -> pl.DataFrame:
    """Work and its launch with a number for both: their own, else that of the launching slice (an XPlane links by contexts too)."""
    known = pl.concat([profile.kernels.select("slice", "correlation"), profile.copies.select("slice", "correlation")])
    linked = profile.links.drop_nulls("launch").join(known.rename({"slice": "work"}), on="work", how="left", maintain_order="left")
    own = pl.col("correlation").n_unique().over("launch") == 1
    return linked.with_columns(correlation=pl.coalesce(pl.when(own).then("correlation"), pl.col("launch").cast(pl.Int64)))


def _with(frame: pl.DataFrame, told: pl.DataFrame) -> pl.DataFrame:
    """Device work in order of slice, with the correlation that its launch has."""
    frame = frame.join(told, on="slice", how="left", maintain_order="left")
    return frame.with_columns(correlation=pl.coalesce("told", "correlation")).sort("slice", maintain_order=True)


def _part(frame: pl.DataFrame, first: int, last: int) -> pl.DataFrame:
    start, end = (frame["slice"].search_sorted(bound) for bound in (first, last))
    return frame[start:end]


def _host_steps(profile: Profile) -> pl.DataFrame:
    """Steps that the host marks: those of a device's line of steps are told by the line."""
    on_host = (profile.tracks["kind"] == int(TrackKind.HOST)).gather(profile.slices["track"].gather(profile.steps["slice"]))
    marked = profile.steps.select("slice", "number").filter(on_host)
    steps = (profile.slices["kind"] == int(Kind.STEP)).gather(marked["slice"])
    return marked.filter(steps).sort("slice", maintain_order=True)


def _host_ops(profile: Profile) -> pl.DataFrame:
    """Ops of the host that no instruction of an HLO tells: the viewer marks them as eager."""
    slices = profile.slices.with_row_index("slice").filter(pl.col("kind") == int(Kind.OP))
    instructions = profile.hlo.filter(profile.hlo_ops["name"].is_not_null().gather(profile.hlo["op"]))
    return slices.select("slice").join(instructions, on="slice", how="anti", maintain_order="left")


def _instruction(row: dict[str, Any]) -> dict[str, str]:
    told = {word: row[column] for word, column in _HLO.items() if row[column] is not None}
    for word, column in (("bytes_accessed", "bytes"), ("model_flops", "flops")):
        if row[column] is not None:
            told[word] = str(int(row[column]))
    return told


def _correlation(row: dict[str, Any]) -> dict[str, str]:
    return {} if row["correlation"] is None else {"correlation_id": str(row["correlation"])}


def _kernel(row: dict[str, Any]) -> dict[str, str]:
    details = []
    if row["registers"] is not None:
        details.append(f"regs:{row['registers']}")
    if row["shared_bytes"] is not None:
        details.append(f"shm:{row['shared_bytes']}")
    for word in ("grid", "block"):
        if row[f"{word}_x"] is not None:
            details.append(f"{word}:{row[f'{word}_x']},{row[f'{word}_y']},{row[f'{word}_z']}")
    if row["occupancy_pct"] is not None:
        details.append(f"occ_pct:{row['occupancy_pct']}")
    return _correlation(row) | ({"kernel_details": " ".join(details)} if details else {})
