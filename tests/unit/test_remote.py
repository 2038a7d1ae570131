"""Profiles behind URLs: fsspec's memory and local file systems, and an HTTP server on this machine."""

from __future__ import annotations

import builtins
import gzip
import http.server
import io
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import roofterm_parsers as rp
from roofterm_parsers.remote import is_url, local_part
from tests.made_files import kineto, xspace

RUN = "plugins/profile/2026_01_02_03_04_05"


@pytest.fixture
def memory() -> Iterator[object]:
    """fsspec's file system in memory, empty."""
    fsspec = pytest.importorskip("fsspec")
    place = fsspec.filesystem("memory")
    place.store.clear()
    yield place
    place.store.clear()


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, str]]:
    """A folder and the URL under which an HTTP server shows it."""
    pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp")
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args, **options) -> None:
            super().__init__(*args, directory=str(folder), **options)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def put(place, path: str, data: bytes) -> None:
    with place.open(path, "wb") as file:
        file.write(data)


@pytest.mark.parametrize(
    "url", ["s3://bucket/a.json", "https://host/a.json", "gs://b/x", "file:///a.json", "simplecache::s3://b/x", "memory://a"]
)
def test_urls_are_told_from_paths(url: str) -> None:
    assert is_url(url)


@pytest.mark.parametrize("path", ["a.json", "/a/b.json", "./s3:/x", "C:\\traces\\a.json", "a:b.json", "-", "odd ://name"])
def test_paths_are_told_from_urls(path: str) -> None:
    assert not is_url(path)


def test_a_file_url_is_a_path_and_needs_no_fsspec() -> None:
    assert local_part("file:///a/b%20c.json") == "/a/b c.json"
    assert local_part("file://localhost/a/b.json") == "/a/b.json"
    assert local_part("s3://a/b.json") is None


def test_without_fsspec_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = builtins.__import__

    def without(name: str, *args, **options):
        if name.split(".", maxsplit=1)[0] == "fsspec":
            raise ModuleNotFoundError("No module named 'fsspec'", name="fsspec")
        return whole(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(rp.ProfileError, match=r"s3://b/a\.json: URLs need fsspec: pip install 'roofterm\[remote\]'"):
        rp.open_profile("s3://b/a.json")


def test_a_missing_back_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec")

    def missing(*_: object, **__: object) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    with pytest.raises(rp.ProfileError, match=r"s3://b/a\.json: s3:// needs s3fs: pip install 'roofterm\[remote\]' s3fs"):
        rp.open_profile("s3://b/a.json")


def test_an_unknown_kind_of_url_is_told() -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(rp.ProfileError, match="nonesuch://a/b: cannot be read"):
        rp.open_profile("nonesuch://a/b")


@pytest.mark.usefixtures("memory")
def test_what_is_not_there_is_told() -> None:
    with pytest.raises(rp.ProfileError, match=r"memory://gone\.json: no such file or folder"):
        rp.open_profile("memory://gone.json")


def test_one_file_opens(memory) -> None:
    data = gzip.compress(kineto(5))
    put(memory, "/jobs/a.json.gz", data)
    profile = rp.open_profile("memory://jobs/a.json.gz")
    assert profile.kernels.height == 2
    (source,) = profile.sources
    assert (source.path, source.container, source.bytes, source.rank) == ("memory://jobs/a.json.gz", "gzip", len(data), 5)


def test_a_cut_file_opens_with_what_it_holds(memory) -> None:
    put(memory, "/a.json.gz", gzip.compress(kineto(kernels=500))[:-400])
    profile = rp.open_profile("memory://a.json.gz")
    assert 0 < profile.kernels.height < 500
    assert "cut" in [warning.code for warning in profile.warnings]


def test_a_zip_opens_from_memory(memory) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.json", kineto())
    put(memory, "/a.zip", made.getvalue())
    assert rp.open_profile("memory://a.zip").kernels.height == 2


def test_a_folder_of_ranks_opens(memory) -> None:
    for rank in (0, 1):
        put(memory, f"/job/rank{rank}.json", kineto(rank))
    put(memory, "/job/notes", b"text")
    profile = rp.open_profile("memory://job")
    profile.check()
    assert [source.rank for source in profile.sources] == [0, 1]


def test_a_log_folder_opens_its_newest_run(memory) -> None:
    put(memory, f"/logs/{RUN}/h.xplane.pb", xspace())
    put(memory, "/logs/plugins/profile/2025_01_02_03_04_05/h.xplane.pb", xspace())
    profile = rp.open_profile("memory://logs")
    assert [(source.run, source.host) for source in profile.sources] == [("2026_01_02_03_04_05", "h")]


def test_a_pattern_opens_its_matches(memory) -> None:
    for rank in (0, 1):
        put(memory, f"/job/rank{rank}.json", kineto(rank))
    put(memory, "/job/other.json", kineto(7))
    assert [source.rank for source in rp.open_profile("memory://job/rank*.json").sources] == [0, 1]


def test_a_folder_without_profiles_is_told(memory) -> None:
    put(memory, "/job/notes", b"text")
    with pytest.raises(rp.ProfileError, match="memory://job: no profile found"):
        rp.open_profile("memory://job")


def test_a_chained_url_opens(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("a.json", kineto(4))
        archive.writestr("b.json", kineto(5))
    (tmp_path / "two.zip").write_bytes(made.getvalue())
    assert rp.open_profile(f"zip://b.json::file://{tmp_path}/two.zip").sources[0].rank == 5


def test_fsspecs_local_file_system_opens(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    (tmp_path / "a.json").write_bytes(kineto(2))
    assert rp.open_profile(f"local://{tmp_path}/a.json").sources[0].rank == 2


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_opens_over_http(served: tuple[Path, str], pack) -> None:
    folder, url = served
    (folder / "a trace").write_bytes(pack(kineto(3)))
    profile = rp.open_profile(f"{url}/a%20trace")
    assert (profile.kernels.height, profile.sources[0].rank, profile.sources[0].path) == (2, 3, f"{url}/a%20trace")


def test_a_folder_opens_over_http_where_the_server_lists_it(served: tuple[Path, str]) -> None:
    folder, url = served
    (folder / "job").mkdir()
    for rank in (0, 1):
        (folder / "job" / f"rank{rank}.json").write_bytes(kineto(rank))
    assert [source.rank for source in rp.open_profile(f"{url}/job/").sources] == [0, 1]


def test_a_page_that_is_not_found_is_told(served: tuple[Path, str]) -> None:
    with pytest.raises(rp.ProfileError, match=r"gone\.json: no such file or folder"):
        rp.open_profile(f"{served[1]}/gone.json")


def test_a_server_that_is_not_there_is_told() -> None:
    pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp")
    with pytest.raises(rp.ProfileError, match=r"http://127\.0\.0\.1:9/a\.json: (cannot be read|no such file)"):
        rp.open_profile("http://127.0.0.1:9/a.json")


def test_progress_counts_what_came_over_the_wire(memory) -> None:
    data = gzip.compress(kineto(kernels=3000))
    put(memory, "/a.json.gz", data)
    moments: list[rp.Progress] = []
    rp.open_profile("memory://a.json.gz", progress=moments.append)
    assert (moments[-1].bytes_done, moments[-1].bytes_total) == (len(data), len(data))
