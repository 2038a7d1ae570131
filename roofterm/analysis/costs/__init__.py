"""What an op costs: FLOPs and compulsory bytes from its recorded shapes, by a registry of op families."""

from __future__ import annotations

from roofterm.analysis.costs import (
    attention,
    communication,
    convolution,
    gemm,
    generated,
    indexing,
    normalization,
    optimizers,
    pointwise,
    quantised,
    reduction,
    serving,
)
from roofterm.analysis.costs.communication import Collective, bus_factor, collective_cost, collective_kind
from roofterm.analysis.costs.model import Cost
from roofterm.analysis.costs.profiler import profiler_flops
from roofterm.analysis.costs.registry import REGISTRY, cost, lookup

FAMILIES = (
    attention, communication, convolution, gemm, generated, indexing, normalization, optimizers, pointwise, quantised, reduction, serving,
)  # fmt: skip
"""The modules whose import fills the registry."""

__all__ = [
    "FAMILIES",
    "REGISTRY",
    "Collective",
    "Cost",
    "bus_factor",
    "collective_cost",
    "collective_kind",
    "cost",
    "lookup",
    "profiler_flops",
]
