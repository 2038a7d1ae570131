"""Findings on the samples are what was played into them (samples/README.md), with the sizes of the makers' own books."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from roofterm.analysis.findings import find_all
from roofterm.analysis.scope import STEADY
from roofterm.analysis.study import Study
from roofterm.results import Finding
from roofterm_parsers import open_profile

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
ALONE, RANKS = "transformer_h100_synthetic", "transformer_h100_2ranks_synthetic"


@cache
def found(path: str) -> dict[str, Finding]:
    return {finding.id: finding for finding in find_all(Study(open_profile(SAMPLES / path, cache=False)), STEADY)}


def book(name: str) -> Any:
    return json.loads((SAMPLES / f"{name}.expected.json").read_text())


def stake_us(finding: Finding) -> float:
    assert finding.time_at_stake_us is not None
    return finding.time_at_stake_us


def test_a_batch_that_comes_late():
    """Step 13 of six waits 36 ms for its batch while the device idles. The second synchronisation and its pageable copy, and the
    all-reduce's tail of 3 %, are too little to speak of; the unfused norms, gates and embeddings of a plain decoder are not.
    """
    findings = found(f"{ALONE}.pt.trace.json.gz")
    assert set(findings) == {"memory-bound-chains", "input-bound", "uneven-steps"}
    steps = book(ALONE)["steps"]
    waited = sum(step["host_wait_us"] for step in steps)
    assert 36_000 / 6 < stake_us(findings["input-bound"]) < waited / 6
    lengths = [step["dur_us"] for step in steps]
    uneven = findings["uneven-steps"]
    assert (uneven.evidence["slowest"], uneven.evidence["grew_most"]) == ("ProfilerStep#13", "waiting for the host")
    assert stake_us(uneven) == pytest.approx(sum(max(0.0, length - median(lengths)) for length in lengths) / 6)
    # Shapes and memory were recorded: what is about the host drops one severity, from 5.8 % of the step.
    assert (findings["input-bound"].severity, uneven.severity) == ("low", "medium")


def test_a_rank_that_computes_slower_for_a_step():
    """Rank 1 computes a third slower in step 11, and rank 0 waits for it in the all-reduces."""
    findings = found(RANKS)
    assert set(findings) == {"uneven-steps", "kernel-variance", "memory-bound-chains", "late-rank", "exposed-communication"}
    uneven = findings["uneven-steps"].evidence
    assert (uneven["slowest"], uneven["slowest_rank"], uneven["grew_most"]) == ("ProfilerStep#11", 1, "compute")
    usual = median(step["compute_us"] for step in book(f"{RANKS}.rank1")["steps"])
    assert findings["kernel-variance"].evidence["slowest_step"] == "ProfilerStep#11"
    assert findings["kernel-variance"].evidence["slowest_step_more_us"] == pytest.approx(usual / 3, rel=0.03)  # kernels vary by themselves
    late = findings["late-rank"].evidence
    meetings = book(f"{RANKS}.ranks")["collectives"]
    waits = {str(rank): sum(meeting["wait_us"][rank] for meeting in meetings) / 3 for rank in (0, 1)}
    assert late["late_rank"] == "1"
    assert late["wait_us_by_rank"] == pytest.approx(waits)
    exposed = sum(step["exposed_comm_us"] for rank in (0, 1) for step in book(f"{RANKS}.rank{rank}")["steps"]) / 6
    assert stake_us(findings["late-rank"]) + stake_us(findings["exposed-communication"]) <= exposed * (1 + 1e-9)
    assert stake_us(findings["late-rank"]) > exposed / 2


def test_a_recording_of_a_small_machine_has_nothing_but_its_unsteadiness():
    """Four training steps of a CPU on a busy machine, and one step with stacks: a single step cannot be uneven."""
    assert set(found("transformer_cpu.pt.trace.json.gz")) == {"uneven-steps"}
    assert found("transformer_cpu_stacks.pt.trace.json.gz") == {}
