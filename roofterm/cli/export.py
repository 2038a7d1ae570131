"""`roofterm export PATH -o FILE`: all slices, some, or a table, for other tools; the format is told by the file's ending."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from roofterm.analysis.filters import FilterError
from roofterm.analysis.scope import ScopeError
from roofterm.analysis.slice_table import chosen_slices
from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE, UsageError
from roofterm.cli.loading import study_of
from roofterm.cli.output import replacing
from roofterm.cli.report import explain
from roofterm.cli.selecting import scope_of
from roofterm.report.files import TABLE_WRITERS, WriteError, writer_for
from roofterm.report.redaction import redacted_study
from roofterm.report.result_tables import result_table
from roofterm.report.slice_files import SLICE_WRITERS
from roofterm.text.safe import safe_text
from roofterm.text.units import bytes_text, count

if TYPE_CHECKING:
    from roofterm.analysis.study import Study


def run(args: Arguments) -> int:
    writers = SLICE_WRITERS if args.table is None else TABLE_WRITERS
    if args.output is None:
        raise UsageError(f"export needs -o FILE, with one of the endings {', '.join(writers)}")
    path = Path(args.output)
    try:
        writer_for(path, writers)
    except WriteError as why:
        raise UsageError(f"-o {why}") from why
    study = study_of(args)
    if args.redact:
        study = redacted_study(study)
    try:
        rows = _slices(args, study, path) if args.table is None else _table(args, study, path)
    except (FilterError, ScopeError) as why:
        raise UsageError(explain(why, args.where)) from why
    if not args.quiet:
        size = f", {bytes_text(path.stat().st_size)}" if path.is_file() else ""
        what = "slices" if args.table is None else f"rows of {args.table}"
        print(f"roofterm: {count(rows)} {what} written to {safe_text(args.output)}{size}", file=sys.stderr)
    return DONE


def _slices(args: Arguments, study: Study, path: Path) -> int:
    chosen = chosen_slices(study, scope_of(args, "all"))
    with replacing(path) as file:
        writer_for(path, SLICE_WRITERS)(study, chosen, file)
    return int(chosen.sum())


def _table(args: Arguments, study: Study, path: Path) -> int:
    table, head = result_table(study, str(args.table), scope_of(args, "all"))
    with replacing(path) as file:
        writer_for(path, TABLE_WRITERS)(table, head, file)
    return table.height
