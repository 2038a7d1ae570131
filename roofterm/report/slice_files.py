"""Slices of a profile as a file for other tools, in the format that the file's ending tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from roofterm.analysis.slice_table import slice_table
from roofterm.report.as_json import encode, rows_of
from roofterm.report.as_trace import trace_json
from roofterm.report.files import ROWS_AT_ONCE

if TYPE_CHECKING:
    from roofterm.analysis.study import Study

Mask = NDArray[np.bool_]


def _parquet(study: Study, chosen: Mask, file: IO[bytes]) -> None:
    slice_table(study, chosen).write_parquet(file, compression="zstd")


def _arrow(study: Study, chosen: Mask, file: IO[bytes]) -> None:
    slice_table(study, chosen).write_ipc(file, compression="zstd")


def _csv(study: Study, chosen: Mask, file: IO[bytes]) -> None:
    slice_table(study, chosen).write_csv(file)


def _json(study: Study, chosen: Mask, file: IO[bytes]) -> None:
    """One object with all rows, written a few at a time."""
    file.write(b'{"schema":"roofterm.slices/1","rows":[')
    for number, part in enumerate(slice_table(study, chosen).iter_slices(ROWS_AT_ONCE)):
        rows = encode(rows_of(part)).strip()[1:-1]
        file.write((b"," if number else b"") + rows)
    file.write(b"]}\n")


def _trace(study: Study, chosen: Mask, file: IO[bytes]) -> None:
    whole = bool(chosen.all())
    for piece in trace_json(study.given, chosen, whole=whole):
        file.write(piece)


def _packed_trace(study: Study, chosen: Mask, file: IO[bytes]) -> None:
    from isal import igzip

    with igzip.IGzipFile(fileobj=file, mode="wb", compresslevel=2, mtime=0) as packed:  # type: ignore[no-untyped-call]
        for piece in trace_json(study.given, chosen, whole=bool(chosen.all())):
            packed.write(piece)  # type: ignore[no-untyped-call]


SLICE_WRITERS: dict[str, Callable[[Study, Mask, IO[bytes]], None]] = {
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".csv": _csv,
    ".trace.json.gz": _packed_trace,
    ".trace.json": _trace,
    ".json": _json,
}
"""By the file's ending, the longer of two that fit first."""
