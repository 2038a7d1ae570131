"""A frame with what filters and sorting work out about its columns, each once, so that a key over a million rows is quick."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import reduce
from operator import and_, or_
from threading import Lock
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.filters import TEXT_FIELDS, WORD_FIELDS, Atom, Filter, Term
from roofterm.analysis.row_filter import atom_predicate, column_of
from roofterm.analysis.row_order import RowOrder, Rows, row_order

Mask = NDArray[np.bool_]

MOST_WORDS = 4096
"""distinct texts of a column up to which each is asked once, and the rows by their numbers"""
MOST_MASKS = 16
"""conditions whose rows are kept"""


class Words(NamedTuple):
    """A column of few distinct texts."""

    distinct: pl.Series
    """in ascending order; no null"""
    codes: pl.Series
    """for each row the place of its text among them; null: none"""


class RowIndex:
    """Orders and masks over one frame. One thread asks; another may `prepare`, and the first waits only for what it needs itself."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame
        self._orders: dict[str, RowOrder] = {}
        self._turned: tuple[str, Rows] | None = None
        """the column last asked for in descending order, with its rows"""
        self._words: dict[str, Words | None] = {}
        self._lowered: dict[str, pl.Series | None] = {}
        self._masks: OrderedDict[Atom, Mask] = OrderedDict()
        self._held: tuple[tuple[str, object], Rows] | None = None
        """the value last looked for, with its rows"""
        self._locks: dict[tuple[str, str], Lock] = {}

    def rows(self, wanted: Filter, sort: tuple[str, bool] | None) -> Rows:
        """Rows that pass, in the order of (column, descending) or the frame's own: stable, unknown values last.

        Raises FilterError for a field that no column answers.
        """
        order = None if sort is None else self.order(*sort)
        if not wanted:
            return np.arange(self.frame.height) if order is None else order
        passes = self.mask(wanted)
        return np.flatnonzero(passes) if order is None else order[passes[order]]

    def order(self, column: str, descending: bool) -> Rows:
        """All rows by a column of numbers, flags or texts."""
        with self._lock("order", column):
            found = self._orders.get(column)
            if found is None:
                with self._lock("texts", column):
                    words = self._words_of(column)
                found = self._orders[column] = row_order(self.frame[column] if words is None else words.codes)
        if not descending:
            return found.ascending
        turned = self._turned
        if turned is None or turned[0] != column:
            turned = self._turned = (column, found.rows(descending=True))
        return turned[1]

    def mask(self, wanted: Filter) -> Mask:
        """Which rows pass. Raises FilterError for a field that no column answers."""
        terms = [self._term(term) for term in wanted.terms]
        return reduce(and_, terms) if terms else np.ones(self.frame.height, np.bool_)

    def holding(self, column: str, value: object) -> Rows:
        """Rows with this value."""
        key = (column, value)
        if self._held is None or self._held[0] != key:
            self._held = (key, np.flatnonzero((self.frame[column] == value).fill_null(False).to_numpy()))
        return self._held[1]

    def missing(self, columns: Sequence[str]) -> list[str]:
        """Those of some columns whose order nobody has asked for."""
        return [column for column in columns if column not in self._orders]

    def prepare(self, columns: Sequence[str]) -> None:
        """Work out the orders of these columns, and what a search in their texts needs, before they are asked for."""
        for column in columns:
            if self.frame.schema[column] == pl.String:
                with self._lock("texts", column):
                    self._lowered_of(column)
            self.order(column, descending=False)

    def _term(self, term: Term) -> Mask:
        holds = reduce(or_, (self._atom(atom) for atom in term.atoms))
        return ~holds if term.negated else holds

    def _atom(self, atom: Atom) -> Mask:
        key = Atom(atom.field, atom.operator, 0, atom.text, atom.regex, atom.number, atom.percent, atom.low, atom.high)
        mask = self._masks.pop(key, None)
        if mask is None:
            mask = self._work_out(atom)
        self._masks[key] = mask
        if len(self._masks) > MOST_MASKS:
            self._masks.popitem(last=False)
        return mask

    def _work_out(self, atom: Atom) -> Mask:
        column = column_of(atom, self.frame.schema)
        if self.frame.schema[column] == pl.String and atom.field in (*TEXT_FIELDS, *WORD_FIELDS):
            with self._lock("texts", column):
                words, lowered = self._words_of(column), self._lowered_of(column) if _is_plain(atom) else None
            if words is not None:
                return _by_word(atom, column, words)
            if lowered is not None:
                return self._found_in(lowered, atom)
        return _holds(self.frame, atom)

    def _found_in(self, lowered: pl.Series, atom: Atom) -> Mask:
        """Rows whose text holds the atom's: of those only that hold a part of it, if that was asked before."""
        text = atom.text.lower()
        before = [
            mask for asked, mask in self._masks.items() if asked.field == atom.field and _is_plain(asked) and asked.text.lower() in text
        ]
        if not before:
            return _contains(lowered, text)
        fewest = min(before, key=np.count_nonzero)
        mask = np.zeros(len(lowered), np.bool_)
        mask[fewest] = _contains(lowered.filter(pl.Series(fewest)), text)
        return mask

    def _words_of(self, column: str) -> Words | None:
        if column not in self._words:
            self._words[column] = _words(self.frame[column]) if self.frame.schema[column] == pl.String else None
        return self._words[column]

    def _lowered_of(self, column: str) -> pl.Series | None:
        """The texts of a column of many in lower case; None where that does not settle letter case, or the words do."""
        if column not in self._lowered:
            texts = self.frame[column]
            ascii_only = self._words_of(column) is None and (texts.str.len_bytes() == texts.str.len_chars()).all()
            self._lowered[column] = texts.str.to_lowercase() if ascii_only else None
        return self._lowered[column]

    def _lock(self, what: str, column: str) -> Lock:
        """Held while a column's order or texts are worked out; that of the texts is taken within that of the order, never around it."""
        return self._locks.setdefault((what, column), Lock())


def _is_plain(atom: Atom) -> bool:
    """Whether a text is looked for as it stands: in letters that have one other case at most."""
    return atom.field in TEXT_FIELDS and atom.operator == ":" and not atom.regex and atom.text.isascii()


def _contains(lowered: pl.Series, text: str) -> Mask:
    return np.asarray(lowered.str.contains(text, literal=True).fill_null(False).to_numpy(), np.bool_)


def _by_word(atom: Atom, column: str, words: Words) -> Mask:
    """The condition asked of each distinct text, and of none."""
    told = _holds(pl.concat([words.distinct, pl.Series([None], dtype=pl.String)]).alias(column).to_frame(), atom)
    mask: Mask = told[words.codes.fill_null(len(words.distinct)).to_numpy()]
    return mask


def _holds(frame: pl.DataFrame, atom: Atom) -> Mask:
    held = frame.select(holds=atom_predicate(atom, frame.schema))["holds"]
    return np.asarray(held.to_numpy(), np.bool_)


def _words(texts: pl.Series) -> Words | None:
    if texts.head(8 * MOST_WORDS).n_unique() > MOST_WORDS:
        return None  # without counting all
    distinct = texts.drop_nulls().unique().sort()
    if len(distinct) > MOST_WORDS:
        return None
    codes = texts.replace_strict(distinct, pl.Series(range(len(distinct)), dtype=pl.UInt32), default=None, return_dtype=pl.UInt32)
    return Words(distinct, codes)
