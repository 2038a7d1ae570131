"""Short names of many texts at once, held to those of each."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from roofterm.analysis.categories.short import short_name
from roofterm.analysis.categories.short_names import short_names

PARTS = ["_Z", "Cijk_", "Custom_Cijk_", "_tilesize", ".kd", " [clone", "<", "(", ">", ")", "::", ".py(", ": ", "[", "void ", "kernel"]
MORE = ["gemm_bf16_128x64_ldg8", "4", "_", "Half", "5other7_kernel", "x" * 43, "y" * 60, " ", "  "]
ODD = ["\t", "\x1c", "\x85", "\u00a0", "\u2003", "ü", "漢"]
PIECES = st.sampled_from([*PARTS, *MORE, *ODD])


@given(st.lists(st.lists(PIECES, max_size=6).map("".join) | st.text(max_size=80), max_size=8))
def test_short_names_of_many_are_those_of_each(texts):
    assert short_names(pl.Series(texts, dtype=pl.String)).to_list() == [short_name(text) for text in texts]
