"""A slice's event is read again from its file with all that it holds; and never from a file that is not as it was."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

import roofterm_parsers as rp
from roofterm_parsers.recorded import may_be_read_again, recorded_event
from tests.made_files import event, kineto, xla_json, xspace

BOM = b"\xef\xbb\xbf"
ARGUMENTS = {"External id": 7, "correlation": 3, "stream": 7, "device": 0, "custom": [1, {"a": "b"}], "note": "kept nowhere"}


def trace(**top: object) -> bytes:
    """Calls and kernels around one kernel with arguments that no table holds, and a slice that was begun and ended."""
    told = json.loads(kineto(kernels=3))
    told["traceEvents"] += [
        event("odd", "kernel", 400.5, 2.25, 0, 7, ARGUMENTS),
        {"ph": "B", "cat": "x", "name": "range", "pid": 1, "tid": 1, "ts": 5, "args": {"k": 1}},
        {"ph": "E", "cat": "x", "name": "range", "pid": 1, "tid": 1, "ts": 9},
    ]
    return json.dumps({**told, **top}).encode()


def slice_called(profile: rp.Profile, name: str) -> int:
    texts = profile.names["text"].gather(profile.slices["name"]).to_list()
    return texts.index(name)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress, lambda data: BOM + data])
@pytest.mark.parametrize("kept", [False, True])
def test_every_event_is_read_again_with_all_its_arguments(
    pack: Callable[[bytes], bytes], kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("roofterm_parsers.cache_keys.WORTH_BYTES", 0)
    path = tmp_path / "a.json"
    path.write_bytes(pack(trace()))
    profile = rp.open_profile(path)
    if kept:
        profile = rp.open_profile(path)
        assert profile.from_cache
    assert recorded_event(profile, slice_called(profile, "odd"))["args"] == ARGUMENTS
    assert recorded_event(profile, slice_called(profile, "range"))["args"] == {"k": 1}
    for slice_id in range(profile.slices.height):
        assert may_be_read_again(profile, slice_id)
        found = recorded_event(profile, slice_id)
        assert found["name"] == profile.names["text"][int(profile.slices["name"][slice_id])]


def test_of_several_files_it_is_the_one_that_the_slice_is_from(tmp_path: Path) -> None:
    paths = [tmp_path / f"rank{rank}.json" for rank in (0, 1)]
    for rank, path in enumerate(paths):
        path.write_bytes(kineto(rank, kernels=2, correlation=10 + 100 * rank))
    profile = rp.open_profile(paths, cache=False)
    ids = [i for i, name in enumerate(profile.names["text"].gather(profile.slices["name"])) if name == "kernel_1"]
    assert sorted(recorded_event(profile, i)["args"]["correlation"] for i in ids) == [11, 111]


def test_a_file_that_has_changed_or_is_gone_is_not_read_as_if_it_had_not(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(trace())
    profile = rp.open_profile(path, cache=False)
    odd = slice_called(profile, "odd")
    path.write_bytes(trace(more="x"))
    with pytest.raises(rp.ProfileError, match=r"a\.json: has changed since it was read"):
        recorded_event(profile, odd)
    path.write_bytes(trace().replace(b"kept nowhere", b"other words!"))
    os.utime(path, (1, 1))
    with pytest.raises(rp.ProfileError, match="has changed"):
        recorded_event(profile, odd)
    profile.key = None  # nothing tells it but the event itself
    path.write_bytes(trace().replace(b"2.25", b"2.75"))
    with pytest.raises(rp.ProfileError, match="not found again"):
        recorded_event(profile, odd)
    path.unlink()
    with pytest.raises(rp.ProfileError, match="no such file"):
        recorded_event(profile, odd)


def test_reading_again_stops_when_it_is_told_to(tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(trace()))
    profile = rp.open_profile(path, cache=False)
    with pytest.raises(rp.Interrupted):
        recorded_event(profile, 0, cancelled=lambda: True)


def test_events_of_an_xplane_are_not_texts(tmp_path: Path) -> None:
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(xspace(3))
    profile = rp.open_profile(path, cache=False)
    assert not may_be_read_again(profile, 0)
    (tmp_path / "j.json").write_bytes(xla_json(3))
    profile = rp.open_profile(tmp_path / "j.json", cache=False)
    assert may_be_read_again(profile, 0)
    for slice_id in range(profile.slices.height):
        assert "args" in recorded_event(profile, slice_id)


def test_of_many_of_one_name_in_a_stretch_it_is_the_one_whose_turn_it_is(tmp_path: Path) -> None:
    """A name that looks like an event hides where events stand: all have the offset of their stretch."""
    events = [event("same", "cpu_op", 10 * (9 - i), 2, 1, 1, {"External id": i}) for i in range(8)]
    events += [
        event("[{", "cpu_op", 200, 1, 1, 1, {}),
        *(event("twin", "cpu_op", 300, 2, 1, thread, {"a": thread}) for thread in (1, 2)),
    ]
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"traceEvents": events}, separators=(",", ":")))
    profile = rp.open_profile(path)
    assert profile.slices["offset"].n_unique() == 1
    names = profile.names["text"].gather(profile.slices["name"]).to_list()
    same = [slice_id for slice_id, name in enumerate(names) if name == "same"]
    assert [recorded_event(profile, slice_id)["args"]["External id"] for slice_id in same] == [7, 6, 5, 4, 3, 2, 1, 0]
    with pytest.raises(rp.ProfileError, match="not found again"):
        recorded_event(profile, names.index("twin"))
