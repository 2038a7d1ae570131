"""From a word to one profile: sources, ranks, warnings, progress, stopping, the cache, standard input."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest
import zstandard

import roofterm_parsers as rp
from roofterm_parsers import cache as kept
from roofterm_parsers import cache_keys
from roofterm_parsers.errors import TooLarge
from roofterm_parsers.opening import Progress
from roofterm_parsers.profile import Kind, Source
from roofterm_parsers.reading import reopen
from tests.made_files import kineto, xla_json, xspace

RUN = "plugins/profile/2026_01_02_03_04_05"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def put(folder: Path, **files: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name.replace("__", ".")).write_bytes(data)
    return folder


def messages(profile: rp.Profile, code: str) -> list[str]:
    return [warning.message for warning in profile.warnings if warning.code == code]


def kernels(profile: rp.Profile) -> int:
    return profile.slices.filter(profile.slices["kind"] == int(Kind.KERNEL)).height


# One file


@pytest.mark.parametrize(
    ("container", "pack"),
    [("plain", bytes), ("gzip", gzip.compress), ("zstd", zstandard.compress), ("plain", lambda data: b"\xef\xbb\xbf" + data)],
)
def test_a_file_opens_whatever_it_is_packed_in(container, pack, tmp_path: Path) -> None:
    packed = pack(kineto(3, kernels=4))
    path = put(tmp_path, trace=packed) / "trace"
    profile = rp.open_profile(path)
    profile.check()
    (source,) = profile.sources
    assert (source.path, source.format, source.container, source.rank) == (str(path), "kineto", container, 3)
    assert source.bytes == len(packed)
    assert source.bytes_expanded == len(kineto(3, kernels=4))
    assert kernels(profile) == 4
    assert profile.links["launch"].null_count() == 0
    assert profile.warnings == []
    assert profile.seconds > 0


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_an_xplane_file_opens_packed_or_not(pack, tmp_path: Path) -> None:
    profile = rp.open_profile(put(tmp_path, h__xplane__pb=pack(xspace(3))) / "h.xplane.pb")
    profile.check()
    assert (profile.sources[0].format, profile.sources[0].host, kernels(profile)) == ("xplane", "h", 3)


def test_a_large_xplane_file_is_mapped_and_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path, h__pb=xspace(50)) / "h.pb"
    read = rp.open_profile(path)
    monkeypatch.setattr("roofterm_parsers.reading._MAPPED_BYTES", 10)
    mapped = rp.open_profile(path)
    assert mapped.slices.equals(read.slices)
    assert mapped.sources == read.sources


def test_an_xplane_file_that_does_not_fit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = put(tmp_path, h__pb=xspace(3000)) / "h.pb"
    with pytest.raises(rp.ProfileError, match=r"h\.pb: an XPlane profile of .* raise --max-memory"):
        rp.open_profile(path, max_memory=60_000)


def test_a_leftover_opens_and_is_told(tmp_path: Path) -> None:
    profile = rp.open_profile(put(tmp_path, a__json__tmp=kineto()) / "a.json.tmp")
    assert kernels(profile) == 2
    assert "leftover" in messages(profile, "leftover")[0]


def test_a_cut_file_opens_with_what_it_holds(tmp_path: Path) -> None:
    path = put(tmp_path, a__json=kineto(kernels=50)[:-2000]) / "a.json"
    profile = rp.open_profile(path)
    assert 0 < kernels(profile) < 50
    assert profile.warnings


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b'{"model": "demo"}', "no traceEvents"),
        (b'{"schemaVersion": 1, "traceEvents": []}', "no event"),
        (gzip.compress(b'{"schemaVersion": 1, "traceEvents": []}'), "no event"),
        (gzip.compress(b"<!DOCTYPE html><html>"), "HTML"),
        (b"hello", "not a profile"),
        (gzip.compress(kineto())[:7], "truncated"),
    ],
)
def test_what_cannot_be_shown_is_refused_by_name(data: bytes, words: str, tmp_path: Path) -> None:
    path = put(tmp_path, bad__json=data) / "bad.json"
    with pytest.raises(rp.ProfileError, match=words) as refused:
        rp.open_profile(path)
    assert str(path) in str(refused.value)
    assert refused.value.path == str(path)


def test_no_path_at_all_is_told() -> None:
    with pytest.raises(rp.ProfileError, match="no file was named"):
        rp.open_profile([])


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    path = put(tmp_path, a__json=kineto()) / "a.json"
    path.chmod(0)
    with pytest.raises(rp.ProfileError, match="Permission denied"):
        rp.open_profile(path)


def test_a_read_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError(5, "Input/output error")

    path = put(tmp_path, a__json=kineto()) / "a.json"
    monkeypatch.setattr("builtins.open", lambda *_, **__: Failing())
    with pytest.raises(rp.ProfileError, match=r"a\.json: cannot be read: Input/output error"):
        rp.open_profile(path)


def test_more_memory_than_there_is_ends_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: object, **__: object) -> rp.Profile:
        raise MemoryError

    monkeypatch.setattr("roofterm_parsers.opening.read_input", no_memory)
    with pytest.raises(rp.ProfileError, match="needs more memory than there is"):
        rp.open_profile(put(tmp_path, a__json=kineto()) / "a.json")


def test_a_trace_that_takes_too_much_while_it_is_read_ends_in_a_sentence(tmp_path: Path) -> None:
    """A million events that hold next to nothing: 18 MB of text, allowed 30 MB of memory."""
    path = put(tmp_path, a__json=b'{"traceEvents": [' + b'{"ph":"X","ts":1},' * 1_000_000 + b"{}]}") / "a.json"
    with pytest.raises(TooLarge, match=r"a\.json: .* raise --max-memory"):
        rp.open_profile(path, max_memory=30_000_000, cache=False, workers=0)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lambda data: b"\xef\xbb\xbf" + data])
def test_the_text_of_an_event_is_found_again_from_its_offset_on(pack, tmp_path: Path) -> None:
    profile = rp.open_profile(put(tmp_path, a__json=pack(kineto(kernels=5))) / "a.json")
    names = profile.names["text"].gather(profile.slices["name"])
    for name, offset in zip(names, profile.slices["offset"], strict=True):
        with closing(reopen(profile.sources[0], offset, 1 << 30)) as stream:
            assert f'"name": "{name}"'.encode() in stream.peek(1 << 16)


def test_standard_input_cannot_be_read_again() -> None:
    with pytest.raises(rp.ProfileError, match="-: cannot be read a second time"):
        reopen(Source(path="-", format="kineto", container="plain"), 5, 1 << 30)


@pytest.mark.parametrize("kind", [str, Path, lambda path: os.fsencode(str(path)), lambda path: [path], lambda path: (str(path),)])
def test_paths_of_every_kind_are_taken(kind, tmp_path: Path) -> None:
    assert kernels(rp.open_profile(kind(put(tmp_path, a__json=kineto()) / "a.json"))) == 2


def test_a_file_name_that_is_no_utf8_opens(tmp_path: Path) -> None:
    path = os.path.join(os.fsencode(tmp_path), b"tr\xff.json")
    with open(path, "wb") as file:
        file.write(kineto())
    assert rp.open_profile(os.fsdecode(path)).sources[0].path == os.fsdecode(path)


# Several files


def test_ranks_of_a_folder_become_one_profile(tmp_path: Path) -> None:
    put(tmp_path / "job", rank1__json=kineto(1, kernels=3, base_ns=10**18 + 5000), rank0__json=kineto(0, base_ns=10**18))
    profile = rp.open_profile(tmp_path / "job")
    profile.check()
    assert [source.rank for source in profile.sources] == [0, 1]
    assert kernels(profile) == 5
    # The files say that they are two of eight.
    assert [(warning.code, warning.message) for warning in profile.warnings] == [
        ("missing_ranks", "6 of the job's 8 ranks are not here: 2-7")
    ]
    starts = profile.slices.join(profile.tracks.with_row_index("track"), on="track").group_by("source").agg(pl.col("start_ps").min())
    assert dict(starts.rows()) == {0: 0, 1: 5_000_000}


def test_equal_correlation_ids_are_linked_within_their_rank_only(tmp_path: Path) -> None:
    put(tmp_path / "job", rank0__json=kineto(0), rank1__json=kineto(1))
    profile = rp.open_profile(tmp_path / "job")
    source = profile.tracks["source"].gather(profile.slices["track"])
    assert profile.links.height == 4
    assert source.gather(profile.links["work"]).to_list() == source.gather(profile.links["launch"]).to_list()


def test_a_bad_file_among_several_is_a_warning_that_names_it(tmp_path: Path) -> None:
    put(tmp_path / "job", rank0__json=kineto(0), rank1__json=b"", rank2__json=b'{"traceEvents": []}')
    for paths in (tmp_path / "job", sorted((tmp_path / "job").iterdir())):
        profile = rp.open_profile(paths)
        assert [source.rank for source in profile.sources] == [0]
        told = " ".join(messages(profile, "left_out"))
        assert "rank1.json" in told
        assert "rank2.json" in told


def test_if_every_file_is_bad_none_opens(tmp_path: Path) -> None:
    put(tmp_path / "job", rank0__json=b'{"traceEvents": []}', rank1__json=b'{"traceEvents": []}')
    with pytest.raises(rp.ProfileError, match=r"none of the 2 files can be opened: .*rank0\.json.*; .*rank1\.json"):
        rp.open_profile(tmp_path / "job")


def test_a_file_that_does_not_exist_is_an_error_also_among_good_ones(tmp_path: Path) -> None:
    put(tmp_path, a__json=kineto())
    with pytest.raises(rp.ProfileError, match=r"b\.json: no such file"):
        rp.open_profile([tmp_path / "a.json", tmp_path / "b.json"])


def test_ranks_without_numbers_are_numbered_in_order_and_told(tmp_path: Path) -> None:
    put(tmp_path / "job", alpha__json=kineto(), beta__json=kineto())
    profile = rp.open_profile(tmp_path / "job")
    assert [source.rank for source in profile.sources] == [0, 1]
    assert len(messages(profile, "rank")) == 1


def test_hosts_of_a_run_are_sources_of_one_profile(tmp_path: Path) -> None:
    put(tmp_path / RUN, **{"host-0__xplane__pb": xspace(), "host-1__xplane__pb": xspace(3)})
    profile = rp.open_profile(tmp_path)
    profile.check()
    assert [(source.host, source.run) for source in profile.sources] == [
        ("host-0", "2026_01_02_03_04_05"),
        ("host-1", "2026_01_02_03_04_05"),
    ]
    assert profile.devices["source"].to_list() == [0, 1]
    assert kernels(profile) == 5
    assert profile.warnings == []


def test_the_names_of_all_runs_stand_in_every_source(tmp_path: Path) -> None:
    later = "plugins/profile/2026_02_02_03_04_05"
    put(tmp_path / RUN, h__xplane__pb=xspace())
    put(tmp_path / later, h__xplane__pb=xspace())
    profile = rp.open_profile(tmp_path)
    assert [source.run for source in profile.sources] == ["2026_02_02_03_04_05"]
    assert profile.sources[0].metadata["runs"] == ["2026_01_02_03_04_05", "2026_02_02_03_04_05"]
    assert len(messages(profile, "runs")) == 1


def test_files_that_together_do_not_fit_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "job", **{f"rank{i}__json": kineto(i, kernels=200) for i in range(6)})
    one = sum(int(frame.estimated_size()) for frame in rp.open_profile(tmp_path / "job" / "rank0.json").frames().values())
    with pytest.raises(rp.ProfileError, match="raise --max-memory"):
        rp.open_profile(tmp_path / "job", max_memory=4 * one, workers=0)


# Progress and stopping


def test_progress_counts_the_bytes_on_disk_and_the_files(tmp_path: Path) -> None:
    put(tmp_path / "job", **{f"rank{i}__json__gz": gzip.compress(kineto(i)) for i in range(3)})
    moments: list[Progress] = []
    rp.open_profile(tmp_path / "job", progress=moments.append)
    total = sum(path.stat().st_size for path in (tmp_path / "job").iterdir())
    assert {moment.bytes_total for moment in moments} == {total}
    assert [moment.bytes_done for moment in moments] == sorted(moment.bytes_done for moment in moments)
    assert moments[-1].bytes_done == total
    assert (moments[-1].files_done, moments[-1].files_total) == (3, 3)
    phases = [moment.phase for moment in moments]
    assert phases[0] == "reading"
    assert "linking" in phases
    assert phases[-1] == "merging"
    assert {Path(moment.path).name for moment in moments} == {f"rank{i}.json.gz" for i in range(3)}


def test_loading_stops_when_it_is_told_to(tmp_path: Path) -> None:
    path = put(tmp_path, a__json=kineto(kernels=20_000)) / "a.json"
    asked = 0

    def cancelled() -> bool:
        nonlocal asked
        asked += 1
        return asked > 3

    with pytest.raises(rp.Interrupted):
        rp.open_profile(path, cancelled=cancelled, cache=False)
    assert asked < 10


def test_stopping_one_file_of_several_stops_them_all(tmp_path: Path) -> None:
    put(tmp_path / "job", rank0__json=kineto(0), rank1__json=kineto(1))
    with pytest.raises(rp.Interrupted):
        rp.open_profile(tmp_path / "job", cancelled=lambda: True)


# The cache


@pytest.fixture
def eager_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep every profile, however small."""
    monkeypatch.setattr(cache_keys, "WORTH_BYTES", 0)


@pytest.mark.usefixtures("eager_cache")
def test_a_profile_is_read_once_and_then_comes_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "job", rank0__json=kineto(0), rank1__json=kineto(1)[:-150])
    read = rp.open_profile(tmp_path / "job")
    monkeypatch.setattr("roofterm_parsers.opening.read_input", lambda *_, **__: pytest.fail("read again"))
    again = rp.open_profile(tmp_path / "job")
    assert (read.from_cache, again.from_cache) == (False, True)
    assert all(frame.equals(again.frames()[name], null_equal=True) for name, frame in read.frames().items())
    assert again.sources == read.sources
    assert again.warnings == read.warnings != []


@pytest.mark.usefixtures("eager_cache")
def test_a_changed_file_is_read_anew(tmp_path: Path) -> None:
    path = put(tmp_path, a__json=kineto(kernels=2)) / "a.json"
    rp.open_profile(path)
    path.write_bytes(kineto(kernels=3))
    profile = rp.open_profile(path)
    assert (kernels(profile), profile.from_cache) == (3, False)


@pytest.mark.usefixtures("eager_cache")
def test_without_the_cache_nothing_is_written_or_looked_up(tmp_path: Path, home: Path) -> None:
    path = put(tmp_path, a__json=kineto()) / "a.json"
    rp.open_profile(path, cache=False)
    assert not home.exists()
    rp.open_profile(path)
    assert not rp.open_profile(path, cache=False).from_cache


def test_a_small_profile_is_not_kept(tmp_path: Path, home: Path) -> None:
    rp.open_profile(put(tmp_path, a__json=kineto()) / "a.json")
    assert not home.exists()


@pytest.mark.usefixtures("eager_cache")
def test_a_cache_that_cannot_be_written_is_one_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    profile = rp.open_profile(put(tmp_path / "p", a__json=kineto()) / "a.json")
    assert kernels(profile) == 2
    assert [warning.code for warning in profile.warnings] == ["cache"]


# Standard input and pipes


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """What is put into the list can be read from standard input."""
    data: list[bytes] = []
    reading, writing = os.pipe()

    def write() -> None:
        with os.fdopen(writing, "wb") as file:
            for part in data:
                file.write(part)

    thread = threading.Thread(target=write)
    monkeypatch.setattr("sys.stdin", _Lazy(reading, thread))
    yield data
    thread.join()
    os.close(reading)


class _Lazy:
    """A standard input whose writer starts when its number is asked for."""

    closed = False

    def __init__(self, number: int, writer: threading.Thread) -> None:
        self._number = number
        self._writer = writer

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        self._writer.start()
        return self._number


@pytest.mark.parametrize("data", [kineto(2), gzip.compress(kineto(2)), zstandard.compress(kineto(2))], ids=["plain", "gzip", "zstd"])
def test_standard_input_opens_as_the_file_would(piped: list[bytes], data: bytes, tmp_path: Path) -> None:
    piped.append(data)
    profile = rp.open_profile("-")
    from_file = rp.open_profile(put(tmp_path, a__json=data) / "a.json")
    assert profile.slices.equals(from_file.slices)
    assert profile.sources[0].path == "-"
    assert profile.sources[0].bytes == len(data)
    assert kept.info() == []


def test_an_xplane_comes_through_a_pipe_too(piped: list[bytes]) -> None:
    piped += [xspace(4)[:50], xspace(4)[50:]]
    assert kernels(rp.open_profile("-")) == 4


def test_a_zip_comes_through_a_pipe_too(piped: list[bytes]) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("a.json", kineto())
    piped.append(made.getvalue())
    profile = rp.open_profile("-")
    assert (kernels(profile), profile.sources[0].container) == (2, "zip")


def test_an_empty_standard_input_is_told(piped: list[bytes]) -> None:
    with pytest.raises(rp.ProfileError, match="-: is empty"):
        rp.open_profile("-")


def test_a_named_pipe_opens(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(gzip.compress(kineto())))
    writer.start()
    profile = rp.open_profile(tmp_path / "pipe")
    writer.join()
    assert kernels(profile) == 2


def test_a_pipe_that_stays_silent_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    thread = threading.Thread(target=lambda: None)
    monkeypatch.setattr("sys.stdin", _Lazy(reading, thread))
    asked: list[int] = []

    def cancelled() -> bool:
        asked.append(1)
        return len(asked) > 3

    with pytest.raises(rp.Interrupted):
        rp.open_profile("-", cancelled=cancelled)
    os.close(reading)
    os.close(writing)


def test_a_terminal_as_standard_input_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", type("Terminal", (), {"closed": False, "isatty": lambda _: True})())
    with pytest.raises(rp.ProfileError, match="standard input is a terminal"):
        rp.open_profile("-")


def test_a_redirected_file_is_read_as_standard_input(tmp_path: Path) -> None:
    path = put(tmp_path, a__json=gzip.compress(kineto())[:-4]) / "a.json"
    code = "import roofterm_parsers as rp; p = rp.open_profile('-'); print(p.kernels.height, [w.code for w in p.warnings])"
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root / "parsers")}
    with path.open("rb") as file:
        out = subprocess.run([sys.executable, "-c", code], stdin=file, capture_output=True, text=True, env=environment, check=True)
    assert out.stdout.split(maxsplit=1) == ["2", "['cut']\n"]


def test_json_of_xla_beside_nothing_opens_by_itself(tmp_path: Path) -> None:
    profile = rp.open_profile(put(tmp_path, h__trace__json__gz=gzip.compress(xla_json(3))) / "h.trace.json.gz")
    assert (profile.sources[0].format, kernels(profile)) == ("xla_json", 3)
