"""The devices of a trace: those that did work, under the numbers their work gives them, and the others the file lists."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from roofterm_parsers.chrome.header import integer
from roofterm_parsers.errors import ProfileError
from roofterm_parsers.profile import DEVICES

MOST_DEVICES = 60_000
_MTIA = ("runtimeMajorVersion", "maxGridHeight")


@dataclass(slots=True)
class Devices:
    """Rows so far, numbered in the order in which they are asked for."""

    properties: list[dict[str, Any]]
    kind: str = "gpu"
    _keys: dict[tuple[str, int], int] = field(default_factory=dict)
    _worked: set[int] = field(default_factory=set)

    def row(self, rank: str, number: int, *, worked: bool) -> int:
        """The row of a device of a rank of a merged file (empty: there is just one)."""
        row = self._keys.setdefault((rank, number), len(self._keys))
        if row >= MOST_DEVICES:
            raise ProfileError(f"the trace names more than {MOST_DEVICES:,} devices: its `device` numbers are none")
        if worked:
            self._worked.add(row)
        return row

    def find(self, rank: str, number: int) -> int | None:
        return self._keys.get((rank, number))

    def frame(self) -> pl.DataFrame:
        """DEVICES: first those with rows of their own, then what else the file lists."""
        listed = {number: item for item in self.properties if (number := integer(item.get("id"))) is not None and abs(number) < 1 << 31}
        only = _only_model(self.properties)
        rows = []
        stood_for = False
        for (rank, number), row in self._keys.items():
            found, note = listed.get(number), None
            if found is None and only is not None:
                found, stood_for = only, True
                note = "numbered otherwise in the list of devices, which holds one model"
            if rank:
                note = rank if note is None else f"{rank}: {note}"
            rows.append(self._facts(found or {}, number, row in self._worked, note))
        known = {number for _, number in self._keys}
        for number, item in listed.items():
            if number in known or (stood_for and len(listed) == 1):
                continue
            rows.append(self._facts(item, number, False, None))
        return pl.DataFrame(rows, schema=DEVICES)

    def _facts(self, item: dict[str, Any], number: int, worked: bool, note: str | None) -> dict[str, Any]:
        major, minor = (integer(item.get(f"compute{part}", item.get(part.lower()))) for part in ("Major", "Minor"))
        name = item.get("name")
        return {
            "source": 0,
            "id": number,
            "name": name if isinstance(name, str) and name.strip() else None,
            "kind": "npu" if any(key in item for key in _MTIA) else self.kind,
            "worked": worked,
            "memory_bytes": _positive(item.get("totalGlobalMem", item.get("globalMem"))),
            "units": _positive(item.get("numSms", item.get("maxComputeUnits", item.get("gpuEuCount")))),
            "capability": None if major is None else f"{major}.{minor or 0}",
            "warp_size": _positive(item.get("warpSize")),
            "threads_per_unit": _positive(item.get("maxThreadsPerMultiprocessor")),
            "threads_per_block": _positive(item.get("maxThreadsPerBlock", item.get("maxWorkGroupSize"))),
            "registers_per_unit": _positive(item.get("regsPerMultiprocessor", item.get("regsPerBlock"))),
            "shared_bytes_per_unit": _positive(
                item.get("sharedMemPerMultiprocessor", item.get("maxSharedMemoryPerMultiProcessor", item.get("localMemSize")))
            ),
            "clock_hz": None,
            "peak_flops": None,
            "bandwidths": None,
            "note": note,
        }


def _only_model(properties: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Any entry, if all are of one model."""
    models = {tuple(sorted((key, repr(value)) for key, value in item.items() if key != "id")) for item in properties}
    return properties[0] if len(models) == 1 else None


def _positive(value: Any) -> int | None:
    found = integer(value)
    return found if found is not None and 0 < found < 1 << 63 else None
