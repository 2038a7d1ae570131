"""JAX on a GPU: what launched a kernel and what the host did in a gap, where the calls that launch stand on lines of their own."""

from __future__ import annotations

from functools import cache

import pytest

from roofterm.analysis.dispatch import executed_in, launching_op
from roofterm.analysis.study import Study
from roofterm.tui.kernel_origins import compiled_from
from roofterm_parsers import open_profile
from tests.reference import reference

ATTENTION = "gpu_mi300x_jax_attention"
FORMS = [".xplane.pb", ".trace.json.gz"]


@cache
def study(name: str) -> Study:
    return Study(open_profile(reference(f"traces/xplane/{name}")))


def name_of(asked: Study, slice_id: int) -> str:
    return str(asked.profile.names["text"][int(asked.profile.slices["name"][slice_id])])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [ATTENTION, "gpu_mi300x_jax_gemm", "gpu_mi355x_jax_te_fused_attn"])
def test_an_instruction_is_executed_within_its_own_program(name: str, form: str) -> None:
    """XLA marks the run of a program as "PROGRAM:XLA GPU module" around those of its instructions: a second witness."""
    asked = study(name + form)
    checked = 0
    for work in asked.profile.hlo["slice"]:
        executed = executed_in(asked, work)
        if executed is None:
            continue
        chain = [link.name for link in asked.dispatch_chain(work)]
        marks = [one.removesuffix(":XLA GPU module") for one in chain if one.endswith(":XLA GPU module")]
        op = int(asked.profile.hlo["op"][int(asked.profile.hlo["slice"].search_sorted(work))])
        assert marks == [asked.profile.hlo_ops["program"][op]]
        checked += 1
    assert checked >= 40


@pytest.mark.parametrize("form", FORMS)
def test_a_kernel_of_a_square_root_comes_from_the_line_that_asks_for_it(form: str) -> None:
    """As the file's own slices lie in time: attention (line 21) calls jit(sqrt), which runs loop_sqrt_fusion around the launch."""
    asked = study(ATTENTION + form)
    kernel = next(int(work) for work in asked.profile.links["work"] if name_of(asked, int(work)) == "loop_sqrt_fusion.kd")
    op = launching_op(asked, kernel)
    assert op is not None
    assert name_of(asked, op) == "PjitFunction(sqrt)"
    chain = [(link.kind, link.name) for link in asked.dispatch_chain(kernel)]
    assert chain[0] == ("python", "$generate_attention_trace.py:21 attention")
    assert chain[-3:] == [("annotation", "loop_sqrt_fusion"), ("call", "hipModuleLaunchKernel"), ("kernel", "loop_sqrt_fusion.kd")]


@pytest.mark.parametrize("form", FORMS)
def test_a_gap_in_which_the_launching_thread_recorded_nothing_names_the_other_thread(form: str) -> None:
    """4,252 to 24,945 us: of all host threads only the pool's has a slice there, BufferSequencingEvent::Execute from 4,178 to 24,816 us."""
    longest = study(ATTENTION + form).table("gap").row(0, named=True)
    assert (round(longest["start_us"]), round(longest["total_us"])) == (4252, 20693)
    assert longest["name"] == "BufferSequencingEvent::Execute (on tf_pjrt_thread_pool/7512490089272390147)"
    assert longest["host_kind"] is None


def test_a_kernel_says_which_lines_of_source_it_was_compiled_from() -> None:
    """As the HLO in the file has it for loop_sqrt_fusion: line 24 of the script asks for the square root."""
    told = {fact.label: fact.value for fact in compiled_from(study(ATTENTION + FORMS[0]), "loop_sqrt_fusion.kd")}
    assert told["launched by"] == "PjitFunction(sqrt)"
    assert told["loop_sqrt_fusion"].startswith("/workspace/traces/generate_attention_trace.py:24 · jit(sqrt)/sqrt · jit_sqrt · ")


def test_a_kernel_that_no_instruction_runs_says_nothing() -> None:
    assert compiled_from(study(ATTENTION + FORMS[0]), "no such kernel") == []
