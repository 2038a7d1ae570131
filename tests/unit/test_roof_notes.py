"""Sentences on rows above their roof: each cause once, with the rows that it explains."""

from __future__ import annotations

import polars as pl

from roofterm.report.roof_notes import roof_notes

WINOGRAD = "Winograd or FFT kernels do fewer products than the direct form counts"


def table(*rows: tuple[str, float | None, list[str]]) -> pl.DataFrame:
    schema = pl.Schema({"name": pl.String(), "pct_of_roof": pl.Float64(), "flags": pl.List(pl.String)})
    return pl.DataFrame(rows, schema=schema, orient="row")


def test_rows_of_one_cause_share_a_sentence():
    found = roof_notes(
        table(
            ("a", 158.0, [f"above-roof: {WINOGRAD}"]),
            ("below", 60.0, ["above-roof: 1 of 9 calls, something else"]),
            ("b\x1b[1m", 120.0, ["cache: the working set fits the L2", f"above-roof: 60 of 78 calls, {WINOGRAD}"]),
            ("unknown", None, []),
            ("c", 101.0, ["above-roof: operands came from a cache, not from memory"]),
        )
    )
    assert found == [
        f"above the roof: a (158.0%), b\\x1b[1m (120.0%): {WINOGRAD}",
        "above the roof: c (101.0%): operands came from a cache, not from memory",
    ]


def test_nothing_above_the_roof_is_nothing_said_and_many_are_counted():
    assert roof_notes(table(("a", 100.4, []))) == []
    many = roof_notes(table(*((f"k{row}", 200.0, ["above-roof: x"]) for row in range(7))))
    assert many == [
        "above the roof: k0 (200.0%), k1 (200.0%), k2 (200.0%), k3 (200.0%): x",
        "3 more rows lie above their roof; their flags say why (--format json)",
    ]
