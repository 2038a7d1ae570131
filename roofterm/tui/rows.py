"""Which rows of a frame are shown, and in what order. Runs in the desk's thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.filters import Filter
from roofterm.analysis.row_filter import split_by_columns
from roofterm.analysis.row_index import RowIndex
from roofterm.analysis.scope import Scope
from roofterm.analysis.slice_filter import split_for_slices
from roofterm.results import TABLES
from roofterm.tui.row_book import RowBook
from roofterm.tui.state import Sort

if TYPE_CHECKING:
    from roofterm.analysis.study import Study
    from roofterm.tui.baseline import Baseline


class Rows(NamedTuple):
    """Rows of a frame in order; `not_asked` is what of the filter this table cannot answer."""

    frame: pl.DataFrame
    order: NDArray[np.int64]
    not_asked: str
    kept: RowIndex
    """what is worked out about the frame"""


def chosen_rows(frame: pl.DataFrame, wanted: Filter, sort: Sort | None) -> Rows:
    """Rows that the filter lets through, sorted stably with unknown values last."""
    return _chosen(RowIndex(frame), wanted, sort)


def table_rows(
    study: Study,
    by: str,
    scope: Scope,
    wanted: Filter,
    sort: Sort | None,
    book: RowBook | None = None,
    baseline: Baseline | None = None,
    group: str | None = None,
) -> Rows:
    """A table's rows by the filter: what its columns do not answer is asked of the slices that it is made of.

    `book` keeps what the next question about the same table needs; with a baseline every row is held against it. `group` splits
    the rows of host ops (`op_groups.split_by`), which are then held against nothing.
    """
    _, rest = split_by_columns(wanted, TABLES[by])
    of_slices, unknown = split_for_slices(rest)
    frame = study.table(by, msgspec.structs.replace(scope, where=of_slices.text), group)
    if baseline is not None and group is None:
        frame = baseline.joined(by, frame, lambda base: base.table(by))
    answered = Filter(wanted.text, tuple(term for term in wanted.terms if term not in rest.terms))
    index = RowIndex(frame) if book is None else book.index(frame)
    return _chosen(index, answered, sort)._replace(not_asked=unknown.text)


def _chosen(index: RowIndex, wanted: Filter, sort: Sort | None) -> Rows:
    answered, rest = split_by_columns(wanted, index.frame.columns)
    by = (sort.column, sort.descending) if sort is not None and is_sortable(index.frame, sort.column) else None
    return Rows(index.frame, index.rows(answered, by), rest.text, index)


def is_sortable(frame: pl.DataFrame, column: str) -> bool:
    return column in frame.columns and not isinstance(frame.schema[column], (pl.List, pl.Struct))


def natural_descending(frame: pl.DataFrame, column: str) -> bool:
    """Numbers are wanted largest first, words from a to z."""
    return frame.schema[column].is_numeric()


def place_of(rows: Rows, column: str, value: object) -> int | None:
    """Place, in the order shown, of the first row with this value."""
    if column not in rows.frame.columns or value is None:
        return None
    hits = rows.kept.holding(column, value)
    if hits.size == 0:
        return None
    places = np.flatnonzero(rows.order == hits[0] if hits.size == 1 else np.isin(rows.order, hits))
    return int(places[0]) if places.size else None
