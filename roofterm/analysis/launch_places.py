"""Where device work is launched from: the module of the model and the line of Python, for every piece at once."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.call_stacks import BETWEEN, NONE, bearers, innermost_above, stated
from roofterm.analysis.modules import work_modules
from roofterm_parsers.profile import Kind, Profile

I64 = NDArray[np.int64]
T = TypeVar("T", pl.Series, pl.Expr)

_FRAME = r"\.py\(\d+\): "
_OTHERS = r"^(torch/|<|contextlib\.py|threading\.py)|site-packages/"
"""Frames of torch's or the interpreter's own, in which nobody looks for the cause."""

PLACES = pl.Schema({"slice": pl.UInt32, "module_path": pl.String, "launched_from": pl.String})
"""One row a piece of work, row for row with it; null: the profile does not tell."""


def own_code(names: T) -> T:
    """Which names are frames of the user's or a library's Python, not of torch's or the interpreter's; one flag a name."""
    return names.str.contains(_FRAME) & ~names.str.contains(_OTHERS)


def launch_places(profile: Profile, work: pl.DataFrame) -> pl.DataFrame:
    """Module and line from which each piece of device work (schema `work.WORK`) was launched: frame of schema `PLACES`.

    The line is the innermost frame of own code around the launch; of backward work that around its forward op, as for modules.
    """
    modules = work_modules(profile, work)
    paths = pl.Series([*(path or name for path, name in zip(modules.paths, modules.names, strict=True)), None], dtype=pl.String)
    path = paths[pl.Series(np.where(modules.of_work == NONE, len(modules.names), modules.of_work))]
    return pl.DataFrame({"slice": work["slice"], "module_path": path, "launched_from": _lines(profile, work)}, schema=PLACES)


def _lines(profile: Profile, work: pl.DataFrame) -> pl.Series:
    slices, texts = profile.slices, profile.names["text"]
    own = own_code(texts).to_numpy()
    if not own.any():
        return _stated_lines(profile, work)
    marked = (slices["kind"].to_numpy() == Kind.PYTHON) & own[slices["name"].to_numpy()]
    found = np.full(work.height, NONE, np.int64)
    for column in ("launch", "op"):  # of captured work the op alone is known; a backward op leads to its forward op
        known = np.flatnonzero((found == NONE) & work[column].is_not_null().to_numpy())
        distinct, back = np.unique(work[column].to_numpy()[known].astype(np.int64), return_inverse=True)
        found[known] = innermost_above(profile, marked, bearers(profile, distinct))[back]
    name = np.where(found == NONE, 0, slices["name"].to_numpy()[np.maximum(found, 0)])
    return texts[pl.Series(name)].set(pl.Series(found == NONE), None)


def _stated_lines(profile: Profile, work: pl.DataFrame) -> pl.Series:
    """The innermost frame of own code in the stack that each piece's op states."""
    op = np.where(work["op"].is_null().to_numpy(), NONE, work["op"].fill_null(0).to_numpy().astype(np.int64))
    known = np.flatnonzero(op != NONE)
    op[known] = bearers(profile, op[known])
    stacks = stated(profile, op, "stack")
    distinct = pl.DataFrame({"stack": stacks.unique().drop_nulls()}).with_columns(frame=pl.col("stack").str.split(BETWEEN))
    frames = distinct.explode("frame").filter(own_code(pl.col("frame"))) if distinct.height else distinct.explode("frame")
    lines = frames.group_by("stack", maintain_order=True).agg(pl.col("frame").first())
    return stacks.alias("stack").to_frame().join(lines, on="stack", how="left", maintain_order="left")["frame"]
