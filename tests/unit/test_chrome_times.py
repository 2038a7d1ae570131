"""Microseconds as written are read to the picosecond, and times lie on one axis."""

from __future__ import annotations

import pytest

from roofterm_parsers.chrome.times import ABSENT, GOOD, UNUSABLE, microseconds, one
from roofterm_parsers.errors import ProfileError
from tests.unit.chrome_traces import US, codes, kernel, opened, spans, x


@pytest.mark.parametrize(
    ("text", "us", "ps"),
    [
        ("0", 0, 0),
        ("12", 12, 0),
        ("1731000000000000.125", 1731000000000000, 125_000),
        ("1712195495519689.047", 1712195495519689, 47_000),
        ("9007199254740993", 9007199254740993, 0),  # 2^53 + 1: no double holds it
        ("7889237999999.999", 7889237999999, 999_000),
        ("5439011.744500", 5439011, 744_500),
        ("0.000001", 0, 1),
        ("96487413.736328006", 96487413, 736_328),  # 17 digits of a double: its noise is below a picosecond
        ("9.9999999999999995e-07", 0, 1),
        ("0.9999999", 1, 0),
        ("1.0000005", 1, 0),  # a tie goes to the even picosecond
        ("1.0000015", 1, 2),
        ("-0.25", 0, -250_000),
        ("-3.5", -3, -500_000),
        ("4.2000000002e12", 4200000000200, 0),
        ("1E3", 1000, 0),
        ('"1731000000000000.125"', 1731000000000000, 125_000),
        ('" 4200000000300 "', 4200000000300, 0),
    ],
)
def test_a_value_is_read_by_its_digits(text: str, us: int, ps: int) -> None:
    whole, rest, state = microseconds(text.encode(), 1)
    assert (whole[0], rest[0], state[0]) == (us, ps, GOOD)
    assert one(text.encode()) == (us, ps, GOOD)


@pytest.mark.parametrize("text", ["", "null"])
def test_nothing_is_absent(text: str) -> None:
    assert microseconds(text.encode(), 1)[2][0] == ABSENT


@pytest.mark.parametrize("text", ['"yesterday"', "true", "[]", "{}", "1e400", "NaN", '"inf"', "1" * 500])
def test_what_is_no_finite_number_is_unusable(text: str) -> None:
    assert microseconds(text.encode(), 1)[2][0] == UNUSABLE


def test_values_of_many_shapes_are_told_apart() -> None:
    texts = ["1.5", "", "12345.678", '"7"', "-2", "nope", "3.0000001"]
    us, ps, state = microseconds(",".join(texts).encode(), len(texts))
    assert us.tolist() == [1, 0, 12345, 7, -2, 0, 3]
    assert ps.tolist() == [500_000, 0, 678_000, 0, 0, 0, 0]
    assert state.tolist() == [GOOD, ABSENT, GOOD, GOOD, GOOD, UNUSABLE, GOOD]


def test_a_wrong_number_of_values_is_refused() -> None:
    with pytest.raises(ValueError, match="values instead"):
        microseconds(b"1,2", 3)


def test_kernels_back_to_back_at_epoch_decimals_touch_and_do_not_overlap() -> None:
    # 1731000000000000.000, .024 on: a double at 1.7e15 keeps 0.25 only
    events = [kernel("tiny", f"@{i}", 1.024) for i in range(50)]
    text = __import__("json").dumps(events)
    for i in range(50):
        text = text.replace(f'"@{i}"', f"{1731000000000000 + i * 1024 // 1000}.{i * 1024 % 1000:03d}", 1)
    profile = opened(text)
    starts = profile.slices["start_ps"].to_list()
    assert starts == [i * 1_024_000 for i in range(50)]
    assert profile.slices["depth"].max() == 0


def test_time_counts_from_the_earliest_slice() -> None:
    assert spans(opened([x("b", 70, 5), x("a", 20.5, 5)])) == [("a", 0, 5 * US), ("b", 49_500_000, 5 * US)]


def test_without_slices_marks_and_counters_make_the_axis() -> None:
    profile = opened([{"ph": "C", "name": "q", "ts": 12, "args": {"v": 1}}, {"ph": "i", "name": "m", "ts": 10, "pid": 1, "tid": 1}])
    assert profile.counters["time_ps"].to_list() == [2 * US]
    assert profile.instants["time_ps"].to_list() == [0]


def test_nothing_in_time_is_refused_by_name() -> None:
    with pytest.raises(ProfileError, match=r"made\.json.*no event"):
        opened({"traceEvents": [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}}]})


def test_the_time_base_of_the_file_places_the_zero_on_the_wall_clock() -> None:
    profile = opened({"traceEvents": [x("a", 2.5, 1)], "baseTimeNanoseconds": 1_711_964_646_000_000_000})
    assert profile.zero_unix_ns == 1_711_964_646_000_002_500
    assert profile.sources[0].base_unix_ns == profile.zero_unix_ns


def test_epoch_times_are_their_own_wall_clock() -> None:
    assert opened([x("a", 1731000000000000.5, 1)]).zero_unix_ns == 1_731_000_000_000_000_500


def test_relative_times_without_a_base_have_none() -> None:
    assert opened([x("a", 123456, 1)]).zero_unix_ns is None


def test_the_display_unit_changes_nothing() -> None:
    profile = opened({"displayTimeUnit": "ns", "traceEvents": [x("frame", 1236, 13837.451)]})
    assert spans(profile) == [("frame", 0, 13_837_451_000)]


def test_kernels_of_time_zero_in_an_epoch_trace_are_off_the_axis() -> None:
    base = 1731000000000000
    profile = opened([x("a", base, 400), kernel("k", base + 20, 40), kernel("lost", 0, 0), kernel("lost", 0, 0)])
    assert [name for name, _, _ in spans(profile)] == ["a", "k"]
    assert profile.zero_unix_ns == base * 1000
    assert codes(profile) == {"off-axis": 2}


def test_time_zero_is_a_time_where_the_trace_begins_there() -> None:
    assert codes(opened([kernel("first", 0, 0), kernel("k", 5, 3)])) == {}


def test_an_event_half_a_year_away_is_off_the_axis() -> None:
    profile = opened([x("a", 0, 1), x("b", 10, 1), x("c", 20, 1), x("far", 180 * 86_400_000_000, 1)])
    assert [name for name, _, _ in spans(profile)] == ["a", "b", "c"]
    assert codes(profile) == {"off-axis": 1}


def test_an_event_without_a_usable_start_is_dropped_and_counted() -> None:
    profile = opened([x("a", 1, 1), x("b", "yesterday", 1), x("c", None, 1), {"ph": "X", "name": "d", "pid": 1, "tid": 1}])
    assert [name for name, _, _ in spans(profile)] == ["a"]
    assert codes(profile) == {"skipped": 3}


def test_an_event_without_a_usable_length_has_none_and_is_counted() -> None:
    odd = [x("neg", 10, -5), x("null", 20, None), x("text", 30, "long"), {"ph": "X", "name": "none", "pid": 1, "tid": 1, "ts": 40}]
    profile = opened([x("a", 0, 3), x("zero", 5, 0), *odd])
    assert [dur for _, _, dur in spans(profile)] == [3 * US, 0, 0, 0, 0, 0]
    assert codes(profile) == {"no-length": 4}


def test_text_numbers_are_a_normal_habit() -> None:
    profile = opened([x("a", "10.5", "2.25"), x("b", 4, "1e1")])
    assert spans(profile) == [("b", 0, 10 * US), ("a", 6_500_000, 2_250_000)]
    assert profile.warnings == []
