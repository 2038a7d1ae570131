"""Which findings every real trace has, silence included; each was judged by reading the trace.

Not obvious ones are explained. A finding about the device's own time is listed although the host is the bound only where it says so
itself (gemms-off-tensor-cores); all others are silent then, since faster kernels would only lengthen the gaps.
"""

from __future__ import annotations

import msgspec
import pytest

from roofterm.analysis.filters import parse
from roofterm.analysis.findings import find_all, rules
from roofterm.analysis.scope import STEADY
from roofterm.analysis.slice_filter import slice_mask, split_for_slices
from roofterm.analysis.study import Study
from roofterm_parsers import open_profile
from tests.reference import reference, root

OVERHEAD = {"overhead-bound", "many-small-kernels"}
UNKNOWN = "device-unknown-or-partition"

EXPECTED: dict[str, set[str]] = {
    # 76 % idle in DDP's forward and backward, half of it in stretches of a millisecond (flattening buckets on the host). Its exposed
    # all-reduces (13 of 222 ms) win nothing: the host launches each kernel after the device has run dry.
    "hta_a100_2gpu_resnet_nccl_meta.json.gz": {"overhead-bound", "host-pauses"},
    # 42.7 of 43.5 s are the context, streams, cudaMalloc and cuDNN's first calls.
    "hta_a100_alexnet_critical_path.json.gz": {"cold-start"},
    # CUPTI's range profiler ran: 77 launches and no kernel.
    "hta_a100_cupti_profiler_range.json.gz": {"profile-unusable"},
    # Four kernels after 2.8 ms of a first aten::ones, and three products of 0.4 ms in 19.5: too few to speak of habits.
    "hta_a100_event_sync.json.gz": set(),
    "hta_a100_event_sync_multi_stream.json.gz": set(),
    # Of 19.8 s the first aten::empty takes 19.6: cudaDeviceGetStreamPriorityRange makes the context. Four kernels after it.
    "hta_a100_execution_trace_pair_kineto.json.gz": {"cold-start"},
    # A recommender on one of 8 A100: the host is busy all of the step; 14.7 ms of 77.5 are exposed exchanges, of which the step waits
    # for 6.5; two stretches of a millisecond in backward nodes.
    "hta_a100_rank3of8_train.json.gz": {*OVERHEAD, "exposed-communication", "host-pauses"},
    # 40.5 of 41.6 s: the context in cudaDeviceGetStreamPriorityRange (24.6 s), cudaFree (8.3 s), streams, and cuDNN's first convolution, in
    # which the device idles for 13.3 s.
    "hta_a100_simple_add_critical_path_overlaid.json.gz": {"cold-start"},
    # One kernel in 13 s of step.
    "hta_a100_triton_torch_compiled_region.json.gz": set(),
    # Sixteen events of one step on the host.
    "hta_cpu_only_gloo_rank34.pt.trace.json.gz": set(),
    # Five iterations of 26 kernels, 291 us of kernels in 7.7 ms. 2.2 ms before the first kernel are the first aten::empty_strided, the
    # allocator's first block, so the first iteration takes 3.9 ms and the others 1.5.
    "hta_gp100_gpu_user_annotation.json.gz": {"overhead-bound", "cold-start", "warm-up-in-window"},
    # Four kernels; the first launch took 1.4 of the 1.6 ms.
    "hta_inference_rank1_old_schema.json.gz": {"cold-start", UNKNOWN},
    # The first hipLaunchKernel of one kernel took 6.5 of the 9.3 ms.
    "hta_mi250_minitoy_rocm62.json.gz": {"cold-start"},
    # Concatenating inputs on the host, 14.7 ms in two stretches, before the device goes on.
    "hta_mtia_inference_rank0.json.gz": {"host-pauses", UNKNOWN},
    # A sample of a trace: kernels are missing, so the device seems idle after launches for 21 to 24 % of the step, and nothing is said
    # about the host.
    "hta_sampled_rank0of128.json.gz": {"profile-unusable", "exposed-communication", UNKNOWN},
    "hta_sampled_rank1of128.json.gz": {"profile-unusable", "exposed-communication", UNKNOWN},
    # Device-bound ResNet in fp32 on a V100: batch norm, activation and add one after the other; 256 blocks of which 160 or 240 run at once.
    "hta_v100_resnet_ns_absolute_ts.pt.trace.json.gz": {"gemms-off-tensor-cores", "memory-bound-chains", "underfilled-kernels"},
    # 50 us of kernels in 13.4 ms; the loader's 725 us are 5.4 %.
    "kineto_gpu_metrics_expected.json.gz": {"overhead-bound", "input-bound"},
    "kineto_gpu_metrics_input.json.gz": {"overhead-bound", "input-bound"},
    # An older ResNet run: 27 % idle while operators are dispatched, 22.5 % in the loader, 483 updates of parameters one by one.
    "kineto_v100_resnet50_2021_list.pt.trace.json.gz": {
        *OVERHEAD,
        "input-bound",
        "gemms-off-tensor-cores",
        "optimizer-unfused",
        "copies",
        UNKNOWN,
    },
    # A third of each step is the loader in the main thread (see test_findings); products in fp32; pageable batches.
    "kineto_v100_resnet50_2021_workers0.pt.trace.json.gz": {"input-bound", "gemms-off-tensor-cores", "copies"},
    # With four workers the loader is no matter any more (1.2 of 141 ms), the host's dispatch is; steps 5 and 9 take 55 and 37 ms more than
    # the others, 45 ms of step 5 in one pageable copy.
    "kineto_v100_resnet50_2021_workers4.pt.trace.json.gz": {
        *OVERHEAD,
        "uneven-steps",
        "gemms-off-tensor-cores",
        "copies",
        "host-pauses",
        "optimizer-unfused",
    },
    # 30 iterations in 16 s: 8.2 s in the loader, whose workers deliver in bursts (iterations of 0.15 to 0.83 s); 2.4 s of start-up (cuDNN,
    # cudaFree), in a first iteration of 4.9 s; pageable batches of 56 MiB; fp32 on a Turing card.
    "param_2080ti_resnet.json.gz": {
        "input-bound",
        "cold-start",
        "warm-up-in-window",
        "uneven-steps",
        "gemms-off-tensor-cores",
        "host-pauses",
        "copies",
    },
    # Waiting for the late rank is all but 13 us of the exposed communication that the steps wait for; DataLoader 6.3 %; Adagrad in a loop.
    "param_v100_dlrm_8ranks": {*OVERHEAD, "late-rank", "exposed-communication", "input-bound", "optimizer-unfused"},
    # One step of 4.4 ms with 61 pieces of 309 us in all (see test_findings).
    "tracelens_h100_bert_small.json.gz": OVERHEAD,
    # Qwen in eager mode: RMSNorm, rotary embedding and SwiGLU as 654 kernels of 17 of the 32 ms.
    "tracelens_h100_qwen05b_chat.json.gz": {"memory-bound-chains"},
    # 217 ms of decoding and resizing video before the first kernel; softmax and scale between products over 3,137 tokens, which is
    # no multiple of 8 (the kernels' names say align1).
    "tracelens_h100_timesformer.json.gz": {"input-bound", "attention-not-flash", "misaligned-gemms"},
    # Kernels only: 444 of 562 shorter than 10 us; batched_transpose of MIOpen; batch norm with 64 blocks for 104 CUs.
    "tracelens_mi210_gpu_only.json.gz": {"layout-changes", "many-small-kernels", "underfilled-kernels"},
    # Launched within 26 ms, the first kernel starts after 151 ms: the iteration before it is not in the file. What is there is 99.8 % busy.
    "tracelens_mi300_vllm_prefilldecode_piecewise.json.gz": {"profile-unusable"},
    # As on the H100: 391 us of work in a step of 4.0 ms, 54 of 60 kernels under 10 us, no wait for the device longer than 64 us.
    "tracelens_mi300x_bert_small.json.gz": OVERHEAD,
    # Every norm for the first time: 1.1 of 1.2 s are first launches that load their code.
    "tracelens_mi300x_normalization_ops.json.gz": {"cold-start"},
    # 704 ms of resizing images in the loader's thread; 154 ms of softmax over 3,601 tokens.
    "tracelens_mi300x_owlv2.json.gz": {"input-bound", "attention-not-flash"},
    # As on the H100; here the step begins with a device synchronisation that empties the queue, and refilling it costs 2.8 of 34 ms.
    "tracelens_mi300x_qwen05b_chat.json.gz": {"memory-bound-chains", "blocking-syncs"},
    # 62 % of a step are all-reduces under nothing; MIOpen's transposes and DDP's small copies come far behind (see test_findings).
    "tracelens_mi300x_resnet_act_ckpt_rank0of8.json.gz": {"exposed-communication", "layout-changes", "copies"},
    # The capture of a graph: 546 launches, of which two kernels ran.
    "tracelens_mi300x_sglang_graph_capture_bs32.json.gz": {"profile-unusable"},
    # Half a second of waiting for a batch that is not in the file, and the copy to the host at its end (see test_findings).
    "tracelens_mi300x_sglang_qwen3_8b_decode.json.gz": {"profile-unusable", "blocking-syncs"},
    # As in decode, the first half of the window belongs to a batch that is not in the file; the prefill after it is 99.7 % busy.
    "tracelens_mi300x_sglang_qwen3_8b_prefilldecode.json.gz": {"profile-unusable"},
    # One compiled layer, 100 % busy: the healthy one (see test_findings).
    "tracelens_mi300x_torch_compile_triton.json.gz": set(),
    # 92 % busy; five stretches of a millisecond and more in the pipeline's Python, 115 transposes of the VAE (see test_findings).
    "tracelens_mi300x_xdit_flux1_aiter.json.gz": {"host-pauses", "layout-changes"},
}

ON_CPU: dict[str, set[str]] = {
    # Three calls of 98.8, 99.9 and 14.4 ms: the last one shows what the first two are not yet.
    "convnet_infer_no_step.pt.trace.json.gz": {"warm-up-in-window"},
    # 64.1 of the 64.6 s of its first step (see test_findings).
    "transformer_compile_cold.pt.trace.json.gz": {"compile-in-window"},
    # 115, 295 and 729 ms on a busy machine.
    "transformer_compile_warm.pt.trace.json.gz": {"uneven-steps"},
    # 4,160, then 2,666 and 876 ms: the first is more than 1.5 medians of the rest, and two are too few to call uneven.
    "transformer_train_all_flags.pt.trace.json.gz": {"warm-up-in-window"},
    # 266, 177, 163, 261 and 213 ms.
    "transformer_train_lean.pt.trace.json.gz": {"uneven-steps"},
}

TRACES = {f"traces/torch/{name}": ids for name, ids in EXPECTED.items()} | {f"traces/torch_cpu/{name}": ids for name, ids in ON_CPU.items()}

NO_PROFILES = ("_et.json.gz", "param_et_", "rocprofv3")
"""Execution traces and other files of the folder that are no Chrome traces."""

VIEWS = {"overview", "roofline", "ops", "timeline", "steps", "ranks", "memory", "device"}
ON_COMMUNICATION = ("exposed-communication", "late-rank", "unequal-collectives")


@pytest.mark.parametrize("name", TRACES)
def test_findings_of_a_real_trace(name: str):
    study = Study(open_profile(reference(name), cache=False))
    found = find_all(study, STEADY)
    assert {finding.id for finding in found} == TRACES[name]
    for finding in found:
        assert finding.where["view"] in VIEWS
        shown, rest = split_for_slices(parse(finding.where["filter"]))
        assert not rest
        assert slice_mask(shown, study).any(), finding.id
        assert finding.severity in ("high", "medium", "low", "info")
        assert finding.id in rules()
    msgspec.json.encode(found)
    _check_stakes(study)


def _check_stakes(study: Study) -> None:
    """No claim exceeds its part of the mean steady step; claims on communication together never exceed what is exposed."""
    chosen = [row for row in study.steps() if row.steady] or [row for row in study.steps() if row.complete]
    if not chosen or chosen[0].compute_us is None:
        return
    pools = ("idle", "compute", "exposed_comm", "exposed_copy")
    mean = {pool: sum(getattr(row, f"{pool}_us") or 0.0 for row in chosen) / len(chosen) for pool in pools}
    mean["step"] = sum(row.dur_us for row in chosen) / len(chosen)
    found = find_all(study, STEADY)
    for finding in found:
        if finding.evidence.get("per") == "step":
            limit = sum(mean.get(pool, 0.0) for pool in finding.evidence["claims_on"].split(" and "))
            assert finding.time_at_stake_us is not None
            assert finding.time_at_stake_us <= limit * (1 + 1e-9), finding.id
    claimed = sum(finding.time_at_stake_us or 0.0 for finding in found if finding.id in ON_COMMUNICATION)
    assert claimed <= mean["exposed_comm"] * (1 + 1e-9)


def test_the_table_speaks_of_every_trace():
    folder = reference("traces/torch")
    here = {path.name for path in folder.iterdir() if path.suffix == ".gz" or path.is_dir()}
    assert root() is not None
    assert {name for name in here if not any(part in name for part in NO_PROFILES)} == set(EXPECTED)


def _xplanes() -> list[str]:
    folder = root()
    return sorted(path.name for path in (folder / "traces/xplane").glob("*.pb")) if folder is not None else ["absent.xplane.pb"]


@pytest.mark.parametrize("name", _xplanes())
def test_findings_of_an_xplane_are_sound(name: str):
    study = Study(open_profile(reference(f"traces/xplane/{name}"), cache=False))
    found = find_all(study, STEADY)
    msgspec.json.encode(found)
    for finding in found:
        parse(finding.where["filter"])
        assert finding.share_of_step_pct is None or 0 <= finding.share_of_step_pct <= 100
    _check_stakes(study)
