"""Iterations of profiles that mark no steps, on profiles made by hand; times in us."""

from __future__ import annotations

import pytest

from roofterm.analysis.iterations import find_iterations
from roofterm.analysis.scope import STEADY, Scope
from roofterm.analysis.study import Study
from roofterm_parsers.profile import Kind, Profile
from tests.build import US, Build


def decode(number: int, sequences: int = 4, context: int = 400) -> str:
    return f"execute_{sequences}_context_0(sq0sk0sqsq0sqsk0)_generation_{sequences}(sq{sequences}sk{context}sqsq{sequences}sqsk{context})"


def serving() -> Profile:
    """A prefill of 100 us, then decode iterations that end at 160, 180 and 220 us; kernels launched 1 us after the start."""
    build = Build()
    spans = [
        ("execute_8_context_2(sq8sk8sqsq34sqsk34)_generation_0(sq0sk0sqsq0sqsk0)", 0, 100),
        (decode(1), 140, 20),
        (decode(2, context=404), 160, 20),
        (decode(3, context=408), 200, 20),
    ]
    for name, start, dur in spans:
        build.host(name, start, dur, Kind.ANNOTATION)
        call = build.call(start + 1, 2)
        build.kernel("gemm", start + 5, dur - 10, launch=call)
    return build.profile()


def test_an_engine_s_annotations_are_iterations() -> None:
    found = find_iterations(serving())
    assert found["told_by"].unique().to_list() == ["engine"]
    assert found["name"].to_list() == ["prefill 2 #0", "decode 4 #1", "decode 4 #2", "decode 4 #3"]
    assert found["start_ps"].to_list() == [0, 140 * US, 160 * US, 200 * US]
    assert found["prompt_tokens"].to_list() == [8, 0, 0, 0]
    assert found["context_tokens"].to_list() == [8, 400, 404, 408]


def test_an_annotation_inside_another_is_the_same_iteration() -> None:
    build = Build()
    build.host(decode(1), 0, 100, Kind.ANNOTATION)
    build.host("step[DECODE bs=4]", 10, 80, Kind.ANNOTATION)
    build.host(decode(2), 100, 100, Kind.ANNOTATION)
    assert find_iterations(build.profile())["dur_ps"].to_list() == [100 * US, 100 * US]


def test_iterations_are_steps_where_none_are_marked() -> None:
    study = Study(serving())
    rows = study.steps()
    assert [row.phase for row in rows] == ["prefill", "decode", "decode", "decode"]
    assert [(row.dur_us, row.compute_us) for row in rows] == [(100, 90), (20, 10), (20, 10), (20, 10)]
    assert study.steps_told_by == "engine"
    assert study.selection(Scope(step="2")).work.height == 1


def test_the_file_s_own_facts_do_not_count_them_as_steps() -> None:
    summary = Study(serving()).summary()
    assert (summary.steps, summary.step_us, summary.step_names, summary.device_step_us) == (0, [], [], [])
    assert summary.gpu_idle_in_step_us is None


def test_steps_that_are_marked_stay_and_take_the_phase_of_the_iteration_inside() -> None:
    build = Build()
    for number, name in enumerate((decode(0), "step[EXTEND bs=1 toks=9]")):
        build.step(number, 100 * number, 100)
        build.host(name, 100 * number + 10, 50, Kind.ANNOTATION)
    study = Study(build.profile())
    assert study.steps_told_by is None
    assert [(row.name, row.phase) for row in study.steps()] == [("ProfilerStep#0", "decode"), ("ProfilerStep#1", "prefill")]


def test_the_table_groups_by_phase_batch_and_context() -> None:
    """Context per sequence: 100 to 102 tokens, all under 128. Decode ends at 160, 180 and 220 us: 20 and 40 us between tokens,
    whose median is 30 and whose 99th percentile 20 + 0.99 x 20. 12 tokens in 60 us are 200,000 a second."""
    table = Study(serving()).table("iteration")
    assert table["name"].to_list() == [
        "prefill, 2 sequences, up to 8 prompt tokens, context up to 4",
        "decode, 4 sequences, context up to 128",
    ]
    prefill, generated = table.rows(named=True)
    assert (prefill["calls"], prefill["total_us"], prefill["prompt_tokens"], prefill["inter_token_p50_us"]) == (1, 100, 8, None)
    assert (generated["calls"], generated["total_us"], generated["mean_us"], generated["host_us"]) == (3, 60, 20, 60)
    assert (generated["generated_tokens"], generated["context_tokens"], generated["launches"]) == (4, 404, 1)
    assert generated["tokens_per_s"] == pytest.approx(12 / 60e-6)
    assert generated["inter_token_p50_us"] == pytest.approx(30)
    assert generated["inter_token_p99_us"] == pytest.approx(39.8)
    assert (generated["compute_us"], generated["idle_us"], generated["device_us"]) == (10, 10, 30)
    assert (prefill["pct"], generated["pct"]) == (62.5, 37.5)


def test_the_table_may_be_limited_to_steps_and_filtered_by_phase() -> None:
    study = Study(serving())
    assert study.table("iteration", Scope(step="0-1"))["calls"].to_list() == [1, 1]
    assert study.table("iteration", Scope(where="phase:decode"))["calls"].to_list() == [3]


def test_time_between_tokens_spans_a_prefill_in_between() -> None:
    build = Build()
    for name, start, dur in ((decode(0), 0, 10), ("step[EXTEND bs=1 toks=64]", 10, 70), (decode(1), 80, 10)):
        build.host(name, start, dur, Kind.ANNOTATION)
    table = Study(build.profile()).table("iteration", Scope(where="phase:decode"))
    assert table["inter_token_p50_us"].to_list() == [80]


def test_ranges_that_repeat_and_hold_the_work_are_iterations() -> None:
    """`train` holds all launches, `forward` inside of it half of them: the longer ranges are taken."""
    build = Build()
    for number in range(3):
        start = 100 * number
        build.host(f"train {number}", start, 90, Kind.ANNOTATION)
        build.host("forward", start + 5, 40, Kind.ANNOTATION)
        for at in (10, 60):
            build.kernel("k", start + at + 5, 10, launch=build.call(start + at, 2))
    found = find_iterations(build.profile())
    assert found["name"].to_list() == ["train 0 #0", "train 1 #1", "train 2 #2"]
    assert found["told_by"].unique().to_list() == ["range"]


def test_ranges_that_hold_less_than_most_of_the_work_tell_nothing() -> None:
    build = Build()
    for number in range(2):
        build.host("forward", 100 * number, 40, Kind.ANNOTATION)
        build.kernel("a", 100 * number + 10, 10, launch=build.call(100 * number + 5, 2))
        build.kernel("b", 100 * number + 60, 10, launch=build.call(100 * number + 55, 2))
    assert find_iterations(build.profile()).height == 0


@pytest.mark.parametrize("name", ["nccl:all_reduce", "enumerate(DataLoader)#_Iter.__next__", "DistributedDataParallel.forward"])
def test_ranges_of_the_frameworks_are_parts_and_not_iterations(name: str) -> None:
    build = Build()
    for number in range(2):
        build.host(name, 100 * number, 90, Kind.ANNOTATION)
        build.kernel("a", 100 * number + 10, 10, launch=build.call(100 * number + 5, 2))
    assert find_iterations(build.profile()).height == 0


def test_ranges_of_xla_s_runtime_are_no_iterations() -> None:
    build = Build(format="xplane")
    for number in range(2):
        build.host("PJRT_LoadedExecutable_Execute", 100 * number, 90, Kind.ANNOTATION)
        build.kernel("fusion", 100 * number + 10, 10, launch=build.call(100 * number + 5, 2))
    assert find_iterations(build.profile()).height == 0


def test_the_optimizer_s_step_ends_an_iteration() -> None:
    build = Build()
    build.host("aten::mm", 10, 5)
    for end in (100, 180, 260):
        build.host("Optimizer.step#SGD.step", end - 20, 20, Kind.ANNOTATION)
    found = find_iterations(build.profile())
    assert found["start_ps"].to_list() == [10 * US, 100 * US, 180 * US]
    assert found["dur_ps"].to_list() == [90 * US, 80 * US, 80 * US]
    assert found["told_by"].unique().to_list() == ["optimizer"]


def test_two_optimizers_may_belong_to_one_iteration() -> None:
    build = Build()
    for start in (0, 100):
        build.host("Optimizer.step#SGD.step", start + 10, 10, Kind.ANNOTATION)
        build.host("Optimizer.step#Adam.step", start + 30, 10, Kind.ANNOTATION)
    assert find_iterations(build.profile()).height == 0


def replays(launches: list[float], kernels: int) -> Profile:
    build = Build()
    for start in launches:
        call = build.call(start, 5, "cudaGraphLaunch")
        for at in range(kernels):
            build.kernel(f"k{at}", start + 10 + at, 0.5, launch=call)
    return build.profile()


def test_graph_launches_that_repeat_are_iterations() -> None:
    """Launched every 100 and then 200 us: each lasts until the next, the last one for the median of 150 us."""
    found = find_iterations(replays([0, 100, 300], 60))
    assert found["dur_ps"].to_list() == [100 * US, 200 * US, 150 * US]
    assert found["told_by"].unique().to_list() == ["graph"]


def test_small_graphs_are_layers_and_not_iterations() -> None:
    assert find_iterations(replays([0, 100, 300], 15)).height == 0


def test_nothing_that_repeats_tells_nothing() -> None:
    build = Build()
    build.host("aten::mm", 0, 10)
    build.host("once", 20, 10, Kind.ANNOTATION)
    study = Study(build.profile())
    assert study.iterations.height == 0
    assert study.steps() == []
    assert study.selection(STEADY).text == "whole file, no steps"
    assert study.table("iteration").height == 0
