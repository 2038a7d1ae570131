"""`roofterm PATH...`: the explorer where a terminal can show it, else the report."""

from __future__ import annotations

import gc
import os

from roofterm.cli.arguments import Arguments
from roofterm.cli.selecting import roofs_of, scope_of
from roofterm.start_up import import_numpy
from roofterm.tui.capabilities import can_show, probe

COLOUR_SYSTEMS = {"16": "standard", "256": "256", "truecolor": "truecolor"}
"""The names that Textual has for them."""


def run(args: Arguments) -> int:
    if args.format != "text" or args.output or not can_show(probe(ascii_only=args.ascii, no_color=args.no_color)):
        import_numpy()
        from roofterm.cli import report

        return report.run(args)
    gc.disable()  # nothing of what is imported now is garbage, and looking for some is a tenth of the start; the app enables it
    from roofterm.tui.config import load_config
    from roofterm.tui.options import Options

    config = load_config()
    look = config.look
    if look.color in COLOUR_SYSTEMS:
        os.environ.setdefault("TEXTUAL_COLOR_SYSTEM", COLOUR_SYSTEMS[look.color])  # read when Textual is imported
    from roofterm.tui.app import run as explore

    options = Options(
        scope=scope_of(args, "steady"),
        roofs=roofs_of(args),
        top=args.top if args.top is not None else 1000,
        cache=not args.no_cache,
        capture=args.capture,
        ascii_only=args.ascii,
        no_color=args.no_color,
        glyphs=None if look.glyphs == "auto" else look.glyphs,
        colour=None if look.color == "auto" else look.color,
        mouse=args.mouse or look.mouse,
        theme=args.theme or (None if look.theme == "auto" else look.theme),
        start=look.start,
        restore=look.restore and not args.no_state,
        keys=config.keys,
        debug=args.debug,
    )
    return explore(args.paths, options)
