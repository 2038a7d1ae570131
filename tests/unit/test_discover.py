"""Which files of what the user names are opened: by content, each once, of one run."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from roofterm_parsers.discover import Found, Look, discover
from roofterm_parsers.errors import ProfileError
from roofterm_parsers.inputs import Input
from roofterm_parsers.progress import Tracker
from roofterm_parsers.reading import look_into
from tests.made_files import kineto, xla_json, xspace

RUN = "plugins/profile/2026_01_02_03_04_05"
LATER_RUN = "plugins/profile/2026_01_02_09_00_00"


def put(folder: Path, files: dict[str, bytes], mtime_s: int | None = None) -> None:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if mtime_s is not None:
            os.utime(path, (mtime_s, mtime_s))


def look(file: Input) -> Look:
    return look_into(file, 1 << 30, Tracker(None, None))


def found(*words: str | Path) -> Found:
    return discover([str(word) for word in words], look)


def names(result: Found, folder: Path) -> list[str]:
    return [os.path.relpath(file.location, folder) for file in result.inputs]


def codes(result: Found) -> list[str]:
    return [warning.code for warning in result.warnings]


# A word and what it stands for


def test_a_named_file_is_taken_as_it_is_whatever_its_name(tmp_path: Path) -> None:
    put(tmp_path, {"run.log": kineto()})
    assert names(found(tmp_path / "run.log"), tmp_path) == ["run.log"]


def test_what_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"nothing\.json: no such file or folder"):
        found(tmp_path / "nothing.json")


def test_a_path_through_a_file_does_not_exist(tmp_path: Path) -> None:
    put(tmp_path, {"a.json": kineto()})
    with pytest.raises(ProfileError, match="no such file"):
        found(tmp_path / "a.json" / "b.json")


def test_a_zero_byte_in_a_name_is_no_crash() -> None:
    with pytest.raises(ProfileError, match="no such file"):
        found("a\0b")


def test_paths_are_shown_as_they_were_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, {"runs/a.json": kineto()})
    monkeypatch.chdir(tmp_path)
    assert [file.path for file in found("runs").inputs] == ["runs/a.json"]
    assert [file.path for file in found("./runs/a.json").inputs] == ["./runs/a.json"]


def test_a_quoted_pattern_gives_its_matches_in_natural_order(tmp_path: Path) -> None:
    put(tmp_path, {f"rank{i}.json": kineto(i) for i in (10, 9, 1)})
    assert names(found(tmp_path / "rank*.json"), tmp_path) == ["rank1.json", "rank9.json", "rank10.json"]


def test_a_pattern_that_matches_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"\*\.json: no file matches"):
        found(tmp_path / "*.json")


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    put(tmp_path, {"odd [bold].json": kineto(), "odd b.json": kineto()})
    assert names(found(tmp_path / "odd [bold].json"), tmp_path) == ["odd [bold].json"]


def test_a_pattern_goes_down_folders(tmp_path: Path) -> None:
    put(tmp_path, {"a/b/t.json": kineto(0), "a/c/t.json": kineto(1)})
    assert names(found(f"{tmp_path}/**/t.json"), tmp_path) == ["a/b/t.json", "a/c/t.json"]


def test_a_tilde_in_quotes_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, {"a.json": kineto()})
    monkeypatch.setenv("HOME", str(tmp_path))
    assert names(found("~/a.json"), tmp_path) == ["a.json"]
    assert names(found("~/*.json"), tmp_path) == ["a.json"]


def test_several_paths_are_taken_together_and_each_once(tmp_path: Path) -> None:
    put(tmp_path, {"a.json": kineto(0), "b.json": kineto(1)})
    os.symlink(tmp_path / "a.json", tmp_path / "link.json")
    assert names(found(tmp_path / "b.json", tmp_path / "a.json", tmp_path / "link.json"), tmp_path) == ["b.json", "a.json"]


def test_a_file_url_is_a_local_file(tmp_path: Path) -> None:
    put(tmp_path, {"a b.json": kineto()})
    assert names(found(f"file://{tmp_path}/a%20b.json"), tmp_path) == ["a b.json"]


def test_a_pipe_is_taken_without_being_looked_into(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    result = discover([str(tmp_path / "pipe")], lambda _: pytest.fail("looked into a pipe"))
    assert [file.kind for file in result.inputs] == ["pipe"]


def test_a_socket_is_neither_file_nor_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("sock")
        with pytest.raises(ProfileError, match="sock: is neither a file nor a pipe"):
            found("sock")


# Folders


def test_profiles_in_a_folder_are_told_by_content(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "gz_without_suffix": gzip.compress(kineto(0)),
            "plain.json.gz": kineto(1),
            "some.pb": xspace(),
            "config.json": b'{"model": "demo", "layers": 12}',
            "notes": b"just text",
            "numbers": bytes(range(256)),
        },
    )
    assert names(found(tmp_path), tmp_path) == ["gz_without_suffix", "plain.json.gz", "some.pb"]


def test_a_trace_with_a_long_header_is_taken_for_its_name(tmp_path: Path) -> None:
    long = kineto(0, metadata={"pip": "x" * 100_000}).replace(b'"schemaVersion"', b'"version"')
    start = long.index(b'"metadata"')
    long = b"{" + long[start:]
    put(tmp_path, {"rank0.trace.json": long, "big.json": long})
    assert names(found(tmp_path), tmp_path) == ["rank0.trace.json"]


def test_hidden_folders_and_those_of_programs_are_passed_by(tmp_path: Path) -> None:
    put(tmp_path, {".git/t.json": kineto(), "__pycache__/t.json": kineto(), ".hidden.json": kineto(), "t.json": kineto()})
    assert names(found(tmp_path), tmp_path) == ["t.json"]


def test_a_link_back_up_is_not_followed_for_ever(tmp_path: Path) -> None:
    put(tmp_path, {"a/t.json": kineto()})
    os.symlink(tmp_path, tmp_path / "a" / "up")
    assert names(found(tmp_path), tmp_path) == ["a/t.json"]


def test_a_dangling_link_is_passed_by(tmp_path: Path) -> None:
    put(tmp_path, {"t.json": kineto()})
    os.symlink(tmp_path / "gone.json", tmp_path / "link.json")
    assert names(found(tmp_path), tmp_path) == ["t.json"]


def test_a_folder_without_profiles_says_what_was_looked_for_and_what_is_there(tmp_path: Path) -> None:
    put(tmp_path, {"snapshot.pickle": b"\x80\x04\x95abc", "train.log": b"loss", "README": b"hello"})
    with pytest.raises(ProfileError, match=r"no profile found \(looked for Chrome traces.*snapshot\.pickle: is a Python pickle"):
        found(tmp_path)


def test_an_empty_folder_has_no_profile(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="no profile found"):
        found(tmp_path)


def test_a_folder_of_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roofterm_parsers.listing.MOST_FILES", 3)
    put(tmp_path, {f"{i}.json": kineto(i) for i in range(4)})
    with pytest.raises(ProfileError, match="holds more than 3 files; name a folder nearer"):
        found(tmp_path)


def test_a_bad_file_that_by_its_name_is_a_profile_is_named_in_a_warning(tmp_path: Path) -> None:
    put(tmp_path, {"rank0.json": kineto(0), "rank1.json": b"", "rank2.pt.trace.json.gz": b"version https://git-lfs.github.com/spec/v1\n"})
    result = found(tmp_path)
    assert names(result, tmp_path) == ["rank0.json"]
    assert [warning.message.removeprefix(f"{tmp_path}/") for warning in result.warnings] == [
        "rank1.json: is empty (0 bytes); left out",
        "rank2.pt.trace.json.gz: is a Git LFS pointer: the file itself was not fetched; run: git lfs pull; left out",
    ]


def test_files_that_often_lie_beside_profiles_are_passed_by_in_silence(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "rank0.json": kineto(0),
            "rank0_et.json": b'{"schema": "1.1.1-chakra.0.0.4", "pid": 7, "nodes": []}',
            "events.out.tfevents.1": b"\x18\0\0\0brain.Event:2",
            "snapshot.pickle": b"\x80\x04\x95abc",
        },
    )
    result = found(tmp_path)
    assert (names(result, tmp_path), codes(result)) == (["rank0.json"], [])


# Leftovers and windows


def test_a_leftover_beside_the_whole_file_is_passed_by(tmp_path: Path) -> None:
    put(tmp_path, {"a.pt.trace.json": kineto(), "a.pt.trace.json.tmp": kineto()[:300]})
    assert names(found(tmp_path), tmp_path) == ["a.pt.trace.json"]


def test_a_leftover_alone_is_taken(tmp_path: Path) -> None:
    put(tmp_path, {"a.pt.trace.json.tmp": kineto()})
    assert names(found(tmp_path), tmp_path) == ["a.pt.trace.json.tmp"]


def test_of_the_windows_of_one_worker_the_newest_is_taken(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "node0_77.1731000000000000000.pt.trace.json": kineto(0),
            "node0_77.1731000000900000000.pt.trace.json": kineto(0),
            "node1_78.1731000000000000001.pt.trace.json": kineto(1),
        },
    )
    result = found(tmp_path)
    assert names(result, tmp_path) == ["node0_77.1731000000900000000.pt.trace.json", "node1_78.1731000000000000001.pt.trace.json"]
    assert codes(result) == ["windows"]
    assert "node0_77.1731000000000000000.pt.trace.json" in result.warnings[0].message


def test_hosts_are_read_from_the_names_that_torch_gives(tmp_path: Path) -> None:
    put(tmp_path, {"node-a_77.1731000000000000000.pt.trace.json": kineto(0), "worker3_step_12.1694128201557.pt.trace.json": kineto(1)})
    assert [file.host for file in found(tmp_path).inputs] == ["node-a", None]


# Runs, hosts and the same data again


@pytest.mark.parametrize("named", [".", "plugins", "plugins/profile", RUN])
def test_a_log_folder_and_every_folder_down_to_the_run_are_the_same(tmp_path: Path, named: str) -> None:
    put(tmp_path, {f"{RUN}/host-1.xplane.pb": xspace(), f"{RUN}/host-0.xplane.pb": xspace(), "events.out.tfevents.9": b"x"})
    result = found(tmp_path / named)
    assert names(result, tmp_path) == [f"{RUN}/host-0.xplane.pb", f"{RUN}/host-1.xplane.pb"]
    assert [(file.run, file.host) for file in result.inputs] == [("2026_01_02_03_04_05", "host-0"), ("2026_01_02_03_04_05", "host-1")]
    assert result.runs == ["2026_01_02_03_04_05"]
    assert result.warnings == []


def test_of_several_runs_the_newest_is_opened_and_all_are_counted(tmp_path: Path) -> None:
    put(tmp_path, {f"{LATER_RUN}/h.xplane.pb": xspace()}, mtime_s=1_000)
    put(tmp_path, {f"{RUN}/h.xplane.pb": xspace()}, mtime_s=2_000)  # copied later, but recorded before
    result = found(tmp_path)
    assert names(result, tmp_path) == [f"{LATER_RUN}/h.xplane.pb"]
    assert result.runs == ["2026_01_02_03_04_05", "2026_01_02_09_00_00"]
    assert codes(result) == ["runs"]
    assert "opened the newest, 2026_01_02_09_00_00" in result.warnings[0].message
    assert result.warnings[0].count == 2


def test_a_newer_run_without_a_profile_does_not_hide_an_older_one(tmp_path: Path) -> None:
    put(tmp_path, {f"{RUN}/h.xplane.pb": xspace(), f"{LATER_RUN}/h.xplane.pb": b"", f"{LATER_RUN}/h.overview_page.pb": b"\n\x02ok"})
    result = found(tmp_path)
    assert names(result, tmp_path) == [f"{RUN}/h.xplane.pb"]
    assert result.runs == ["2026_01_02_03_04_05"]


def test_two_run_folders_that_are_named_are_both_opened(tmp_path: Path) -> None:
    put(tmp_path, {f"{RUN}/h.xplane.pb": xspace(), f"{LATER_RUN}/h.xplane.pb": xspace()})
    result = found(tmp_path / RUN, tmp_path / LATER_RUN)
    assert len(result.inputs) == 2
    assert result.runs == ["2026_01_02_03_04_05", "2026_01_02_09_00_00"]
    assert result.warnings == []


def test_experiments_side_by_side_are_runs_and_the_last_written_is_opened(tmp_path: Path) -> None:
    put(tmp_path, {"base/w0.pt.trace.json": kineto(0), "base/w1.pt.trace.json": kineto(1)}, mtime_s=1_000)
    put(tmp_path, {"tuned/w0.pt.trace.json": kineto(0), "tuned/w1.pt.trace.json": kineto(1)}, mtime_s=2_000)
    result = found(tmp_path)
    assert names(result, tmp_path) == ["tuned/w0.pt.trace.json", "tuned/w1.pt.trace.json"]
    assert [file.run for file in result.inputs] == ["tuned", "tuned"]
    assert result.runs == ["base", "tuned"]


def test_profiles_directly_in_the_named_folder_come_before_those_below(tmp_path: Path) -> None:
    put(tmp_path, {"t.json": kineto()}, mtime_s=1_000)
    put(tmp_path, {"old/t.json": kineto()}, mtime_s=2_000)
    result = found(tmp_path)
    assert names(result, tmp_path) == ["t.json"]
    assert "opened those directly in it" in result.warnings[0].message


@pytest.mark.parametrize(
    "folders", [["rank0", "rank1"], ["rank_0", "rank_10"], ["node0/gpu0", "node1/gpu0"], ["0", "1", "2"], ["worker-0", "worker-1"]]
)
def test_folders_of_ranks_are_one_job(tmp_path: Path, folders: list[str]) -> None:
    put(tmp_path, {f"{folder}/trace.json": kineto(i) for i, folder in enumerate(folders)})
    result = found(tmp_path)
    assert names(result, tmp_path) == [f"{folder}/trace.json" for folder in folders]
    assert result.runs == []


def test_numbered_folders_with_a_gap_are_runs_and_not_ranks(tmp_path: Path) -> None:
    put(tmp_path, {"100/t.json": kineto()}, mtime_s=1_000)
    put(tmp_path, {"200/t.json": kineto()}, mtime_s=2_000)
    assert names(found(tmp_path), tmp_path) == ["200/t.json"]


def test_the_same_data_thrice_is_counted_once(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            f"{RUN}/h.xplane.pb": xspace(),
            f"{RUN}/h.trace.json.gz": gzip.compress(xla_json()),
            f"{RUN}/perfetto_trace.json.gz": gzip.compress(xla_json()),
        },
    )
    for words in ([tmp_path], sorted((tmp_path / RUN).iterdir())):
        result = found(*words)
        assert names(result, tmp_path) == [f"{RUN}/h.xplane.pb"]
        assert codes(result) == ["same_data"]
        assert result.warnings[0].count == 2


def test_the_json_of_another_host_is_not_the_same_data(tmp_path: Path) -> None:
    put(tmp_path, {f"{RUN}/h0.xplane.pb": xspace(), f"{RUN}/h1.trace.json.gz": gzip.compress(xla_json())})
    result = found(tmp_path)
    assert [file.host for file in result.inputs] == ["h0", "h1"]


def test_a_bad_xplane_leaves_the_json_beside_it(tmp_path: Path) -> None:
    put(tmp_path, {f"{RUN}/h.xplane.pb": b"", f"{RUN}/h.trace.json.gz": gzip.compress(xla_json())})
    result = found(tmp_path)
    assert names(result, tmp_path) == [f"{RUN}/h.trace.json.gz"]
    assert codes(result) == ["left_out"]


def test_without_an_xplane_the_perfetto_copy_is_left_out(tmp_path: Path) -> None:
    put(tmp_path, {f"{RUN}/h.trace.json.gz": gzip.compress(xla_json()), f"{RUN}/perfetto_trace.json.gz": gzip.compress(xla_json())})
    assert names(found(tmp_path), tmp_path) == [f"{RUN}/h.trace.json.gz"]


def test_in_a_run_the_xplane_is_read_in_place_of_a_named_json(tmp_path: Path) -> None:
    put(tmp_path, {f"{RUN}/h.xplane.pb": xspace(), f"{RUN}/h.trace.json.gz": gzip.compress(xla_json())})
    result = found(tmp_path / RUN / "h.trace.json.gz")
    assert names(result, tmp_path) == [f"{RUN}/h.xplane.pb"]
    assert codes(result) == ["sibling"]


def test_elsewhere_the_named_json_is_opened_and_the_xplane_beside_it_is_told(tmp_path: Path) -> None:
    put(tmp_path, {"h.xplane.pb": xspace(), "h.trace.json.gz": gzip.compress(xla_json())})
    result = found(tmp_path / "h.trace.json.gz")
    assert names(result, tmp_path) == ["h.trace.json.gz"]
    assert codes(result) == ["sibling"]
    assert "h.xplane.pb" in result.warnings[0].message


def test_an_empty_xplane_beside_a_named_json_is_not_preferred(tmp_path: Path) -> None:
    put(tmp_path, {f"{RUN}/h.xplane.pb": b"", f"{RUN}/h.trace.json.gz": gzip.compress(xla_json())})
    result = found(tmp_path / RUN / "h.trace.json.gz")
    assert (names(result, tmp_path), codes(result)) == ([f"{RUN}/h.trace.json.gz"], [])
