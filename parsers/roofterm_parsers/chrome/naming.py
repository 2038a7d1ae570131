"""What metadata events say of processes and threads, and which rank of a merged file a process belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

_RANKED = re.compile(r"(.*[^0-9])(-?[0-9]+)\Z", re.DOTALL)


@dataclass(slots=True)
class Names:
    """Texts of processes and threads by their ids as text."""

    process: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    process_sort: dict[str, int] = field(default_factory=dict)
    thread: dict[tuple[str, str], str] = field(default_factory=dict)
    thread_sort: dict[tuple[str, str], int] = field(default_factory=dict)

    def learn(self, events: Iterable[tuple[str, int | str, int | str, bytes]]) -> None:
        """Take in metadata events: name, process, thread, arguments as JSON. The last that names a thing counts."""
        for name, pid, tid, text in events:
            try:
                args: Any = msgspec.json.decode(text) if text else {}
            except (msgspec.DecodeError, RecursionError):
                continue
            if not isinstance(args, dict):
                continue
            process, thread = str(pid), (str(pid), str(tid))
            if name == "process_name":
                _set(self.process, process, args.get("name"))
            elif name == "process_labels":
                _set(self.labels, process, args.get("labels"))
            elif name == "process_sort_index":
                _set_number(self.process_sort, process, args.get("sort_index"))
            elif name == "thread_name":
                _set(self.thread, thread, args.get("name"))
            elif name == "thread_sort_index":
                _set_number(self.thread_sort, thread, args.get("sort_index"))


def rank_prefix(pid: int | str) -> str:
    """What stands before the number in a process id of a merged file ("[TP00] 83"); empty for a plain id."""
    if isinstance(pid, int):
        return ""
    found = _RANKED.match(pid)
    return found[1].strip() if found else ""


def trailing_number(text: int | str) -> int | None:
    """The number that an id is or ends in ("stream 7", "[TP00] 0")."""
    if isinstance(text, int):
        return text
    found = re.search(r"-?[0-9]+\Z", text.strip())
    return int(found[0]) if found and len(found[0]) < 19 else None


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Key that sorts "stream 7" before "stream 20"."""
    return tuple(
        (0, int(part), "") if part.isdecimal() and len(part) < 30 else (1, 0, part) for part in re.split(r"([0-9]+)", text) if part
    )


def _set(table: dict[Any, str], key: Any, value: Any) -> None:
    if isinstance(value, str) and value.strip():
        table[key] = value.strip()


def _set_number(table: dict[Any, int], key: Any, value: Any) -> None:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62:
        table[key] = value
