"""What widgets and workers tell the explorer."""

from __future__ import annotations

from textual.message import Message


class RowHighlighted(Message):
    """The cursor of a table or a list stands on another row."""

    def __init__(self, source: str, row: int) -> None:
        self.source = source
        """id of the widget"""
        self.row = row
        """row of the frame, not of the screen"""
        super().__init__()


class FilterAsked(Message):
    """The filter bar was left with this expression."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        super().__init__()


class FilterLeft(Message):
    """The filter bar was left and changes nothing."""


class EdgeReached(Message):
    """A list's cursor was asked to go beyond its first or last row."""

    def __init__(self, source: str, by: int) -> None:
        self.source = source
        self.by = by
        super().__init__()
