"""The indexes of the frames that tables show: kept while a frame is shown, and prepared in the background for the next key."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from roofterm.analysis.row_index import RowIndex

MOST_FRAMES = 6
LARGE_ROWS = 20_000
"""from here on, what a key needs is worked out before it is pressed"""


class RowBook:
    """Asked by the desk's thread alone."""

    def __init__(self) -> None:
        self._indexes: OrderedDict[int, RowIndex] = OrderedDict()
        self._preparing: Thread | None = None

    def index(self, frame: pl.DataFrame) -> RowIndex:
        """The index of a frame; the one not asked for longest is forgotten."""
        from roofterm.analysis.row_index import RowIndex

        key = id(frame)  # no other frame has it as long as its index, which holds the frame, is kept
        found = self._indexes.pop(key, None) or RowIndex(frame)
        self._indexes[key] = found
        if len(self._indexes) > MOST_FRAMES:
            self._indexes.popitem(last=False)
        return found

    def prepare(self, frame: pl.DataFrame, columns: Sequence[str]) -> None:
        """Work out the orders of a large frame's columns in a thread of its own, which does not keep the program from ending."""
        missing = self.index(frame).missing(columns) if frame.height >= LARGE_ROWS else []
        if missing and (self._preparing is None or not self._preparing.is_alive()):
            self._preparing = Thread(target=self.index(frame).prepare, args=(missing,), name="roofterm-rows", daemon=True)
            self._preparing.start()
