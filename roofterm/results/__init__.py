"""The records that the analysis gives and every writer and screen shows: one struct a thing, named as in the JSON.

Times at this edge are microseconds (`_us`), rates FLOP/s and bytes/s, sizes bytes, shares percent (`_pct`). Unknown is
None and is shown as `--`; 0 is a measured zero. Long tables (ops, kernels, roofline rows) are polars frames with the
columns of `TABLES`.
"""

from __future__ import annotations

from roofterm.results.devices import DeviceInfo, RoofSet
from roofterm.results.findings import Finding
from roofterm.results.memory import MemoryBlock, MemoryCurve, MemoryHolder, MemoryOp, MemoryPool, MemoryPressure, MemoryReport, MemoryStep
from roofterm.results.ranks import RankGroup, RankRow
from roofterm.results.roofline import Coverage, Roof, Roofline, RooflineRow, ScopeUse
from roofterm.results.steps import (
    ChainLink,
    GraphReplay,
    HostBalance,
    HtaRank,
    LaunchPath,
    OtherTools,
    PhaseTime,
    PluginDevice,
    PluginStep,
    StepRow,
)
from roofterm.results.table_columns import TABLES
from roofterm.results.whatif import SweepRow, WhatIf, WhatIfLimit, WhatIfRow, WhatIfState
from roofterm.results.whole_file import SourceInfo, Summary, WarningInfo
from roofterm.results.xla import InputOp, InputPipeline, XlaOverview

__all__ = [
    "TABLES",
    "ChainLink",
    "Coverage",
    "DeviceInfo",
    "Finding",
    "GraphReplay",
    "HostBalance",
    "HtaRank",
    "InputOp",
    "InputPipeline",
    "LaunchPath",
    "MemoryBlock",
    "MemoryCurve",
    "MemoryHolder",
    "MemoryOp",
    "MemoryPool",
    "MemoryPressure",
    "MemoryReport",
    "MemoryStep",
    "OtherTools",
    "PhaseTime",
    "PluginDevice",
    "PluginStep",
    "RankGroup",
    "RankRow",
    "Roof",
    "RoofSet",
    "Roofline",
    "RooflineRow",
    "ScopeUse",
    "SourceInfo",
    "StepRow",
    "Summary",
    "SweepRow",
    "WarningInfo",
    "WhatIf",
    "WhatIfLimit",
    "WhatIfRow",
    "WhatIfState",
    "XlaOverview",
]
