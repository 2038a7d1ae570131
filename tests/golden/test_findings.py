"""Findings on real traces, against readings made of the traces themselves.

The figures in the readings were counted from the JSON events alone, without roofterm: unions of intervals per step window,
launches by correlation id. Each test holds the first findings, and the figures they rest on, to its reading.
"""

from __future__ import annotations

from functools import cache

import pytest

from roofterm.analysis.findings import find_all
from roofterm.analysis.scope import STEADY
from roofterm.analysis.study import Study
from roofterm.results import Finding
from roofterm_parsers import open_profile
from tests.reference import reference


@cache
def found(name: str) -> list[Finding]:
    return find_all(Study(open_profile(reference(f"traces/{name}"), cache=False)), STEADY)


def first(name: str, count: int = 3) -> list[str]:
    return [finding.id for finding in found(name)[:count]]


def at_stake(name: str, id: str) -> float:
    stake = one(name, id).time_at_stake_us
    assert stake is not None
    return stake


def one(name: str, id: str) -> Finding:
    return next(finding for finding in found(name) if finding.id == id)


def test_training_overhead_bound():
    """ResNet-50 in DDP on two A100, rank 0, recorded without stacks, shapes or memory; three steps.

    They take 222,442, 219,727 and 224,936 us; the device works 49,439, 49,729 and 58,332 of them (24 %) in 1,258 launches each, and
    idles in about 1,160 gaps a step, since the host runs operators: it synchronises for 26 us. Nine or ten of the gaps take a
    millisecond or more, 51,691 us a step together, the longest 15.7 ms under aten::unflatten_dense_tensors, with which DDP takes
    its buckets apart. 43 % of the kernels take less than 10 us, too few to speak of many. Of the all-reduces 10.2, 10.5 and 18.9
    ms are exposed, but the device has run dry again before the host launches the next kernel, so that hiding them wins nothing.
    """
    trace = "torch/hta_a100_2gpu_resnet_nccl_meta.json.gz"
    assert first(trace) == ["overhead-bound", "host-pauses"]
    bound = one(trace, "overhead-bound")
    assert bound.evidence["device_busy_us"] == pytest.approx((49_438.921 + 49_728.926 + 58_332.167) / 3, abs=0.001)
    assert bound.evidence["launches"] == 1258
    assert bound.severity == "high"
    idle, long = (173_003 + 169_998 + 166_604) / 3, (53_469 + 50_742 + 50_862) / 3
    # What remains are the launches under way, 3 us for each of a thousand gaps, and the waits for the device.
    assert 0.95 * (idle - long) < at_stake(trace, "overhead-bound") < idle - long
    pauses = one(trace, "host-pauses")
    assert 0.95 * long < at_stake(trace, "host-pauses") < long
    assert pauses.evidence["longest_doing"] == "aten::unflatten_dense_tensors"


def test_inference_overhead_bound():
    """A forward of bert-small on an H100, recorded with stacks, shapes and memory.

    One step of 4,426 us in which the device works 309 us (7 %): 61 pieces of work, 58 of the 60 kernels shorter than
    10 us. The 4,117 us of idle time lie in 62 gaps, the longest 459 us, and end in a tail of 60 us after the last kernel;
    the host synchronises for 20 us in all, loads nothing, allocates nothing: it runs Python and operators.
    """
    trace = "torch/tracelens_h100_bert_small.json.gz"
    assert first(trace) == ["overhead-bound", "many-small-kernels"]
    bound = one(trace, "overhead-bound")
    assert bound.time_at_stake_us == pytest.approx(4117 - 60 - 99, rel=0.01)  # without the tail and 99 us of launches under way
    assert bound.evidence["device_busy_us"] == pytest.approx(309.4, abs=0.1)
    assert bound.evidence["slowed_by_flags"] == ["with_stack", "profile_memory", "record_shapes"]
    assert bound.severity == "medium"  # 89 % of the step would be high
    assert one(trace, "many-small-kernels").evidence["kernels_under_10_us"] == 58


def test_data_loader_bound():
    """ResNet-50 on a V100 with num_workers=0, six steps.

    A step takes 177,592 us, the device works 100,593 of them. The loader runs 69,299 us a step on the main thread; under it
    lie 59,262 us of idle time, 33.4 % of the step (torch-tb-profiler's figure for DataLoader), 528 of which are gaps of a
    microsecond between kernels that were already queued. Convolutions and GEMMs run in fp32 on the vector units, 65.6 ms a
    step, but the host is what the step waits for: it is in the loader when the device runs dry. Two pageable copies of the
    batch take 1,915 us.
    """
    trace = "torch/kineto_v100_resnet50_2021_workers0.pt.trace.json.gz"
    assert first(trace) == ["input-bound", "gemms-off-tensor-cores", "copies"]
    loader = one(trace, "input-bound")
    assert loader.time_at_stake_us == pytest.approx(59_262 - 528, rel=1e-3)
    assert loader.share_of_step_pct == pytest.approx(33.4, abs=0.4)
    assert loader.evidence["longest_us"] == pytest.approx(69_298.5)
    products = one(trace, "gemms-off-tensor-cores")
    assert products.time_at_stake_us < 0.2 * products.evidence["device_time_saved_us"]
    assert one(trace, "copies").evidence["copies_us"] == pytest.approx(1915, rel=0.01)


def test_cold_compile():
    """A transformer on the CPU whose first call is compiled inside the window.

    Step 0 takes 64,648 ms, the three after it 290, 254 and 165 ms. The union of the spans that end in (dynamo_timed) is
    64,123 ms and lies in step 0 whole.
    """
    trace = "torch_cpu/transformer_compile_cold.pt.trace.json.gz"
    assert first(trace) == ["compile-in-window"]
    compiling = one(trace, "compile-in-window")
    assert compiling.time_at_stake_us == pytest.approx(64_123_423, abs=1000)
    assert compiling.share_of_step_pct == pytest.approx(100 * 64_123_423 / 64_647_931, abs=0.01)
    assert compiling.evidence["steps"] == ["ProfilerStep#0"]


def test_decode_by_graphs():
    """One decode iteration of SGLang on an MI300X by hipGraphLaunch.

    The file spans 473,750 us, and the device seems idle for 463,295 of them, between its first kernel and its second. But the
    second was launched 123 us after the start: it waited for the batch before, a prefill that the file does not hold, and
    so did the host, for 463,064 us in a copy to the host. In the 10,450 us that remain the device works 9,769; the one
    graph launch replays 544 of its 558 pieces back to back, after the host has prepared it while the device idles.
    """
    trace = "torch/tracelens_mi300x_sglang_qwen3_8b_decode.json.gz"
    assert first(trace) == ["profile-unusable", "blocking-syncs"]
    cut = one(trace, "profile-unusable")
    assert cut.evidence["unrecorded_us"] == pytest.approx(463_295, abs=50)
    assert cut.time_at_stake_us is None
    wait = one(trace, "blocking-syncs")
    assert wait.evidence["worst_call"] == "hipMemcpyWithStream"
    assert at_stake(trace, "blocking-syncs") <= 10_450 - 9_769
    assert wait.severity == "info"  # 0.1 % of the iteration, most of which is not in the file


def test_ddp_with_checkpointing():
    """ResNet on 8 MI300X with DDP and activation checkpointing, rank 0, three steps whose host runs ahead.

    The host's steps take 16 ms, the device's 18,980, 18,983 and 18,554 us, of which it idles 93, 82 and 109. RCCL runs 15.4 to
    15.9 ms of each; nothing else runs in 11,885, 11,955 and 11,443 us of that: 62 % of the step. The rest is small: 249
    transposes of MIOpen, and 103 copies of 736 bytes into DDP's buckets.
    """
    trace = "torch/tracelens_mi300x_resnet_act_ckpt_rank0of8.json.gz"
    assert first(trace) == ["exposed-communication", "layout-changes", "copies"]
    exposed = one(trace, "exposed-communication")
    assert exposed.time_at_stake_us == pytest.approx((11_885 + 11_955 + 11_443) / 3, abs=1)
    assert exposed.share_of_step_pct == pytest.approx(100 * (11_885 + 11_955 + 11_443) / (18_980 + 18_983 + 18_554), abs=0.02)
    assert exposed.evidence["includes_waiting_for_peers"] is True


def test_diffusion_compiled():
    """FLUX.1 by xDiT on an MI300X, compiled and replayed by four graph launches, one step.

    Of 783,812 us the device works 721,035 (92 %): 423 ms of GEMMs on the matrix cores and 150 ms of fused attention. Of the
    62,777 us of idle time 46,928 lie in five stretches of a millisecond and more; one of them, 25 ms, comes after the last
    kernel. 115 transposes of the VAE's convolutions take 9,259 us. So there is little to win: a pipeline that prepares
    in Python for 21.9 ms before and between the launches, and the layout of the VAE.
    """
    trace = "torch/tracelens_mi300x_xdit_flux1_aiter.json.gz"
    assert first(trace) == ["host-pauses", "layout-changes"]
    pauses = one(trace, "host-pauses")
    assert pauses.time_at_stake_us == pytest.approx(46_928 - 25_033, rel=0.03)
    assert pauses.severity == "info"  # 2.7 %, recorded with stacks and shapes
    assert one(trace, "layout-changes").time_at_stake_us == pytest.approx(9259, abs=1)


def test_dlrm_all_to_all():
    """DLRM on 8 V100, all ranks, one step each of 15,768 us on average.

    The device works 6,943 us a rank (44 %) in 280 pieces, 256 of them shorter than 10 us: the host cannot launch them fast enough.
    5,861 us a rank are collectives that nothing covers, five exchanges and three all-reduces. Matched by order, a rank waits
    5,855 us on average from its arrival in them until the last one's, so that next to all of it is waiting; rank 7 arrives
    last most often, 1,309 us after the one before it (rank 5: 101, rank 4: 14), and waits least itself.
    """
    trace = "torch/param_v100_dlrm_8ranks"
    assert first(trace) == ["overhead-bound", "many-small-kernels", "late-rank"]
    late = one(trace, "late-rank")
    assert late.evidence["late_rank"] == "7"
    waits = {"0": 5580, "1": 11125, "2": 3280, "3": 9571, "4": 6370, "5": 6041, "6": 3342, "7": 1534}
    assert late.evidence["wait_us_by_rank"] == waits
    assert late.evidence["kept_waiting_us_by_rank"] == {**dict.fromkeys(waits, 0), "4": 14, "5": 101, "7": 1309}
    exposed = one(trace, "exposed-communication")
    assert exposed.evidence["exposed_us"] == pytest.approx(5861.25)
    assert at_stake(trace, "late-rank") + at_stake(trace, "exposed-communication") <= 5861.25
    assert at_stake(trace, "exposed-communication") < 20


def test_healthy():
    """One compiled transformer layer on an MI300X: twelve kernels.

    Chosen as the healthy one since the device works every one of the 12,549 us between its first and its last work: seven GEMMs in
    bf16 on the matrix cores (8,030 us), one fused attention (3,684 us), four fused kernels of Triton (836 us), and the
    host does nothing in between but launch ahead. There is nothing to win that a rule could honestly name.
    """
    assert found("torch/tracelens_mi300x_torch_compile_triton.json.gz") == []
