"""What `ops --by op --group` splits the rows by: input shapes, Python stack, or module of the model."""

from __future__ import annotations

import msgspec
import polars as pl

from roofterm.analysis.call_stacks import call_stacks
from roofterm.analysis.modules import module_paths
from roofterm_parsers.profile import Profile

COLUMNS = {"shape": "shapes", "stack": "stack", "module": "module_path"}
"""The column of `results.TABLES["op"]` that each grouping fills."""


_MISSING = {"shape": "input shapes", "stack": "Python stacks", "module": "modules"}
_FLAGS = {"shape": "record_shapes=True", "stack": "with_stack=True", "module": "with_stack=True (or with_modules=True)"}
"""What to record where a grouping finds nothing to split by"""


def untold(table: pl.DataFrame, group: str, is_torch: bool) -> str:
    """Why a grouping splits nothing, and what to record; empty if it does."""
    if COLUMNS[group] in table.columns and table[COLUMNS[group]].null_count() < table.height:
        return ""
    return f"the profile tells no {_MISSING[group]}" + (f": record with {_FLAGS[group]}" if is_torch else "")


def split_by(profile: Profile, slices: pl.Series, group: str) -> pl.Series:
    """The text that splits the rows for each slice, named as its column; null where the profile does not tell."""
    if group == "stack":
        found = call_stacks(profile, slices)
    elif group == "module":
        found = module_paths(profile, slices)
    else:
        found = input_shapes(profile, slices)
    return found.alias(COLUMNS[group])


def input_shapes(profile: Profile, slices: pl.Series) -> pl.Series:
    """Input shapes as the profiler groups by them: a tensor list and anything without a shape is []."""
    shown = pl.Series([_profiler_shape(dims) for dims in profile.signatures["dims"].to_list()], dtype=pl.String)
    signed = profile.ops.select("slice", "signature").unique("slice", keep="first")
    signature = slices.alias("slice").to_frame().join(signed, on="slice", how="left", maintain_order="left")["signature"]
    return shown[signature].fill_null("[]")


def _profiler_shape(dims: str | None) -> str:
    if dims is None:
        return "[]"
    try:
        shapes = msgspec.json.decode(dims)
    except msgspec.DecodeError:
        return "[]"
    flat = [[] if not isinstance(shape, list) or any(isinstance(part, list) for part in shape) else shape for shape in shapes]
    return msgspec.json.encode(flat).decode()
