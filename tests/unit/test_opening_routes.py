"""A trace gives the same frames whichever way it is read: in one process, through workers, from the cache, through a pipe."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

import roofterm_parsers as rp
from roofterm_parsers import cache_keys
from roofterm_parsers.chrome import decoding, reader, splitting
from roofterm_parsers.chrome.pool import Pool
from tests.reference import REASON, root


def traces() -> list[object]:
    folder = root()
    found = sorted((folder / "traces").rglob("*.gz")) if folder is not None else []
    named = [pytest.param(path, id=path.name) for path in found if not path.name.startswith(("param_et_", "tracelens_rocprofv3"))]
    kept_out = [one for one in named if "execution_trace_pair_et" not in str(one.id)]
    return list(kept_out) or [pytest.param(None, id="none", marks=pytest.mark.skip(reason=REASON))]


@pytest.mark.parametrize("path", traces())
def test_every_way_of_reading_gives_the_same(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cache_keys, "WORTH_BYTES", 0)
    read = rp.open_profile(path, workers=0)
    read.check()
    again = rp.open_profile(path)
    assert again.from_cache
    assert_same(again, read)
    assert again.warnings == read.warnings
    assert_same(piped(path, monkeypatch), read)
    through_workers(monkeypatch)
    assert_same(rp.open_profile(path, workers=2, cache=False), read)


@pytest.mark.parametrize("path", traces())
def test_read_by_forms_it_is_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = rp.open_profile(path, workers=0, cache=False)
    monkeypatch.setattr(decoding, "BY_FORMS_FROM", 0)
    by_forms = rp.open_profile(path, workers=0, cache=False)
    assert_same(by_forms, read)
    assert by_forms.warnings == read.warnings


def through_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have small files decoded by workers too: but for the first block, which tells what kind of trace it is."""
    is_ready = Pool.is_ready

    def wait(pool: Pool) -> bool:
        while not is_ready(pool):
            time.sleep(0.01)
        return True

    monkeypatch.setattr(reader, "ALONE_BYTES", 1)
    monkeypatch.setattr(splitting, "BLOCK_BYTES", 1 << 20)
    monkeypatch.setattr(Pool, "is_ready", wait)


def assert_same(one: rp.Profile, other: rp.Profile) -> None:
    for name, frame in other.frames().items():
        assert frame.equals(one.frames()[name], null_equal=True), name
    assert one.zero_unix_ns == other.zero_unix_ns
    assert one.sources[0].rank == other.sources[0].rank or one.sources[0].path == "-"


def piped(path: Path, monkeypatch: pytest.MonkeyPatch) -> rp.Profile:
    reading, writing = os.pipe()

    def write() -> None:
        with os.fdopen(writing, "wb") as file:
            file.write(path.read_bytes())

    writer = threading.Thread(target=write)
    writer.start()
    with os.fdopen(reading, "rb") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        profile = rp.open_profile("-")
    writer.join()
    return profile
