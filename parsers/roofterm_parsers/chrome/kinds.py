"""Kind of each slice: by its category, its name, and in traces made from XPlanes by the line it lies on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofterm_parsers.chrome.categories import kind_by_name, kind_of
from roofterm_parsers.chrome.codes import Lane, in_order_of_use
from roofterm_parsers.chrome.groups import BEGIN, PHASES, SLICE
from roofterm_parsers.chrome.naming import Names
from roofterm_parsers.profile import Kind
from roofterm_parsers.xplane.kinds import Device, device_line_kind, device_of, host_event_kind, stream_event_kind

U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]


_STREAMLESS = frozenset({"tpu", "sparsecore"})
"""Devices whose work lies on a line of ops; a line of theirs that nobody knows holds none."""


@dataclass(slots=True)
class Named:
    """Distinct pairs of name and category, and for each slice its pair."""

    of_slice: U32
    texts: list[str]
    categories: list[str]


def pair_names(name: U32, lane: U32, names: Sequence[str], lanes: Sequence[Lane]) -> Named:
    """NAMES: the pairs in the order of their first use."""
    numbers: dict[str, int] = {}
    category_of_lane = np.array([numbers.setdefault(category, len(numbers)) for _, category, _, _ in lanes], np.int64)
    categories = list(numbers)
    code = name.astype(np.int64) * len(categories) + (category_of_lane[lane] if lane.size else 0)
    size = len(names) * len(categories)
    if size >= 1 << 26:
        codes, code = np.unique(code, return_inverse=True)
        size = codes.size
    else:
        codes = np.arange(size)
    order = in_order_of_use(code, size)
    place = np.zeros(size, np.uint32)
    place[order] = np.arange(order.size, dtype=np.uint32)
    of_slice: U32 = place[code]
    distinct = codes[order]
    pairs = [divmod(item, len(categories)) for item in distinct.tolist()]
    return Named(of_slice, [names[n] for n, _ in pairs], [categories[c] for _, c in pairs])


def kinds_by_category(named: Named) -> U8:
    """Kind of each slice by category and name."""
    table = [int(kind_by_name(kind_of(category), category, text)) for text, category in zip(named.texts, named.categories, strict=True)]
    return np.array(table, np.uint8)[named.of_slice] if table else np.zeros(0, np.uint8)


@dataclass(slots=True)
class XlaLanes:
    """What the lines of a trace made from an XPlane are, by the names of their processes and threads."""

    device: list[Device | None]
    kind: list[Kind | None]
    """kind of a device line's events; None: a stream's, or a host thread's"""


def xla_lanes(lanes: Sequence[Lane], names: Names) -> XlaLanes:
    """Line by line: which device it belongs to, and what its events are."""
    found = XlaLanes([], [])
    streams: set[Device] = set()
    for phase, _, pid, tid in lanes:
        process = names.process.get(str(pid), "")
        device = device_of(process[max(process.find("/device:"), 0) :])
        line = names.thread.get((str(pid), str(tid)), "")
        kind = device_line_kind(line, tid if isinstance(tid, int) else 0) if device is not None else None
        if device is not None and kind is None and device.kind not in _STREAMLESS:
            if PHASES.get(phase) in (SLICE, BEGIN):
                streams.add(device)
        elif device is not None and kind is None:
            kind = Kind.DEVICE_ANNOTATION
        found.device.append(device)
        found.kind.append(kind)
    for i, device in enumerate(found.device):  # beside streams, a line of ops says again what the streams say
        if device in streams and found.kind[i] in (Kind.KERNEL, Kind.ASYNC):
            found.kind[i] = Kind.DEVICE_ANNOTATION
    return found


def kinds_by_line(named: Named, lane: U32, lines: XlaLanes) -> U8:
    """Kind of each slice by its line and its name; arguments may tell better."""
    host = np.array([int(host_event_kind(text)) for text in named.texts], np.uint8)
    stream = np.array([int(stream_event_kind(text)) for text in named.texts], np.uint8)
    on_device = np.array([device is not None for device in lines.device], bool)
    fixed = np.array([255 if kind is None else int(kind) for kind in lines.kind], np.uint8)
    kinds = np.where(on_device[lane], stream[named.of_slice], host[named.of_slice])
    return np.where(fixed[lane] != 255, fixed[lane], kinds)
