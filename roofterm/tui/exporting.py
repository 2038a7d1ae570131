"""What a screen shows, written to a file: all its rows, by the code that the commands write with.

The writing has a thread of its own, so that the screen stays in use, and ends soon after it is told to; what it needs of the
Study, which one thread asks at a time, is asked before.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from roofterm.report.files import TABLE_WRITERS, WriteError, drop_unfinished, json_pieces, replacing, writer_for
from roofterm.report.slice_files import SLICE_WRITERS
from roofterm.text.units import bytes_text, count

if TYPE_CHECKING:
    import polars as pl

    from roofterm.analysis.study import Study
    from roofterm.report.slice_files import Mask
    from roofterm.tui.rows import Rows

_ENDINGS = re.compile(r"(\.pt)?(\.trace)?(\.json|\.xplane\.pb|\.pb)?(\.gz|\.zst|\.zip)?$", re.IGNORECASE)


@dataclass(frozen=True)
class TableExport:
    """A table as it is shown: filtered and sorted, with every row and every column."""

    noun: str
    """of its rows"""
    table: Callable[[], pl.DataFrame]
    json: Callable[[pl.DataFrame], Iterable[bytes]]
    """the document of contract.md that holds the same rows, in pieces"""

    def prepare(self) -> None:
        """There is nothing to ask."""

    def write(self, file: IO[bytes], path: Path) -> int:
        table = self.table()
        if path.name.lower().endswith(".json"):
            file.writelines(self.json(table))
        else:
            writer_for(path, TABLE_WRITERS)(table, {}, file)
        return table.height


@dataclass
class SliceExport:
    """The slices that a filter and its limits leave, as `roofterm export` writes them."""

    study: Study
    ask: Callable[[], Mask]
    noun: str = "slices"
    chosen: Mask | None = None

    def prepare(self) -> None:
        """Which slices they are, and all that the Study works out for any of them."""
        from roofterm.analysis.slice_table import slice_table

        self.chosen = self.ask()
        slice_table(self.study, self.chosen & False)

    def write(self, file: IO[bytes], path: Path) -> int:
        chosen = self.ask() if self.chosen is None else self.chosen
        writer_for(path, SLICE_WRITERS)(self.study, chosen, file)
        return int(chosen.sum())


Export = TableExport | SliceExport


def rows_export(noun: str, rows: Rows, head: Mapping[str, Any]) -> TableExport:
    """The rows of a table in the order shown; `head`: keys of the JSON before `rows`."""
    from roofterm.analysis.categories.short_names import with_short_names

    return TableExport(noun, lambda: with_short_names(rows.frame[rows.order]), lambda table: json_pieces(table, head))


def default_path(title: str, part: str, ending: str = ".csv") -> str:
    """A name in the present folder, after the profile and what is shown of it."""
    stem = re.sub(r"[^\w.-]+", "_", _ENDINGS.sub("", title)).strip("._") or "profile"
    return f"{stem[:80]}.{re.sub(r'[^a-z]+', '-', part.lower())}{ending}"


def refused(export: Export) -> Callable[[str], str | None]:
    """Why a path cannot be written to; None if it seems that it can."""

    def why(text: str) -> str | None:
        path = _path(text)
        try:
            writer_for(path, TABLE_WRITERS if isinstance(export, TableExport) else SLICE_WRITERS)
        except WriteError as fault:
            return str(fault)
        if os.path.isdir(path):
            return f"{path} is a folder"
        return None if os.path.isdir(path.parent) else f"there is no folder {path.parent}"

    return why


def would_overwrite(text: str) -> str | None:
    """What a second `enter` would overwrite."""
    path = _path(text)
    return f"{path.name} is there already: enter again overwrites it" if os.path.exists(path) else None


class Stopped(Exception):
    """The writing was told to end, and nothing was written."""


class StoppableFile(io.RawIOBase):
    """A file that takes no more once it is told to stop."""

    def __init__(self, file: IO[bytes], stopped: Callable[[], bool]) -> None:
        self._file = file
        self._stopped = stopped

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self._stopped():
            raise Stopped
        return self._file.write(data)


def write_export(export: Export, text: str, stopped: Callable[[], bool] = lambda: False) -> str:
    """Write it; what was done, in words. Raises WriteError; Stopped once it is."""
    path = _path(text)
    if stopped():
        raise Stopped
    with replacing(path) as file:
        rows = export.write(cast(IO[bytes], StoppableFile(file, stopped)), path)
        if stopped():
            raise Stopped
    size = f", {bytes_text(path.stat().st_size)}" if path.is_file() else ""
    return f"{count(rows)} {export.noun} written to {path}{size}"


def abandon(text: str) -> None:
    """What was written so far is gone at once: the writing itself may take a while to hear that it is to stop."""
    drop_unfinished(_path(text))


def _path(text: str) -> Path:
    """`~` as a shell has it; what no path can hold is left out."""
    return Path(os.path.expanduser(text.replace("\0", "")))
