"""A block of events decoded in two ways, as plain values that can be compared."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np

from roofterm_parsers.chrome import decoding, forms
from roofterm_parsers.chrome.codes import Block
from roofterm_parsers.chrome.decoding import Decoder
from roofterm_parsers.chrome.gathering import TEXT_COLUMNS
from roofterm_parsers.chrome.groups import Group

NEVER = 1 << 62
OFFSET = 100


def decoded(text: bytes, *, by_forms: bool, last: bool = True) -> dict[str, Any]:
    """What a block says, with texts in the place of codes; by forms from the first event on, each learned at its first sight."""
    with (
        mock.patch.object(decoding, "BY_FORMS_FROM", 0 if by_forms else NEVER),
        mock.patch.object(forms, "SIGHTS", 1),
        mock.patch.object(forms, "FEWEST_EVENTS", 1),
    ):
        return said(Decoder(xla=False).block(text, OFFSET, last=last))


def said(block: Block) -> dict[str, Any]:
    """The first block of a decoder, whose dictionaries are all its own."""
    texts = [b"", *(text for text in block.new_texts if text)]
    columns: dict[str, list[Any]] = {name: values.tolist() for name, values in block.columns.items()}
    columns["lane"] = [block.new_lanes[code] for code in columns["lane"]]
    columns["name"] = [block.new_names[code] for code in columns["name"]]
    groups: dict[int, dict[str, list[Any]]] = {}
    for group, unordered in block.groups.items():
        order = np.argsort(unordered["row"], kind="stable")
        held = {name: values[order] for name, values in unordered.items()}
        groups[group] = {name: [repr(value) for value in values.tolist()] for name, values in held.items()}
        for name in TEXT_COLUMNS.get(Group(group), ()):
            groups[group][name] = [texts[code] for code in held[name].tolist()]
    return {
        "columns": columns,
        "groups": groups,
        "whole": sorted(block.whole),
        "damage": {what: count for what, count in block.damage.items() if count},
        "rest": (block.trailers, block.ended, block.lists),
    }
