"""Phases of a training step made by hand; times in us. Thread 1 runs the model, thread 2 autograd."""

from __future__ import annotations

import polars as pl
import pytest

from roofterm.analysis.phases import Phase, host_phases, phase_names
from roofterm.analysis.scope import ALL, Scope
from roofterm.analysis.study import Study
from roofterm_parsers.profile import BACKWARD, HLO, HLO_OPS, Kind, Profile
from tests.build import Build

NODE = "autograd::engine::evaluate_function: "


def finished(build: Build) -> Profile:
    """The profile, its backward ops paired with forward ones by their sequence numbers."""
    profile = build.profile()
    numbered = profile.ops.drop_nulls("sequence")
    backward = numbered.filter(pl.col("forward_thread").is_not_null()).select("sequence", backward="slice")
    forward = numbered.filter(pl.col("forward_thread").is_null()).unique("sequence", keep="last").select("sequence", forward="slice")
    profile.backward = backward.join(forward, on="sequence").select("backward", "forward").cast(BACKWARD).sort("backward")
    return profile


def phases(profile: Profile) -> dict[str, str | None]:
    """Phase of each host slice by its name."""
    names = profile.names["text"].gather(profile.slices["name"])
    return dict(zip(names, phase_names(host_phases(profile)), strict=True))


def training_step(build: Build, start: float = 0.0) -> None:
    """A batch is loaded and copied, a linear layer and a loss run forward and backward, the optimizer steps, all in 200 us."""
    at = start
    build.host("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, 10, Kind.ANNOTATION)
    build.host("aten::copy_", at + 12, 4)
    build.kernel("copy", at + 20, 5, launch=build.call(at + 13, 2))
    build.host("aten::linear", at + 20, 10, sequence=7)
    build.kernel("gemm forward", at + 30, 20, launch=build.call(at + 22, 2))
    build.host("aten::sum", at + 32, 4, sequence=8)
    build.kernel("loss", at + 50, 5, launch=build.call(at + 33, 2))
    build.host("aten::item", at + 38, 2)
    build.host(NODE + "SumBackward0", at + 50, 5, thread=2, sequence=8, forward_thread=1)
    build.host(NODE + "AddmmBackward0", at + 60, 20, thread=2, sequence=7, forward_thread=1)
    build.host("AddmmBackward0", at + 61, 15, thread=2, sequence=7, forward_thread=1)
    build.host("aten::mm", at + 62, 5, thread=2)
    build.kernel("gemm backward", at + 70, 40, launch=build.call(at + 63, 2, thread=2))
    build.host("nccl:all_reduce", at + 78, 1, Kind.ANNOTATION, thread=2)
    build.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + 100, 30, stream=9, launch=build.call(at + 78.2, 0.5, thread=2))
    build.host("Optimizer.step#SGD.step", at + 120, 20, Kind.ANNOTATION)
    build.host("aten::_foreach_add_", at + 122, 10)
    build.kernel("update", at + 140, 10, launch=build.call(at + 124, 2))


def test_each_slice_has_the_phase_of_the_nearest_mark() -> None:
    build = Build()
    training_step(build)
    found = phases(finished(build))
    assert found["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"] == "dataloader"
    assert (found["aten::linear"], found["aten::sum"]) == ("forward", "forward")
    assert (found[NODE + "AddmmBackward0"], found["aten::mm"]) == ("backward", "backward")
    assert found["nccl:all_reduce"] == "communication"
    assert (found["Optimizer.step#SGD.step"], found["aten::_foreach_add_"]) == ("optimizer", "optimizer")


def test_what_lies_before_and_behind_the_differentiated_ops_has_no_phase() -> None:
    build = Build()
    training_step(build)
    found = phases(finished(build))
    assert (found["aten::copy_"], found["aten::item"]) == (None, None)


def test_forward_ends_with_the_last_op_before_the_backward_pass() -> None:
    """What runs on the model's thread while and after the backward pass is not forward, though the next step's forward follows."""
    build = Build()
    training_step(build)
    build.host("aten::zeros", 90, 2)
    training_step(build, 200)
    assert phases(finished(build))["aten::zeros"] is None


def test_device_work_takes_the_phase_of_its_launch_and_collectives_are_communication() -> None:
    build = Build()
    training_step(build)
    study = Study(finished(build))
    kernels = study.profile.names["text"].gather(study.profile.slices["name"].gather(study.work["slice"]))
    assert dict(zip(kernels, study.phase_of_work(), strict=True)) == {
        "copy": None,
        "gemm forward": "forward",
        "loss": "forward",
        "gemm backward": "backward",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL": "communication",
        "update": "optimizer",
    }


def test_work_launched_before_the_window_has_no_phase() -> None:
    build = Build()
    training_step(build)
    build.kernel("earlier", 0, 5)
    study = Study(finished(build))
    assert study.phase_of_work().null_count() == 2  # this one and the copy of the batch


def test_a_checkpoint_that_runs_forward_under_a_backward_node_is_recomputation() -> None:
    """Without Python stacks: the ops from the first to the last with a sequence number of their own, those between too; the
    node's own formula behind them is backward."""
    build = Build()
    build.host("aten::conv2d", 0, 10, sequence=1)
    build.host("aten::relu", 10, 10, sequence=2)
    build.host(NODE + "ReluBackward0", 50, 40, thread=2, sequence=2, forward_thread=1)
    build.host(NODE + "ConvolutionBackward0", 95, 20, thread=2, sequence=1, forward_thread=1)
    build.host("aten::conv2d", 52, 10, thread=2, sequence=11)
    build.host("aten::detach", 63, 2, thread=2)
    build.host("aten::batch_norm_again", 66, 6, thread=2, sequence=12)
    build.host("aten::threshold_backward", 80, 5, thread=2)
    profile = finished(build)
    named = profile.names["text"].gather(profile.slices["name"])
    codes = pl.DataFrame({"name": named, "phase": phase_names(host_phases(profile)), "start": profile.slices["start_ps"]})
    again = codes.filter(pl.col("start") >= 50_000_000)
    assert dict(again.select("name", "phase").iter_rows()) == {
        NODE + "ReluBackward0": "backward",
        NODE + "ConvolutionBackward0": "backward",
        "aten::conv2d": "recompute",
        "aten::detach": "recompute",
        "aten::batch_norm_again": "recompute",
        "aten::threshold_backward": "backward",
    }
    assert codes.filter(pl.col("start") < 50_000_000)["phase"].to_list() == ["forward", "forward"]


def test_a_backward_pass_that_is_differentiated_again_is_no_recomputation() -> None:
    """With create_graph the formulas' ops have sequence numbers too, but none of them is of the forward kind."""
    build = Build()
    build.host("aten::mul", 0, 10, sequence=1)
    build.host(NODE + "MulBackward0", 50, 40, thread=2, sequence=1, forward_thread=1)
    build.host("aten::mul_in_formula", 52, 10, thread=2, sequence=11)
    assert phases(finished(build))["aten::mul_in_formula"] == "backward"


def test_a_reentrant_checkpoint_recomputes_until_its_own_backward_pass() -> None:
    build = Build()
    build.host("CheckpointFunction", 0, 10, sequence=1)
    build.host(NODE + "CheckpointFunctionBackward", 50, 90, thread=2, sequence=1, forward_thread=1)
    build.host("CheckpointFunctionBackward", 51, 88, thread=2, sequence=1, forward_thread=1)
    build.host("aten::gelu", 55, 10, thread=2, sequence=11)
    build.host(NODE + "GeluBackward0", 70, 30, thread=2, sequence=11, forward_thread=1)
    build.host("aten::gelu_backward", 75, 10, thread=2)
    found = phases(finished(build))
    assert (found["aten::gelu"], found["aten::gelu_backward"]) == ("recompute", "backward")


def test_a_python_frame_of_the_checkpoint_tells_recomputation() -> None:
    build = Build()
    build.host("aten::relu", 0, 10, sequence=2)
    build.host(NODE + "ReluBackward0", 50, 40, thread=2, sequence=2, forward_thread=1)
    build.host("torch/utils/checkpoint.py(1500): recompute_fn", 52, 20, Kind.PYTHON, thread=2)
    build.host("aten::embedding", 55, 5, thread=2)
    build.host("aten::threshold_backward", 80, 5, thread=2)
    found = phases(finished(build))
    assert (found["aten::embedding"], found["aten::threshold_backward"]) == ("recompute", "backward")


def test_a_range_that_outlasts_the_frame_that_opened_it_holds_what_starts_within() -> None:
    """With Python stacks the range begins inside the call that enters it, and nothing nests in it."""
    build = Build()
    build.host("train.py(3): step", 0, 100, Kind.PYTHON)
    build.host("<built-in method _record_function_enter_new>", 10, 5, Kind.PYTHON)
    build.host("Optimizer.step#SGD.step", 12, 60, Kind.ANNOTATION)
    build.host("aten::_foreach_add_", 30, 10)
    build.host("aten::later", 80, 10)
    found = phases(finished(build))
    assert (found["aten::_foreach_add_"], found["aten::later"]) == ("optimizer", None)


def test_old_names_of_backward_ops_are_known_without_sequence_numbers() -> None:
    """As of early 2021: no numbers, no nodes; what computes products before the backward pass is forward."""
    build = Build()
    build.host("aten::conv2d", 0, 10)
    build.host("aten::relu_", 12, 3)
    build.host("aten::addmm", 20, 10)
    build.host("AddmmBackward", 50, 10, thread=2)
    build.host("struct torch::autograd::AccumulateGrad", 61, 3, thread=2)
    build.host("aten::between_nodes", 65, 2, thread=2)
    found = phases(finished(build))
    assert (found["aten::conv2d"], found["aten::relu_"], found["aten::addmm"]) == ("forward", "forward", "forward")
    assert found["struct torch::autograd::AccumulateGrad"] == "backward"
    assert found["aten::between_nodes"] == "backward"  # a thread that only autograd uses


@pytest.mark.parametrize(
    ("name", "phase"),
    [("## forward ##", "forward"), ("## backward ##", "backward"), ("## zero_grad ##", "optimizer"), ("data_loading", "dataloader")],
)
def test_ranges_named_for_a_phase_mark_it(name: str, phase: str) -> None:
    build = Build()
    training_step(build, 1000)
    build.host(name, 0, 50, Kind.ANNOTATION)
    build.host("aten::inside", 10, 5)
    assert phases(finished(build))["aten::inside"] == phase


def test_inference_has_the_phase_of_its_iteration() -> None:
    build = Build()
    for start, name in ((0, "step[EXTEND bs=1 toks=8]"), (100, "step[DECODE bs=1]")):
        build.host(name, start, 90, Kind.ANNOTATION)
        build.host("aten::mm", start + 10, 20)
        build.kernel("gemm", start + 40, 10, launch=build.call(start + 15, 2))
    study = Study(build.profile())
    assert study.phase_of_work().to_list() == ["prefill", "decode"]
    assert study.table("kernel", Scope(where="phase:decode"))["calls"].to_list() == [1]


def test_xla_names_the_transformation_that_an_instruction_came_from() -> None:
    build = Build(device_kind="tpu")
    for at in range(4):
        build.kernel(f"fusion.{at}", 10 * at, 5)
    profile = build.profile()
    ops = [
        "jit(f)/jvp(mlp)/dot_general",
        "jit(f)/transpose(jvp(mlp))/dot_general",
        "jit(f)/checkpoint/rematted_computation/dot",
        "jit(f)/sub",
    ]
    profile.hlo_ops = pl.DataFrame({"framework_op": ops}).select(
        pl.col("framework_op") if name == "framework_op" else pl.lit(None, dtype=kind).alias(name) for name, kind in HLO_OPS.items()
    )
    profile.hlo = pl.DataFrame({"slice": [0, 1, 2, 3], "op": [0, 1, 2, 3]}, schema=HLO)
    assert Study(profile).phase_of_work().to_list() == ["forward", "backward", "recompute", None]


def test_the_breakdown_of_a_step_by_phase() -> None:
    """Device: copy 20-25, forward 30-50 and 50-55, backward 70-110, collective 100-130, update 140-150. The collective and the
    backward kernel share 100-110. The step lasts from 0 to 200 us; the device works 5 + 25 + 60 + 10 of them."""
    build = Build()
    build.step(0, 0, 200)
    training_step(build)
    study = Study(finished(build))
    rows = {row["phase"]: row for row in study.phase_breakdown().iter_rows(named=True)}
    device = {phase: (row["device_us"], row["exposed_us"], row["pieces"]) for phase, row in rows.items() if row["device_us"]}
    assert device == {
        "other": (5, 5, 1),
        "forward": (25, 25, 2),
        "backward": (40, 30, 1),
        "communication": (30, 20, 1),
        "optimizer": (10, 10, 1),
    }
    idle = study.steps()[0].idle_us
    assert idle == 100
    assert sum(exposed for _, exposed, _ in device.values()) + 10 + idle == 200
    # Host: linear 10 us less its call of 2, sum 4 less 2, and the two calls; sum and linear are all that is forward.
    assert rows["forward"]["host_us"] == 14
    assert rows["optimizer"]["host_us"] == 10
    assert "dataloader" not in rows  # its range holds no op, and may be waiting


def test_the_mean_of_two_steps_by_phase() -> None:
    """The step above, and one of 100 us with a forward op of 20 us that launches 10 us: forward is (25 + 10) / 2."""
    build = Build()
    build.step(0, 0, 200)
    training_step(build)
    build.step(1, 200, 100)
    op = build.host("forward", 210, 20, kind=Kind.ANNOTATION)
    build.kernel("gemm", 240, 10, launch=build.call(215, 2), op=op)
    study = Study(finished(build))
    of_both = {row.phase: row for row in study.phase_times([0, 1])}
    assert list(of_both) == ["forward", "backward", "optimizer", "communication", "other"]
    assert (of_both["forward"].device_us, of_both["forward"].pieces) == (17.5, 1.5)
    assert of_both["backward"].device_us == 20  # 40 in the first, none in the second
    assert {row.phase: row.device_us for row in study.phase_times([1])} == {"forward": 10}


def test_the_roofline_of_each_phase_adds_up_to_the_work() -> None:
    build = Build()
    training_step(build)
    study = Study(finished(build))
    rows = {row.name: row.time_us for row in study.phase_rows(ALL)}
    assert rows == {"backward": 40, "communication": 30, "forward": 25, "optimizer": 10, "other": 5}
    assert [row.level for row in study.phase_rows(ALL)] == ["phase"] * 5


def test_slices_are_filtered_by_phase() -> None:
    build = Build()
    training_step(build)
    study = Study(finished(build))
    assert study.table("kernel", Scope(where="phase:backward|optimizer"))["name"].to_list() == ["gemm backward", "update"]
    assert "aten::mm" in study.table("op", Scope(where="phase:backward"))["name"].to_list()
    assert "aten::linear" not in study.table("op", Scope(where="phase:backward"))["name"].to_list()
    assert int(study.phase[study.work["slice"][0]]) in list(Phase)


def test_no_training_no_forward() -> None:
    build = Build()
    build.host("aten::linear", 0, 10)
    assert phases(build.profile()) == {"aten::linear": None}
