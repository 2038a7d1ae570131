"""`roofterm roofline PATH... --xprof VERSION`: XProf's own roofline table, which needs little of what a roofline needs."""

from __future__ import annotations

from roofterm.analysis.xprof.roofline import xprof_roofline
from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE, UsageError
from roofterm.cli.loading import load
from roofterm.cli.output import write
from roofterm.report.as_json import encode


def run(args: Arguments) -> int:
    try:
        table = xprof_roofline(load(args), args.xprof)
    except ValueError as why:
        raise UsageError(f"--xprof {args.xprof}: {why}") from why
    write(args, encode(table))
    return DONE
