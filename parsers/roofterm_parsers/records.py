"""What a profile says of the files that it comes from. Free of frames, so that a file is opened before polars is imported."""

from __future__ import annotations

from typing import Any

import msgspec

PARSER_VERSION = 12
"""Raise it when a parser reads the same bytes into different frames: cached profiles of other versions are read anew."""

DEVICE_ALONE = "device_alone"
"""In a source's metadata: its host's lines were left unread."""


class HostNames(msgspec.Struct, frozen=True):
    """Names of a host's events on which an answer about its TPUs hangs, as regular expressions of polars."""

    always: str
    in_steps: str
    """where the devices mark steps"""


class Warning(msgspec.Struct, frozen=True):
    """Something mended, cut, skipped or doubtful. `code` is stable; `message` names file and count in plain words."""

    code: str
    message: str
    count: int = 1


class Source(msgspec.Struct, frozen=True):
    """One file of the profile."""

    path: str
    format: str
    """kineto, xla_json, chrome or xplane"""
    container: str
    """plain, gzip, zstd or zip"""
    producer: str | None = None
    bytes: int = 0
    bytes_expanded: int = 0
    events: int = 0
    rank: int | None = None
    world_size: int | None = None
    host: str | None = None
    run: str | None = None
    base_unix_ns: int | None = None
    """wall-clock time of the profile's zero according to this file"""
    metadata: dict[str, Any] = {}
    """the file's own top-level facts: flags (with_stack, record_shapes, ...), versions, distributedInfo, host_name"""
