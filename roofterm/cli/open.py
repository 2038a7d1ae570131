"""`roofterm PATH...`: the explorer where a terminal can show it, else the report."""

from __future__ import annotations

from roofterm.cli.arguments import Arguments
from roofterm.cli.selecting import roofs_of, scope_of
from roofterm.tui.capabilities import can_show, probe


def run(args: Arguments) -> int:
    if args.format != "text" or args.output or not can_show(probe(ascii_only=args.ascii, no_color=args.no_color)):
        from roofterm.cli import report

        return report.run(args)
    from roofterm.tui.app import run as explore
    from roofterm.tui.options import Options

    options = Options(
        scope=scope_of(args, "steady"),
        roofs=roofs_of(args),
        top=args.top if args.top is not None else 1000,
        cache=not args.no_cache,
        capture=args.capture,
        ascii_only=args.ascii,
        no_color=args.no_color,
        mouse=args.mouse,
        debug=args.debug,
    )
    return explore(args.paths, options)
