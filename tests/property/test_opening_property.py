"""Whatever the bytes, `open_profile` returns a profile in order or raises ProfileError."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import roofterm_parsers as rp
from tests.made_files import kineto, xla_json, xspace

GOOD = [
    kineto(0, kernels=6),
    xla_json(4),
    xspace(5),
    b'[{"ph": "B", "name": "a", "ts": 1, "pid": 1, "tid": 1}, {"ph": "E", "ts": 3, "pid": 1, "tid": 1}]',
]
HEADS = [
    b"",
    b"{",
    b"[",
    b'{"traceEvents": [',
    b"\n\x10",
    b"\x12\x03abc",
    b"\x1f\x8b\x08\0",
    b"\x28\xb5\x2f\xfd",
    b"PK\x03\x04",
    b"\x80\x04",
]
PACKERS = [bytes, gzip.compress, zstandard.compress, lambda data: b"\xef\xbb\xbf" + data]


def opened(data: bytes, max_memory: int | None = None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        path.write_bytes(data)
        try:
            profile = rp.open_profile(path, cache=False, workers=0, max_memory=max_memory)
        except rp.ProfileError as error:
            sentence = str(error)
        else:
            profile.check()
            return
        assert str(path) in sentence
        assert "\n" not in sentence


@given(st.sampled_from(HEADS), st.binary(max_size=400), st.sampled_from(PACKERS))
def test_any_bytes(head, tail, pack) -> None:
    opened(pack(head + tail))


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(GOOD), st.data(), st.sampled_from(PACKERS))
def test_a_good_profile_with_bytes_changed_cut_or_put_in(good, data, pack) -> None:
    harmed = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(harmed)))
        harmed[at : at + data.draw(st.integers(0, 5))] = data.draw(st.binary(max_size=5))
    packed = pack(bytes(harmed))
    opened(packed[: data.draw(st.integers(len(packed) // 2, len(packed)))])


@given(st.sampled_from(GOOD), st.sampled_from(PACKERS), st.integers(1, 100_000))
def test_any_limit_of_memory(good, pack, max_memory) -> None:
    opened(pack(good), max_memory=max_memory)
