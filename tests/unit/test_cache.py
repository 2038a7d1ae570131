"""Profiles kept on disk: found again as they were, and never in the way, whatever is wrong with the disk."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from roofterm_parsers import arrow_map, cache, cache_keys
from roofterm_parsers.inputs import Input
from roofterm_parsers.opening import open_profile
from roofterm_parsers.profile import FRAMES, PARSER_VERSION, Profile, Source, Warning, empty
from tests.unit.test_merging import made
from tests.xspace import Plane, space, tpu_plane

ODD_NAME = os.fsdecode(b"tr\xfface.json")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "roofterm" / "profiles"


def an_input(path: str = "runs/a.json", location: str = "/runs/a.json", size: int = 10, mtime_ns: int = 5) -> Input:
    return Input(path=path, location=location, bytes=size, mtime_ns=mtime_ns)


def a_profile(path: str = "runs/a.json", seed: int = 1) -> Profile:
    profile = made(seed, 1_700_000_000_000_000_123)
    facts = {"trace_id": "\x00\u202e", "huge": 1 << 80, "list": [1.5, None, True]}
    profile.sources = [Source(path=path, format="kineto", container="gzip", rank=3, metadata=facts)]
    profile.warnings = [Warning("cut", f"{path}: the gzip file ends too early", 2)]
    return profile


def kept(profile: Profile, *inputs: Input) -> str:
    key = cache_keys.key_of(inputs)
    assert key is not None
    assert cache.store(key, profile, inputs) is None
    return key


def files(home: Path) -> list[str]:
    return sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file())


def test_a_kept_profile_comes_back_as_it_was() -> None:
    profile = a_profile()
    key = kept(profile, an_input())
    again, warning = cache.load(key, [an_input()])
    assert warning is None
    assert again is not None
    again.check()
    assert all(frame.equals(again.frames()[name], null_equal=True) for name, frame in profile.frames().items())
    assert (again.sources, again.warnings, again.zero_unix_ns) == (profile.sources, profile.warnings, profile.zero_unix_ns)
    assert again.from_cache


def test_frames_without_rows_come_back_too() -> None:
    key = kept(Profile(sources=[Source(path="runs/a.json", format="chrome", container="plain")]), an_input())
    again, _ = cache.load(key, [an_input()])
    assert again is not None
    again.check()


def test_a_file_name_that_is_no_utf8_is_kept() -> None:
    key = kept(a_profile(ODD_NAME), an_input(ODD_NAME, f"/runs/{ODD_NAME}"))
    again, _ = cache.load(key, [an_input(ODD_NAME, f"/runs/{ODD_NAME}")])
    assert again is not None
    assert again.sources[0].path == ODD_NAME


@pytest.mark.parametrize("other", [an_input(location="/runs/b.json"), an_input(size=11), an_input(mtime_ns=6)])
def test_another_file_size_or_time_is_another_profile(other: Input) -> None:
    assert cache_keys.key_of([an_input()]) != cache_keys.key_of([other])


def test_another_parser_reads_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    before = cache_keys.key_of([an_input()])
    monkeypatch.setattr("roofterm_parsers.cache_keys.PARSER_VERSION", PARSER_VERSION + 1)
    assert cache_keys.key_of([an_input()]) != before


def test_a_pipe_and_a_url_without_a_date_are_not_kept() -> None:
    assert cache_keys.key_of([Input(path="-", location="-", kind="pipe")]) is None
    assert cache_keys.key_of([Input(path="https://x/t.json", location="https://x/t.json", kind="remote", bytes=5)]) is None
    assert cache_keys.key_of([Input(path="s3://b/t.json", location="s3://b/t.json", kind="remote", bytes=5, mtime_ns=7)]) is not None


def test_paths_are_shown_as_they_are_named_this_time() -> None:
    key = kept(a_profile(), an_input())
    again, _ = cache.load(key, [an_input(path="../runs/a.json")])
    assert again is not None
    assert again.sources[0].path == "../runs/a.json"
    assert again.warnings[0].message == "../runs/a.json: the gzip file ends too early"


def test_small_profiles_that_are_read_at_once_are_not_worth_it() -> None:
    assert not cache_keys.is_worth(bytes_on_disk=2_000_000, seconds=0.2)
    assert cache_keys.is_worth(bytes_on_disk=9_000_000, seconds=0.2)
    assert cache_keys.is_worth(bytes_on_disk=2_000_000, seconds=0.6)


# Trouble


def test_nothing_is_found_where_nothing_was_kept() -> None:
    assert cache.load("0" * 32, [an_input()]) == (None, None)


@pytest.mark.parametrize("frame", ["slices", "names", "kernels"])
@pytest.mark.parametrize("harm", ["flipped", "cut", "grown", "foreign", "gone"])
def test_a_damaged_frame_is_thrown_away_and_told(frame: str, harm: str, home: Path) -> None:
    key = kept(a_profile(), an_input())
    path = home / key / f"{frame}.arrow"
    data = path.read_bytes()
    middle = len(data) // 2
    harmed = {
        "flipped": data[:middle] + bytes([data[middle] ^ 64]) + data[middle + 1 :],
        "cut": data[:middle],
        "grown": data + b"x",
        "foreign": (home / key / "ops.arrow").read_bytes(),
    }
    path.unlink()
    if harm in harmed:
        path.write_bytes(harmed[harm])
    profile, warning = cache.load(key, [an_input()])
    assert profile is None
    assert warning is not None
    assert warning.code == "cache"
    assert files(home) == []
    kept(a_profile(), an_input())
    assert cache.load(key, [an_input()])[0] is not None


@pytest.mark.parametrize("text", [b"", b"{}", b"00000000\n{}", b"\xff\xfe", b"zz\n[]"])
def test_a_damaged_description_is_thrown_away(text: bytes, home: Path) -> None:
    key = kept(a_profile(), an_input())
    (home / key / "meta.json").write_bytes(text)
    profile, warning = cache.load(key, [an_input()])
    assert profile is None
    assert warning is not None


def test_a_frame_of_another_shape_is_thrown_away(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = kept(a_profile(), an_input())
    monkeypatch.setitem(FRAMES, "ops", pl.Schema({"slice": pl.UInt32}))
    profile, warning = cache.load(key, [an_input()])
    assert profile is None
    assert warning is not None


def test_a_cache_folder_that_cannot_be_made_is_only_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    warning = cache.store("0" * 32, a_profile(), [an_input()])
    assert warning is not None
    assert "set XDG_CACHE_HOME" in warning.message
    assert cache.load("0" * 32, [an_input()]) == (None, None)
    assert (cache.info(), cache.clear()) == ([], 0)


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_read_only_home_is_only_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "closed"))
    warning = cache.store("0" * 32, a_profile(), [an_input()])
    assert warning is not None
    assert "Permission denied" in warning.message


def test_a_disk_that_fills_up_while_writing_leaves_nothing_behind(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Path] = []

    def write_then_fail(frame: pl.DataFrame, path: Path) -> None:
        path.write_bytes(b"half")
        written.append(path)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache, "write_frame", write_then_fail)
    warning = cache.store("0" * 32, a_profile(), [an_input()])
    assert written
    assert warning is not None
    assert "No space left on device" in warning.message
    assert files(home) == []


def test_a_nearly_full_disk_is_left_alone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_free_bytes", lambda _: 100_000_000)
    warning = cache.store("0" * 32, a_profile(), [an_input()])
    assert warning is not None
    assert "nearly full" in warning.message
    assert files(home) == []


def test_without_a_home_there_is_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert cache_keys.directory() is None
    assert cache.store("0" * 32, a_profile(), [an_input()]) is None
    assert cache.load("0" * 32, [an_input()]) == (None, None)


def test_a_relative_cache_home_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_keys.directory() == tmp_path / ".cache" / "roofterm" / "profiles"


def test_keeping_stops_when_the_user_stops(home: Path) -> None:
    assert cache.store("0" * 32, a_profile(), [an_input()], stopped=lambda: True) is None
    assert files(home) == []


def test_on_a_network_disk_frames_are_copied_and_not_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    key = kept(a_profile(), an_input())
    asked: list[bool] = []

    def told(path: Path, schema: pl.Schema, *, copied: bool) -> pl.DataFrame:
        asked.append(copied)
        return arrow_map.map_frame(path, schema, copied=copied)

    monkeypatch.setattr(cache, "map_frame", told)
    monkeypatch.setattr(cache, "_is_remote_disk", lambda _: True)
    again, _ = cache.load(key, [an_input()])
    assert again is not None
    assert all(asked)
    again.check()


# Bounds


def filled(count: int) -> list[tuple[str, Input]]:
    """`count` kept profiles of about equal size, the first the longest unused."""
    inputs = [an_input(f"runs/{i}.json", f"/runs/{i}.json") for i in range(count)]
    keys = [kept(a_profile(file.path, seed=9), file) for file in inputs]
    return list(zip(keys, inputs, strict=True))


def used_at(home: Path, key: str, seconds_ago: float) -> None:
    then = time.time() - seconds_ago
    os.utime(home / key / "meta.json", (then, then))


def test_beyond_the_limit_the_longest_unused_goes(home: Path) -> None:
    entries = filled(4)
    for i, (key, _) in enumerate(entries):
        used_at(home, key, 1000 - i)
    cache.load(entries[0][0], [entries[0][1]])  # the oldest is used again
    size = cache.info()[0].bytes
    new = an_input("runs/new.json", "/runs/new.json")
    cache.store(cache_keys.key_of([new]) or "", a_profile("runs/new.json", seed=9), [new], limit_bytes=3 * size + size // 2)
    assert sorted(entry.paths[0] for entry in cache.info()) == ["/runs/0.json", "/runs/3.json", "/runs/new.json"]


def test_a_profile_larger_than_the_limit_is_not_kept(home: Path) -> None:
    assert cache.store("0" * 32, a_profile(), [an_input()], limit_bytes=10) is None
    assert files(home) == []


def test_what_a_killed_process_left_goes_after_an_hour(home: Path) -> None:
    for name, seconds_ago in (("tmp-1-old", 7200), ("tmp-2-new", 60)):
        (home / name).mkdir(parents=True)
        (home / name / "slices.arrow").write_bytes(b"half")
        then = time.time() - seconds_ago
        os.utime(home / name, (then, then))
    kept(a_profile(), an_input())
    assert (home / "tmp-2-new").exists()
    assert not (home / "tmp-1-old").exists()


def test_info_lists_what_is_kept_the_last_used_first(home: Path) -> None:
    (first, _), (second, _) = filled(2)
    used_at(home, second, 500)
    entries = cache.info()
    assert [entry.key for entry in entries] == [first, second]
    assert [entry.paths for entry in entries] == [["/runs/0.json"], ["/runs/1.json"]]
    assert entries[0].bytes == sum((home / name).stat().st_size for name in files(home) if name.startswith(first))


def test_clear_frees_everything_and_touches_nothing_else(home: Path) -> None:
    filled(2)
    (home / "mine.txt").write_text("of another program")
    size = sum(entry.bytes for entry in cache.info())
    assert size > 0
    assert cache.clear() == size
    assert files(home) == ["mine.txt"]
    assert cache.info() == []


def test_the_cache_folder_is_marked_for_backup_programs(home: Path) -> None:
    kept(a_profile(), an_input())
    assert (home.parent / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")
    assert (home.stat().st_mode & 0o777) == 0o700


# Two at once

WORKER = textwrap.dedent(
    """
    import sys
    from roofterm_parsers import cache, cache_keys
    from tests.unit.test_cache import a_profile, an_input

    wrong = 0
    for turn in range(int(sys.argv[1])):
        file = an_input(f"runs/{turn % 3}.json", f"/runs/{turn % 3}.json")
        key = cache_keys.key_of([file])
        profile = a_profile(file.path, seed=turn % 3)
        wrong += cache.store(key, profile, [file], limit_bytes=300_000) is not None
        again, warning = cache.load(key, [file])
        wrong += warning is not None
        wrong += again is not None and not again.slices.equals(profile.slices)
        if turn % 5 == 4:
            cache.clear()
    print(wrong)
    """
)


def test_two_processes_at_once_neither_harm_nor_see_half_an_entry(home: Path) -> None:
    command = [sys.executable, "-c", WORKER, "25"]
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'parsers'}"}
    running = [subprocess.Popen(command, cwd=root, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=60)[0].strip() for process in running] == ["0", "0"]
    assert not [name for name in os.listdir(home) if name.startswith("tmp-")]


# Mapping


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_a_frame_comes_back_from_its_file_with_every_null(frame: str, rows: int, tmp_path: Path) -> None:
    chance = np.random.default_rng(rows)
    columns = []
    for column, kind in FRAMES[frame].items():
        values = pl.Series(column, chance.integers(0, 100, rows))
        values = pl.Series(column, [f"Ω{value}" * 7 for value in values]) if kind == pl.String else values.cast(kind)
        columns.append(values.set(pl.Series(chance.integers(0, 4, rows) == 0), None) if column != "slice" else values)
    written = pl.DataFrame(columns)
    arrow_map.write_frame(written, tmp_path / "x.arrow")
    for copied in (False, True):
        assert arrow_map.map_frame(tmp_path / "x.arrow", FRAMES[frame], copied=copied).equals(written)
    assert pl.read_ipc(tmp_path / "x.arrow").equals(written)


def test_numbers_are_used_where_they_lie(tmp_path: Path) -> None:
    schema = pl.Schema({"a": pl.Int64})
    arrow_map.write_frame(pl.DataFrame({"a": range(1000)}, schema=schema), tmp_path / "x.arrow")
    array = arrow_map.map_frame(tmp_path / "x.arrow", schema)["a"].to_numpy()
    assert not array.flags.owndata
    assert not array.flags.writeable


def test_bytes_that_are_no_such_file_are_refused_and_never_crash(tmp_path: Path) -> None:
    schema = pl.Schema({"a": pl.Int64, "b": pl.UInt8})
    arrow_map.write_frame(pl.DataFrame({"a": range(50), "b": [1] * 50}, schema=schema), tmp_path / "x.arrow")
    data = (tmp_path / "x.arrow").read_bytes()
    chance = np.random.default_rng(0)
    for _ in range(400):
        harmed = bytearray(data)
        for at in chance.integers(0, len(data), 3):
            harmed[at] = chance.integers(0, 256)
        (tmp_path / "y.arrow").write_bytes(harmed[: chance.integers(1, len(data) + 1)])
        try:
            frame = arrow_map.map_frame(tmp_path / "y.arrow", schema)
        except (ValueError, OSError, pl.exceptions.PolarsError):
            continue
        assert frame.schema == schema


def test_a_profile_without_its_host_is_not_kept(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_keys, "WORTH_BYTES", 0)
    tpu, thread = tpu_plane(), Plane("/host:CPU", id=1)
    tpu.line("XLA Ops", [tpu.event("op", 0, 10)])
    thread.line("python", [thread.event("a", 0, 50)])
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(space(tpu, thread))
    assert open_profile(path, device_alone=True).tracks.height == 1
    assert files(home) == []
    assert open_profile(path).tracks.height == 2
    assert open_profile(path, device_alone=True).tracks.height == 2


def test_frames_of_a_kept_profile_outlive_their_entry(home: Path) -> None:
    """Another roofterm may throw the entry away while this one still has frames to read."""
    written = a_profile()
    key = kept(written, an_input())
    profile, _ = cache.load(key, [an_input()])
    assert profile is not None
    cache.clear()
    assert not any(folder.is_dir() for folder in home.iterdir())
    for name, frame in written.frames().items():
        assert getattr(profile, name).equals(frame), name


def test_a_frame_is_read_when_it_is_first_asked_for() -> None:
    asked: list[str] = []
    frame = empty("ops").clear(3)

    def read() -> pl.DataFrame:
        asked.append("ops")
        return frame

    profile = Profile()
    profile.defer("ops", read)
    assert asked == []
    assert profile.ops is frame
    assert profile.frames()["ops"] is frame
    assert asked == ["ops"]
    with pytest.raises(AttributeError):
        _ = profile.nothing_of_this_name  # type: ignore[attr-defined]


def test_threads_that_ask_for_a_frame_at_once_all_get_it() -> None:
    reading = threading.Event()
    frame = empty("ops").clear(3)
    times: list[int] = []

    def read() -> pl.DataFrame:
        times.append(1)
        reading.wait(1)
        return frame

    profile = Profile()
    profile.defer("ops", read)
    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(lambda: profile.ops) for _ in range(4)]
        reading.set()
        assert all(one.result() is frame for one in asked)
    assert times == [1]


def test_a_kept_profile_can_be_sent_to_another_process(home: Path) -> None:
    written = a_profile()
    profile, _ = cache.load(kept(written, an_input()), [an_input()])
    other = pickle.loads(pickle.dumps(profile))
    for name, frame in written.frames().items():
        assert getattr(other, name).equals(frame), name
