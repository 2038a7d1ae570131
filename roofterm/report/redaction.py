"""A profile without what tells where it was recorded: paths, host names, user names. Times, shapes and names of ops stay."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from roofterm_parsers.profile import FRAMES, Profile, Source

if TYPE_CHECKING:
    from roofterm.analysis.study import Study

Text = Callable[[str], str]

_PATH = re.compile(r"""(^|[\s"'=@(\[,:;|>])(?:~[\w.-]*|[A-Za-z]:|//[\w.-]+)?(?:[\\/]+[^\\/\s:"'<>|(),;=\[\]{}]+)+[\\/]+(?=[^\\/\s])""")
"""The folders of an absolute path, before the file's name: `/home/alice/run/train.py(12): step` keeps `train.py(12): step`."""

_FRAME_PATH = re.compile(r"^(?:~|[A-Za-z]:)?[\\/].*[\\/](?=[^\\/]+\.py\(\d+\): )")
"""The same of a Python frame, whose folders may hold blanks."""

_URL = re.compile(r"\b(https?|s3|gs|gcs|ssh|sftp|hdfs|abfss?|file)://[^\s\"']+")
_USER = re.compile(r"""[\\/](?:home|Users|u|nfs/home|data/home)[\\/]([^\\/\s"':()]+)""")
_BOARD_FILE = re.compile(r"(.+?)_\d+\.\d+\.pt\.trace\.json")
_PERSONAL = re.compile(r"host|user|login|cwd|argv|cmd|command|environ|\benv\b|path|dir\b|folder|email|account", re.IGNORECASE)
"""Keys of a file's header whose values are left out."""


def redacted_study(study: Study) -> Study:
    """The study of the redacted profile, and of its captures, held against the same roofs."""
    cleared = type(study)(redacted(study.given), study.roofs, [redacted(capture) for capture in study.captures], study.model)
    cleared.clocks = study.clocks
    return cleared


def redacted(profile: Profile) -> Profile:
    """The profile with every text cleared of folders, URLs, and the host and user names that it tells of itself.

    Files keep their own names and ranks; hosts become host0, host1, ... in order, users `user`.
    """
    hosts = _hosts(profile)
    users = {name for text in _texts(profile) for name in _USER.findall(text)}
    clear = _clearer(hosts, users)
    cleared = dataclasses.replace(profile)
    for frame, schema in FRAMES.items():
        table: pl.DataFrame = getattr(profile, frame)
        columns = [name for name, kind in schema.items() if kind == pl.String]
        if columns and table.height:
            setattr(cleared, frame, table.with_columns(_cleared(table[name], clear) for name in columns))
    cleared.sources = [_source(source, clear) for source in profile.sources]
    cleared.key = None
    return cleared


def _clearer(hosts: dict[str, str], users: Iterable[str]) -> Text:
    named = {**dict.fromkeys(users, "user"), **hosts}
    # Longer names first: gpu-1.cluster before gpu-1.
    known = re.compile(
        "|".join(rf"(?<![A-Za-z0-9-]){re.escape(name)}(?![A-Za-z0-9-])" for name in sorted(named, key=len, reverse=True)) or r"(?!)"
    )

    def clear(text: str) -> str:
        text = _URL.sub(r"\1://", text)
        text = _PATH.sub(r"\1", _FRAME_PATH.sub("", text))
        return known.sub(lambda found: named[found.group()], text)

    return clear


def _hosts(profile: Profile) -> dict[str, str]:
    """What each machine's name, and its first part, becomes; TensorBoard's file names begin with one."""
    found: dict[str, str] = {}
    for source in profile.sources:
        of_file = _BOARD_FILE.match(re.split(r"[\\/]", source.path)[-1])
        for name in (source.host, source.metadata.get("host_name"), of_file and of_file.group(1)):
            if not isinstance(name, str) or len(name) < 3 or name == "localhost" or name in found:
                continue
            first = name if re.fullmatch(r"[\d.]+", name) else name.partition(".")[0]
            found[name] = found.setdefault(first, f"host{len(set(found.values()))}")
    return found


def _texts(profile: Profile) -> Iterable[str]:
    for frame, schema in FRAMES.items():
        for name, kind in schema.items():
            if kind == pl.String:
                yield from getattr(profile, frame)[name].drop_nulls().unique().to_list()
    for source in profile.sources:
        yield source.path
        yield msgspec.json.encode(source.metadata).decode()


def _cleared(column: pl.Series, clear: Text) -> pl.Series:
    """A column with each distinct text cleared once."""
    distinct = column.drop_nulls().unique()
    cleared = [clear(text) for text in distinct.to_list()]
    return column.replace_strict(distinct, pl.Series(cleared, dtype=pl.String), default=None, return_dtype=pl.String)


def _source(source: Source, clear: Text) -> Source:
    return msgspec.structs.replace(
        source,
        path=clear(re.split(r"[\\/]", source.path)[-1]),
        host=clear(source.host) if source.host else source.host,
        run=clear(source.run) if source.run else source.run,
        metadata=_value(source.metadata, clear),
    )


def _value(value: Any, clear: Text) -> Any:
    if isinstance(value, str):
        return clear(value)
    if isinstance(value, dict):
        return {key: _value(part, clear) for key, part in value.items() if not _PERSONAL.search(str(key))}
    if isinstance(value, list):
        return [_value(part, clear) for part in value]
    return value
