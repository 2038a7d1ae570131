"""`roofterm export PATH -o FILE`: all slices, or some, for other tools; the format is told by the file's ending."""

from __future__ import annotations

import sys
from pathlib import Path

from roofterm.analysis.filters import FilterError
from roofterm.analysis.scope import ScopeError
from roofterm.analysis.slice_table import chosen_slices
from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE, UsageError
from roofterm.cli.loading import study_of
from roofterm.cli.output import replacing
from roofterm.cli.report import explain
from roofterm.cli.selecting import scope_of
from roofterm.report.files import WriteError, writer_for
from roofterm.report.slice_files import SLICE_WRITERS
from roofterm.text.safe import safe_text
from roofterm.text.units import bytes_text, count


def run(args: Arguments) -> int:
    if args.output is None:
        raise UsageError(f"export needs -o FILE, with one of the endings {', '.join(SLICE_WRITERS)}")
    path = Path(args.output)
    try:
        write = writer_for(path, SLICE_WRITERS)
    except WriteError as why:
        raise UsageError(f"-o {why}") from why
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
