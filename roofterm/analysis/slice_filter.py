"""Filters over slices: a filter as a mask, worked out on distinct names and tracks first, so that 5 million slices are quick."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.categories import TITLES
from roofterm.analysis.filters import Atom, Filter, Term, subset
from roofterm.analysis.phases import PHASE_TITLES
from roofterm.analysis.row_filter import row_predicate
from roofterm.analysis.scope import Scope, ScopeError
from roofterm_parsers.profile import Kind

if TYPE_CHECKING:
    from roofterm.analysis.groundwork import Groundwork

Mask = NDArray[np.bool_]

FIELDS = {
    "name", "cat", "dtype", "op", "hlo", "module", "coll", "stream", "device", "rank", "step", "phase", "dur", "time", "self", "start",
}  # fmt: skip
"""Fields that single slices answer; time is a slice's own length."""

_COLUMNS = {
    "cat": "category", "phase": "phase", "coll": "collective", "hlo": "hlo_category", "module": "module", "dtype": "dtype",
}  # fmt: skip
"""Column of a table by which a field's texts are compared, where it is not the name."""

_COMPARE: dict[str, Callable[[NDArray[np.float64], float], Mask]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
    "=": operator.eq,
}


def split_for_slices(whole: Filter) -> tuple[Filter, Filter]:
    """The terms that slices answer, and the rest (rates, roofs, shares of a table)."""
    answered, rest = subset(whole, FIELDS)
    shares = [term for term in answered.terms if any(atom.percent for atom in term.atoms)]
    if not shares:
        return answered, rest
    fields = {atom.field for term in shares for atom in term.atoms}
    return subset(whole, FIELDS - fields)


def slice_mask(wanted: Filter, study: Groundwork) -> Mask:
    """Which slices pass; every term of `wanted` must be one that `split_for_slices` answers."""
    passes = np.ones(study.profile.slices.height, np.bool_)
    for term in wanted.terms:
        holds = np.zeros_like(passes)
        for atom in term.atoms:
            holds |= _atom(atom, study)
        passes &= ~holds if term.negated else holds
    return passes


def _atom(atom: Atom, study: Groundwork) -> Mask:
    profile = study.profile
    match atom.field:
        case "name" | "dtype":
            return _by_name(atom, study)
        case "cat":
            return _text_hits(atom, pl.Series("category", TITLES))[study.category]
        case "phase":
            return _text_hits(atom, pl.Series("phase", PHASE_TITLES, dtype=pl.String))[study.phase]
        case "op":
            return _by_op(atom, study)
        case "hlo" | "module" | "coll":
            return _by_side_table(atom, study)
        case "stream" | "device" | "rank":
            return _by_track(atom, study)
        case "step":
            try:
                mine = study.selection(Scope(step=f"{atom.low}-{atom.high}")).slices
            except ScopeError:
                return np.zeros(profile.slices.height, np.bool_)
            return np.ones(profile.slices.height, np.bool_) if mine is None else mine
        case "self":
            return _compare(atom, study.self_ps)
        case "start":
            return _compare(atom, study.start_ps)
        case _:
            return _compare(atom, study.dur_ps)


def _compare(atom: Atom, values_ps: NDArray[np.int64]) -> Mask:
    return _COMPARE[atom.operator](values_ps / 1e6, atom.number)


def _by_name(atom: Atom, study: Groundwork) -> Mask:
    texts = study.profile.names["text"] if atom.field == "name" else study.names["dtype"]
    hits: Mask = _text_hits(atom, texts)[study.profile.slices["name"].to_numpy()]
    return hits


def _by_op(atom: Atom, study: Groundwork) -> Mask:
    """Ops of that name, and the device work that they launched."""
    profile = study.profile
    named = _text_hits(atom, profile.names["text"])[profile.slices["name"].to_numpy()]
    hits: Mask = named & (study.kind == int(Kind.OP))
    links = profile.links.drop_nulls("op")
    hits[links["work"].to_numpy()[named[links["op"].to_numpy()]]] = True
    return hits


def _by_side_table(atom: Atom, study: Groundwork) -> Mask:
    profile = study.profile
    hits = np.zeros(profile.slices.height, np.bool_)
    if atom.field == "coll":
        hits[profile.collectives["slice"].to_numpy()[_text_hits(atom, profile.collectives["collective"])]] = True
    else:
        texts = profile.hlo_ops["category" if atom.field == "hlo" else "program"]
        found = _text_hits(atom, texts)
        if found.size:
            hits[profile.hlo["slice"].to_numpy()[found[profile.hlo["op"].to_numpy()]]] = True
    return hits


def _by_track(atom: Atom, study: Groundwork) -> Mask:
    profile = study.profile
    tracks = profile.tracks
    if atom.field == "stream":
        numbers = tracks["stream"]
    elif atom.field == "device":
        numbers = profile.devices["id"][tracks["device"]] if profile.devices.height else pl.Series([None] * tracks.height, dtype=pl.Int64)
    else:
        numbers = pl.Series([source.rank for source in profile.sources], dtype=pl.Int64)[tracks["source"]]
    mine: Mask = numbers.is_between(atom.low, atom.high).fill_null(False).to_numpy()
    hits: Mask = mine[profile.slices["track"].to_numpy()]
    return hits


def _text_hits(atom: Atom, texts: pl.Series) -> Mask:
    """Which of some distinct texts the atom's pattern or word fits."""
    column = _COLUMNS.get(atom.field, "name")
    asked = Atom("name", atom.operator, atom.at, atom.text, atom.regex) if column == "name" else atom
    frame = texts.alias(column).to_frame()
    expression = row_predicate(Filter("", (Term((asked,), False, atom.at),)), frame.schema)
    return np.asarray(frame.select(expression).to_series().to_numpy(), np.bool_)
