"""Side tables of the host's slices: ops with their signatures, runtime calls, Python frames, collectives, backward pairs."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm_parsers.chrome.arguments import collective_parts, signature_parts
from roofterm_parsers.chrome.categories import Group
from roofterm_parsers.chrome.context import Context, GatheredIds, with_id
from roofterm_parsers.chrome.events import NULL
from roofterm_parsers.chrome.frames import nullable, table
from roofterm_parsers.chrome.header import integer
from roofterm_parsers.linking import Ids, pair_backward
from roofterm_parsers.profile import COLLECTIVES, OPS, PYTHON, RUNTIME, SIGNATURES, Kind

I64 = NDArray[np.int64]


def fill(context: Context, ids: GatheredIds) -> None:
    """Fill ops, signatures, runtime, python, collectives and backward of the profile, and `ids` with those that are linked by."""
    _fill_ops(context, ids)
    found = context.rows(Group.RUNTIME)
    if found is not None:
        slices, columns = found
        ids.launch = with_id(slices, columns["correlation"], NULL)
        ids.launch_external = with_id(slices, columns["external"], NULL)
        held = (columns["correlation"] != NULL) | (columns["external"] != NULL)
        context.profile.runtime = table(
            RUNTIME,
            {
                "slice": slices[held],
                "correlation": nullable(columns["correlation"][held]),
                "external_id": nullable(columns["external"][held]),
            },
        )
    found = context.rows(Group.PYTHON)
    if found is not None:
        slices, columns = found
        context.profile.python = table(
            PYTHON,
            {
                "slice": slices,
                "python_id": nullable(columns["python"]),
                "python_parent": nullable(columns["python_parent"]),
                "module_id": nullable(columns["module"]),
            },
        )
    _fill_collectives(context)


def _fill_ops(context: Context, ids: GatheredIds) -> None:
    found = context.rows(Group.OP)
    if found is None:
        return
    slices, columns = found
    sequence, signature = columns["sequence"], columns["signature"]
    forward = columns["forward_thread"]
    backward = (forward != NULL) & (forward != 0)
    held = (columns["external"] != NULL) | (sequence != NULL) | (signature != 0)
    used = np.flatnonzero(np.bincount(signature, minlength=1))
    used = used[used != 0]
    place = np.zeros(int(signature.max()) + 1, np.int64)
    place[used] = np.arange(used.size)
    context.profile.ops = table(
        OPS,
        {
            "slice": slices[held],
            "external_id": nullable(columns["external"][held]),
            "sequence": nullable(sequence[held]),
            "forward_thread": nullable(forward[held], ~backward[held]),
            "signature": nullable(place[signature[held]], signature[held] == 0),
        },
    )
    texts = list(context.gathered.texts)
    parts = [signature_parts(texts[code]) for code in used.tolist()]
    context.profile.signatures = pl.DataFrame(parts, schema=SIGNATURES)
    kinds = context.profile.slices["kind"].to_numpy()[slices]
    is_op = kinds != Kind.STEP
    ids.op_external = with_id(slices[is_op], columns["external"][is_op], NULL)
    numbered = sequence != NULL
    group = context.group_of_lane[context.lane[slices]]
    context.profile.backward = pair_backward(
        context.profile.slices, Ids(slices[numbered], group[numbered], sequence[numbered]), backward[numbered]
    )


def _fill_collectives(context: Context) -> None:
    found = context.rows(Group.COLLECTIVE)
    if found is None:
        return
    slices, columns = found
    texts = list(context.gathered.texts)
    rows: list[dict[str, Any]] = []
    row_of: dict[int, int] = {}
    for code in np.unique(columns["facts"]).tolist():
        facts = collective_parts(texts[code])
        if not isinstance(facts["collective"], str):
            continue
        row_of[code] = len(rows)
        rows.append(
            {
                "slice": 0,
                "collective": facts["collective"],
                "group": _text(facts["process_group"]),
                "group_description": _text(facts["process_group_description"]),
                "group_size": _integer(facts["group_size"]),
                "dtype": _text(facts["dtype"]),
                "in_elements": _integer(facts["in_elements"]),
                "out_elements": _integer(facts["out_elements"]),
                "ranks": _text(facts["ranks"]),
                "sequence": _integer(facts["collective_sequence"]),
            }
        )
    place = np.array([row_of.get(code, -1) for code in columns["facts"].tolist()], np.int64)
    held = place >= 0
    distinct = pl.DataFrame(rows, schema=COLLECTIVES)
    context.profile.collectives = distinct[place[held]].with_columns(pl.Series("slice", slices[held].astype(np.uint32)))


def _integer(value: Any) -> int | None:
    found = integer(value)
    return found if found is not None and abs(found) < 1 << 63 else None


def _text(value: Any) -> str | None:
    """A text as it is, a list as compact JSON."""
    if value is None or isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()
