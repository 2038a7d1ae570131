from __future__ import annotations

import pytest

from roofterm.analysis.batches import parse_batch, parse_capture

# Two prompts of which 3 and 2 tokens are new, with 5 and 2 tokens to attend to, and one sequence that generates with 9.
TWO_PROMPTS_ONE_SEQUENCE = "execute_6_context_2(sq5sk7sqsq13sqsk19)_generation_1(sq1sk9sqsq1sqsk9)"


def test_vllm_sums_are_read_apart_for_prompts_and_generation() -> None:
    batch = parse_batch(TWO_PROMPTS_ONE_SEQUENCE)
    assert batch is not None
    assert batch.phase == "mixed"
    assert (batch.sequences, batch.prefill.q, batch.decode.q, batch.tokens) == (3, 5, 1, 6)
    assert batch.context_tokens == 7 + 9


def test_causal_pairs_are_those_a_person_counts() -> None:
    """The last 3 of 5 tokens see 3, 4 and 5 tokens; both of 2 see 1 and 2; the generating one sees 9: 12 + 3 + 9."""
    batch = parse_batch(TWO_PROMPTS_ONE_SEQUENCE)
    assert batch is not None
    assert batch.prefill.causal_pairs == 12 + 3
    assert batch.causal_pairs == 12 + 3 + 9


def test_the_example_of_the_definitions() -> None:
    name = "execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk34489sqsq37sqsk34489)"
    batch = parse_batch(name)
    assert batch is not None
    assert batch.prefill.causal_pairs == 3_937_495
    assert (batch.sequences, batch.tokens, batch.graph_size) == (46, 8192, 8192)


@pytest.mark.parametrize(
    ("name", "phase", "sequences", "prompt", "generated", "context"),
    [
        ("execute_context_3(700)_generation_0(0)", "prefill", 3, 700, 0, None),
        ("execute_context_0(0)_generation_16(16)", "decode", 16, 0, 16, None),
        ("execute_context_0(0)_generation_8(32)", "decode", 8, 0, 32, None),  # 4 tokens each: drafts are verified
        ("execute_context_1(20)_generation_4(4)", "mixed", 5, 20, 4, None),
        ("execute_new_2_cached_0", "prefill", 2, None, 0, None),
        ("execute_new_0_cached_7", "decode", 7, 0, None, None),
        ("step[DECODE bs=24]", "decode", 24, 0, 24, None),
        ("step[EXTEND bs=3 toks=900]", "prefill", 3, 900, 0, None),
        ("step[DECODE bs=4 g_sq=4 g_sqsq=4 g_sqsk=400 g_sk=400]", "decode", 4, 0, 4, 400),
        ("step[MIXED bs=3 c=1 g=2 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40 g_sq=2 g_sk=21 g_sqsq=2 g_sqsk=21]", "mixed", 3, 5, 2, 29),
        ("prefill[bs=2 tok=640 ctx=[400, 240]]", "prefill", 2, 640, 0, None),
        ("decode[bs=50/64 tok=50 d=50 sqsq=50 sqsk=5000 sk=5000]", "decode", 50, 0, 50, 5000),
    ],
)
def test_annotations_of_engines(
    name: str, phase: str, sequences: int, prompt: int | None, generated: int | None, context: int | None
) -> None:
    batch = parse_batch(name)
    assert batch is not None
    assert (batch.phase, batch.sequences, batch.prefill.q, batch.decode.q, batch.context_tokens) == (
        phase,
        sequences,
        prompt,
        generated,
        context,
    )


def test_what_an_annotation_does_not_say_is_unknown() -> None:
    """Requests alone tell no tokens; a mixed batch of unknown make-up tells not even its sequences."""
    told = parse_batch("execute_new_1_cached_3")
    assert told is not None
    assert (told.phase, told.sequences, told.tokens, told.causal_pairs) == ("mixed", 4, None, None)
    mixed = parse_batch("step[MIXED bs=2]")
    assert mixed is not None
    assert (mixed.phase, mixed.sequences, mixed.tokens) == ("mixed", None, None)


def test_an_idle_step_has_no_phase() -> None:
    batch = parse_batch("step[IDLE bs=0]")
    assert batch is not None
    assert batch.phase is None


def test_a_padded_batch_names_the_size_of_its_graph() -> None:
    batch = parse_batch("decode[bs=50/64 tok=50 d=50]")
    assert batch is not None
    assert (batch.sequences, batch.graph_size) == (50, 64)


@pytest.mark.parametrize("name", ["ProfilerStep#3", "aten::mm", "", "step[", "execute_model", "decode", "forward"])
def test_other_names_tell_nothing(name: str) -> None:
    assert parse_batch(name) is None


def test_captures_name_their_size_and_mode() -> None:
    assert parse_capture("capture_32_DECODE") == (32, "DECODE")
    assert parse_capture("capture_8192_PIECEWISE") == (8192, "PIECEWISE")
    assert parse_capture("capture_stack") is None
