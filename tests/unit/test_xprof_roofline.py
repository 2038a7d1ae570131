"""XProf's rules on TPU planes made by hand: steps, nesting, infeed, custom calls, peaks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofterm.analysis.xprof.nesting import self_ps
from roofterm.analysis.xprof.roofline import xprof_roofline
from roofterm_parsers.errors import ProfileError
from roofterm_parsers.profile import Profile, Source
from roofterm_parsers.xplane.reader import read
from tests.xspace import Hlo, Plane, breakdown, dot_dims, metadata_plane, space, tpu_plane

US = 1_000_000


def opened(*planes: Plane) -> Profile:
    return read(space(*planes), Source("test.xplane.pb", "xplane", "plain"), lambda size: None, cancelled=lambda: False)


def rows(*planes: Plane, version: str = "2.24.2", infeed: bool = True) -> dict[tuple[str, str], dict[str, Any]]:
    """Rows by step and operation."""
    table = xprof_roofline(opened(*planes), version)["rows"]
    return {(row["step"], row["operation"]): row for row in table if row["include_infeed_outfeed"] == infeed}


def stepped_core(id: int = 0, lengths: tuple[int, ...] = (100, 100, 100, 100, 30)) -> Plane:
    """Steps of these lengths (us), each with a fusion for half of it after 1 us; the last one is partial and has 10 us of it."""
    core = tpu_plane(id)
    fusion = core.op(
        "%fusion.1 = f32[8]",
        display="fusion.1",
        hlo_category="loop fusion",
        program_id=3,
        symbol_id=1,
        flops=1_000_000,
        bytes_accessed=500_000,
    )
    steps, ops, at = [], [], 0
    for number, length in enumerate(lengths):
        steps.append(core.event(str(number), at * US, length * US))
        busy = length // 2 if length == 100 else 10
        ops.append(core.event(fusion, (at + 1) * US, busy * US))
        at += length
    core.line("Steps", steps, id=1)
    core.line("XLA Ops", ops, id=3)
    return core


def test_five_steps_of_which_the_last_is_partial() -> None:
    table = rows(stepped_core())
    assert [step for step, operation in table if operation == "Program"] == ["Total", "Average", "0", "1", "2", "3", "4"]
    total, average = table["Total", "Program"], table["Average", "Program"]
    # 430 us from the first step's start to the last one's end; five fusions of a million FLOPs.
    assert total["total_time"] == 430
    assert total["measured_flop_rate"] == pytest.approx(5e6 / 430e3)
    # The steps' own times add up to 430 us too; their average is a fifth, but avg_time stays whole and rates are of the sums.
    assert (average["total_time"], average["avg_time"], average["total_time_per_core"]) == (86, 430, 86)
    assert average["measured_flop_rate"] == pytest.approx(5e6 / 430e3)
    assert table["0", "Program"]["measured_flop_rate"] == pytest.approx(1e6 / 100e3)
    # The partial step is kept: 30 us.
    assert table["4", "Program"]["total_time"] == 30
    fusion = table["Total", "fusion.1"]
    assert (fusion["occurrences"], fusion["total_self_time"], fusion["rank"]) == (5, 210, 1)
    assert fusion["total_self_time_percent"] == pytest.approx(210 / 430)


def test_a_step_counts_if_all_cores_have_it_and_takes_the_longest() -> None:
    table = rows(stepped_core(0, (100, 100)), stepped_core(1, (100, 120, 100)))
    assert [step for step, operation in table if operation == "Program"] == ["Total", "Average", "0", "1"]
    # Two cores of 120 us each; the second core's step is 120 us long.
    assert table["1", "Program"]["total_time"] == 240
    assert table["1", "Program"]["total_time_per_core"] == 120


def test_an_op_that_begins_where_a_step_ends_counts_for_that_step() -> None:
    core = tpu_plane()
    op = core.op("%a = f32[8]", display="a", hlo_category="copy", program_id=1, symbol_id=1, flops=1000)
    core.line("Steps", [core.event("0", 0, 100 * US), core.event("1", 100 * US, 100 * US)], id=1)
    core.line("XLA Ops", [core.event(op, at * US, 10 * US) for at in (50, 100, 150)], id=3)
    table = rows(core)
    assert [table[step, "Program"]["measured_flop_rate"] for step in ("0", "1")] == pytest.approx([2000 / 100e3, 1000 / 100e3])


def test_a_profile_without_steps_has_an_empty_average() -> None:
    core = tpu_plane()
    op = core.op("%a = f32[8]", display="a", hlo_category="copy", program_id=1, symbol_id=1)
    core.line("XLA Ops", [core.event(op, 0, US)])
    average = rows(core)["Average", "Program"]
    assert (average["total_time"], average["bound_by"]) == (0, "Unknown")


@pytest.mark.parametrize(("gap_us", "shown"), [(1000, 999), (0, 1000)])
def test_idle_time_is_one_of_the_thousand_ops_where_it_is_longer_than_the_last(gap_us: int, shown: int) -> None:
    """XProf 2.24.2 gives 999 and 1000 rows for these two planes: it leaves IDLE out after it has cut the list."""
    table = rows(core_of_many_ops(gap_us))
    assert sum(step == "Total" and operation != "Program" for step, operation in table) == shown


def core_of_many_ops(gap_us: int) -> Plane:
    """1,100 ops of 1 us each, one behind the other, the last one after a gap."""
    core = tpu_plane()
    ops = [core.op(f"%a{i} = f32[8]", display=f"a.{i}", hlo_category="copy", program_id=1, symbol_id=i + 1) for i in range(1100)]
    core.line("XLA Ops", [core.event(op, (i + gap_us * (i == 1099)) * US, US) for i, op in enumerate(ops)])
    return core


def nested_core() -> Plane:
    core = tpu_plane(peak_vmem_rd_bw_gigabytes_per_second=4000.0, has_merged_vmem=1)
    loop = core.op("%while = ()", display="while", hlo_category="while", program_id=1, symbol_id=1, flops=3000, bytes_accessed=10)
    body = core.op(
        "%dot = f32[]",
        display="dot",
        hlo_category="convolution",
        program_id=1,
        symbol_id=2,
        flops=2_000_000,
        bytes_accessed=9000,
        memory_access_breakdown=breakdown((1, 1, 6000), (1, 3, 3000)),
    )
    feed = core.op("%infeed = f32[]", display="infeed", hlo_category="infeed", program_id=1, symbol_id=3, bytes_accessed=700)
    root = core.op("%root = f32[]", display="root", hlo_category="copy", program_id=1, symbol_id=0)
    core.line(
        "XLA Ops",
        [
            core.event(loop, 0, 80 * US),
            core.event(body, 10 * US, 20 * US),
            core.event(body, 40 * US, 20 * US),
            core.event(feed, 80 * US, 20 * US),
            core.event(root, 100 * US, 5 * US),
        ],
    )
    return core


def test_a_parents_self_time_is_what_its_children_leave() -> None:
    table = rows(nested_core())
    assert [table["Total", name]["total_self_time"] for name in ("while", "dot", "infeed")] == [40, 40, 20]
    assert table["Total", "while"]["total_time"] == 80
    assert ("Total", "root") not in table, "the root computation has symbol 0 and is left out"


def test_a_program_counts_innermost_ops_over_all_its_time() -> None:
    program = rows(nested_core())["Total", "Program"]
    # The loop repeats its body's costs; 105 us from the first op to the last, the left-out root included.
    assert program["measured_flop_rate"] == pytest.approx(4_000_000 / 105e3)
    # HBM bytes come from the ops that break theirs down: twice 6,000.
    assert program["hbm_bw"] == pytest.approx(12_000 / 105e3 / 1.073741824)
    assert program["measured_memory_bw"] == pytest.approx((18_000 + 700) / 105e3 / 1.073741824)


def test_infeed_can_be_left_out() -> None:
    table = rows(nested_core(), infeed=False)
    assert ("Total", "infeed") not in table
    assert table["Total", "Program"]["total_time"] == 85
    assert table["Total", "dot"]["total_self_time_percent"] == pytest.approx(40 / 85)


def test_the_bottleneck_is_the_resource_with_the_highest_utilisation() -> None:
    # 2 MFLOP in 20 us are 0.1 TFLOP/s of 100: 0.1 %. HBM 0.3 GB/s of 1,000; VMEM 0.15 GB/s of 4,000.
    dot = rows(nested_core())["Total", "dot"]
    assert (dot["bound_by"], dot["bottleneck_operational_intensity"]) == ("Compute", pytest.approx(2_000_000 / 9000))
    assert dot["roofline_efficiency"] == pytest.approx(0.001)
    assert dot["hbm_operational_intensity"] == pytest.approx(2_000_000 / 6000)
    assert dot["vmem_read_bw"] == pytest.approx(3000 / 20e3 / 1.073741824)


@pytest.mark.parametrize(("version", "gflops"), [("2.23.1", 400_000 / 20e3), ("2.24.2", 0)])
def test_what_a_custom_calls_events_state_counts_until_2_24(version: str, gflops: float) -> None:
    core = tpu_plane()
    call = core.op("%k = f32[]", display="k", hlo_category="custom-call", program_id=1, symbol_id=1)
    core.line("XLA Ops", [core.event(call, 0, 10 * US, flops=100_000), core.event(call, 10 * US, 10 * US, flops=300_000)])
    assert rows(core, version=version)["Total", "k"]["measured_flop_rate"] == pytest.approx(gflops)


def test_the_devices_own_clock_is_the_one_that_counts() -> None:
    core = tpu_plane()
    op = core.op("%a = f32[]", display="a", hlo_category="copy", program_id=1, symbol_id=1)
    core.line("XLA Ops", [core.event(op, 0, 9 * US, device_offset_ps=0, device_duration_ps=10 * US)])
    assert rows(core)["Total", "a"]["total_time"] == 10


def test_the_time_scale_is_that_of_the_ops_together() -> None:
    core = tpu_plane()
    op = core.op("%a = f32[]", display="a", hlo_category="copy", program_id=1, symbol_id=1)
    events = [core.event(op, 0, 30 * US, Time__Scale__Multiplier=0.5), core.event(op, 30 * US, 10 * US, Time__Scale__Multiplier=1.0)]
    core.line("XLA Ops", events)
    assert float(xprof_roofline(opened(core), "2.24.2")["properties"]["time_scale_multiplier"]) == (30 * 0.5 + 10) / 40


GPU = {"core_count": 100, "clock_rate": 1_000_000, "memory_bandwidth": 2_000_000_000_000}


@pytest.mark.parametrize(
    ("stats", "version", "device_type", "peak", "shared"),
    [
        # 100 units at 1 GHz: FLOP and bytes a cycle are GFLOP/s and GB/s hundredfold.
        ({"device_vendor": "Nvidia", "compute_cap_major": 9, "compute_cap_minor": 0}, "2.24.2", "Nvidia GPU (Hopper)", 409_600, 25_600),
        ({"device_vendor": "Nvidia", "compute_cap_major": 8, "compute_cap_minor": 7}, "2.24.2", "Nvidia GPU (Ampere)", 102_400, 25_600),
        ({"device_vendor": "Nvidia", "compute_cap_major": 12, "compute_cap_minor": 0}, "2.24.2", "Nvidia GPU", 819_200, 25_600),
        ({"device_vendor": "AMD", "compute_cap_major": 9, "compute_cap_minor": 4}, "2.24.2", "AMD GPU - gfx942", 204_800, 12_800),
        ({"device_vendor": "AMD", "compute_cap_major": 9, "compute_cap_minor": 4}, "2.23.1", "AMD GPU - gfx-9XX series", 0, 25_600),
        ({"device_vendor": "AMD", "compute_cap_major": 11, "gpu_device_name": "gfx1100"}, "2.24.2", "AMD GPU - gfx1100", 0, 0),
        ({"device_vendor": "AMD", "compute_cap_major": 9, "gpu_device_name": "gfx90a"}, "2.24.2", "AMD GPU - gfx90a", 102_400, 12_800),
        ({"compute_cap_major": 7, "compute_cap_minor": 0}, "2.24.2", "GPU", 0, 0),
    ],
)
def test_peaks_of_gpus(stats: dict[str, Any], version: str, device_type: str, peak: float, shared: float) -> None:
    gpu = Plane("/device:GPU:0", stats={**GPU, **stats})
    gpu.line("Stream #1(Kernel)", [gpu.event("k", 0, 10)])
    properties = xprof_roofline(opened(gpu), version)["properties"]
    assert properties["device_type"] == device_type
    assert float(properties["peak_flop_rate"]) == pytest.approx(peak, rel=1e-5)
    assert float(properties["peak_vmem_write_bw"]) == pytest.approx(shared / 1.073741824, rel=1e-5)
    assert float(properties["hbm_ridge_point"]) == pytest.approx(peak / 2000, rel=1e-5)


def gpu_with_dot(dtype: str) -> tuple[Plane, Plane]:
    hlo = Hlo("jit_f", 7)
    hlo.computation("main")
    hlo.op("a", "parameter", f"{dtype}[128,128]", parameter=0)
    hlo.op("dot.1", "dot", "f32[128,128]", ("a", "a"), dot=dot_dims((1,), (0,)), op_name="jit(f)/dot", source=("f.py", 3))
    gpu = Plane("/device:GPU:0", stats=GPU)
    kernel = {"hlo_op": "dot.1", "hlo_module": "jit_f", "program_id": 7}
    gpu.line("Stream #1(Kernel)", [gpu.event("gemm", 0, 2 * US, **kernel), gpu.event("epilogue", 3 * US, US, **kernel)])
    return gpu, metadata_plane(hlo)


def test_a_gpu_instructions_kernels_each_count_as_an_occurrence() -> None:
    row = rows(*gpu_with_dot("bf16"))["Total", "dot.1"]
    assert (row["category"], row["occurrences"], row["total_time"]) == ("dot", 2, 3)
    assert row["measured_flop_rate"] == pytest.approx(2 * (2 * 128**3) / 3e3)
    assert row["source_info"] == "<div class='source-info-cell' title=''>f.py:3</div>"


def test_flops_of_eight_bit_inputs_are_halved_to_the_sixteen_bit_peak() -> None:
    row = rows(*gpu_with_dot("s8"))["Total", "dot.1"]
    assert row["measured_flop_rate"] == pytest.approx(row["model_flop_rate"] / 2)


def test_a_kernel_whose_instruction_is_not_in_the_hlo_is_left_out() -> None:
    gpu, hlo = gpu_with_dot("bf16")
    gpu.line("Stream #2(Kernel)", [gpu.event("graph", 0, 10 * US, hlo_op="command_buffer.1", program_id=7)], id=2)
    table = rows(gpu, hlo)
    assert ("Total", "command_buffer.1") not in table
    assert table["Total", "Program"]["total_time"] == 10


def test_only_xplane_files_have_xprofs_tables() -> None:
    with pytest.raises(ProfileError, match="no XPlane file"):
        xprof_roofline(Profile(sources=[Source("trace.json", "kineto", "plain")]), "2.24.2")


def test_versions_without_rules_are_refused() -> None:
    with pytest.raises(ProfileError, match=r"2\.24\.2"):
        xprof_roofline(Profile(), "1.0")


@pytest.mark.parametrize(
    ("spans", "own"),
    [
        ([(0, 10), (10, 20)], [10, 10]),
        ([(0, 10), (2, 5), (5, 9)], [3, 3, 4]),
        ([(0, 10), (2, 8), (3, 5)], [4, 4, 2]),
        ([(0, 10), (5, 12)], [10, 7]),  # sticks out: no child
        ([(0, 10), (0, 10)], [0, 10]),
    ],
)
def test_self_time_takes_whole_children_away(spans: list[tuple[int, int]], own: list[int]) -> None:
    start, end = np.array(spans, np.int64).T
    assert self_ps(start, end - start).tolist() == own


SPAN = st.tuples(st.integers(0, 30), st.integers(1, 12))


@settings(max_examples=300, deadline=None)
@given(st.lists(SPAN, max_size=14), st.booleans())
def test_self_times_are_those_of_a_stack(spans: list[tuple[int, int]], in_order: bool) -> None:
    """Whatever sticks out of what, and in whatever order events stand in the file: one after the other, as XProf takes them."""
    if in_order:
        spans = sorted(spans, key=lambda span: (span[0], -span[1]))
    own = [dur for _, dur in spans]
    above: list[int] = []
    for i, (start, dur) in enumerate(spans):
        while above and not (spans[above[-1]][0] <= start and start + dur <= sum(spans[above[-1]])):
            above.pop()
        if above:
            own[above[-1]] -= dur
        above.append(i)
    starts, lengths = np.array(spans, np.int64).reshape(-1, 2).T
    assert self_ps(starts, lengths).tolist() == own
