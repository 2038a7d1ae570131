"""`roofterm explain [NAME]`: the definition of a figure or finding, with its source."""

from __future__ import annotations

import textwrap
from difflib import get_close_matches

from roofterm.analysis.findings import rules
from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE, UsageError
from roofterm.glossary import Entry, find, glossary, nearest


def run(args: Arguments) -> int:
    if not args.paths:
        print("\n".join([*glossary(), *rules()]))
        return DONE
    name = " ".join(args.paths)
    entry = find(name) or _finding(name)
    if entry is None:
        like = [*nearest(name), *get_close_matches(name, rules(), n=2)]
        hint = f"; did you mean {' or '.join(like)}?" if like else "; roofterm explain lists all"
        raise UsageError(f"no figure or finding is called {name!r}{hint}")
    print(entry.name)
    print(textwrap.fill(entry.text, 96, initial_indent="  ", subsequent_indent="  "))
    if entry.source:
        print(f"  source: {entry.source}")
    return DONE


def _finding(name: str) -> Entry | None:
    """The rule of a finding, by its id."""
    rule = rules().get(name.strip().lower().replace(" ", "-"))
    return None if rule is None else Entry(rule.id, f"{rule.question} {rule.definition}", rule.source)
