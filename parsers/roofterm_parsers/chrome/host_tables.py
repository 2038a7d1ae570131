"""Side tables of the host's slices: ops with their signatures, runtime calls, Python frames, collectives, backward pairs."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm_parsers.chrome.arguments import caller_parts, collective_parts, signature_parts
from roofterm_parsers.chrome.codes import in_order_of_use
from roofterm_parsers.chrome.context import Context, GatheredIds, with_id
from roofterm_parsers.chrome.events import NULL
from roofterm_parsers.chrome.frames import nullable, table
from roofterm_parsers.chrome.groups import Group
from roofterm_parsers.chrome.header import integer
from roofterm_parsers.linking import pair_backward
from roofterm_parsers.occurring import occurring
from roofterm_parsers.profile import CALLED, CALLERS, COLLECTIVES, OPS, PYTHON, RUNTIME, SIGNATURES

I64 = NDArray[np.int64]


def fill(context: Context, ids: GatheredIds) -> None:
    """Fill ops, signatures, runtime, python, collectives and backward of the profile, and `ids` with those that are linked by."""
    _fill_ops(context)
    rows = context.rows(Group.RUNTIME)
    if rows is not None:
        slices, correlation, external = rows.slices, rows.take("correlation"), rows.take("external")
        ids.launch = with_id(slices, correlation, NULL)
        ids.launch_external = with_id(slices, external, NULL)
        held = (correlation != NULL) | (external != NULL)
        context.profile.runtime = table(
            RUNTIME, {"slice": slices[held], "correlation": nullable(correlation[held]), "external_id": nullable(external[held])}
        )
    rows = context.rows(Group.PYTHON)
    if rows is not None:
        context.profile.python = table(
            PYTHON,
            {
                "slice": rows.slices,
                "python_id": nullable(rows.take("python")),
                "python_parent": nullable(rows.take("python_parent")),
                "module_id": nullable(rows.take("module")),
            },
        )
    _fill_collectives(context)


def _fill_ops(context: Context) -> None:
    rows = context.rows(Group.OP)
    if rows is None:
        return
    slices, sequence = rows.slices, rows.take("sequence")
    forward = rows.take("forward_thread")
    backward = (forward != NULL) & (forward != 0)
    numbered = sequence != NULL
    context.profile.backward = pair_backward(context.profile.slices, context.ids(slices[numbered], sequence[numbered]), backward[numbered])
    external, signature = rows.take("external"), rows.take("signature")
    held = (external != NULL) | numbered | (signature != 0)
    # Column by column, since each of them is large: what one was made from is given up before the next.
    columns = {"slice": pl.Series(slices[held]).cast(OPS["slice"]), "external_id": nullable(external[held])}
    del external
    columns["sequence"] = nullable(sequence[held])
    del sequence
    columns["forward_thread"] = nullable(forward[held], ~backward[held])
    del forward, backward
    texts = list(context.gathered.texts)
    used = in_order_of_use(signature, len(texts))
    used = used[used != 0]
    place = np.zeros(len(texts), np.uint32)
    place[used] = np.arange(used.size)
    context.profile.signatures = pl.DataFrame([signature_parts(texts[code]) for code in used.tolist()], schema=SIGNATURES)
    columns["signature"] = nullable(place[signature[held]], signature[held] == 0)
    context.profile.ops = table(OPS, columns)
    _fill_callers(context, slices, rows.take("caller"))


def _fill_callers(context: Context, slices: I64, codes: I64) -> None:
    """Call stacks and modules that ops state themselves: TorchScript's, and those of files without Python's own slices."""
    texts = list(context.gathered.texts)
    row = np.full(len(texts), -1, np.int64)
    parts: list[dict[str, str | None]] = []
    for code in in_order_of_use(codes, len(texts)).tolist():
        part = caller_parts(texts[code])
        if any(part.values()):
            row[code] = len(parts)
            parts.append(part)
    if not parts:
        return
    caller = row[codes]
    held = caller >= 0
    context.profile.callers = pl.DataFrame(parts, schema=CALLERS)
    context.profile.called = table(CALLED, {"slice": slices[held], "caller": caller[held]})


def _fill_collectives(context: Context) -> None:
    found = context.rows(Group.COLLECTIVE)
    if found is None:
        return
    slices, said = found.slices, found.take("facts")
    texts = list(context.gathered.texts)
    rows: list[dict[str, Any]] = []
    row_of: dict[int, int] = {}
    for code in occurring(said).tolist():
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
    place = np.array([row_of.get(code, -1) for code in said.tolist()], np.int64)
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
