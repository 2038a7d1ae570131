"""`roofterm report PATH...`: the triage report."""

from __future__ import annotations

from roofterm.analysis.filters import FilterError
from roofterm.analysis.findings import rules
from roofterm.analysis.scope import STEADY, ScopeError
from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE, UsageError
from roofterm.cli.loading import study_of
from roofterm.cli.output import width, write
from roofterm.cli.selecting import scope_of
from roofterm.report.files import csv_bytes
from roofterm.report.triage import Report, triage


def run(args: Arguments) -> int:
    scope = scope_of(args, "steady")
    rules()  # imported now, while a large trace is read
    study = study_of(args, figures=scope == STEADY)
    top = args.top if args.top is not None else {"text": 10, "json": 100, "csv": 100, "markdown": 20}[args.format]
    try:
        report = triage(study, scope, top)
    except (FilterError, ScopeError) as why:
        raise UsageError(explain(why, args.where)) from why
    write(args, _shown(args, report))
    if args.keeping is not None and scope == STEADY:
        args.keeping.whole()
    return DONE


def explain(why: FilterError | ScopeError, expression: str) -> str:
    """A wrong filter or scope as one sentence; a filter's fault is pointed at."""
    if isinstance(why, FilterError):
        return f"--where {expression!r}: {why.message} (at character {why.at + 1})"
    return str(why)


def _shown(args: Arguments, report: Report) -> bytes | list[str]:
    """The report in its format; what the other formats need is not imported."""
    if args.format == "csv":
        return csv_bytes(report.tables["kernels"])
    if args.format == "json":
        from roofterm.report.as_json import report_json

        return report_json(report)
    from roofterm.report.as_text import report_text

    text = report_text(report, width())
    if args.format == "markdown":
        from roofterm.report.as_markdown import report_markdown

        return report_markdown(report, text)
    return text
