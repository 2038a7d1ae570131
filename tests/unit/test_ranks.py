"""A file's rank: its own word, then its name, then its place among the others."""

from __future__ import annotations

import pytest

from roofterm_parsers.ranks import assign_ranks, missing_ranks, number_ranges, rank_in


@pytest.mark.parametrize(
    ("path", "rank"),
    [
        ("rank-3.json", 3),
        ("rank_3.pt.trace.json.gz", 3),
        ("rank3.json", 3),
        ("rank0_trace.json", 0),
        ("sampled_rank0of128.json.gz", 0),
        ("dp0_pp0_tp3_dcp0_ep3_rank7.1733.pt.trace.json", 7),
        ("global_rank_12.json", 12),
        ("Rank12.json", 12),
        ("worker3_step_12.1694128201557.pt.trace.json", 3),
        ("run_r3_final.json", 3),
        ("job-r11.json", 11),
        ("out/rank5/trace.json", 5),
        ("rank5/rank6.json", 6),
        ("rank_none.json", None),
        ("franks3.json", None),
        ("x_2r3.json", None),
        ("node0_333.1731000000000000000.pt.trace.json", None),
        ("rank1/deep/er/trace.json", None),
        ("trace.json", None),
    ],
)
def test_the_rank_that_a_name_states(path: str, rank: int | None) -> None:
    assert rank_in(path) == rank


def test_a_file_alone_keeps_what_it_says() -> None:
    assert assign_ranks([5], ["rank3.json"]) == ([5], None)
    assert assign_ranks([None], ["rank3.json"]) == ([3], None)
    assert assign_ranks([None], ["trace.json"]) == ([None], None)


def test_what_the_files_say_comes_before_their_names() -> None:
    assert assign_ranks([1, 0], ["rank0.json", "rank1.json"]) == ([1, 0], None)


def test_names_fill_what_files_do_not_say() -> None:
    assert assign_ranks([None, 1, None], ["rank0.json", "rank1.json", "rank2.json"]) == ([0, 1, 2], None)


def test_a_number_in_every_name_counts_if_no_two_are_equal() -> None:
    assert assign_ranks([None, None], ["1758-TP-4.trace.json.gz", "1758-TP-5.trace.json.gz"]) == ([4, 5], None)


def test_without_any_word_the_order_counts_and_is_told() -> None:
    ranks, told = assign_ranks([None, None], ["alpha_333.1.pt.trace.json", "beta_333.1.pt.trace.json"])
    assert ranks == [0, 1]
    assert told is not None
    assert "do not say which rank they are" in told


def test_two_files_of_one_rank_get_ranks_of_their_own() -> None:
    ranks, told = assign_ranks([3, 3, 1, None], ["a.json", "b.json", "c.json", "d.json"])
    assert ranks == [3, 0, 1, 2]
    assert told is not None
    assert "several files say that they are rank 3" in told


def test_names_settle_it_where_files_agree_wrongly() -> None:
    """Two jobs of one rank each, profiled together: both say rank 0."""
    assert assign_ranks([0, 0], ["rank0.json", "rank1.json"]) == ([0, 1], None)


@pytest.mark.parametrize(
    ("ranks", "sizes", "told"),
    [
        ([0, 1, 2, 3], [4] * 4, None),
        ([0, 3, 7], [8] * 3, "5 of the job's 8 ranks are not here: 1-2, 4-6"),
        ([0, 2], [3, 3], "1 of the job's 3 ranks is not here: 1"),
        ([0, None], [4, 4], None),
        ([0, 1], [None, None], None),
        ([0, 1], [4, 8], None),
        ([0, 9], [4, 4], None),
    ],
)
def test_missing_ranks_are_named_where_the_files_tell_how_many_there_are(
    ranks: list[int | None], sizes: list[int | None], told: str | None
) -> None:
    assert missing_ranks(ranks, sizes) == told


def test_numbers_are_listed_as_ranges() -> None:
    assert number_ranges([7, 0, 1, 2, 3, 9, 10]) == "0-3, 7, 9-10"
    assert number_ranges([]) == ""
