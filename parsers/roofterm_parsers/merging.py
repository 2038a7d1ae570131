"""Several profiles made one: the ranks of a job, the hosts of a run.

Row numbers are shifted, dictionaries (names, signatures, HLO ops) united, times put on one axis by the wall clock where
every source tells it. Nothing is ever linked from one source to another.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from roofterm_parsers.errors import ProfileError
from roofterm_parsers.profile import FRAMES, ROOT, Profile, Warning, empty

REFERENCES: dict[str, dict[str, str]] = {
    "slices": {"track": "tracks", "name": "names", "parent": "slices"},
    "tracks": {"source": "sources", "device": "devices"},
    "ops": {"slice": "slices", "signature": "signatures"},
    "called": {"slice": "slices", "caller": "callers"},
    "kernels": {"slice": "slices", "device": "devices"},
    "copies": {"slice": "slices", "device": "devices"},
    "runtime": {"slice": "slices"},
    "launches": {"slice": "slices"},
    "waits": {"slice": "slices", "device": "devices"},
    "collectives": {"slice": "slices"},
    "python": {"slice": "slices"},
    "hlo": {"slice": "slices", "op": "hlo_ops"},
    "hlo_facts": {"op": "hlo_ops"},
    "hlo_roles": {"op": "hlo_ops"},
    "hlo_events": {"slice": "slices"},
    "device_clock": {"slice": "slices"},
    "links": {"work": "slices", "launch": "slices", "op": "slices"},
    "backward": {"backward": "slices", "forward": "slices"},
    "counters": {"source": "sources"},
    "counted": {"slice": "slices"},
    "memory": {"track": "tracks"},
    "allocations": {"memory": "memory"},
    "flows": {"track": "tracks"},
    "instants": {"track": "tracks", "name": "names"},
    "devices": {"source": "sources"},
    "steps": {"source": "sources", "slice": "slices", "device": "devices"},
}
"""Frame: {column: the frame whose rows it numbers}."""

TIMES = {
    "slices": "start_ps",
    "counters": "time_ps",
    "memory": "time_ps",
    "flows": "time_ps",
    "instants": "time_ps",
    "steps": "start_ps",
    "device_clock": "start_ps",
}
"""Frame: its column of times from the profile's zero."""

UNITED = ("names", "signatures", "callers", "hlo_ops")
"""Dictionaries: equal rows of several sources become one."""

MOST_APART_NS = 50 * 86_400 * 10**9
"""Sources further apart cannot share an axis: 64 bits of picoseconds hold 106 days, half of them for the files themselves."""


def merge(profiles: Sequence[Profile], *, consumed: bool = False) -> Profile:
    """One profile of several, their sources in the order given; a single one is returned as it is.

    With `consumed`, each frame of the parts is let go of as soon as it is merged: half the memory, and the parts are empty.

    Where every source knows the wall-clock time of its zero, the earliest zero is the merged profile's and the others are
    shifted by their distance from it (nanoseconds, exact in picoseconds). Else each starts at zero, and a warning says so.
    Raises ProfileError if the row numbers would not fit.
    """
    if len(profiles) == 1:
        return profiles[0]
    rows = {frame: _starts([getattr(part, frame).height for part in profiles]) for frame in FRAMES}
    rows["sources"] = _starts([len(part.sources) for part in profiles])
    _check_sizes(rows)
    merged = Profile(sources=[source for part in profiles for source in part.sources])
    merged.warnings = [warning for part in profiles for warning in part.warnings]
    shifts_ps, merged.zero_unix_ns, told = _alignment(profiles)
    if told is not None:
        merged.warnings.append(told)
    codes: dict[str, list[pl.Series]] = {}
    for frame in UNITED:
        united, codes[frame] = _unite([getattr(part, frame) for part in profiles])
        setattr(merged, frame, united)
    for frame, schema in FRAMES.items():
        if frame not in UNITED:
            parts = [getattr(part, frame) for part in profiles]
            columns = {column: _column(frame, column, parts, rows, codes, shifts_ps) for column in schema}
            setattr(merged, frame, pl.DataFrame(columns, schema=schema))
            del parts, columns
        if consumed:
            for part in profiles:
                setattr(part, frame, empty(frame))
    merged.hlo_facts = merged.hlo_facts.unique("op", keep="first", maintain_order=True)
    merged.hlo_roles = merged.hlo_roles.unique("op", keep="first", maintain_order=True)
    return merged


def shift_sources(profile: Profile, by_ps: Sequence[int]) -> Profile:
    """The profile with all times of each source moved by so many ps; one number a source.

    The earliest slice keeps its place on the axis at zero or later: the whole profile is moved if one came before it.
    """
    by = np.asarray(by_ps, np.int64)
    tracks = profile.tracks["source"].to_numpy()
    of_slice = by[tracks[profile.slices["track"].to_numpy()]]
    start = profile.slices["start_ps"].to_numpy() + of_slice
    before = min(int(start.min()), 0) if start.size else 0
    shifted = dataclasses.replace(profile)
    for frame, column in TIMES.items():
        table: pl.DataFrame = getattr(profile, frame)
        if frame in ("counters", "steps"):
            moved = by[table["source"].to_numpy()]
        elif frame in ("slices", "memory", "flows", "instants"):
            moved = by[tracks[table["track"].to_numpy()]]
        else:
            moved = of_slice[table["slice"].to_numpy()]
        setattr(shifted, frame, table.with_columns(pl.Series(column, table[column].to_numpy() + moved - before)))
    if profile.zero_unix_ns is not None:
        shifted.zero_unix_ns = profile.zero_unix_ns + before // 1000
    return shifted


def _column(
    frame: str, column: str, parts: list[pl.DataFrame], rows: dict[str, list[int]], codes: dict[str, list[pl.Series]], shifts_ps: list[int]
) -> pl.Series:
    """One column of the merged frame, in one piece."""
    target = REFERENCES.get(frame, {}).get(column)
    pieces = []
    for i, part in enumerate(parts):
        values = part[column]
        if target in UNITED:
            values = codes[target][i].gather(values)
        elif (frame, column) == ("slices", "parent"):
            values = _shifted_parents(values, rows["slices"][i])
        elif (frame, column) == ("flows", "id"):
            # Arrows are drawn by id: one of one source must not meet one of another.
            values = pl.select(pl.format("{}/{}", pl.lit(rows["sources"][i]), pl.lit(values))).to_series() if part.height else values
        elif target is not None:
            values = _shifted(values, rows[target][i])
        elif TIMES.get(frame) == column:
            values = _shifted(values, shifts_ps[i])
        pieces.append(values.alias(column).cast(FRAMES[frame][column]))
    return pl.concat(pieces, rechunk=True)


def _shifted(values: pl.Series, by: int) -> pl.Series:
    return values + by if by else values


def _shifted_parents(values: pl.Series, by: int) -> pl.Series:
    if not by:
        return values
    parents = values.to_numpy()
    return pl.Series(values=np.where(parents == ROOT, parents, parents + np.uint32(by)))


def _unite(parts: list[pl.DataFrame]) -> tuple[pl.DataFrame, list[pl.Series]]:
    """The distinct rows in order of first sight, and for each part the new row of each of its rows."""
    every = pl.concat(parts)
    columns = every.columns
    keyed = every.with_row_index("row").group_by(columns, maintain_order=True).agg("row")
    united = keyed.select(columns)
    codes = keyed.select("row").with_row_index("code").explode("row").sort("row")["code"]
    return united, [codes.slice(start, part.height) for start, part in zip(_starts([part.height for part in parts]), parts, strict=False)]


def _alignment(profiles: Sequence[Profile]) -> tuple[list[int], int | None, Warning | None]:
    """By how many ps each part moves, the wall-clock time of the merged zero, and what to say of it."""
    zeros = [part.zero_unix_ns for part in profiles]
    known = [zero for zero in zeros if zero is not None]
    unknown = [path for part in profiles if part.zero_unix_ns is None for path in _paths(part)]
    if unknown:
        return [0] * len(zeros), None, _not_aligned(f"the wall-clock time is missing in {_listed(unknown)}", len(unknown))
    first = min(known)
    if max(known) - first > MOST_APART_NS:
        days = (max(known) - first) // (86_400 * 10**9)
        return [0] * len(zeros), None, _not_aligned(f"the files are {days:,} days apart", len(zeros))
    return [(zero - first) * 1000 for zero in known], first, None


def _not_aligned(why: str, count: int) -> Warning:
    return Warning("clock", f"times of different files cannot be compared, since {why}: each file starts at zero", count)


def _paths(part: Profile) -> Iterator[str]:
    return (source.path for source in part.sources)


def _listed(paths: list[str]) -> str:
    return ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")


def _starts(sizes: list[int]) -> list[int]:
    """First row of each part in the whole, and the whole's height behind them."""
    return [0, *np.cumsum(sizes, dtype=np.int64).tolist()]


def _check_sizes(rows: dict[str, list[int]]) -> None:
    for frame, most in (("slices", ROOT), ("sources", 1 << 16), ("devices", 1 << 16), ("tracks", 1 << 32), ("memory", 1 << 32)):
        if rows[frame][-1] > most:
            raise ProfileError(f"together the files hold {rows[frame][-1]:,} {frame}, and one profile holds {most:,}: open fewer of them")
