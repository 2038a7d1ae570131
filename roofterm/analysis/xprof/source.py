"""How XProf's tables show where an op comes from: the framework's op, and an HTML cell with the stack as its title."""

from __future__ import annotations

from html import escape


def source_cell(source: str | None, stack: str | None) -> str:
    """The cell for `file:line` and its call stack; empty where the compiler named no source."""
    if not source or ":" not in source:
        return ""
    file, line = source.split(":", 1)
    if not line.isdecimal():
        return ""
    return f"<div class='source-info-cell' title='{_html(stack or '')}'>{_html(file)}:{line}</div>"


def framework_op(name: str | None) -> str:
    """A framework op as XProf writes it, `name:type`; the type is often empty."""
    return "" if not name else name if ":" in name else f"{name}:"


def _html(text: str) -> str:
    return escape(text, quote=False).replace("'", "&#39;").replace('"', "&quot;")
