"""A table against a baseline, by hand."""

from __future__ import annotations

import polars as pl

from roofterm.analysis.against import ADDED, against_changes, against_rows, against_value

NEW = pl.DataFrame({"name": ["a", "b", None, "c"], "size": [1, 1, 2, 1], "total_us": [12.0, 5.0, 8.0, None]})
BASE = pl.DataFrame({"name": ["a", "a", None, "c", "b"], "size": [1, 2, 2, 1, 9], "total_us": [10.0, 99.0, 0.0, 4.0, 5.0]})


def test_rows_meet_by_all_their_keys_unknown_ones_too() -> None:
    """a: 12 against 10, +20 %; b has another size there; the unnamed 8 against 0, which no percentage tells; c is unknown now."""
    found = against_rows(NEW, BASE, ("name", "size"), "total_us")
    assert found.columns == [*NEW.columns, *ADDED]
    assert found["base"].to_list() == [10.0, None, 0.0, 4.0]
    assert found["change"].to_list() == [2.0, None, 8.0, None]
    assert found["change_pct"].to_list() == [20.0, None, None, None]


def test_the_first_of_several_rows_of_the_baseline_counts_and_none_is_doubled() -> None:
    twice = pl.concat([BASE, BASE.with_columns(total_us=pl.lit(1.0))])
    assert against_rows(NEW, twice, ("name", "size"), "total_us").height == NEW.height
    assert against_rows(NEW, twice, ("name", "size"), "total_us")["base"][0] == 10.0


def test_every_row_against_one_value() -> None:
    found = against_value(NEW, 10.0, "total_us")
    assert found["change"].to_list() == [2.0, -5.0, -2.0, None]
    assert found["change_pct"].to_list() == [20.0, -50.0, -20.0, None]
    assert against_value(NEW, None, "total_us")["change"].null_count() == NEW.height


def test_changes_of_a_level_by_the_name_in_the_new_profile() -> None:
    changes = pl.DataFrame(
        {
            "level": ["kernel", "kernel", "op"],
            "name": ["a*", "gone", "b"],
            "new_name": ["a", None, "b"],
            "base": [10.0, 3.0, 1.0],
            "change": [2.0, -3.0, 4.0],
            "change_pct": [20.0, -100.0, 400.0],
        }
    )
    found = against_changes(NEW, changes, "kernel")
    assert found["change"].to_list() == [2.0, None, None, None]
    assert found["base"].to_list() == [10.0, None, None, None]
