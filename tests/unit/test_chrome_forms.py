"""Events read by their forms say what they say when each is decoded by itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest

from roofterm_parsers.chrome import digits
from roofterm_parsers.chrome.decoding import Decoder
from roofterm_parsers.chrome.forms import Forms, Read
from roofterm_parsers.chrome.learning import Kinds
from roofterm_parsers.chrome.scanning import FILL, Scanned, scan
from tests.unit.chrome_blocks import OFFSET, decoded

Event = dict[str, Any]


def op(number: int, **more: Any) -> Event:
    """An op as PyTorch's profiler writes it."""
    args = {"External id": number, "Record function id": 0, "Input Dims": [[8, 4096], []], "Ev Idx": number * 3, **more}
    return {
        "ph": "X",
        "cat": "cpu_op",
        "name": "aten::add",
        "pid": 7,
        "tid": 7,
        "ts": Written(f"{4324633360 + number}.253"),
        "dur": Written(f"{number}.5"),
        "args": args,
    }


class Written(float):
    """A number that is written just so."""

    text: str

    def __new__(cls, text: str) -> Written:
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __repr__(self) -> str:
        return self.text


def as_torch(event: Event) -> str:
    """As libkineto lays out an event."""
    head = ", ".join(f"{json.dumps(key)}: {_value(event[key])}" for key in event if key not in ("ts", "dur", "args"))
    times = ", ".join(f'"{key}": {_value(event[key])}' for key in ("ts", "dur") if key in event)
    times = f",\n    {times}" if times else ""
    args = f',\n    "args": {{\n      {_members(event["args"])}\n    }}' if event.get("args") else ""
    return f"{{\n    {head}{times}{args}\n  }}"


def _members(held: Event) -> str:
    return ", ".join(f"{json.dumps(key)}: {_value(value)}" for key, value in held.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + _members(value) + "}"
    return repr(value) if isinstance(value, Written) else json.dumps(value)


def as_json(event: Event) -> str:
    return _value(event)


def as_compact(event: Event) -> str:
    return json.dumps(event, separators=(",", ":"))


WRITERS: dict[str, tuple[Callable[[Event], str], str]] = {
    "torch": (as_torch, ",\n  "),
    "json": (as_json, ", "),
    "lines": (as_json, ",\n"),
    "compact": (as_compact, ","),
}


def written(events: Sequence[Event], writer: str) -> bytes:
    write, between = WRITERS[writer]
    return between.join(map(write, events)).encode()


MIXED: list[Event] = [
    event
    for number in range(1, 40)
    for event in (
        op(number * 7),
        op(number, **{"Sequence number": 1000 - number, "Fwd thread id": number % 2}),
        {"ph": "s", "id": 900 + number, "pid": 7, "tid": 7, "ts": Written(f"{number}.001"), "cat": "ac2g", "name": "ac2g"},
        {"ph": "f", "id": f"0x{number:x}", "pid": 0, "tid": 7, "ts": number, "cat": "ac2g", "name": "ac2g", "bp": "e"},
        {
            "ph": "X",
            "cat": "cuda_runtime",
            "name": "cudaLaunchKernel",
            "pid": 7,
            "tid": 7,
            "ts": number,
            "dur": 0,
            "args": {"correlation": number},
        },
        {
            "ph": "X",
            "cat": "kernel",
            "name": 'gemm<int, "x": 12>',
            "pid": 0,
            "tid": 7,
            "ts": number,
            "dur": number,
            "args": {
                "External id": number,
                "device": 0,
                "stream": 7,
                "correlation": number,
                "registers per thread": 255,
                "shared memory": number * 1024,
                "blocks per SM": number / 7,
                "warps per SM": number,
                "grid": [number % 3, 1, 1],
                "block": [128, 1, 1],
                "est. achieved occupancy %": number,
            },
        },
        {
            "ph": "i",
            "cat": "cpu_instant_event",
            "s": "t",
            "name": "[memory]",
            "pid": 7,
            "tid": 7,
            "ts": number,
            "args": {"Bytes": -512 * number, "Addr": 139_000_000_000_000 + number, "Device Id": -1, "Total Allocated": 1 << 40},
        },
        {
            "ph": "X",
            "cat": "python_function",
            "name": f"f.py({number % 4}): g",
            "pid": 7,
            "tid": 7,
            "ts": number,
            "dur": 1,
            "args": {"Python id": number, "Python parent id": None},
        },
        {"ph": "M", "name": "thread_name", "pid": 7, "tid": number, "args": {"name": f"thread {number}"}},
        {"ph": "C", "name": "counter", "pid": 7, "ts": number, "args": {"value": number}},
        op(number, **{"Collective name": "allreduce", "In msg nelems": number, "Group size": 8}),
    )
]


@pytest.mark.parametrize("writer", WRITERS)
def test_events_of_every_kind_say_the_same(writer: str) -> None:
    text = written(MIXED, writer)
    assert decoded(text, by_forms=True) == decoded(text, by_forms=False)


@pytest.mark.parametrize("end", [b"\n]}", b'\n  ],\n  "traceName": "x"\n}', b""])
def test_what_stands_behind_the_events_is_left_to_the_decoder(end: bytes) -> None:
    text = written([op(n) for n in range(1, 200)], "torch") + end
    assert decoded(text, by_forms=True) == decoded(text, by_forms=False)


def test_events_before_a_cut_know_where_they_stand() -> None:
    """The decoder gives them the place of their piece; by forms each knows its own."""
    text = written([op(n) for n in range(1, 200)], "torch") + b',\n  {\n    "ph": "X", "na'
    read, plain = decoded(text, by_forms=True), decoded(text, by_forms=False)
    offsets = read["columns"].pop("offset")
    plain["columns"].pop("offset")
    assert read == plain
    assert read["damage"] == {"cut": 1}
    assert all(text[offset - OFFSET :].startswith(b'{\n    "ph": "X"') for offset in offsets[:-1])


@pytest.mark.parametrize(
    "odd",
    [
        '"ts": 05, "dur": 1',  # no number of JSON
        '"ts": 1., "dur": 1',
        '"ts": 1.5e3, "dur": 1',
        '"ts": "12.25", "dur": 1',
        '"ts": -3.25, "dur": -1',
        '"ts": 1234567890123456789012, "dur": 1',
        '"ts": 0.1234567, "dur": 1.0000005',
        '"ts": null, "dur": 1',
        '"ts": [1, 2], "dur": 1',
        '"ts": 1, "ts": 2, "dur": 1',
        '"ts": 1, "dur": 1, "args": {"External id": 5.0}',
        '"ts": 1, "dur": 1, "args": {"External id": "5"}',
        '"ts": 1, "dur": 1, "args": {"External id": 4611686018427387904}',
        '"ts": 1, "dur": 1, "args": {"External id": 99999999999999999999}',
        '"ts": 1, "dur": 1, "args": {"Sequence number": -77, "External id": -0}',
        '"ts": 1, "dur": 1, "args": {"Call stack": ": 12; \\": 13", "Input type": [": 14"]}',
        '"ts": 1, "dur": 1, "args": {"dtype": 7, "Group size": 8, "Collective name": 9}',
        '"ts": 1, "dur": 1, "args": [{"ph": "X", "cat": "cpu_op"}, {"ph": "X", "cat": "cpu_op"}]',
        '"ts": 1, "dur": 1, "args": {"External id": 12\x01}',
        '"ts": 1, "dur": 1, "args": {"External id": \x01\x01}',
        '"ts": 1, "dur": 1, "args": {"External id": 1 2}',
        '"ts": 1, "dur": 1}, {"ph": "X", "pid": 1',
        '"ts": 1, "dur": 1}} , {"ph": "X", "pid": 1',
    ],
)
def test_an_odd_event_among_regular_ones_says_the_same(odd: str) -> None:
    """Or is mended, or skipped, as it is where each event is decoded."""
    head = '"ph": "X", "cat": "cpu_op", "name": "n", "pid": 1, "tid": 2'
    regular = [f'{{{head}, "ts": {n}, "dur": 1, "args": {{"External id": {n}}}}}' for n in range(60)]
    regular[30] = regular[31] = f"{{{head}, {odd}}}"
    text = ", ".join(regular).encode()
    assert decoded(text, by_forms=True) == decoded(text, by_forms=False)


def test_forms_of_regular_events_differ_in_digits_alone() -> None:
    scanned = scan(written([op(5), op(40)], "torch"))
    assert scanned is not None
    first, second = scanned.form(0), scanned.form(1)
    assert first.replace(bytes([FILL]), b"") == second.replace(bytes([FILL]), b"")
    assert b'"pid": 7, "tid": 7' in first
    assert b'"Input Dims": [[8, 4096], []]' in first
    assert b'"External id": \x01, "Record function id": \x01,' in first
    assert b'"ts": ' + b"\x01" * 10 + b"." + b"\x01" * 3 + b', "dur": \x01.\x01' in first


@pytest.mark.parametrize("text", [b"", b"{}", b"[1]", b'{"ph": 1}', b'{"name": 1}, {"ph": 2}', b'{"ph": "\x02"}, {"ph": 1}'])
def test_what_is_not_regular_has_no_forms(text: bytes) -> None:
    assert scan(text) is None


def test_known_forms_are_not_decoded_again() -> None:
    """The first block teaches the forms; of the second no event is decoded."""
    calls: list[bytes] = []
    decoder = Decoder(xla=False)
    kinds: Kinds = decoder._kinds()

    def single(text: bytes) -> Any:
        calls.append(text)
        return decoder._single(text)

    forms = Forms(single, kinds)
    for repeats in range(2):
        scanned = scan(written([op(n) for n in range(100 + repeats, 200 + repeats)], "torch"))
        assert scanned is not None
        read = forms.read(scanned)
        assert read is not None
        assert read.alone.size == 0
        assert read.columns["us"].tolist() == [4324633360 + n for n in range(100 + repeats, 200 + repeats)]
        assert set(read.columns["ps"].tolist()) == {253_000}
        assert read.columns["length_us"].tolist() == list(range(100 + repeats, 200 + repeats))
    assert len(calls) == 2  # one form, decoded with either stand-ins


def test_numbers_are_read_from_one_digit_to_eighteen() -> None:
    """Every length, at every place within a word."""
    texts = [("123456789012345678"[:length], gap) for length in range(1, 19) for gap in range(8)]
    places: list[int] = []
    text = b""
    for number, gap in texts:
        text += b"x" * gap + b","
        places.append(len(text))
        text += number.encode()
    buffer = np.frombuffer(text + b";" + bytes(digits.PADDING), np.uint8)
    word_at = digits.words(buffer)
    at = np.array(places)
    lengths = digits.run_lengths(word_at[at])
    digits.follow_runs(word_at, at, lengths)
    assert lengths.tolist() == [len(number) for number, _ in texts]
    assert digits.numbers(word_at, at, lengths).tolist() == [int(number) for number, _ in texts]


def test_digits_are_told_from_every_other_byte() -> None:
    """Bytes beyond ASCII too, whose neighbours must not be touched by a carry."""
    for byte in range(256):
        word = np.frombuffer(bytes([ord("5"), byte, *b"777777"]), "<u8")
        assert digits.run_lengths(word).tolist() == [8 if 48 <= byte < 58 else 1]


def test_only_the_digits_are_overwritten_even_side_by_side() -> None:
    text = b'"a":1,"b":12345678901,"c":123456789012345678,"d":2'
    buffer = np.frombuffer(bytearray(text + bytes(digits.PADDING)), np.uint8)
    starts = [text.index(f'"{key}":'.encode()) + 4 for key in "abcd"]
    digits.overwrite(digits.words(buffer), np.array(starts), np.array([1, 11, 18, 1]), ord("#"))
    assert bytes(buffer[: len(text)]) == b'"a":#,"b":###########,"c":##################,"d":#'


@pytest.mark.parametrize("hits", [[], [0], [7, 8], [0, 1, 2, 3, 4, 5, 6, 7], [3, 17, 18, 39], [39]])
def test_places_of_a_mask(hits: list[int]) -> None:
    mask = np.zeros(40, np.uint8)
    mask[hits] = 1
    assert digits.places_of(mask).tolist() == hits


def blocks_by_forms(decoder: Decoder, texts: Iterable[bytes], monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each block whether forms were looked for in it."""
    looked: list[bool] = []
    read = Forms.read

    def reading(forms: Forms, scanned: Scanned) -> Read | None:
        looked[-1] = True
        return read(forms, scanned)

    monkeypatch.setattr(Forms, "read", reading)
    for text in texts:
        looked.append(False)
        decoder.block(text, 0, last=False)
    return looked


def test_forms_are_looked_for_at_once_only_where_much_text_is_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    text = written([op(n) for n in range(100)], "torch")
    assert blocks_by_forms(Decoder(xla=False), [text], monkeypatch) == [False]
    assert blocks_by_forms(Decoder(xla=False, long=True), [text], monkeypatch) == [True]


def test_after_a_text_of_too_many_forms_the_next_are_decoded_for_longer_and_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    motley = [written([op(n) | {"name": f"op {block} {chr(65 + n)}"} for n in range(20)], "torch") for block in range(8)]
    looked = blocks_by_forms(Decoder(xla=False, long=True), motley, monkeypatch)
    assert looked == [True, False, True, False, False, True, False, False]
