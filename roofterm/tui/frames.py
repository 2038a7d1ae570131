"""Records of the analysis as frames, so that tables, filters and sorting treat all alike. Nothing is computed here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import polars as pl

from roofterm.report.breakdown import PARTS, part_of
from roofterm.report.roofline_table import main_level
from roofterm.results import DeviceInfo, Finding, StepRow
from roofterm.text.units import si


def steps_frame(rows: Sequence[StepRow], slowest: str | None) -> pl.DataFrame:
    """One row each with `StepRow`'s fields, `parts` (its breakdown for a bar), `step` (its number, if its name has one), `mark`."""
    longest = max((row.dur_us for row in rows), default=0.0)
    most = max((row.dur_us for row in rows if row.name == slowest), default=0.0)  # several ranks have a step of that name
    marked = len(rows) > 1  # the only one is the fastest, too
    records = [_step_record(row, marked and row.name == slowest and row.dur_us == most, longest) for row in rows]
    return pl.DataFrame(records, schema=_STEPS, strict=False)


def findings_frame(findings: Sequence[Finding]) -> pl.DataFrame:
    """One row each, in the order given: `name` is the title."""
    records = [{"name": one.title, **{key: getattr(one, key) for key in list(_FINDINGS)[1:]}} for one in findings]
    return pl.DataFrame(records, schema=_FINDINGS, strict=False)


def roofs_frame(device: DeviceInfo) -> pl.DataFrame:
    """One row a roof of the device, the highest of each kind first."""
    records = [
        {
            "name": dtype,
            "kind": "compute",
            "value": si(value, "FLOP/s"),
            "ridge": _ridge(device, dtype),
            "source": device.roofs_from,
            "rank": value,
        }
        for dtype, value in sorted(device.peaks.items(), key=lambda item: -item[1])
    ]
    records += [
        {"name": level, "kind": "memory", "value": si(value, "B/s"), "ridge": "", "source": device.roofs_from, "rank": value}
        for level, value in sorted(device.bandwidths.items(), key=lambda item: -item[1])
    ]
    records += [
        {"name": link, "kind": "link", "value": si(value, "B/s"), "ridge": "", "source": "vendor", "rank": value}
        for link, value in sorted(device.links.items(), key=lambda item: -item[1])
    ]
    return pl.DataFrame(records, schema=_ROOFS, strict=False)


def step_number(name: str) -> int | None:
    """The number at the end of a step's name: ProfilerStep#12 is 12."""
    found = re.search(r"(\d+)\s*$", name)
    return int(found.group(1)) if found else None


def _ridge(device: DeviceInfo, dtype: str) -> str:
    ridge = main_level(device.ridge.get(dtype, {}))
    return "" if ridge is None else f"{si(ridge)} FLOP/B"


_STEPS = pl.Schema(
    {
        "parts": pl.List(pl.Float64()),  # us by `breakdown.PARTS`, then the length of the longest step
        **dict.fromkeys(("name", "mark", "phase"), pl.String()),
        **dict.fromkeys(("step", "rank", "launches"), pl.Int64()),
        **dict.fromkeys(("complete", "steady"), pl.Boolean()),
        **dict.fromkeys([name for name in StepRow.__struct_fields__ if name.endswith(("_us", "_pct"))], pl.Float64()),
    }
)
_FINDINGS = pl.Schema(
    {
        **dict.fromkeys(("name", "id", "severity"), pl.String()),
        **dict.fromkeys(("time_at_stake_us", "share_of_step_pct"), pl.Float64()),
    }
)
_ROOFS = pl.Schema({**dict.fromkeys(("name", "kind", "value", "ridge", "source"), pl.String()), "rank": pl.Float64()})


def _step_record(row: StepRow, slowest: bool, longest_us: float) -> dict[str, Any]:
    record = {name: getattr(row, name) for name in _STEPS if name not in ("mark", "step", "parts")}
    known = row.compute_us is not None
    record["parts"] = [*(part_of(row, key) for key, _, _ in PARTS), longest_us] if known else None
    record["step"] = step_number(row.name)
    record["mark"] = "incomplete" if not row.complete else "not steady" if not row.steady else "slowest" if slowest else ""
    return record
