"""`roofterm export PATH -o FILE`: all slices, or some, for other tools; the format is told by the file's ending."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from roofterm.analysis.filters import FilterError
from roofterm.analysis.scope import ScopeError
from roofterm.analysis.slice_table import chosen_slices, slice_table
from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE, UsageError
from roofterm.cli.loading import study_of
from roofterm.cli.output import replacing
from roofterm.cli.report import explain
from roofterm.cli.selecting import scope_of
from roofterm.report.as_json import encode, rows_of
from roofterm.report.as_trace import trace_json
from roofterm.text.safe import safe_text
from roofterm.text.units import bytes_text, count

if TYPE_CHECKING:
    from roofterm.analysis.study import Study

Mask = NDArray[np.bool_]
ROWS_AT_ONCE = 20_000


def run(args: Arguments) -> int:
    if args.output is None:
        raise UsageError(f"export needs -o FILE, with one of the endings {', '.join(WRITERS)}")
    path = Path(args.output)
    write = next((writer for ending, writer in WRITERS.items() if path.name.lower().endswith(ending)), None)
    if write is None:
        raise UsageError(f"-o {args.output}: the ending tells the format; it must be one of {', '.join(WRITERS)}")
    study = study_of(args)
    try:
        chosen = chosen_slices(study, scope_of(args, "all"))
    except (FilterError, ScopeError) as why:
        raise UsageError(explain(why, args.where)) from why
    with replacing(path) as file:
        write(study, chosen, file)
    if not args.quiet:
        size = f", {bytes_text(path.stat().st_size)}" if path.is_file() else ""
        print(f"roofterm: {count(int(chosen.sum()))} slices written to {safe_text(args.output)}{size}", file=sys.stderr)
    return DONE


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


WRITERS: dict[str, Callable[[Study, Mask, IO[bytes]], None]] = {
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".csv": _csv,
    ".trace.json.gz": _packed_trace,
    ".trace.json": _trace,
    ".json": _json,
}
"""By the file's ending, the longer of two that fit first."""
