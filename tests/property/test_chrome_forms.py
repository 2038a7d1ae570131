"""Whatever regular events hold, and whatever harms them: read by forms they say what they say when they are decoded."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.chrome_blocks import decoded
from tests.unit.test_chrome_forms import MIXED, WRITERS, written

thorough = settings(max_examples=150, deadline=None)

integers = st.one_of(st.integers(0, 9), st.integers(-(10**6), 10**12), st.integers(-(1 << 70), 1 << 70))
texts = st.text(st.sampled_from('ab ":,{}[]\\0123456789é\n'), max_size=14)
numbers = st.one_of(integers, st.floats(0, 1e9, allow_nan=False), st.decimals(0, 10**15, places=3).map(float))
times = st.one_of(integers, st.floats(0, 1e12, allow_nan=False))
keys = st.sampled_from(
    [
        *("External id", "correlation", "Sequence number", "Fwd thread id", "stream", "device", "bytes"),
        *("est. achieved occupancy %", "pid", "ts"),
    ]
)
regular = st.fixed_dictionaries(
    {
        "ph": st.sampled_from(["X", "X", "X", "i", "s", "f", "B", "E", "C", "M"]),
        "cat": st.sampled_from(["cpu_op", "kernel", "cuda_runtime", "python_function", "gpu_memcpy", "ac2g"]),
        "name": texts,
        "pid": st.integers(0, 2),
        "tid": st.integers(0, 2),
        "ts": times,
    },
    optional={
        "dur": times,
        "id": st.one_of(integers, texts),
        "args": st.dictionaries(st.one_of(keys, texts), st.one_of(numbers, texts, st.lists(numbers, max_size=3)), max_size=5),
    },
)
HARMS = [b"", *(bytes([byte]) for byte in b'"{},[]\x01\x0209.-\\\xff:')]


@given(st.lists(regular, min_size=2, max_size=8), st.integers(1, 5), st.sampled_from(sorted(WRITERS)))
@thorough
def test_regular_events_say_the_same(events: list[dict[str, Any]], repeats: int, writer: str) -> None:
    """A name that looks like the begin of an event hides where events stand from the plain way alone: they have their stretch's place."""
    text = written(events * repeats, writer)
    read, plain = decoded(text, by_forms=True), decoded(text, by_forms=False)
    places, known = (said["columns"].pop("offset") for said in (read, plain))
    assert read == plain
    if places != known:
        assert len(set(known)) == 1
        assert places == sorted(set(places))
        begun = [json.JSONDecoder().raw_decode(text[at - known[0] :].decode())[0] for at in places]
        assert [event["name"] for event in begun] == read["columns"]["name"]


@given(st.data(), st.sampled_from(sorted(WRITERS)))
@thorough
def test_damaged_text_says_the_same(data: st.DataObject, writer: str) -> None:
    """Bytes are changed, cut out and put in anywhere. Only where events stand and what is lost may be known better."""
    text = bytearray(written(MIXED[:33], writer))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        harm = data.draw(st.sampled_from(HARMS))
        text[at : at + data.draw(st.integers(0, 3))] = harm
    read, plain = decoded(bytes(text), by_forms=True), decoded(bytes(text), by_forms=False)
    for said in (read, plain):
        del said["columns"]["offset"], said["damage"]
    assert read == plain


def test_the_writers_write_json() -> None:
    for writer in WRITERS:
        assert len(json.loads(b"[" + written(MIXED, writer) + b"]")) == len(MIXED)
