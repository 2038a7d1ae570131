"""Exit codes and the one error that the command line itself raises."""

from __future__ import annotations

DONE = 0
UNUSABLE = 2
"""bad arguments, no such file, not a profile, nothing left after repair"""
FAILED_ON = 3
"""`--fail-on` fired"""
INTERRUPTED = 130


class UsageError(Exception):
    """Arguments that cannot be used: one sentence for the user."""
