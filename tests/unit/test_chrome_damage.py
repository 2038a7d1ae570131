"""Damaged text: what is mended, what is left out, and that it is said; habits of real writers are no damage."""

from __future__ import annotations

import io
import json

import pytest

from roofterm_parsers.chrome.details import events_at
from roofterm_parsers.chrome.repair import mend, outer_fields
from roofterm_parsers.errors import ProfileError
from tests.unit.chrome_traces import US, codes, named, opened, spans

A = '{"ph":"X","name":"alpha","pid":1,"tid":1,"ts":100,"dur":50,"args":{"External id":1}}'
B = '{"ph":"X","name":"beta","pid":1,"tid":1,"ts":110,"dur":20,"args":{}}'
C = '{"ph":"X","name":"gamma","pid":1,"tid":1,"ts":200,"dur":30}'
GOOD = [("alpha", 0, 50 * US), ("beta", 10 * US, 20 * US), ("gamma", 100 * US, 30 * US)]


def event(name: str, ts: int = 150) -> str:
    """An event whose name is put in as it is."""
    return (
        f'{{"ph": "X", "cat": "python_function", "name": "{name}", "pid": 1, "tid": 2, "ts": {ts}, "dur": 5, "args": {{"Python id": 3}}}}'
    )


@pytest.mark.parametrize(
    "text",
    [
        f"[{A},{B},{C}]",
        f"[{A},\n{B},\n{C},\n]",
        f"[{A},{B},{C}",
        f"[{A},{B},{C},\n",
        f'{{"traceEvents":[{A},{B},{C},\n], \n}}',
        f'{{"traceEvents":[{A},{B},{C},{{}}]}}',
        f'\ufeff{{"traceEvents":[{A},{B},{C}]}}',
        f' \n{{"traceEvents" : [\n{A} ,\r\n\t{B} , {C} ] , "displayTimeUnit" : "ms" }} \n',
        f'{{"traceEvents":[{A},{B},{C}],"stackFrames":{{"1":{{"name":"x","category":"y"}}}}}}',
    ],
)
def test_habits_of_writers_are_no_damage(text: str) -> None:
    profile = opened(text)
    assert spans(profile) == GOOD
    assert profile.warnings == []


@pytest.mark.parametrize(
    ("raw", "read"),
    [
        ('lib = Library("my_lib", "IMPL")', 'lib = Library("my_lib", "IMPL")'),
        ('{"device": "cpu"}(12): run', '{"device": "cpu"}(12): run'),
        ("D:\\work\\new\\core.py(12): run", "D:\\work\\new\\core.py(12): run"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("a\x00b\x7fc\x08d", "a\x00b\x7fc\x08d"),
        ('say "hi', 'say "hi'),
        ("\\ud83d alone", "\ufffd alone"),
        ("ends in a backslash\\", None),
    ],
)
def test_what_was_not_escaped_in_a_name_is_mended(raw: str, read: str | None) -> None:
    profile = opened(f"[{A},{event(raw)},{B},{C}]")
    names = [name for name, _, _ in spans(profile)]
    assert {"alpha", "beta", "gamma"} <= set(names)
    assert len(names) == 4
    if read is not None:
        assert read in names
        assert profile.python["python_id"].to_list() == [3]
    assert codes(profile) == {"mended": 1}


def test_bytes_that_are_no_text_are_replaced() -> None:
    text = f"[{A},{B},{C}]".encode().replace(b"beta", b"be\xff\xfeta")
    assert [name for name, _, _ in spans(opened(text))] == ["alpha", "be\ufffd\ufffdta", "gamma"]


@pytest.mark.parametrize("word", ["inf", "-inf", "nan", "NaN", "Infinity", "-Infinity", "N/A", "None", "True"])
def test_words_that_are_no_json_are_read_as_nothing(word: str) -> None:
    odd = f'{{"ph":"X","name":"odd","pid":1,"tid":2,"ts":150,"dur":5,"args":{{"memory bandwidth (GB/s)": {word}, "External id": 9}}}}'
    profile = opened(f"[{A},{odd},{B},{C}]")
    assert spans(profile) == sorted([*GOOD, ("odd", 50 * US, 5 * US)], key=lambda row: row[1])
    assert codes(profile) == {"mended": 1}


@pytest.mark.parametrize(
    "broken",
    [
        '{"ph":"X","name":"odd",pid":1,"tid":2,"ts":150,"dur":5}',
        '{"ph":"X","name":"odd","pid:1,"tid":2,"ts":150,"dur":5}',
        '{"ph":"X","name":"odd","pid":1,,"tid":2,"ts":150,"dur":5}',
        '{"ph":"X","name":"odd","pid":1,"tid":2,"ts":150,"dur":5,"args": {, }}',
        '{"ph":"X","name":"odd","pid":1,"tid":2,"ts":150,"dur":5,"args": {"a": [1,2}}',
    ],
)
def test_lost_marks_are_mended(broken: str) -> None:
    profile = opened(f"[{A},{broken},{B},{C}]")
    assert spans(profile) == sorted([*GOOD, ("odd", 50 * US, 5 * US)], key=lambda row: row[1])
    assert codes(profile)["mended"] >= 1


def test_an_event_past_mending_is_skipped_and_the_next_is_found() -> None:
    profile = opened(f'[{A},{{"ph":"X","name":"lost","ts":x1,"dur":@@@}},{B},{C}]')
    assert spans(profile) == GOOD
    assert codes(profile) == {"skipped": 1}


def test_a_comma_before_the_first_event_is_said() -> None:
    profile = opened(f"[,{A},{B},{C}]")
    assert spans(profile) == GOOD
    assert codes(profile) == {"mended": 1}


def test_a_comma_that_is_missing_is_said() -> None:
    profile = opened(f"[{A}{B},{C}]")
    assert spans(profile) == GOOD
    assert codes(profile) == {"mended": 1}


def test_a_file_cut_in_a_number_loses_that_event() -> None:
    # 42000000 of 4200000000105 is a wrong time, not a short one
    profile = opened(f'{{"traceEvents":[{A},{B},{C},{{"ph":"X","name":"cut","pid":1,"tid":1,"ts":2')
    assert spans(profile) == GOOD
    assert codes(profile) == {"cut": 1}


@pytest.mark.parametrize("tail", ["", ",", ",\n  {", ',{"ph":"X","name":"x","pid":1,"tid":1,"ts":5,"dur":1,"args":{"a":1}', "]"])
def test_a_file_cut_anywhere_says_so(tail: str) -> None:
    profile = opened(f'{{"schemaVersion":1,"traceEvents":[{A},{B},{C}{tail}')
    assert spans(profile) == GOOD
    assert codes(profile) == {"cut": 1}


def test_a_second_document_behind_the_first_is_read_and_said() -> None:
    later = B.replace("beta", "delta").replace("110", "900")
    profile = opened(
        f'{{"deviceProperties":[{{"id":0,"name":"x"}}],"traceEvents":[{A},{C}]}}\n{{"deviceProperties":[{{"id":0,"name":"x"}}],"traceEvents":[{later}]}}'
    )
    assert [name for name, _, _ in spans(profile)] == ["alpha", "gamma", "delta"]
    assert codes(profile) == {"mended": 1}
    assert profile.devices["name"].to_list() == ["x"]


def test_of_keys_given_twice_the_last_counts() -> None:
    profile = opened('[{"ph":"X","name":"x","name":"alpha","ts":1,"ts":100,"dur":5,"dur":50,"pid":1,"tid":1,"args":{"a":1,"a":2}}]')
    assert spans(profile) == [("alpha", 0, 50 * US)]


def test_events_of_unknown_phases_are_skipped_and_counted() -> None:
    profile = opened(f'[{A},{{"ph":"?","name":"odd","ts":1}},{{"name":"no phase","ts":3}},{B},{C}]')
    assert spans(profile) == GOOD
    assert codes(profile) == {"skipped": 2}


def test_lists_of_objects_inside_arguments_are_no_events() -> None:
    nested = '{"ph":"X","name":"odd","pid":1,"tid":2,"ts":150,"dur":5,"args":{"frames":[{"name":"f","ts":1},{"name":"g","ts":2}],"b":1}}'
    for text in (f"[{A},{nested},{B},{C}]", f"[{A},{nested},{B.replace('beta', 'be' + chr(1) + 'ta')},{C}]"):
        assert len(spans(opened(text))) == 4


def test_deep_arguments_do_not_take_the_rest_along() -> None:
    deep = '{"ph":"X","name":"deep","pid":1,"tid":2,"ts":150,"dur":5,"args":{"a":' + "[" * 5000 + "]" * 5000 + "}}"
    assert {"alpha", "beta", "gamma"} <= {name for name, _, _ in spans(opened(f"[{A},{deep},{B},{C}]"))}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ('{"model": "demo"}', "traceEvents"),
        ("<html>", "not a trace"),
        ("[]", "no event"),
        ('{"traceEvents":[]}', "no event"),
    ],
)
def test_what_is_no_trace_is_refused_in_words(text: str, word: str) -> None:
    with pytest.raises(ProfileError, match=word) as refused:
        opened(text)
    assert "made.json" in str(refused.value)


def test_a_damaged_header_still_tells_its_other_keys() -> None:
    profile = opened(f'{{"schemaVersion": 1, "INFO": ["say "hi""], "distributedInfo": {{"rank": 2}}, "traceEvents": [{A}]}}')
    assert profile.sources[0].rank == 2
    assert codes(profile)["mended"] >= 1


def test_mending_changes_nothing_but_what_is_broken() -> None:
    text = '{"ph":"X","name":"a \\"b\\" \\u0041\\n","ts":1,"args":{"k":"v\\\\w"}}'

    def accepts(candidate: bytes) -> bool:
        try:
            json.loads(candidate)
        except ValueError:
            return False
        return True

    assert mend(text.encode(), accepts) == text.encode()
    mended = mend((text[:-2] + ',"x": nan}}').encode(), accepts)
    assert mended is not None
    assert json.loads(mended) == {**json.loads(text), "args": {"k": "v\\w", "x": None}}


def test_outer_fields_need_a_phase_and_a_time() -> None:
    assert outer_fields(b'{"ph":"X","ts":5,"name":"n","args":{broken') == b'{"ph":"X","name":"n","ts":5}'
    assert outer_fields(b'{"name":"n","ts":5,"args":{broken') is None


@pytest.mark.parametrize("between", [",", ", ", ",\n", ",\n  ", " ,\r\n\t"])
def test_an_offset_is_the_place_of_the_event_in_the_file(between: str) -> None:
    nested = '{"ph":"X","name":"odd {lambda}","pid":1,"tid":2,"ts":150,"dur":5,"args":{"a":{"b":[1]}}}'
    text = f'{{"schemaVersion":1,"traceEvents":[\n{A}{between}{nested}{between}{B}{between}{{}}],"traceName":"x"}}'
    for name, offset in named(opened(text)).select("text", "offset").rows():
        assert text[offset] == "{"
        assert f'"name":"{name}"' in text[offset : offset + 40]


def test_in_a_damaged_stretch_an_offset_is_that_of_the_stretch() -> None:
    text = f'[{A},{{"ph":"X","name":"lost","ts":x1}},{B}]'
    assert set(named(opened(text))["offset"]) == {1}


def test_an_event_is_read_again_by_its_offset() -> None:
    text = f'{{"traceEvents":[{A},{B},{C}]}}'.encode()
    offsets = dict(named(opened(text)).select("text", "offset").rows())

    def behind(offset: int) -> io.BytesIO:
        return io.BytesIO(text[offset:])

    (found,) = events_at(behind(offsets["alpha"]), "alpha")
    assert found["args"] == {"External id": 1}
    assert events_at(behind(offsets["alpha"]), "gamma") == [json.loads(C)]
    assert events_at(behind(0), "nowhere") == []
    assert events_at(behind(10**9), "alpha") == []


def test_events_are_read_again_behind_damage() -> None:
    long = f'{{"ph":"X","name":"{"long " * 40_000}","ts":1}}'
    end = '{"ph":"E","name":"alpha"}'
    text = f'[{A},{{"ph":"X","name":"alpha","ts":x1}},{"{" * 5},{A},{long},{A},{end}]'
    assert events_at(io.BytesIO(text.encode()), "alpha", 4) == [json.loads(A)] * 3
