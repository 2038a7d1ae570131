"""What an op costs: FLOPs and compulsory bytes from its recorded shapes, by a registry of op families."""

from __future__ import annotations

from roofterm.analysis.costs.profiler import profiler_flops

__all__ = ["profiler_flops"]
