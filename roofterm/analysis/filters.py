"""The filter language of `--where` and of `/` in the explorer.

    nccl|gemm !/backward$/ cat:comm stream:7 dur>10us time>1% flops>1T bytes>64MiB

Terms are joined by blanks (and), `|` inside a term is or, `!` before a term is not. A bare word is found in the name,
any letter case; `/regex/` is a regular expression; `"a b"` is one word with a blank in it. `FIELD:VALUE` asks for a
value, `FIELD>VALUE`, `<`, `>=`, `<=` and `=` compare a quantity. A comparison with an unknown value does not hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

TEXT_FIELDS = ("name", "op", "module", "hlo", "coll")
"""Fields whose value is looked for anywhere in the text, in any letter case."""

WORD_FIELDS = ("cat", "phase", "bound", "dtype", "level")
"""Fields with few values: the value asked for is one of them, or how it begins."""

NUMBER_FIELDS = ("stream", "device", "rank", "step")
"""Fields with whole numbers: N or A-B."""

TIME_FIELDS = ("time", "dur", "self", "headroom", "start")
"""Quantities in microseconds unless a unit says otherwise."""

PLAIN_FIELDS = ("calls", "flops", "intensity")
SHARE_FIELDS = ("pct", "roof")
SIZE_FIELDS = ("bytes",)

QUANTITIES = (*TIME_FIELDS, *PLAIN_FIELDS, *SHARE_FIELDS, *SIZE_FIELDS)
FIELDS = (*TEXT_FIELDS, *WORD_FIELDS, *NUMBER_FIELDS, *QUANTITIES)

_TIME_UNITS = {"ps": 1e-6, "ns": 1e-3, "us": 1.0, "µs": 1.0, "μs": 1.0, "ms": 1e3, "s": 1e6, "min": 60e6}
_DECIMAL = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}

_OPERATOR = re.compile(r"([A-Za-z_]+)(>=|<=|>|<|=|:)")
_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-zµμ%/]*)$")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?$")


class FilterError(ValueError):
    """A wrong expression; `at` is the place of the fault, counted in characters from 0."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.message = message
        self.at = at


class Atom(msgspec.Struct, frozen=True):
    """One condition. Of `text`, `number` and `low` to `high`, the one that its field's kind asks for is set."""

    field: str
    operator: str
    """: > < >= <= or ="""
    at: int
    text: str = ""
    regex: bool = False
    number: float = 0.0
    """µs for times, bytes for sizes, percent for shares, else plain"""
    percent: bool = False
    """a time given as a share of the table's total"""
    low: int = 0
    high: int = 0


class Term(msgspec.Struct, frozen=True):
    """Conditions of which one must hold (or none, if negated)."""

    atoms: tuple[Atom, ...]
    negated: bool
    at: int


class Filter(msgspec.Struct, frozen=True):
    """Terms that must all hold; no terms: everything passes."""

    text: str = ""
    terms: tuple[Term, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.terms)

    def fields(self) -> set[str]:
        return {atom.field for term in self.terms for atom in term.atoms}


def parse(text: str) -> Filter:
    """The filter that `text` says. Raises FilterError with the place of the first fault."""
    return Filter(text.strip(), tuple(_term(piece, at) for piece, at in _pieces(text)))


def subset(whole: Filter, fields: set[str]) -> tuple[Filter, Filter]:
    """The terms that speak of `fields` only, and the rest, as two filters that together say the same."""
    inside = tuple(t for t in whole.terms if all(a.field in fields for a in t.atoms))
    outside = tuple(t for t in whole.terms if t not in inside)
    return Filter(_text_of(whole, inside), inside), Filter(_text_of(whole, outside), outside)


def pointer(error: FilterError) -> str:
    """A caret under the fault, for a second line below the expression."""
    return " " * error.at + "^"


def with_term(text: str, field: str, value: str | None) -> str:
    """`text` with its terms `field:...` replaced by one `field:value`, or removed if there is no value."""
    kept = [piece for piece, _ in _pieces(text) if not piece.lstrip("!").startswith(f"{field}:")]
    if value is not None:
        kept.append(f'{field}:"{value}"' if re.search(r'[\s|"/!]', value) else f"{field}:{value}")
    return " ".join(kept)


def term_value(text: str, field: str) -> str | None:
    """The value of the first term `field:VALUE` in `text`, or None."""
    for piece, _ in _pieces(text):
        if piece.startswith(f"{field}:"):
            return piece[len(field) + 1 :].strip('"')
    return None


def _text_of(whole: Filter, terms: tuple[Term, ...]) -> str:
    places = {t.at for t in terms}
    return " ".join(piece for piece, at in _pieces(whole.text) if at in places)


def _pieces(text: str) -> Iterator[tuple[str, int]]:
    """Terms with their places: split at blanks that stand in no quotes and in no regular expression."""
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        end = _end_of_term(text, at)
        yield text[at:end], at
        at = end


def _end_of_term(text: str, start: int) -> int:
    at = start
    fresh = True  # a slash opens a regular expression only where a value begins
    while at < len(text) and not text[at].isspace():
        char = text[at]
        if char == '"' or (char == "/" and fresh):
            at = _closing(text, at)
            fresh = False
            continue
        fresh = char in "|!:"
        at += 1
    return at


def _closing(text: str, opened: int) -> int:
    mark = text[opened]
    at = opened + 1
    while at < len(text):
        if text[at] == "\\" and mark == "/":
            at += 2
            continue
        if text[at] == mark:
            return at + 1
        at += 1
    what = "regular expression" if mark == "/" else "quotation"
    raise FilterError(f"this {what} does not end", opened)


def _term(piece: str, at: int) -> Term:
    negated = piece.startswith("!")
    start = at + 1 if negated else at
    body = piece[1:] if negated else piece
    if not body:
        raise FilterError("a term is missing after !", at)
    atoms: list[Atom] = []
    field = ""
    for part, offset in _alternatives(body):
        if not part:
            raise FilterError("an alternative is missing beside |", start + offset)
        atom = _atom(part, start + offset, field)
        field = atom.field if atom.operator == ":" else ""
        atoms.append(atom)
    return Term(tuple(atoms), negated, at)


def _alternatives(body: str) -> Iterator[tuple[str, int]]:
    begin = at = 0
    fresh = True
    while at < len(body):
        char = body[at]
        if char == '"' or (char == "/" and fresh):
            at = _closing(body, at)
            fresh = False
            continue
        if char == "|":
            yield body[begin:at], begin
            begin = at + 1
        fresh = char in "|:"
        at += 1
    yield body[begin:], begin


def _atom(part: str, at: int, inherited: str) -> Atom:
    found = None if part[0] in '/"' else _OPERATOR.match(part)
    if found is None:
        return _asked(inherited or "name", ":", part, at, at)
    field, operator = found.group(1).lower(), found.group(2)
    value = part[found.end() :]
    if field not in FIELDS:
        # Names hold colons (aten::mm, std::vector): those are words, and not fields that we do not know.
        if operator == ":" and (value.startswith(":") or inherited):
            return _asked(inherited or "name", ":", part, at, at)
        raise FilterError(f"no field is called {found.group(1)!r}: {_nearest(field)}", at)
    if not value:
        raise FilterError(f"a value is missing after {found.group(0)}", at + found.end())
    return _asked(field, operator, value, at, at + found.end())


def _asked(field: str, operator: str, value: str, at: int, value_at: int) -> Atom:
    if field in QUANTITIES:
        number, percent = _quantity(field, value, value_at)
        return Atom(field, "=" if operator == ":" else operator, at, number=number, percent=percent)
    if operator not in ":=":
        raise FilterError(f"{field} is not a quantity: write {field}:VALUE", value_at - len(operator))
    if field in NUMBER_FIELDS:
        return _numbers(field, value, at, value_at)
    if value[0] == "/":
        pattern = value[1:-1].replace("\\/", "/")
        if not value.endswith("/") or len(value) < 2:
            raise FilterError("nothing may follow the end of a regular expression", value_at + value.rfind("/") + 1)
        try:
            re.compile(pattern)
        except re.error as wrong:
            raise FilterError(f"not a regular expression: {wrong.msg}", value_at + 1 + (wrong.pos or 0)) from None
        return Atom(field, ":", at, text=pattern, regex=True)
    word = value.strip('"')
    if not word:
        raise FilterError("a word is missing", value_at)
    return Atom(field, operator, at, text=word)


def _numbers(field: str, value: str, at: int, value_at: int) -> Atom:
    found = _RANGE.match(value.strip('"'))
    if found is None:
        raise FilterError(f"{field} takes a number N or a range A-B", value_at)
    low = int(found.group(1))
    high = int(found.group(2)) if found.group(2) else low
    if high < low:
        raise FilterError(f"the range {value} ends before it begins", value_at)
    return Atom(field, ":", at, text=value, low=low, high=high)


def _quantity(field: str, value: str, at: int) -> tuple[float, bool]:
    found = _QUANTITY.match(value)
    if found is None:
        raise FilterError(f"not a number: {value}", at)
    number, unit = float(found.group(1)), found.group(2)
    unit_at = at + found.start(2)
    if not unit:
        return number, False
    if field in TIME_FIELDS:
        if unit == "%" and field in ("time", "self"):
            return number, True
        if unit not in _TIME_UNITS:
            raise FilterError(f"{unit!r} is not a time: ns, us, ms, s" + (" or %" if field in ("time", "self") else ""), unit_at)
        return number * _TIME_UNITS[unit], False
    if field in SHARE_FIELDS:
        if unit != "%":
            raise FilterError(f"{field} is a share: %", unit_at)
        return number, False
    factor = _factor(unit, field in SIZE_FIELDS)
    if factor is None:
        known = "B, kB, KiB, MB, MiB, GB, GiB" if field in SIZE_FIELDS else "k, M, G, T, P"
        raise FilterError(f"{unit!r} is not a unit of {field}: {known}", unit_at)
    return number * factor, False


def _factor(unit: str, size: bool) -> float | None:
    prefix = unit
    if size and unit.endswith("B"):
        prefix = unit[:-1]
    elif not size:
        prefix = re.sub(r"(FLOPs?|FLOP/B)$", "", unit)
    if prefix == "":
        return 1.0
    if prefix == "K":
        prefix = "k"
    return _DECIMAL.get(prefix) or (_BINARY.get(prefix) if size else None)


def _nearest(field: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(field, FIELDS, n=1)
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(FIELDS)}"
