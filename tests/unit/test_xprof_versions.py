"""What differs between XProf's versions, on planes made by hand. All figures are what XProf 2.22.3, 2.23.1 and 2.24.2 gave for them."""

from __future__ import annotations

from typing import Any

import pytest

from roofterm.analysis.xprof.kernel_stats import xprof_kernel_stats
from roofterm.analysis.xprof.overview import xprof_overview
from roofterm.analysis.xprof.roofline import xprof_roofline
from roofterm_parsers.profile import Profile, Source
from roofterm_parsers.xplane.reader import read
from tests.xspace import Plane, Ref, Signed, breakdown, space, tpu_plane

US = 1_000_000
OLD, NEW = ("2.22.3", "2.23.1"), ("2.24.2",)
every_version = pytest.mark.parametrize("version", [*OLD, *NEW])


def opened(*planes: Plane) -> Profile:
    return read(space(*planes), Source("test.xplane.pb", "xplane", "plain"), lambda size: None, cancelled=lambda: False)


def rows_of(profile: Profile, version: str) -> dict[tuple[str, str], tuple[Any, ...]]:
    """By step and operation: FLOP rates (GFLOP/s), memory and HBM bandwidth (GiB/s), what binds it."""
    columns = ("measured_flop_rate", "model_flop_rate", "measured_memory_bw", "hbm_bw", "bound_by")
    table = [row for row in xprof_roofline(profile, version)["rows"] if row["include_infeed_outfeed"]]
    return {(row["step"], row["operation"]): tuple(row[column] for column in columns) for row in table}


def core_of_custom_calls() -> Plane:
    """Three steps of 100 us: calls whose costs stand with the metadata, with the events, or with both, and a fusion whose events'
    figures are nobody's business."""
    core = tpu_plane()

    def op(symbol: int, name: str, category: str, **stats: Any) -> int:
        return core.op(f"%{name} = f32[8]", display=name, hlo_category=category, program_id=1, symbol_id=symbol, **stats)

    both = op(1, "both", "custom-call", flops=1000, bytes_accessed=64)
    modelled = op(2, "modelled", "custom-call", model_flops=700, memory_access_breakdown=breakdown((1, 1, 600), (2, 3, 300)))
    bytes_alone = op(3, "bytes", "custom-call")
    fusion = op(4, "fusion", "loop fusion", flops=5000, bytes_accessed=640)
    events = []
    for step in range(3):
        at, group = step * 100 * US, Signed(step)
        events += [
            core.event(both, at + US, 10 * US, group_id=group, flops=400_000, model_flops=300_000, bytes_accessed=10_000),
            core.event(modelled, at + 20 * US, 10 * US, group_id=group, flops=40_000 * (step + 1)),
            core.event(bytes_alone, at + 40 * US, 10 * US, group_id=group, bytes_accessed=5000),
            core.event(fusion, at + 60 * US, 10 * US, group_id=group, flops=999, bytes_accessed=77),
        ]
    core.line("Steps", [core.event(str(step), step * 100 * US, 100 * US, group_id=Signed(step)) for step in range(3)], id=1)
    core.line("XLA Ops", events, id=3)
    return core


CUSTOM_CALLS = {
    OLD: {
        ("Total", "Program"): (4.86, 3.057, 0.14625489711761475, 0.005587935447692871, "Compute"),
        ("Total", "fusion"): (0.5, 0.5, 0.059604644775390625, 0.059604644775390625, "HBM"),
        ("Total", "both"): (40.1, 30.0, 0.9372830390930175, 0.9372830390930175, "HBM"),
        ("Total", "modelled"): (8.0, 0.07, 0.0, 0.055879354476928704, "Compute"),
        ("Total", "bytes"): (0.0, 0.0, 0.4656612873077392, 0.4656612873077392, "HBM"),
        ("Average", "Program"): (4.86, 3.057, 0.14625489711761475, 0.005587935447692871, "Compute"),
        ("0", "Program"): (4.46, 3.057, 0.14625489711761475, 0.005587935447692871, "Compute"),
        ("1", "Program"): (4.86, 3.057, 0.14625489711761475, 0.005587935447692871, "Compute"),
        ("2", "Program"): (5.26, 3.057, 0.14625489711761475, 0.005587935447692871, "Compute"),
    },
    NEW: {
        ("Total", "fusion"): (0.5, 0.5, 0.059604644775390625, 0.059604644775390625, "HBM"),
        ("Total", "both"): (0.1, 0.1, 0.0059604644775390625, 0.0059604644775390625, "HBM"),
        ("Total", "modelled"): (0.0, 0.07, 0.0, 0.055879354476928704, "HBM"),
        ("Total", "bytes"): (0.0, 0.0, 0.0, 0.0, "Unknown"),
        **{
            (step, "Program"): (0.06, 0.067, 0.006556510925292969, 0.005587935447692871, "HBM")
            for step in ("Total", "Average", "0", "1", "2")
        },
    },
}


@pytest.mark.parametrize(("version", "expected"), [(version, rows) for versions, rows in CUSTOM_CALLS.items() for version in versions])
def test_a_custom_calls_events_state_costs_that_later_versions_leave_out(version: str, expected: dict[Any, Any]) -> None:
    got = rows_of(opened(core_of_custom_calls()), version)
    assert got.keys() == expected.keys()
    assert [got[key] for key in expected] == [(*map(pytest.approx, row[:-1]), row[-1]) for row in expected.values()]


@pytest.mark.parametrize(("version", "gflops"), [*((old, 80.14) for old in OLD), ("2.24.2", 80.0)])
def test_clocks_and_dma_stalls_are_the_same_in_all(version: str, gflops: float) -> None:
    core = tpu_plane(peak_vmem_rd_bw_gigabytes_per_second=4000.0, peak_vmem_wr_bw_gigabytes_per_second=3000.0, has_merged_vmem=Signed(1))
    costs: dict[str, Any] = {
        "flops": 2_000_000,
        "bytes_accessed": 9000,
        "memory_access_breakdown": breakdown((1, 1, 6000), (1, 3, 3000), (2, 3, 900)),
    }
    dot = core.op("%a = f32[8]", display="a", hlo_category="convolution fusion", program_id=1, symbol_id=1, **costs)
    call = core.op("%c = f32[8]", display="c", hlo_category="custom-call", program_id=1, symbol_id=2)
    slow, slower = ({"Time__Scale__Multiplier": scale} for scale in (0.5, 0.25))
    stalled = core.event(call, 40 * US, 10 * US, dma_stall_duration_ps=Signed(2 * US), flops=7000)
    core.line("XLA Ops", [core.event(dot, 0, 10 * US, **slow), core.event(dot, 20 * US, 10 * US, **slower), stalled], id=3)
    table = xprof_roofline(opened(core), version)
    program, dots, calls = table["rows"][:3]
    assert program["measured_flop_rate"] == pytest.approx(gflops)
    assert (dots["measured_flop_rate"], dots["bound_by"], calls["dma_stall_percent"]) == (pytest.approx(200.0), "Compute", 0.2)
    assert (table["properties"]["peak_vmem_read_bw"], table["properties"]["vmem_write_ridge_point"]) == ("3725.29", "33.3333")


AMD = {"device_vendor": "AMD", "memory_bandwidth": 2_662_400_000_000}
MI300X = {**AMD, "compute_cap_major": 9, "compute_cap_minor": 4, "core_count": 304, "clock_rate": 2_100_000}
MI355X = {
    "device_vendor": "AMD",
    "gpu_device_name": "gfx950",
    "compute_cap_major": 9,
    "compute_cap_minor": 5,
    "core_count": 256,
    "clock_rate": 2_400_000,
    "memory_bandwidth": 4_096_000_000_000,
}
GFX90 = {**AMD, "compute_cap_major": 9, "compute_cap_minor": 0, "core_count": 104, "clock_rate": 1_700_000}
V100 = {"compute_cap_major": 7, "compute_cap_minor": 0, "core_count": 80, "clock_rate": 1_530_000, "memory_bandwidth": 900_000_000_000}
HOPPER = {"device_vendor": "Nvidia", "compute_cap_major": 9, "compute_cap_minor": 0, "core_count": 132, "clock_rate": 1_980_000}
STATED = {
    **HOPPER,
    "memory_bandwidth": 4_800_000_000_000,
    "peak_teraflops_per_second": 800.0,
    "peak_sram_rd_bw_gigabytes_per_second": 30000.0,
    "peak_sram_wr_bw_gigabytes_per_second": 20000.0,
}
OLD_AMD = "AMD GPU - gfx-9XX series"


@pytest.mark.parametrize(
    ("stats", "old", "new"),
    [
        (MI300X, (OLD_AMD, "0", "152206", "0"), ("AMD GPU - gfx942", "1.30744e+06", "76103.2", "491.077")),
        (MI355X, (OLD_AMD, "0", "146484", "0"), ("AMD GPU - gfx950", "2.51658e+06", "146484", "614.4")),
        (GFX90, (OLD_AMD, "0", "42152.4", "0"), (OLD_AMD, "0", "0", "0")),
        (V100, ("GPU", "0", "29182.4", "0"), ("GPU", "0", "0", "0")),
        (STATED, ("Nvidia GPU (Hopper)", "1.07053e+06", "62313.1", "223.027"), ("Nvidia GPU (Hopper)", "800000", "18626.5", "166.667")),
    ],
)
@every_version
def test_gpus_peaks(stats: dict[str, Any], old: tuple[str, ...], new: tuple[str, ...], version: str) -> None:
    gpu = Plane("/device:GPU:0", id=1, stats=stats)
    gpu.line("Stream #1(Kernel)", [gpu.event("dot_kernel", 0, 20 * US, tf_op=Ref("jit(f)/dot_general:"))], id=1)
    properties = xprof_roofline(opened(gpu), version)["properties"]
    told = tuple(properties[name] for name in ("device_type", "peak_flop_rate", "peak_vmem_write_bw", "hbm_ridge_point"))
    assert told == (old if version in OLD else new)


def gpu_with_steps(steps: int) -> Profile:
    """Steps of 90 us with one kernel of 30 us each, every other one called fp16."""
    gpu, host = Plane("/device:GPU:0", id=1, stats=HOPPER), Plane("/host:CPU", id=2)
    kernels, calls = [], []
    launch = Ref("regs:38 shm:0 grid:160,1,1 block:1024,1,1 occ_pct:50")
    for step in range(steps):
        at, number = step * 100 * US, step + 1
        calls += [host.event("train", at, 90 * US, step_num=Signed(step), _r=Signed(1))]
        calls += [host.event("cuLaunchKernel", at + 5 * US, 5 * US, correlation_id=number)]
        name = "volta_fp16_gemm" if step % 2 else "kernel"
        facts = {"correlation_id": number, "tf_op": Ref("m/MatMul:MatMul"), "kernel_details": launch}
        kernels.append(gpu.event(name, at + 20 * US, 30 * US, **facts))
    gpu.line("Stream #1(Kernel)", kernels, id=1)
    host.line("python", calls, id=7)
    return opened(gpu, host)


@pytest.mark.parametrize(
    ("version", "steps", "shown"),
    [*((old, 8, "01234567") for old in OLD), ("2.24.2", 8, "123456"), *((version, 4, "0123") for version in (*OLD, *NEW))],
)
def test_of_more_than_five_steps_later_versions_leave_the_first_and_the_last_out(version: str, steps: int, shown: str) -> None:
    profile = gpu_with_steps(steps)
    table = [row for row in xprof_roofline(profile, version)["rows"] if row["include_infeed_outfeed"]]
    assert "".join(row["step"] for row in table if row["step"].isdecimal()) == shown
    figures = xprof_overview(profile, version)  # of all steps, shown or not
    assert (figures["device_compute_16bit_percent"], figures["device_compute_32bit_percent"]) == (50, 50)


@every_version
def test_an_op_that_the_framework_names_stands_without_its_type(version: str) -> None:
    kernels = xprof_kernel_stats(gpu_with_steps(4), version)
    assert {(row["op_name"], row["is_op_tensor_core_eligible"]) for row in kernels} == {("m/MatMul", True)}


def test_clocks_that_differ_from_step_to_step_are_those_of_the_whole_profile() -> None:
    """A loop and its body at other clocks in each of three steps: XProf 2.24.2 scales an instruction's own time as its whole time is."""
    core = tpu_plane()
    loop = core.op("%w = ()", display="w", hlo_category="while", program_id=1, symbol_id=1)
    body = core.op("%f = f32[8]", display="f", hlo_category="loop fusion", program_id=1, symbol_id=4, flops=5000, bytes_accessed=640)
    events = []
    for step, (scale, length) in enumerate(((0.5, 10), (0.9, 30), (1.0, 50))):
        at, group = step * 100 * US, Signed(step)
        events.append(core.event(loop, at, 90 * US, group_id=group, **{"Time__Scale__Multiplier": scale}))
        events.append(core.event(body, at + 5 * US, length * US, group_id=group, **{"Time__Scale__Multiplier": 1.1 - scale}))
    core.line("Steps", [core.event(str(step), step * 100 * US, 100 * US, group_id=Signed(step)) for step in range(3)], id=1)
    core.line("XLA Ops", events, id=3)
    assert xprof_roofline(opened(core), "2.24.2")["properties"]["time_scale_multiplier"] == "0.596296"
