"""What a trace says outside its list of events: devices, rank, time base, versions, flags."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from roofterm_parsers.records import Source

_KEY = re.compile(r'"((?:[^"\\]|\\.){1,200})"\s*:\s*')
_LONGEST_VALUE = 1 << 16
"""Longer texts (INFO lines, package lists) are not carried along as metadata."""
_DEVICE_KEYS = ("deviceProperties", "computeProperties")
_KINETO_KEYS = frozenset(
    (*_DEVICE_KEYS, "schemaVersion", "distributedInfo", "baseTimeNanoseconds", "record_shapes", "with_stack", "trace_id", "cupti_version")
)
_KNOWN_KEYS = _KINETO_KEYS | {
    *("displayTimeUnit", "traceName", "host_name", "with_flops", "with_modules", "profile_memory", "group_trace_id", "username"),
    *("cuda_runtime_version", "cuda_driver_version", "roctracer_version", "hip_runtime_version", "hip_driver_version"),
}


def top_level(header: bytes, trailers: list[bytes], *, cut: bool = False) -> tuple[dict[str, Any], int]:
    """The keys before and behind the events, and how many parts of them could not be read. `cut`: trailers are parts of more."""
    facts: dict[str, Any] = {}
    damaged = 0
    for i, text in enumerate((_closed(header), *map(_opened, trailers))):
        if not text:
            continue
        try:
            value = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            value, lost = _salvage(text.decode("utf-8", "replace"))
            damaged += 0 if cut and i else lost
        if isinstance(value, dict):
            for key, item in value.items():
                if key != "traceEvents":
                    facts.setdefault(key, item)
    return facts, damaged


def is_kineto(facts: dict[str, Any]) -> bool:
    """Whether a key stands there that PyTorch's profiler writes and others do not."""
    return not _KINETO_KEYS.isdisjoint(facts)


def is_xla(facts: dict[str, Any]) -> bool:
    """Whether the head is that of a trace made from an XPlane."""
    metadata = facts.get("metadata")
    return isinstance(metadata, dict) and "highres-ticks" in metadata


def device_properties(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """The devices that the profiler found on the host."""
    for key in _DEVICE_KEYS:
        value = facts.get(key)
        if isinstance(value, list):
            return [item for item in value if isinstance(item, dict)]
    return []


def integer(value: Any) -> int | None:
    """An integer, also if it is written as text or as a float."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and len(value) < 40:
        try:
            return int(value, 0)
        except ValueError:
            return None
    return None


def describe(source: Source, facts: dict[str, Any], *, form: str, events: int, base_unix_ns: int | None) -> Source:
    """The source with what its top level says."""
    info = facts.get("distributedInfo")
    info = info if isinstance(info, dict) else {}
    host = facts.get("host_name")
    return msgspec.structs.replace(
        source,
        format=form,
        producer=_producer(facts, form),
        events=events,
        rank=_small(info.get("rank"), source.rank),
        world_size=_small(info.get("world_size"), source.world_size),
        host=host if isinstance(host, str) else source.host,
        base_unix_ns=base_unix_ns,
        metadata={key: value for key, value in facts.items() if _keepable(key, value)},
    )


def _small(value: Any, otherwise: int | None) -> int | None:
    found = integer(value)
    return found if found is not None and 0 <= found < 1 << 31 else otherwise


def _producer(facts: dict[str, Any], form: str) -> str | None:
    if form == "xla_json":
        return "XProf trace viewer JSON"
    if form != "kineto":
        return None
    for key, vendor in (
        ("rocprofiler-sdk_version", "ROCm"),
        ("roctracer_version", "ROCm"),
        ("hip_runtime_version", "ROCm"),
        ("cupti_version", "CUDA"),
        ("cuda_runtime_version", "CUDA"),
    ):
        if key in facts:
            return f"PyTorch profiler (Kineto, {vendor})"
    return "PyTorch profiler (Kineto)"


def _keepable(key: str, value: Any) -> bool:
    if key in ("stackFrames", "samples", "systemTraceEvents") or key in _DEVICE_KEYS:
        return False
    if isinstance(value, bool | int | float) or value is None:
        return not (isinstance(value, int) and abs(value) >= 1 << 63)
    try:
        return len(msgspec.json.encode(value)) <= _LONGEST_VALUE
    except (msgspec.MsgspecError, OverflowError, RecursionError, ValueError):
        return False


def _closed(header: bytes) -> bytes:
    return header + b"]}" if header else b""


def _opened(trailer: bytes) -> bytes:
    text = trailer.strip(b" \t\r\n\x00")
    if not text.startswith(b","):
        return b""
    return b"{" + text[1:]


def _salvage(text: str) -> tuple[dict[str, Any], int]:
    """Keys and values one by one, as far as they are JSON; how many are not.

    Behind a list or object that cannot be read nobody knows how deep a key lies: from there on only known ones are taken.
    """
    reader = json.JSONDecoder(strict=False)
    found: dict[str, Any] = {}
    lost = 0
    at = 0
    deep = False
    while True:
        key = _KEY.search(text, at)
        if key is None:
            return found, lost
        try:
            value, at = reader.raw_decode(text, key.end())
        except (ValueError, RecursionError):
            lost += not deep
            deep = deep or text[key.end() : key.end() + 1] in ("[", "{")
            at = key.end()
            continue
        if not deep or key[1] in _KNOWN_KEYS:
            found.setdefault(key[1], value)
