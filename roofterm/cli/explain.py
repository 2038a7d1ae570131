"""`roofterm explain [NAME]`: the definition of a figure, with its source."""

from __future__ import annotations

import textwrap

from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE, UsageError
from roofterm.glossary import find, glossary, nearest


def run(args: Arguments) -> int:
    if not args.paths:
        print("\n".join(glossary()))
        return DONE
    name = " ".join(args.paths)
    entry = find(name)
    if entry is None:
        like = nearest(name)
        hint = f"; did you mean {' or '.join(like)}?" if like else "; roofterm explain lists all"
        raise UsageError(f"no figure or finding is called {name!r}{hint}")
    print(entry.name)
    print(textwrap.fill(entry.text, 96, initial_indent="  ", subsequent_indent="  "))
    if entry.source:
        print(f"  source: {entry.source}")
    return DONE
