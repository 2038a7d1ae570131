"""Events of a trace as plain dictionaries with times in picoseconds: what golden tests count in, sharing no code with roofterm."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

PS_PER_US = 1_000_000


def raw_events(path: Path) -> list[dict[str, Any]]:
    """The complete events, with `start` and `end` in ps from the first of them, in order of start."""
    text = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
    trace = json.loads(text, strict=False, parse_float=Decimal)
    events = [event for event in (trace if isinstance(trace, list) else trace["traceEvents"]) if event.get("ph") == "X"]
    zero = min(Decimal(event["ts"]) for event in events)
    for event in events:
        event["start"] = int((Decimal(event["ts"]) - zero) * PS_PER_US)
        event["end"] = event["start"] + int(Decimal(event["dur"]) * PS_PER_US)
        event.setdefault("args", {})
    return sorted(events, key=lambda event: event["start"])


def is_work(event: dict[str, Any]) -> bool:
    return event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")


def union_ps(events: list[dict[str, Any]]) -> int:
    """Length of the union of some events, by sweeping over them in order of start."""
    total, reach = 0, -1
    for event in sorted(events, key=lambda event: event["start"]):
        total += max(0, event["end"] - max(event["start"], reach))
        reach = max(reach, event["end"])
    return total
