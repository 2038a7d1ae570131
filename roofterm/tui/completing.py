"""A line being completed by `tab`, as a shell does it: first what all offers share, then one after the other."""

from __future__ import annotations

from roofterm.analysis.filter_completion import Completion
from roofterm.text.beginning import shared_beginning


class Completing:
    """What stands around the cursor, and what is offered for it. Typing anything else ends it."""

    def __init__(self, text: str, cursor: int, found: Completion) -> None:
        self._before, self._after = text[: found.start], text[cursor:]
        self._typed = text[found.start : cursor]
        self._at: int | None = None
        self.offers = found.offers

    def press(self, by: int) -> None:
        """One press of `tab` (1) or `shift+tab` (-1)."""
        shared = shared_beginning(self.offers)
        if self._at is None and len(self.offers) > 1:
            if len(shared) > len(self._typed):
                self._typed = shared
                return
            if not self._typed:  # an empty line: show what there is before choosing any
                self._at = -1 if by > 0 else 0
                return
        self._at = (-1 if by > 0 else 0) if self._at is None else self._at
        self._at = (self._at + by) % len(self.offers)
        self._typed = self.offers[self._at]

    @property
    def text(self) -> str:
        return self._before + self._typed + self._after

    @property
    def cursor(self) -> int:
        return len(self._before) + len(self._typed)
