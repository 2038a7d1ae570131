"""Blocks of decoded events put together: slices, marks, flows and counters apart, codes those of one dictionary."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roofterm_parsers.chrome import times
from roofterm_parsers.chrome.codes import Block, Codes, Columns, Lane, Whole
from roofterm_parsers.chrome.groups import BEGIN, END, INSTANT, NOTHING, PHASES, QUIET_PHASES, SLICE, Group
from roofterm_parsers.chrome.store import Table

I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]

OPEN_PS = -1
"""Length of a slice whose end is not known yet."""
LONGEST_PS = 1 << 62
LONGEST_TRAILER_BYTES = 4 << 20
"""Longer ones are stack frames or samples, not facts of the trace."""
CODED_BYTES = 250
"""A text and its place in a dictionary, about."""
_QUIET, _BLANK = 255, 254
_NO_FIELDS: Lane = ("", "", "", "")
"""lane of an event without any fields, as JAX writes it at the end"""
TEXT_COLUMNS = {
    Group.OP: ("signature", "caller"),
    Group.WORK: ("shape",),
    Group.LAUNCH: ("shape", "kernel"),
    Group.COLLECTIVE: ("facts",),
    Group.XLA: ("hlo", "kernel", "copy"),
    Group.FLOW: ("id_text",),
    Group.COUNTER: ("series",),
}
"""Columns of codes into the dictionary of texts"""


@dataclass(slots=True)
class Dictionaries:
    """Codes of one decoder as codes of the whole."""

    lanes: U32 = field(default_factory=lambda: np.zeros(0, np.uint32))
    names: U32 = field(default_factory=lambda: np.zeros(0, np.uint32))
    texts: U32 = field(default_factory=lambda: np.zeros(1, np.uint32))


class Gathered:
    """What all blocks of a file held."""

    def __init__(self) -> None:
        self.lanes: Codes[Lane] = Codes()
        self.names: Codes[str] = Codes()
        self.texts: Codes[bytes] = Codes(b"")
        self.slices = Table()
        self.ends = Table()
        self.marks = Table()
        self.groups: dict[int, Table] = {}
        self.whole: list[Whole] = []
        """events with all their arguments; the first item is the slice, or -1"""
        self.damage: Counter[str] = Counter()
        self.trailers: list[bytes] = []
        self.trails_on = False
        """trailers go on in blocks that hold no event"""
        self.events = 0
        self.lists = 1
        self.ended = False
        self._what = np.zeros(0, np.uint8)

    def add(self, block: Block, own: Dictionaries) -> None:
        """Take in the next block of the file. `own` belongs to the decoder that made it."""
        own.lanes = _grown(own.lanes, [self.lanes[lane] for lane in block.new_lanes])
        own.names = _grown(own.names, [self.names[name] for name in block.new_names])
        own.texts = _grown(own.texts, [self.texts[text] for text in block.new_texts if text])
        self._learn_lanes()
        columns = block.columns
        lane, name = own.lanes[columns["lane"]], own.names[columns["name"]]
        what = self._what[lane]
        behind = self.ended and not block.lists
        self._note(block, behind, bool((what < NOTHING).any()))
        timed = columns["state"] == times.GOOD
        self.events += int(what.size)
        if not behind:
            unknown = (what == NOTHING) | ((what == _BLANK) & ((columns["state"] != times.ABSENT) | (name != self.names[""])))
            self.damage["skipped"] += int(unknown.sum())
        self.damage["untimed"] += int((~timed & ((what == SLICE) | (what == BEGIN))).sum())
        slices = np.flatnonzero(timed & ((what == SLICE) | (what == BEGIN)))
        row_of = np.full(what.size, -1, np.int64)
        row_of[slices] = np.arange(self.slices.rows, self.slices.rows + slices.size)
        us, ps = columns["us"], columns["ps"]
        self.slices.add(
            {
                "us": us[slices],
                "ps": ps[slices],
                "dur": self._lengths(columns, slices, what[slices] == BEGIN),
                "lane": lane[slices],
                "name": name[slices],
                "offset": columns["offset"][slices],
            }
        )
        ends = np.flatnonzero(timed & (what == END))
        self.ends.add(
            {"us": us[ends], "ps": ps[ends], "lane": lane[ends], "before": _slices_before(slices, ends) + self.slices.rows - slices.size}
        )
        marks = np.flatnonzero(timed & (what == INSTANT))
        mark_of = np.full(what.size, -1, np.int64)
        mark_of[marks] = np.arange(self.marks.rows, self.marks.rows + marks.size)
        self.marks.add({"us": us[marks], "ps": ps[marks], "lane": lane[marks], "name": name[marks]})
        for group, values in block.groups.items():
            values = dict(values)
            row = values.pop("row")
            for column in TEXT_COLUMNS.get(Group(group), ()):
                values[column] = own.texts[values[column]]
            if group in (Group.FLOW, Group.COUNTER):
                values |= {"us": us[row], "ps": ps[row], "lane": lane[row], "name": name[row], "what": what[row]}
                kept = timed[row]
            else:
                values["row"] = (mark_of if group == Group.MEMORY else row_of)[row]
                kept = values["row"] >= 0
            if not kept.all():
                values = {key: value[kept] for key, value in values.items()}
            self.groups.setdefault(group, Table()).add(values)
        self.whole += [(int(row_of[w[0]]), *w[1:]) for w in block.whole]

    @property
    def bytes(self) -> int:
        """Memory that is held, about."""
        tables = (self.slices, self.ends, self.marks, *self.groups.values())
        coded = len(self.lanes) + len(self.names) + len(self.texts)
        return sum(table.bytes for table in tables) + coded * CODED_BYTES

    def table(self, group: Group) -> Table | None:
        """What a kind of event holds, to be taken once; None if there is none."""
        table = self.groups.pop(group, None)
        return table if table is not None and table.rows else None

    def _lengths(self, columns: Columns, rows: I64, begins: NDArray[np.bool_]) -> I64:
        us, ps, state = columns["length_us"][rows], columns["length_ps"][rows], columns["length_state"][rows]
        far = np.abs(us) > LONGEST_PS // times.PS_PER_US
        dur = np.where(far, LONGEST_PS, us * times.PS_PER_US + ps)
        bad = (state != times.GOOD) | (dur < 0) | far
        bad &= ~begins
        self.damage["unmeasured"] += int(bad.sum())
        dur[bad] = 0
        dur[begins] = OPEN_PS
        return dur

    def _note(self, block: Block, behind: bool, has_events: bool) -> None:
        """Keep what the block says beside its events. Behind the end of the list nothing is missed: other lists stand there."""
        if not behind:
            self.damage.update(block.damage)
        self.trailers += [trailer for trailer in block.trailers if len(trailer) < LONGEST_TRAILER_BYTES]
        self.trails_on |= behind and not has_events
        self.lists += block.lists + int(behind and has_events)
        self.ended = block.ended or (behind and not has_events)

    def _learn_lanes(self) -> None:
        known = self._what.size
        if known == len(self.lanes):
            return
        fresh = [_what(lane) for lane in list(self.lanes)[known:]]
        self._what = np.concatenate((self._what, np.array(fresh, np.uint8)))


def _what(lane: Lane) -> int:
    if lane == _NO_FIELDS:
        return _BLANK
    return _QUIET if lane[0] in QUIET_PHASES else PHASES.get(lane[0], NOTHING)


def _grown(codes: U32, new: list[int]) -> U32:
    return np.concatenate((codes, np.array(new, np.uint32))) if new else codes


def _slices_before(slices: I64, rows: I64) -> I64:
    return np.searchsorted(slices, rows)
