"""Filters over slices: each field against a profile written by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.filters import parse
from roofterm.analysis.slice_filter import slice_mask, split_for_slices
from roofterm_parsers.profile import ROOT, Kind, Profile, Source, TrackKind, empty

US = 1_000_000

# id: 0 aten::mm on the host, 1 its launch, 2 nvjet on stream 7, 3 nccl on stream 20, 4 nvjet again, 5 Memcpy
SLICES = (
    # track, start us, dur us, name, kind
    (0, 0, 30, 0, Kind.OP),
    (0, 5, 8, 1, Kind.RUNTIME),
    (1, 20, 60, 2, Kind.KERNEL),
    (1, 100, 10, 2, Kind.KERNEL),
    (1, 120, 5, 4, Kind.COPY),
    (2, 40, 200, 3, Kind.KERNEL),
)
NAMES = ("aten::mm", "cudaLaunchKernel", "nvjet_tst", "ncclDevKernel_AllReduce", "Memcpy HtoD")
CATEGORIES = (Category.OP, Category.RUNTIME, Category.GEMM, Category.GEMM, Category.COPY, Category.COMMUNICATION)


def study() -> Any:
    profile = Profile(sources=[Source("a.json", "kineto", "plain", rank=3)])
    frame = pl.DataFrame(SLICES, schema=["track", "start", "dur", "name", "kind"], orient="row")
    profile.slices = frame.select(
        (pl.col("start") * US).alias("start_ps"), (pl.col("dur") * US).alias("dur_ps"), pl.col("track").cast(pl.UInt32),
        pl.col("name").cast(pl.UInt32), pl.col("kind").cast(pl.UInt8), pl.lit(ROOT, pl.UInt32).alias("parent"),
        pl.lit(0, pl.UInt16).alias("depth"), pl.lit(0, pl.UInt64).alias("offset"),
    )  # fmt: skip
    profile.names = pl.DataFrame({"text": NAMES, "cat": [""] * len(NAMES)})
    nothing = dict.fromkeys(empty("tracks").columns)
    profile.tracks = pl.DataFrame(
        [
            {**nothing, "kind": int(TrackKind.HOST), "source": 0},
            {**nothing, "kind": int(TrackKind.DEVICE), "source": 0, "device": 0, "stream": 7},
            {**nothing, "kind": int(TrackKind.DEVICE), "source": 0, "device": 0, "stream": 20},
        ],
        schema=empty("tracks").schema,
    )
    profile.devices = pl.DataFrame([{**dict.fromkeys(empty("devices").columns), "source": 0, "id": 1}], schema=empty("devices").schema)
    profile.links = pl.DataFrame({"work": [2], "launch": [1], "op": [0]}, schema=empty("links").schema)
    profile.collectives = pl.DataFrame(
        [{**dict.fromkeys(empty("collectives").columns), "slice": 5, "collective": "allreduce"}], schema=empty("collectives").schema
    )
    dur = profile.slices["dur_ps"].to_numpy()
    return SimpleNamespace(
        profile=profile,
        category=np.array([int(c) for c in CATEGORIES], np.uint8),
        kind=profile.slices["kind"].to_numpy(),
        start_ps=profile.slices["start_ps"].to_numpy(),
        dur_ps=dur,
        self_ps=np.where(np.arange(dur.size) == 0, dur - 8 * US, dur),
        names=pl.DataFrame({"dtype": [None, None, "bf16", "fp32", None]}, schema={"dtype": pl.String}),
    )


@pytest.mark.parametrize(
    ("expression", "ids"),
    [
        ("nvjet", [2, 3]),
        ("!nvjet", [0, 1, 4, 5]),
        ("/^n/", [2, 3, 5]),
        ("cat:gemm|copy", [2, 3, 4]),
        ("cat:comm", [5]),
        ("stream:7", [2, 3, 4]),
        ("stream:10-30", [5]),
        ("device:1", [2, 3, 4, 5]),  # the file's own number
        ("rank:3", [0, 1, 2, 3, 4, 5]),
        ("rank:0", []),
        ("op:aten::mm", [0, 2]),  # the op and what it launched
        ("coll:allreduce", [5]),
        ("dtype:bf16", [2, 3]),
        ("dur>=60us", [2, 5]),
        ("dur<10", [1, 4]),
        ("time>50us nvjet", [2]),  # of a slice its own length
        ("self<25us dur>20us", [0]),  # 30 us less its child's 8
        ("start>30us start<110us", [3, 5]),
    ],
)
def test_slices_that_pass(expression, ids):
    answered, rest = split_for_slices(parse(expression))
    assert not rest
    assert np.flatnonzero(slice_mask(answered, cast(Any, study()))).tolist() == ids


@pytest.mark.parametrize("expression", ["roof>50%", "time>1%", "flops>1T", "bound:mem", "calls>3"])
def test_what_a_single_slice_does_not_know_is_left_out(expression):
    answered, rest = split_for_slices(parse(f"nvjet {expression}"))
    assert (answered.text, rest.text) == ("nvjet", expression)
