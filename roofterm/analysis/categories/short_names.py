"""Short names of many kernels at once."""

from __future__ import annotations

import polars as pl

from roofterm.analysis.categories.short import TAIL, WIDTH, short_name

_PLAIN = r"^[!-~]+( [!-~]+)*$"
"""ASCII without blanks that would be folded"""

_READ = r"^(_Z|Cijk_|Custom_Cijk_)|_tilesize|\.kd$| \[clone$"
"""What `short_name` reads or takes away of other names than templates"""

_TEMPLATE, _NO_TEMPLATE = r"\w[<(]", r"^<|\.py\(|: |^\["


def with_short_names(table: pl.DataFrame) -> pl.DataFrame:
    """A table of kernels with `short_name` filled in: it is left null until rows are shown, since there may be a million."""
    if "short_name" not in table.columns:
        return table
    return table.with_columns(short_names(table["name"]).alias("short_name"))


def short_names(texts: pl.Series) -> pl.Series:
    """`short_name` of each text. Those that it would only cut are cut here."""
    name = pl.col("name")
    template = name.str.contains(_TEMPLATE) & ~name.str.contains(_NO_TEMPLATE)
    plain = name.str.contains(_PLAIN) & ~name.str.contains(_READ) & ~template
    cut = name.str.head(WIDTH - TAIL - 2) + ".." + name.str.tail(TAIL)
    frame = texts.alias("name").to_frame()
    found = frame.select(short=pl.when(plain).then(pl.when(name.str.len_bytes() <= WIDTH).then(name).otherwise(cut)))["short"]
    rest = found.is_null()
    if not rest.any():
        return found
    read = pl.Series([short_name(text) for text in texts.filter(rest).to_list()], dtype=pl.String)
    return found.scatter(rest.arg_true(), read)
