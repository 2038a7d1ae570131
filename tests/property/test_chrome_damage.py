"""A trace cut at 200 places, and with a byte changed at 200 places, against a reader that takes event after event."""

from __future__ import annotations

import io
import json
import random
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from roofterm_parsers.chrome.reader import read
from roofterm_parsers.errors import ProfileError
from roofterm_parsers.profile import Profile, Source

PLACES = 200
Row = tuple[str, str, Decimal, Decimal]
"""name, category, start and length in µs"""


@dataclass(frozen=True)
class Trace:
    text: bytes
    bounds: list[tuple[int, int]]
    """where each event begins and ends"""


def make(separator: str, indent: int | None) -> Trace:
    """A small trace of many kinds of events, written as torch does in old and new versions."""
    rng = random.Random(11)
    text = '{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}], "traceEvents": ['
    bounds: list[tuple[int, int]] = []
    for i in range(60):
        category = rng.choice(["cpu_op", "cuda_runtime", "kernel", "python_function", "user_annotation"])
        args: dict[str, Any] = {
            "External id": i,
            "correlation": i,
            "Input Dims": [[2, 3], []],
            "grid": [1, 2, 3],
            "note": 'a "quoted" \\ word',
        }
        event: dict[str, Any] = {
            "ph": "X",
            "cat": category,
            "name": f"event {i}",
            "pid": 0 if category == "kernel" else 1,
            "tid": rng.randint(1, 3),
        }
        event |= {"ts": 1731000000000000.5 + 10 * i, "dur": 7.25, "args": args}
        text += separator if bounds else separator.lstrip(",")
        start = len(text)
        text += json.dumps(event, indent=indent)
        bounds.append((start, len(text)))
    return Trace((text + '\n], "displayTimeUnit": "ms"}').encode(), bounds)


TRACES = {"pretty": make(",\n  ", 2), "compact": make(",", None)}


def opened(text: bytes) -> Profile | None:
    try:
        profile = read(io.BytesIO(text), Source(path="x", format="", container="plain"), lambda _: None)
    except ProfileError:
        return None
    profile.check()
    return profile


def rows(profile: Profile | None) -> Counter[Row]:
    """Slices with absolute times, which are those since 1970."""
    if profile is None or profile.slices.is_empty():
        return Counter()
    zero = Decimal(profile.zero_unix_ns or 0)
    names = profile.names
    found: Counter[Row] = Counter()
    for name, start, dur in profile.slices.select("name", "start_ps", "dur_ps").iter_rows():
        text, category = names.row(name)
        found[text, category, (Decimal(start) / 1000 + zero) / 1000, Decimal(dur) / 1_000_000] += 1
    return found


def slow(event: bytes) -> Row | None:
    """One event by the standard library; None if it is none, or has no length."""
    try:
        read = json.loads(event, parse_float=Decimal, parse_int=Decimal)
        return (read["name"], read["cat"], Decimal(read["ts"]), Decimal(read["dur"])) if read["ph"] == "X" else None
    except (ValueError, KeyError, TypeError):
        return None


@pytest.mark.parametrize("form", sorted(TRACES))
def test_a_cut_keeps_every_event_before_it_and_nothing_else(form: str) -> None:
    trace = TRACES[form]
    first, end = trace.bounds[0][1], trace.bounds[-1][1]
    for at in random.Random(5).sample(range(first, end), PLACES):
        profile = opened(trace.text[:at])
        wanted = Counter(row for a, b in trace.bounds if b <= at and (row := slow(trace.text[a:b])))
        assert rows(profile) == wanted, at
        assert profile is not None
        assert "cut" in {warning.code for warning in profile.warnings}


@pytest.mark.parametrize("form", sorted(TRACES))
def test_a_changed_byte_costs_no_event_but_its_own_and_is_said_if_it_does(form: str) -> None:
    trace = TRACES[form]
    rng = random.Random(6)
    first, end = trace.bounds[0][0], trace.bounds[-1][1]
    for at in rng.sample(range(first, end), PLACES):
        damaged = bytearray(trace.text)
        damaged[at] ^= 1 << rng.randrange(8)
        touched = [i for i, (a, b) in enumerate(trace.bounds) if a - 4 <= at < b + 4]
        profile = opened(bytes(damaged))
        got = rows(profile)
        whole = [slow(trace.text[a:b]) for i, (a, b) in enumerate(trace.bounds) if i not in touched]
        missing = Counter(row for row in whole if row) - got
        assert not missing, (at, bytes(damaged[at - 30 : at + 30]), missing)
        own = [slow(bytes(damaged[a:b])) for i, (a, b) in enumerate(trace.bounds) if i in touched]
        read_right = Counter(row for row in own if row)
        assert profile is not None
        if read_right - got:  # less than the slow reader: then it is said
            assert profile.warnings, (at, bytes(damaged[at - 30 : at + 30]))
