"""`roofterm report PATH...`: the triage report."""

from __future__ import annotations

from roofterm.analysis.filters import FilterError
from roofterm.analysis.scope import ScopeError
from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE, UsageError
from roofterm.cli.loading import study_of
from roofterm.cli.output import width, write
from roofterm.cli.selecting import roofs_of, scope_of
from roofterm.report.as_json import report_json
from roofterm.report.as_markdown import report_markdown
from roofterm.report.as_text import report_text
from roofterm.report.files import csv_bytes
from roofterm.report.triage import Report, triage


def run(args: Arguments) -> int:
    key = _figures_key(args)  # of the files as they are before they are read
    study = study_of(args)
    top = args.top if args.top is not None else {"text": 10, "json": 100, "csv": 100, "markdown": 20}[args.format]
    try:
        report = triage(study, scope_of(args, "steady"), top)
    except (FilterError, ScopeError) as why:
        raise UsageError(explain(why, args.where)) from why
    write(args, _shown(args, report))
    if key is not None:
        from roofterm.tui.keeping import figures_of
        from roofterm.tui.kept_figures import keep_figures

        keep_figures(key, figures_of(study))  # the explorer's first screen: all of it has been worked out by now
    return DONE


def _figures_key(args: Arguments) -> str | None:
    """Name of the figures that the explorer would look for; None: it would not, or has them."""
    if args.model or args.no_cache:
        return None
    from roofterm.tui.kept_figures import has_figures, key_of
    from roofterm.tui.options import Options

    key = key_of(args.paths, Options(scope=scope_of(args, "steady"), roofs=roofs_of(args), capture=args.capture))
    return None if has_figures(key) else key


def explain(why: FilterError | ScopeError, expression: str) -> str:
    """A wrong filter or scope as one sentence; a filter's fault is pointed at."""
    if isinstance(why, FilterError):
        return f"--where {expression!r}: {why.message} (at character {why.at + 1})"
    return str(why)


def _shown(args: Arguments, report: Report) -> bytes | list[str]:
    if args.format == "json":
        return report_json(report)
    if args.format == "csv":
        return csv_bytes(report.tables["kernels"])
    if args.format == "markdown":
        return report_markdown(report, report_text(report, width()))
    return report_text(report, width())
