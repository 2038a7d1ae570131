"""The next command to run: for which tool, which launch, and what is missing in the file. Counts are of the file's own events."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from roofterm.analysis.next_command import FLAGS, function_name, launch_of, launches_before, next_command
from roofterm.analysis.scope import STEADY
from roofterm.analysis.study import Study
from roofterm_parsers import open_profile
from tests.reference import reference

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
SAMPLE = SAMPLES / "transformer_h100_synthetic.pt.trace.json.gz"


@pytest.fixture(scope="module")
def study() -> Study:
    return Study(open_profile(SAMPLE, cache=False))


def launches(study: Study, name: str) -> list[int]:
    """Ids of a kernel's launches, in the order in which they ran."""
    names = study.profile.names["text"].gather(study.profile.slices["name"].gather(study.work["slice"]))
    return study.work.filter(names == name).sort("start_ps")["slice"].to_list()


def bare(name: str) -> str:
    return name.split("<", maxsplit=1)[0].rsplit("::", maxsplit=1)[-1].removeprefix("void ")


def text_of(study: Study, kind: str, name: str, slice_id: int | None = None) -> str | None:
    command = next_command(study, kind, name, slice_id)
    return None if command is None else command.text


@pytest.mark.parametrize(
    ("kernel", "function"),
    [
        ("ampere_sgemm_32x32_sliced1x4_tn", "ampere_sgemm_32x32_sliced1x4_tn"),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, at::detail::Array<char*, 3> >(int)",
            "vectorized_elementwise_kernel",
        ),
        ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int)", "vectorized_layer_norm_kernel"),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"),
        ("cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>(float)", "bn_bw_1C11_kernel_new"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
        ("", ""),
    ],
)
def test_the_function_of_a_kernel_is_its_name_without_types(kernel, function):
    assert function_name(kernel) == function


def test_the_launch_is_the_first_of_the_steady_steps_and_those_before_it_are_counted(study):
    """Of all kernels of the file with that function, in the order in which they ran."""
    events = json.loads(gzip.decompress(SAMPLE.read_bytes()))["traceEvents"]
    kernels = sorted((e for e in events if e.get("cat") == "kernel"), key=lambda e: e["ts"])
    name = next(e["name"] for e in kernels if "elementwise_kernel" in e["name"])
    ids = launches(study, name)
    assert launch_of(study, name) == next(one for one in ids if one in study.selection(STEADY).work["slice"])
    raw = [e["ts"] for e in kernels if e["name"] == name]
    mates = [e["ts"] for e in kernels if bare(e["name"]) == bare(name)]
    assert [launches_before(study, one) for one in (ids[0], ids[-1])] == [sum(ts < at for ts in mates) for at in (raw[0], raw[-1])]


def test_a_kernel_of_nvidia_gets_its_launch_profiled(study):
    name = str(study.table("kernel")["name"][0])
    command = next_command(study, "kernel", name)
    assert command is not None
    assert command.text.startswith("ncu --set full --kernel-name 'regex:^")
    assert "--launch-count 1" in command.text
    assert f"--launch-skip {launches_before(study, launch_of(study, name) or 0)} " in command.text
    assert command.text.endswith("YOUR_COMMAND")
    assert "add those of the steps that ran before" in command.why


def test_a_slice_names_its_own_launch(study):
    name = str(study.table("kernel")["name"][0])
    ids = launches(study, name)
    skips = [launches_before(study, one) for one in ids]
    assert skips == sorted(skips)
    assert f"--launch-skip {skips[-1]} " in (text_of(study, "kernel", name, ids[-1]) or "")


def test_a_collective_is_never_replayed(study):
    name = next(name for name in study.table("kernel")["name"] if name.startswith("nccl"))
    assert (text_of(study, "kernel", name) or "").startswith("NCCL_DEBUG=INFO")


def test_an_instruction_of_a_tpu_is_read_in_its_program():
    study = Study(open_profile(SAMPLES / "decoder_tpu_synthetic.xplane.pb", cache=False))
    assert (
        text_of(study, "kernel", str(study.table("kernel")["name"][0]))
        == "XLA_FLAGS='--xla_dump_to=hlo --xla_dump_hlo_as_text --xla_dump_hlo_module_re=jit_train_step' YOUR_COMMAND"
    )


def test_what_was_not_recorded_is_asked_for():
    text = text_of(Study(open_profile(SAMPLES / "transformer_cpu.pt.trace.json.gz", cache=False)), "op", "aten::mm")
    assert "ProfilerActivity.CUDA" in (text or "")  # no work of a device in it
    assert set(FLAGS.values()) == {"record_shapes=True", "with_stack=True"}


@pytest.mark.parametrize(
    ("trace", "missing"),
    [
        ("traces/torch/hta_a100_event_sync.json.gz", "record_shapes=True, with_stack=True"),
        ("traces/torch/hta_a100_triton_torch_compiled_region.json.gz", "with_stack=True"),
        ("traces/torch/tracelens_h100_bert_small.json.gz", None),
    ],
)
def test_the_flags_that_a_real_file_lacks(trace, missing):
    """By the keys record_shapes and with_stack at the top of each file, and the shapes in its events."""
    text = text_of(Study(open_profile(reference(trace))), "op", "aten::mm")
    assert (text and text.split("CUDA], ")[1].rstrip(")")) == missing


def test_amd_gets_amds_tool():
    study = Study(open_profile(reference("traces/torch/tracelens_mi300x_normalization_ops.json.gz")))
    name = next(name for name in study.table("kernel")["name"] if "vectorized_layer_norm_kernel<" in name)
    assert text_of(study, "kernel", name) == (
        "rocprof-compute profile -n vectorized_layer_norm_kernel -k vectorized_layer_norm_kernel -- YOUR_COMMAND"
    )
