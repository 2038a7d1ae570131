"""Files that are taken for profiles and are none: what each one is, and what opens it."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from roofterm_parsers.sniffing import Format, fields, format_of, is_printable, speaks_of_events

_TRACE_ADVICE = "export a trace with prof.export_chrome_trace() or tensorboard_trace_handler()"
_JSON_TEXT_BYTES = 2048


class Lookalike(msgspec.Struct, frozen=True):
    """What a file is instead of a profile. `neighbour`: it is often found beside profiles, and means no harm there."""

    what: str
    advice: str = ""
    neighbour: bool = False

    def sentence(self, path: str) -> str:
        """For the user: the file, what it is, what to do."""
        return f"{path}: {self.what}" + (f"; {self.advice}" if self.advice else "")


def identify(head: bytes, name: str, whole: bool) -> Format | Lookalike:
    """The format of a content by its first `HEAD_BYTES`, or what it is instead; its name only helps to say that.

    `whole`: these bytes are all there is. What may be a profile is not refused before it is read.
    """
    if not head:
        return Lookalike("is empty (0 bytes)")
    found = format_of(head)
    if found == "json":
        return _json(head, whole) or "json"
    if found and not _is_mangled(head):
        return found
    return next((what for test, what in _BINARY if test(head, name.lower())), None) or _unknown(head)


def _unknown(head: bytes) -> Lookalike:
    start = head[:24].decode("ascii") if is_printable(head[:24]) and head[:24].isascii() else head[:8].hex(" ")
    return Lookalike(
        f"is not a profile that roofterm recognises (it begins with {start!r})",
        "it opens Chrome trace JSON of PyTorch, JAX and others, and .xplane.pb, also in gzip, zstd or zip",
    )


def _json(head: bytes, whole: bool) -> Lookalike | None:
    if speaks_of_events(head):
        return None
    for words, found in _JSON:
        if all(re.search(word, head) for word in words):
            return found
    if whole:
        return Lookalike("is JSON, but not a trace: it has no traceEvents", _TRACE_ADVICE)
    return None


_JSON: list[tuple[tuple[bytes, ...], Lookalike]] = [
    (
        (rb'"schema"\s*:\s*"[\d.]+', rb'"nodes"\s*:|"start_ts"\s*:'),
        Lookalike(
            "is an execution trace (PyTorch ExecutionTraceObserver or Chakra), which has no times to show",
            "open the Kineto trace of the same run; Chakra's tools read this one",
            neighbour=True,
        ),
    ),
    (
        (rb'"rocprofiler-sdk-tool"',),
        Lookalike("is a rocprofv3 result, not a Chrome trace", "run rocprofv3 with --output-format pftrace and open that in Perfetto"),
    ),
    (
        (rb'"segments"\s*:', rb'"device_traces"\s*:'),
        Lookalike("is a CUDA memory snapshot, not a trace", "open it at pytorch.org/memory_viz", neighbour=True),
    ),
    (
        (rb"\A\s*\[\s*\[",),
        Lookalike("is a memory timeline of torch.profiler (export_memory_timeline), not a trace", _TRACE_ADVICE, neighbour=True),
    ),
    ((rb"speedscope\.app/file-format-schema",), Lookalike("is a speedscope profile", "open it at speedscope.app")),
    ((rb'"callFrame"\s*:',), Lookalike("is a V8 CPU profile", "open it in Chrome's DevTools")),
    ((rb'"nbformat"\s*:|"cells"\s*:\s*\[',), Lookalike("is a Jupyter notebook")),
    ((rb'"schema"\s*:\s*"roofterm\.',), Lookalike("is a report that roofterm wrote", "open the profile that it was made from")),
]


def _starts(*magic: bytes) -> Callable[[bytes, str], bool]:
    return lambda head, _: head.startswith(magic)


def _named(*suffixes: str) -> Callable[[bytes, str], bool]:
    return lambda _, name: name.endswith(suffixes)


def _is_markup(head: bytes, _: str) -> bool:
    start = head[:_JSON_TEXT_BYTES].lstrip().lower()
    return start.startswith((b"<!doctype html", b"<html", b"<head", b"<body")) or (start.startswith(b"<!--") and b"<html" in start)


def _is_perfetto(head: bytes, name: str) -> bool:
    """True for a Perfetto Trace: packets (field 1) that hold a timestamp (8) or a sequence id (10)."""
    if name.endswith((".pftrace", ".perfetto-trace")):
        return True
    found = False
    for field, wire, value in fields(head):
        if (field, wire) != (1, 2):
            return found and field != 0
        found = found or any((inner, kind) in ((8, 0), (10, 0)) for inner, kind, _ in fields(value))
    return found


def _is_mangled(head: bytes, _: str = "") -> bool:
    """True for an XSpace that was read as text and written again: what was no UTF-8 became U+FFFD, three bytes each."""
    return head.startswith(b"\n") and head.count(b"\xef\xbf\xbd") * 30 > len(head)


def _is_zeros(head: bytes, _: str) -> bool:
    return not head.strip(b"\0")


_UNPACK = "unpack it and open what is inside"
_SQLITE = b"SQLite format 3\0"
_BINARY: list[tuple[Callable[[bytes, str], bool], Lookalike]] = [
    (
        _starts(b"version https://git-lfs.github.com/spec/"),
        Lookalike("is a Git LFS pointer: the file itself was not fetched", "run: git lfs pull"),
    ),
    (_is_markup, Lookalike("is an HTML web page (a login or error page?), not a profile", "download the file again, signed in")),
    (_starts(b"<?xml", b"<Error>"), Lookalike("is XML, often the error page of a download, not a profile", "download the file again")),
    (
        lambda head, name: b"NVIDIA Tegra Profiler" in head[:256] or name.endswith((".nsys-rep", ".qdrep")),
        Lookalike("is an Nsight Systems report", "open it with nsys-ui or nsys stats; for roofterm, record with torch.profiler"),
    ),
    (
        lambda head, name: head.startswith(b"NVR\0") or name.endswith(".ncu-rep"),
        Lookalike("is an Nsight Compute report", "open it with ncu-ui or ncu --import"),
    ),
    (
        lambda head, _: head.startswith(_SQLITE) and b"rocpd" in head.lower(),
        Lookalike("is a rocprofv3 database (rocpd, SQLite)", "convert it with rocpd convert, and open the trace in Perfetto"),
    ),
    (
        lambda head, _: head.startswith(_SQLITE),
        Lookalike(
            "is an SQLite database (nsys export --type sqlite?)",
            "open it with nsys stats; for roofterm, record with torch.profiler",
        ),
    ),
    (
        lambda head, _: head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05" and len(head) > 2,
        Lookalike(
            "is a Python pickle (a CUDA memory snapshot?), not a profile, and roofterm never loads pickles",
            "open memory snapshots at pytorch.org/memory_viz",
            neighbour=True,
        ),
    ),
    (_starts(b"\xff\xfe", b"\xfe\xff"), Lookalike("is UTF-16 text (a PowerShell redirect?)", "save it as UTF-8")),
    (_starts(b"\xfd7zXZ\0"), Lookalike("is xz-compressed", "unpack it first: unxz FILE")),
    (_starts(b"BZh"), Lookalike("is bzip2-compressed", "unpack it first: bunzip2 FILE")),
    (_starts(b"\x04\x22\x4d\x18"), Lookalike("is lz4-compressed", "unpack it first: unlz4 FILE")),
    (_starts(b"7z\xbc\xaf\x27\x1c", b"Rar!"), Lookalike("is an archive", _UNPACK)),
    (lambda head, _: head[257:262] == b"ustar", Lookalike("is a tar archive", _UNPACK)),
    (
        lambda head, name: b"brain.Event:" in head[:64] or "tfevents" in name,
        Lookalike("is a TensorBoard event file", "open the log folder: its profiles lie under plugins/profile", neighbour=True),
    ),
    (_starts(b"\n\x04\x08\x01\x10\x02"), Lookalike("is a pprof profile", "open it with: pprof -http : FILE", neighbour=True)),
    (_starts(b"PERFILE2"), Lookalike("is a recording of Linux perf", "open it with: perf report -i FILE")),
    (_starts(b"PAR1", b"ARROW1"), Lookalike("is a table (Parquet or Arrow)", "open the profile that it was exported from")),
    (
        _starts(b"\x7fELF", b"\x89PNG", b"%PDF", b"\x89HDF", b"\x93NUMPY"),
        Lookalike("is a program, picture or data file"),
    ),
    (
        _named(
            ".op_stats.pb", ".op_stats_v2.pb", ".kernel_stats.pb", ".overview_page.pb", ".input_pipeline.pb", ".hlo_proto.pb", ".sstable"
        ),
        Lookalike("is a file that XProf derived from a profile", "open the .xplane.pb beside it", neighbour=True),
    ),
    (
        _is_mangled,
        Lookalike("is an XPlane profile whose bytes were damaged by a conversion to text", "copy or download it again, as binary"),
    ),
    (
        _is_perfetto,
        Lookalike("is a native Perfetto trace (protobuf)", "open it at ui.perfetto.dev, or convert it with: traceconv json FILE"),
    ),
    (_is_zeros, Lookalike("holds nothing but zero bytes: it was never written out", "copy or record it again")),
]
