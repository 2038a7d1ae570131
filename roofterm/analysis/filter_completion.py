"""What a filter that is being typed could go on with: fields, their values in this profile, units, and words of its names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from roofterm.analysis.filters import FIELDS, QUANTITIES, SIZE_FIELDS, TIME_FIELDS
from roofterm.analysis.limit_values import LIMITERS, category_values, phase_values, rank_values, stream_values

if TYPE_CHECKING:
    from roofterm.analysis.study import Study

MOST_NAMES = 500
"""names, by their time, whose words are offered"""
MOST_OFFERED = 50

_WORD = re.compile(r"[A-Za-z_]\w{2,}")
_ASKED = re.compile(r"([A-Za-z_]+)(>=|<=|>|<|=|:)(.*)$", re.DOTALL)
_NUMBER = re.compile(r"\d+\.?\d*|\.\d+")
_NEEDS_QUOTES = re.compile(r'[\s|"/!]')
_TIME_UNITS = ("ns", "us", "ms", "s")
_SIZE_UNITS = ("KiB", "MiB", "GiB")
_PLAIN_UNITS = ("k", "M", "G", "T")


class Vocabulary(msgspec.Struct, frozen=True):
    """What a profile holds that a filter can ask for."""

    values: dict[str, tuple[str, ...]] = {}
    """by field, the ones with most time first"""
    words: tuple[str, ...] = ()
    """of names, the ones with most time first"""


class Completion(NamedTuple):
    """`offers` are what may stand in place of the text from `start` to where the cursor is."""

    start: int
    offers: list[str]


def vocabulary(study: Study) -> Vocabulary:
    """What this profile holds; asks for tables that the screens ask for too."""
    profile = study.profile
    kernels, ops = study.table("kernel"), study.table("op")
    values = {
        "cat": [value.value for value in category_values(study)],
        "phase": [value.value for value in phase_values(study)],
        "bound": LIMITERS,
        "dtype": kernels["dtype"].drop_nulls().unique(maintain_order=True).to_list(),
        "stream": [value.value for value in stream_values(study)],
        "rank": [value.value for value in rank_values(study)],
        "device": [str(number) for number in profile.devices["id"].unique().sort()],
        "step": [str(number) for number in profile.steps["number"].unique().sort()],
        "coll": profile.collectives["collective"].drop_nulls().unique(maintain_order=True).to_list(),
        "hlo": profile.hlo_ops["category"].drop_nulls().unique(maintain_order=True).to_list(),
        "module": profile.hlo_ops["program"].drop_nulls().unique(maintain_order=True).to_list(),
        "op": ops["name"].head(MOST_NAMES).to_list(),
    }
    names = [*kernels["name"].head(MOST_NAMES), *ops["name"].head(MOST_NAMES)]
    words = dict.fromkeys(word for name in names for word in _WORD.findall(name))
    return Vocabulary({field: tuple(found) for field, found in values.items() if found}, tuple(words))


def complete(text: str, at: int, known: Vocabulary) -> Completion:
    """What the condition before the cursor could become; nothing inside a regular expression."""
    start, field = _condition(text[:at])
    typed = text[start:at]
    if typed.startswith("/"):
        return Completion(at, [])
    asked = _ASKED.match(typed)
    if asked is not None and asked.group(1).lower() in FIELDS:
        name, operator, value = asked.group(1).lower(), asked.group(2), asked.group(3)
        return Completion(start, [asked.group(1) + operator + rest for rest in _values(name, value, known)])
    if field is not None:
        return Completion(start, _values(field, typed, known))
    fields = [name + (">" if name in QUANTITIES else ":") for name in FIELDS]
    words = known.words if typed else ()
    return Completion(start, _beginning(typed, [*fields, *words]))


def _condition(before: str) -> tuple[int, str | None]:
    """Where the last condition begins, and the field that it takes over from the one before a `|`."""
    start, quoted, field, at = 0, "", None, 0
    while at < len(before):
        char = before[at]
        if quoted:
            if char == "\\" and quoted == "/":
                at += 1
            elif char == quoted:
                quoted = ""
        elif char == '"' or (char == "/" and (at == start or before[at - 1] in ":!|")):
            quoted = char
        elif char.isspace():
            start, field = at + 1, None
        elif char == "|":
            asked = _ASKED.match(before[start:at])
            field = asked.group(1).lower() if asked is not None and asked.group(2) == ":" and asked.group(1).lower() in FIELDS else field
            start = at + 1
        elif char == "!" and at == start:
            start = at + 1
        at += 1
    return start, field


def _values(field: str, typed: str, known: Vocabulary) -> list[str]:
    if field in QUANTITIES:
        if not _NUMBER.fullmatch(typed):
            return []
        units = (
            _TIME_UNITS
            if field in TIME_FIELDS
            else _SIZE_UNITS
            if field in SIZE_FIELDS
            else ("%",)
            if field in ("pct", "roof")
            else _PLAIN_UNITS
        )
        return [typed + unit for unit in units]
    found = known.values.get(field, known.words if field == "name" else ())
    offers = _beginning(typed.lstrip('"'), (value for value in found if '"' not in value))
    return [f'"{value}"' if _NEEDS_QUOTES.search(value) else value for value in offers]


def _beginning(typed: str, offers: Iterable[str]) -> list[str]:
    """Those that go on after what is typed, in any letter case; not what stands there already."""
    wanted = typed.casefold()
    return [offer for offer in offers if offer.casefold().startswith(wanted) and offer != typed][:MOST_OFFERED]
