"""Paths as a person types them: completed as a shell does."""

from __future__ import annotations

import os

MOST = 500
"""paths offered at most"""


def completions(text: str) -> list[str]:
    """Paths that begin with `text`, folders first and with a slash at their end; hidden ones only if asked for."""
    head, tail = os.path.split(text)
    folder = os.path.expanduser(head) or "."
    found: list[tuple[bool, str]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                if name.startswith(tail) and (tail or not name.startswith(".")) and name.isprintable():
                    is_folder = entry.is_dir()
                    found.append((not is_folder, os.path.join(head, name) + ("/" if is_folder else "")))
    except (OSError, ValueError):  # a text with a NUL is no path
        return []
    return [path for _, path in sorted(found)[:MOST]]
