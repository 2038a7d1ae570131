"""One definition for each figure, with its source: `roofterm explain NAME` prints it, the explorer's details show it."""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class Entry(NamedTuple):
    name: str
    text: str
    source: str


@cache
def glossary() -> dict[str, Entry]:
    """All entries by name, in the order of the file."""
    table = tomllib.loads(files("roofterm").joinpath("glossary.toml").read_text("utf-8"))
    return {name: Entry(name, " ".join(facts["text"].split()), facts.get("source", "")) for name, facts in table.items()}


def find(name: str) -> Entry | None:
    """The entry of a figure, whatever the letter case and with blanks or underscores."""
    wanted, entries = name.strip().lower(), glossary()
    return entries.get(wanted) or entries.get(wanted.replace(" ", "_")) or entries.get(wanted.replace("_", " "))


def nearest(name: str) -> list[str]:
    """Names like this one, for a user who mistyped."""
    return get_close_matches(name.strip().lower(), glossary(), n=3, cutoff=0.5)
