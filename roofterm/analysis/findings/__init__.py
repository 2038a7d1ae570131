"""Findings: what to fix first, each with its evidence, the time at stake and where it shows.

One rule a module, entered in the registry by decorator. Time at stake is never more than can be won within the step: it is
a part of one pool of the breakdown (`claims_on` in the evidence), in which nothing else runs on the device. Findings about
the same pool overlap unless their definitions say otherwise, so their times are not to be added.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from roofterm.analysis.findings.registry import RULES, Rule, judged

if TYPE_CHECKING:
    from roofterm import results
    from roofterm.analysis.scope import Scope
    from roofterm.analysis.study import Study

__all__ = ["Rule", "Verdict", "find_all", "judge", "rules"]

MODULES = (
    "profile_unusable",
    "implausible_durations",
    "warm_up",
    "overhead_bound",
    "many_small_kernels",
    "blocking_syncs",
    "input_bound",
    "input_pipeline",
    "host_pauses",
    "uneven_steps",
    "cold_start",
    "compile_in_window",
    "graph_breaks",
    "guard_cost",
    "compiled_overhead",
    "exposed_communication",
    "late_rank",
    "unequal_collectives",
    "copies",
    "async_copies",
    "dtod_before_gemm",
    "gemms_off_tensor_cores",
    "misaligned_gemms",
    "underfilled_kernels",
    "memory_bound_chains",
    "attention_not_flash",
    "layout_changes",
    "optimizer_unfused",
    "kernel_variance",
    "graphs_missing",
    "query_storm",
    "allocations_in_step",
    "memory_near_limit",
    "memory_fragmentation",
    "profiler_overhead",
    "unknown_device",
)


def rules() -> dict[str, Rule]:
    """All rules by id, in the order in which they are asked."""
    for module in MODULES:
        import_module(f"roofterm.analysis.findings.{module}")
    return RULES


class Verdict(NamedTuple):
    """What the evidence over a scope says."""

    findings: list[results.Finding]
    host_balance: results.HostBalance | None


def judge(study: Study, scope: Scope) -> Verdict:
    """The findings of a profile over a scope, and its host's time against its device's.

    Most time at stake first; those without time at stake first if they are grave. Raises ScopeError for a step or rank that
    is not there.
    """
    from roofterm.analysis.findings.evidence import Evidence

    evidence = Evidence(study, scope)
    found = [finding for one in rules().values() if (finding := judged(one, evidence)) is not None]
    return Verdict(sorted(found, key=_order), evidence.host_balance)


def find_all(study: Study, scope: Scope) -> list[results.Finding]:
    """The findings alone."""
    return judge(study, scope).findings


def _order(finding: results.Finding) -> tuple[int, float]:
    """Doubts about the profile that are no mere remarks come first, then time at stake, then remarks."""
    if finding.time_at_stake_us is None:
        return (2 if finding.severity in ("info", "low") else 0, 0.0)
    return (1, -finding.time_at_stake_us)
