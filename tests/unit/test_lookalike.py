"""Files that are no profiles: each is told by its content, in words that say what it is and what opens it."""

from __future__ import annotations

import io
import json
import pickle
import sqlite3
import tarfile
from pathlib import Path

import pytest

from roofterm_parsers.lookalike import Lookalike, identify
from roofterm_parsers.sniffing import HEAD_BYTES, is_xspace
from tests.made_files import kineto, xla_json, xspace
from tests.reference import reference


def what(data: bytes, name: str = "file") -> Lookalike:
    found = identify(data[:HEAD_BYTES], name, whole=len(data) < HEAD_BYTES)
    assert isinstance(found, Lookalike), found
    return found


def sqlite_file(folder: Path, table: str) -> bytes:
    path = folder / "x.sqlite"
    with sqlite3.connect(path) as base:
        base.execute(f"CREATE TABLE {table} (start INTEGER)")
    base.close()
    return path.read_bytes()


def tar_file() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        info = tarfile.TarInfo("rank0.json")
        info.size = 3
        archive.addfile(info, io.BytesIO(b"abc"))
    return made.getvalue()


PERFETTO_PACKET = b"\x40\x80\x94\xeb\xdc\x03" + b"\x50\x01" + b"\x32\x02\x08\x01"  # timestamp (8), sequence id (10), clock snapshot (6)
PERFETTO = b"".join(b"\x0a" + bytes([len(PERFETTO_PACKET)]) + PERFETTO_PACKET for _ in range(3))
MEMORY_TIMELINE = json.dumps([[-1, 0, 4096, 3], [12, 1, 512, -1]]).encode()

CASES = [
    (b"", "is empty"),
    (b'{"schema": "1.1.1-chakra.0.0.4", "pid": 77, "time": "x", "start_ts": 123, "nodes": [{"id": 1}]}', "execution trace"),
    (b'{"schema": "1.0.1", "pid": 7, "nodes": [], "finish_ts": 1}', "execution trace"),
    (b'{"rocprofiler-sdk-tool": [{"metadata": {}}]}', "rocprofv3"),
    (b'{"segments": [], "device_traces": [[]]}', "memory snapshot"),
    (MEMORY_TIMELINE, "memory timeline"),
    (b'{"$schema": "https://www.speedscope.app/file-format-schema.json"}', "speedscope"),
    (b'{"nodes": [{"id": 1, "callFrame": {}}]}', "V8 CPU profile"),
    (b'{"schema": "roofterm.report/1"}', "a report that roofterm wrote"),
    (b'{"model": "demo", "layers": 12}', "no traceEvents"),
    (b"[]", "no traceEvents"),
    (pickle.dumps({"segments": [], "device_traces": []}), "never loads pickles"),
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 4821\n", "git lfs pull"),
    (b"<!DOCTYPE html>\n<html><head>", "HTML"),
    (b"\n <HTML><body>404", "HTML"),
    (b'<?xml version="1.0"?><Error><Code>AccessDenied</Code>', "XML"),
    (b"\x1aENVIDIA Tegra Profiler\0\0\1\2", "Nsight Systems"),
    (b"NVR\0\1\2\3", "Nsight Compute"),
    (PERFETTO, "Perfetto"),
    ('{"traceEvents": []}'.encode("utf-16"), "UTF-16"),
    (b"\xfd7zXZ\0abc", "xz"),
    (b"BZh91AY", "bzip2"),
    (b"\x04\x22\x4d\x18abc", "lz4"),
    (tar_file(), "tar archive"),
    (b"\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22\x09brain.Event:2", "TensorBoard event file"),
    (b"\n\x04\x08\x01\x10\x02\n\x04\x08\x03\x10\x04", "pprof"),
    (b"PERFILE2h\0", "Linux perf"),
    (b"PAR1\x15\x04", "Parquet"),
    (b"\0" * 5000, "zero bytes"),
    (bytes(range(128, 256)), "not a profile that roofterm recognises"),
    (b"epoch 1 loss 0.3\n", "not a profile that roofterm recognises"),
]


@pytest.mark.parametrize(("data", "words"), CASES)
def test_each_is_told_by_its_content(data: bytes, words: str) -> None:
    assert words in what(data).sentence("x")


@pytest.mark.parametrize(("table", "words"), [("CUPTI_ACTIVITY_KIND_KERNEL", "nsys"), ("rocpd_kernel_dispatch", "rocprofv3 database")])
def test_databases_are_told_by_their_tables(table: str, words: str, tmp_path: Path) -> None:
    assert words in what(sqlite_file(tmp_path, table)).sentence("x")


def test_a_sentence_names_the_file_and_what_to_do() -> None:
    assert what(CASES[12][0]).sentence("a/b.json") == "a/b.json: is a Git LFS pointer: the file itself was not fetched; run: git lfs pull"


def test_a_pickle_is_never_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "pickle" in what(b"\x80\x04\x95\x20\0\0\0\0\0\0\0\x8c\x02io\x8c\x04open\x93\x8c\x03RAN\x8c\x01w\x86R.").sentence("x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x.nsys-rep", "x.qdrep"])
def test_a_name_helps_to_say_what_unknown_bytes_are(name: str) -> None:
    assert "Nsight Systems" in what(b"\x93\x12\x99abc", name).sentence("x")


@pytest.mark.parametrize(
    "data",
    [
        kineto(),
        xla_json(),
        b'{"traceEvents": [',
        b'[{"name": "a", "ph": "X"',
        b'  \n[\n{"ph":"B"',
        b'"ts": 1, "ph": "X"}, {"ph": "X", "ts": 2}',
    ],
)
def test_what_may_be_a_trace_is_not_refused(data: bytes) -> None:
    assert identify(data, "x", whole=True) == "json"


def test_json_whose_events_may_come_later_is_not_refused() -> None:
    assert identify(b'{"metadata": "' + b"x" * HEAD_BYTES, "x", whole=False) == "json"


def test_a_trace_that_speaks_of_nodes_and_segments_is_a_trace() -> None:
    data = b'{"segments": 1, "device_traces": 2, "schema": "1.0", "nodes": 3, "traceEvents": []}'
    assert identify(data, "x", whole=True) == "json"


def test_an_xspace_is_told_from_other_messages() -> None:
    assert identify(xspace(), "x", whole=True) == "xplane"
    assert identify(xspace(5000)[:HEAD_BYTES], "x", whole=False) == "xplane"
    assert not is_xspace(PERFETTO)
    assert not is_xspace(b"\n\x04demo")
    assert not is_xspace(b"\n\x02ok")
    assert not is_xspace(b"")
    assert not is_xspace(b'"quoted text", and more')


def test_an_xspace_that_begins_with_messages_is_one() -> None:
    assert is_xspace(b"\x12\x05first" + xspace())


def test_an_xspace_that_went_through_a_text_filter_is_told_as_damaged() -> None:
    mangled = reference("traces/xplane/tpu_v6e_inference.xplane.pb").read_bytes().decode("utf-8", "replace").encode()
    assert "damaged by a conversion to text" in what(mangled, "x.xplane.pb").sentence("x")


@pytest.mark.parametrize(
    "name", ["tpu_v6e_inference", "gpu_mi300x_jax_gemm", "gpu_v100x8_tf_multiworker", "cpu_jax_mlp_8steps", "tpu_v6e_pallas_matmul"]
)
def test_real_xspaces_are_told_by_content(name: str) -> None:
    assert is_xspace(reference(f"traces/xplane/{name}.xplane.pb").read_bytes()[:HEAD_BYTES])
