"""Flags of many rows at once, held to those of each row."""

from __future__ import annotations

import msgspec
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofterm.analysis import flags as module
from roofterm.analysis.bounds import Caches
from roofterm.analysis.flags import flags
from roofterm.analysis.op_roles import ROLE_COLUMNS
from roofterm.results import DeviceInfo

DEVICE = DeviceInfo(
    id=0, name="made", model=None, kind="gpu", units=1, memory_bytes=None, peaks={}, bandwidths={}, roofs_from="vendor", ridge={}, notes=[]
)
DEVICES = [None, DEVICE, *(msgspec.structs.replace(DEVICE, **one) for one in (
    {"kind": "cpu"}, {"roofs_from": "derived"}, {"partition": "MIG 1g.5gb"},
))]  # fmt: skip

SIZE = st.none() | st.sampled_from([0.0, 1.0, 99.4, 99.5, 100.0, 200.0, 350.0]) | st.floats(0, 1e15)
COUNT = st.none() | st.integers(0, 3)
COLUMNS: dict[str, tuple[st.SearchStrategy[object], pl.DataType]] = {
    "estimate": (st.sampled_from([None, "", "an upper bound: x", "made up"]), pl.String()),
    "largest_bytes": (SIZE, pl.Float64()),
    "bound_by": (st.sampled_from([None, "hbm", "compute", "link"]), pl.String()),
    "rate_s": (st.none() | st.sampled_from([0.0, 1e-12, 5e-11, 1e-10]) | st.floats(0, 1), pl.Float64()),
    "seconds": (st.sampled_from([None, 1.0]), pl.Float64()),
    "time_ps": (COUNT | st.integers(0, 300), pl.Int64()),
    "rate_ps": (COUNT | st.integers(0, 10**13), pl.Int64()),
    "hbm_bytes": (SIZE, pl.Float64()),
    **dict.fromkeys(ROLE_COLUMNS, (SIZE, pl.Float64())),
    "recomputed": (st.sampled_from([None, False, True]), pl.Boolean()),
    "above": (COUNT, pl.UInt32()),
    "calls": (COUNT, pl.UInt32()),
    "above_clock": (COUNT, pl.UInt32()),
    "worst_pct": (SIZE, pl.Float64()),
    "text": (st.sampled_from([None, "", "gemm", "copy-done", "copy-done.3", "fusion.1-done", "x.copy-done", "all-done-now"]), pl.String()),
    "fast_algorithm": (st.sampled_from([None, False, True]), pl.Boolean()),
}


@st.composite
def frames(draw: st.DrawFn) -> pl.DataFrame:
    """Rows of some of the columns, some of them more than once."""
    names = draw(st.lists(st.sampled_from(list(COLUMNS)), unique=True, min_size=1))
    rows = draw(st.lists(st.tuples(*(COLUMNS[name][0] for name in names)), max_size=6))
    rows += draw(st.lists(st.sampled_from(rows), max_size=3)) if rows else []
    return pl.DataFrame(rows, schema={name: COLUMNS[name][1] for name in names}, orient="row")


@given(frames(), st.sampled_from(DEVICES), st.sampled_from([Caches(), Caches(100, 200), Caches(None, 100)]))
def test_flags_told_at_once_are_those_told_row_by_row(rows, device, caches):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MANY", 0)
        at_once = flags(rows, device, caches)
    assert at_once.to_list() == flags(rows, device, caches).to_list()
