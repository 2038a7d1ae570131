"""Registry of the findings' rules: one function a rule, each in a module of its own, entered by decorator."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from roofterm.analysis.findings.severity import severity_of
from roofterm.results import Finding

if TYPE_CHECKING:
    from roofterm.analysis.findings.evidence import Evidence

Judge = Callable[["Evidence"], Finding | None]


class Rule(NamedTuple):
    """A rule with what is said of it: `roofterm explain ID` prints question, definition and source."""

    id: str
    question: str
    definition: str
    source: str
    host_bound: bool
    """its time is the host's: the profiler's own flags lengthen it"""
    of_device: bool
    """it speaks of the device's own work, of which there must be enough to speak of habits"""
    judge: Judge


LEAST_PIECES = 10
"""Pieces of device work below which evidence about it is thin."""

RULES: dict[str, Rule] = {}
"""All rules by id, in the order of their modules."""


def rule(
    id: str, question: str, definition: str, source: str, host_bound: bool = False, of_device: bool = False
) -> Callable[[Judge], Judge]:
    """Enter a rule. It returns a Finding without id and severity, which are set here, or None where the evidence is thin."""

    def enter(judge: Judge) -> Judge:
        if id in RULES:
            raise ValueError(f"two rules are called {id}")
        RULES[id] = Rule(id, question, " ".join(definition.split()), source, host_bound, of_device, judge)
        return judge

    return enter


def judged(rule: Rule, evidence: Evidence) -> Finding | None:
    """The rule's finding with its id and severity; flags of the profiler are named where they lengthen the host's time."""
    if rule.of_device and evidence.pieces.height < LEAST_PIECES:
        return None
    found = rule.judge(evidence)
    if found is None:
        return None
    found.id = rule.id
    flags = evidence.slowing_flags if rule.host_bound else ()
    found.severity = severity_of(found.share_of_step_pct, found.severity or None, bool(flags))
    if flags:
        found.evidence["slowed_by_flags"] = list(flags)
        found.advice += f" The profiler itself slowed the host ({', '.join(flags)}): record once without."
    return found
