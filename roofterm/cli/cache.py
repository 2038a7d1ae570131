"""`roofterm cache info|clear`: the cache of parsed profiles."""

from __future__ import annotations

from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE, UsageError
from roofterm.text.safe import safe_text
from roofterm.text.units import bytes_text
from roofterm.tui.kept_figures import clear_figures
from roofterm_parsers import cache
from roofterm_parsers.cache_keys import directory


def run(args: Arguments) -> int:
    if args.paths == ["clear"]:
        print(f"{bytes_text(cache.clear() + clear_figures())} freed")
    elif args.paths == ["info"]:
        entries = cache.info()
        for entry in entries:
            print(f"{bytes_text(entry.bytes):>10}  {safe_text(', '.join(entry.paths))}")
        print(f"{bytes_text(sum(entry.bytes for entry in entries)):>10}  in {len(entries)} profiles, {safe_text(str(directory()))}")
    else:
        raise UsageError("write roofterm cache info or roofterm cache clear")
    return DONE
