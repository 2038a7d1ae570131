"""What texts have in common, for completing what a person types."""

from __future__ import annotations

from collections.abc import Sequence


def shared_beginning(texts: Sequence[str]) -> str:
    """The longest text with which all of them begin; empty for none."""
    if not texts:
        return ""
    first, last = min(texts), max(texts)
    length = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[:length]
