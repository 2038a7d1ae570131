"""Graph replays of real traces: their kernels, layers, and the ops that a capture trace gives them, counted in the raw JSON."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest

from roofterm.analysis.capture import captured_graphs, match_captures
from roofterm.analysis.graphs import graph_replays, repetition, replay_groups, replayed_work
from roofterm.analysis.scope import ALL
from roofterm.analysis.study import Study
from roofterm_parsers import open_profile
from tests.golden.raw_events import is_work, raw_events
from tests.reference import reference

DECODE = "traces/torch/tracelens_mi300x_sglang_qwen3_8b_decode.json.gz"
CAPTURE = "traces/torch/tracelens_mi300x_sglang_graph_capture_bs32.json.gz"
PIECEWISE = "traces/torch/tracelens_mi300_vllm_prefilldecode_piecewise.json.gz"
DIFFUSION = "traces/torch/tracelens_mi300x_xdit_flux1_aiter.json.gz"


def replays(name: str) -> list[list[dict[str, Any]]]:
    """By the raw events: the work of each graph launch, which share its correlation id, in order of start."""
    events = raw_events(reference(name))
    launches = [event["args"]["correlation"] for event in events if "GraphLaunch" in event["name"]]
    work = [event for event in events if is_work(event)]
    return [[piece for piece in work if piece["args"].get("correlation") == launch] for launch in launches]


# 36 layers of Qwen3-8B are 15 kernels each; gpt-oss is cut at its attentions into 25 graphs.
@pytest.mark.parametrize(("name", "pieces"), [(DECODE, [544]), (PIECEWISE, [4, *[15] * 23, 12]), (DIFFUSION, [1753] * 4)])
def test_launches_own_the_work_of_their_correlation_id(name: str, pieces: list[int]) -> None:
    assert [len(run) for run in replays(name)] == pieces
    assert graph_replays(open_profile(reference(name), cache=False))["pieces"].to_list() == pieces


def most_repeated(names: list[str]) -> tuple[int, int, int] | None:
    """Start, length and number of the equal stretches that cover most of a sequence, the shortest first: by trying all lengths."""
    best: tuple[int, int, int] | None = None
    for length in range(1, len(names) // 2 + 1):
        run = longest = start = 0
        for at in range(len(names) - length):
            run = run + 1 if names[at] == names[at + length] else 0
            if run > longest:
                longest, start = run, at - run + 1
        times = (longest + length) // length
        if times >= 2 and (best is None or times * length > best[1] * best[2]):
            best = start, length, times
    return best


@pytest.mark.parametrize(("name", "layers"), [(DECODE, (2, 15, 36)), (DIFFUSION, (56, 43, 18)), (PIECEWISE, None)])
def test_layers_are_what_repeats_most_in_the_names(name: str, layers: tuple[int, int, int] | None) -> None:
    run = replays(name)[0]
    assert most_repeated([piece["name"] for piece in run]) == layers
    profile = open_profile(reference(name), cache=False)
    replays_of_it = graph_replays(profile)
    work = replayed_work(profile, replays_of_it["launch"].to_numpy())[0]
    assert work.size == len(run)
    found = repetition(profile.slices["name"].to_numpy()[work])
    if layers is None:
        assert found is None
        return
    start, length, times = layers
    assert found == (start, length, times)
    assert replay_groups(profile, [None] * replays_of_it.height)[0].layers == f"{times} x {length}"


def captured_calls() -> list[dict[str, Any]]:
    """By the raw events: the launches between the beginning and the end of the stream's capture, in order."""
    events = raw_events(reference(CAPTURE))
    begin, end = (next(event["start"] for event in events if event["name"] == f"hipStream{what}Capture") for what in ("Begin", "End"))
    return [event for event in events if "LaunchKernel" in event["name"] and begin < event["start"] < end]


def test_the_capture_holds_as_many_launches_as_the_replay_kernels_and_two_more_before_it() -> None:
    """546 launches in the file: 544 are captured, two fill a buffer before the capture and ran."""
    launches = [event for event in raw_events(reference(CAPTURE)) if "LaunchKernel" in event["name"]]
    assert (len(launches), len(captured_calls())) == (546, 544)
    (graph,) = captured_graphs(open_profile(reference(CAPTURE), cache=False))
    assert (graph.size, graph.mode, graph.calls.size) == (32, "DECODE", 544)


def joined() -> Study:
    return Study(open_profile(reference(DECODE), cache=False), captures=[open_profile(reference(CAPTURE), cache=False)])


def test_each_replayed_kernel_gets_the_op_of_the_captured_call_at_its_place() -> None:
    """By the raw events: the k-th kernel of the replay is of the k-th captured call, whose External id names its op."""
    (run,), calls = replays(DECODE), captured_calls()
    assert [piece["name"] for piece in run] == [call["args"]["kernel"] for call in calls]
    ops = {event["args"]["External id"]: event["name"] for event in raw_events(reference(CAPTURE)) if event.get("cat") == "cpu_op"}
    expected = [ops[call["args"]["External id"]] for call in calls]
    study = joined()
    assert study.captured.match.warnings == []
    order = study.captured.placed.with_columns(start=study.profile.slices["start_ps"].gather(study.captured.placed["work"])).sort("start")
    names = study.joined.names["text"].gather(study.joined.slices["name"].gather(order["op"]))
    assert names.to_list() == expected


def test_the_products_of_a_decode_step_are_those_of_the_captured_shapes() -> None:
    """By the raw events: 2 M N K of each captured aten::mm, by its Input Dims; 145 of them, 4 in each of 36 layers and the head."""
    events = raw_events(reference(CAPTURE))
    shapes = {event["args"]["External id"]: event["args"]["Input Dims"] for event in events if event.get("name") == "aten::mm"}
    products = [shapes[call["args"]["External id"]] for call in captured_calls() if call["args"]["External id"] in shapes]
    flops = sum(2 * prod(a) * b[1] for a, b, *_ in products)
    rows = [row for row in joined().roofline(ALL).ops if row.name == "aten::mm"]
    assert (len(products), sum(row.calls for row in rows)) == (145, 145)
    assert sum(row.flops or 0 for row in rows) == flops
    assert {row.shapes for row in rows} == {str(dims).replace(" ", "") for dims in products}


def test_a_replay_s_kernels_hang_in_their_modules() -> None:
    study = joined()
    piece = int(study.captured.placed["work"][300])
    modules = [link.name for link in study.dispatch_chain(piece) if link.kind == "captured module"]
    assert modules[0].startswith("Qwen3Model")
    assert any(name.startswith("Qwen3DecoderLayer") for name in modules)


def test_the_capture_tells_the_work_of_most_of_the_time() -> None:
    """Without it next to nothing: all but 14 of 558 pieces are replayed and name no op."""
    alone = Study(open_profile(reference(DECODE), cache=False)).roofline(ALL).coverage
    with_it = joined().roofline(ALL).coverage
    assert alone.modelled_pct is not None
    assert with_it.modelled_pct is not None
    assert alone.modelled_pct < 1
    assert with_it.modelled_pct > 70


def test_a_capture_of_another_model_joins_nothing_and_says_so() -> None:
    match = match_captures(open_profile(reference(PIECEWISE), cache=False), [open_profile(reference(CAPTURE), cache=False)])
    assert match.joined.height == 0
    assert {warning.code for warning in match.warnings} == {"capture"}
    assert sum(warning.count for warning in match.warnings) == 25
