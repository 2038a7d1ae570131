"""The one error that a user of the parsers meets."""

from __future__ import annotations


class ProfileError(Exception):
    """A sentence for a user: what is wrong, with which file, and what to do about it.

    `path` is the input as the user named it; the message already names it.
    """

    def __init__(self, message: str, path: str | None = None) -> None:
        super().__init__(message)
        self.path = path


class Interrupted(ProfileError):
    """Loading was stopped by the user (esc, Ctrl+C)."""


class TooLarge(ProfileError):
    """More memory would be needed than is allowed: of several files no part is shown then."""
