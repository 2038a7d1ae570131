"""XProf's tables on planes made by hand: framework ops, kernels, the op profile."""

from __future__ import annotations

from typing import Any

import pytest

from roofterm.analysis.xprof.framework_names import framework_op_of
from roofterm.analysis.xprof.framework_op_stats import xprof_framework_op_stats
from roofterm.analysis.xprof.hlo_stats import xprof_hlo_stats
from roofterm.analysis.xprof.kernel_stats import xprof_kernel_stats
from roofterm.analysis.xprof.op_profile import xprof_op_profile
from roofterm_parsers.profile import Profile, Source
from roofterm_parsers.xplane.reader import read
from tests.xspace import Hlo, Plane, Ref, Signed, metadata_plane, space, tpu_plane

US = 1_000_000
VERSION = "2.24.2"


def opened(*planes: Plane) -> Profile:
    return read(space(*planes), Source("test.xplane.pb", "xplane", "plain"), lambda size: None, cancelled=lambda: False)


@pytest.mark.parametrize(
    ("text", "name", "kind", "known"),
    [
        ("layer/Mul:Mul", "layer/Mul", "Mul", True),
        ("jit(f)/jit(main)/add:", "jit(f)/jit(main)/add", "add", True),
        ("jit(f)/dot_general_3:", "jit(f)/dot_general_3", "dot_general", True),
        ("jit(f)/reduce[axes=(0,)]:", "jit(f)/reduce[axes=(0,)]", "reduce", True),
        ("Iterator::Root::Map", "Iterator::Root::Map", "Dataset", True),
        ("MemcpyHtoD", "MemcpyHtoD", "MemcpyHToD", True),
        ("PjitFunction(f)", "PjitFunction(f)", "", False),
        ("file.cc:42", "file.cc:42", "", False),
    ],
)
def test_a_framework_op_by_its_text(text: str, name: str, kind: str, known: bool) -> None:
    assert framework_op_of(text) == (name, kind, known)


def test_host_ops_take_the_time_of_the_ops_inside_away() -> None:
    plane = Plane("/host:CPU")
    events = [plane.event(name, start * US, length * US) for name, start, length in (("a:A", 0, 100), ("b:B", 10, 30), ("a:A", 150, 50))]
    plane.line("thread", events)
    rows = {row["operation"]: row for row in xprof_framework_op_stats(opened(plane), VERSION)}
    # 200 us from the first op to the last, of which 50 are between them.
    assert [(rows[name]["occurrences"], rows[name]["total_time"], rows[name]["total_self_time"]) for name in ("a", "b", "IDLE")] == [
        (2, 150, 120),
        (1, 30, 30),
        (0, 50, 50),
    ]
    without_idle = {row["operation"]: row for row in xprof_framework_op_stats(opened(plane), VERSION, idle=False)}
    assert set(without_idle) == {"a", "b"}
    assert without_idle["a"]["host_total_self_time_percent"] == pytest.approx(120 / 150)


def core_with_duplicates() -> Plane:
    """A loop of 80 us with two copies of one fusion inside (30 us and 10 us), and a copy of 20 us after it."""
    core = tpu_plane()

    def op(name: str, category: str, symbol: int, **stats: Any) -> int:
        return core.op(f"%{name} = f32[8]", display=name, hlo_category=category, program_id=9, symbol_id=symbol, **stats)

    loop = op("while.1", "while", 1)
    first = op("fusion.1", "loop fusion", 2, flops=3_000_000, deduplicated_name="fusion.1", tf_op=Ref("jit(f)/add:"))
    second = op("fusion.2", "loop fusion", 3, flops=1_000_000, deduplicated_name="fusion.1", tf_op=Ref("jit(f)/add:"))
    copy = op("copy.1", "copy", 4, tf_op=Ref("jit(f)/transpose:"))
    spans = ((loop, 0, 80), (first, 10, 30), (second, 50, 10), (copy, 80, 20))
    core.line("XLA Ops", [core.event(metadata, start * US, length * US) for metadata, start, length in spans])
    core.line("XLA Modules", [core.event("jit_f(9)", 0, 100 * US)], id=2)
    return core


def test_hlo_stats_rank_ops_by_self_time() -> None:
    rows = xprof_hlo_stats(opened(core_with_duplicates()), VERSION)
    assert [(row["hlo_op_name"], row["total_self_time"]) for row in rows] == [
        ("while.1", 40),
        ("fusion.1", 30),
        ("copy.1", 20),
        ("fusion.2", 10),
    ]
    assert [row["total_self_time_percent"] for row in rows] == pytest.approx([40, 30, 20, 10])


def test_the_op_profile_puts_duplicates_of_a_category_together() -> None:
    tree = xprof_op_profile(opened(core_with_duplicates()), VERSION, "program")
    [program] = [child for child in tree["children"] if child["name"] != "IDLE"]
    fusions, copy = program["children"]
    assert program["name"] == "jit_f(9)"
    assert (fusions["name"], copy["name"]) == ("loop fusion", "copy")
    [duplicates] = fusions["children"]
    assert duplicates["name"] == "fusion.1 and its duplicate(s)"
    assert [(one["name"], one["metrics"]["rawTime"]) for one in duplicates["children"]] == [("fusion.1", 30 * US), ("fusion.2", 10 * US)]
    # 4 MFLOP in 40 us are 0.1 TFLOP/s of 100, over 40 % of the time.
    assert fusions["metrics"]["uncappedFlops"] == pytest.approx(0.001 * 0.4)
    assert copy["children"][0]["xla"]["provenance"] == "jit(f)/transpose:"


def test_the_op_profile_by_provenance_follows_the_frameworks_path() -> None:
    tree = xprof_op_profile(opened(core_with_duplicates()), VERSION, "provenance", idle=False)
    [program] = tree["children"]
    [function] = program["children"]
    assert function["name"] == "jit(f)"
    assert {child["name"]: child["metrics"]["rawTime"] for child in function["children"]} == {"add": 40 * US, "transpose": 20 * US}


def test_kernel_stats_count_launches_of_one_shape_together() -> None:
    gpu = Plane("/device:GPU:0")
    small = Ref("regs:32 shm:0 grid:1,1,1 block:64,1,1 occ_pct:50")
    large = Ref("regs:32 shm:0 grid:8,1,1 block:64,1,1 occ_pct:50")
    events = [
        gpu.event("k", start * US, length * US, kernel_details=how) for start, length, how in ((0, 2, small), (5, 4, small), (9, 1, large))
    ]
    gpu.line("Stream #1(Kernel)", events)
    rows = xprof_kernel_stats(opened(gpu), VERSION)
    facts = ("grid_dim", "occurrences", "total_duration_us", "avg_duration_us", "min_duration_us", "max_duration_us")
    assert [tuple(row[name] for name in facts) for row in rows] == [("1,1,1", 2, 6, 3, 2, 4), ("8,1,1", 1, 1, 1, 1, 1)]


def gpu_of_two_programs() -> tuple[Plane, Plane]:
    """Both programs have an instruction `op`; the first one's is an addition, the second one's a copy."""
    modules = [Hlo("jit_a", 20), Hlo("jit_b", 21)]
    for module, opcode in zip(modules, ("add", "copy"), strict=True):
        module.computation("main")
        module.op("p", "parameter", "f32[8]", parameter=0)
        module.op("op", opcode, "f32[8]", ("p",) * (2 if opcode == "add" else 1))
    gpu = Plane("/device:GPU:0", id=2, stats={"device_vendor": "Nvidia", "compute_cap_major": 9, "compute_cap_minor": 0})
    return metadata_plane(*modules), gpu


def launched(gpu: Plane, kernel: str, at: int, **stats: Any) -> bytes:
    details = Ref("regs:32 static_shared:0 dynamic_shared:0 grid:1,1,1 block:64,1,1 occ_pct:50")
    return gpu.event(kernel, at * US, US, kernel_details=details, **stats)


def test_neighbours_of_one_name_within_a_step_are_one_instruction_even_of_two_programs() -> None:
    metadata, gpu = gpu_of_two_programs()
    host = Plane("/host:CPU", id=1)
    steps = [host.event("train", i * 100 * US, 90 * US, step_num=Signed(i), _r=Signed(1)) for i in range(2)]
    calls = [host.event("cuLaunchKernel", at * US, US, correlation_id=number) for number, at in ((1, 5), (2, 10), (3, 110))]
    host.line("main", [steps[0], *calls[:2], steps[1], calls[2]])
    kernels = [launched(gpu, "k", number * 10, correlation_id=number, hlo_op=Ref("op"), hlo_module=Ref("m"), program_id=Signed(program))
               for number, program in ((1, 20), (2, 21), (3, 21))]  # fmt: skip
    gpu.line("Stream #1(Kernel)", kernels)
    rows = xprof_hlo_stats(opened(metadata, gpu, host), VERSION)
    # The second program's first run comes right after the first program's, in the same step.
    assert [(row["program_id"], row["category"], row["occurrences"]) for row in rows] == [
        ("20", "non-fusion elementwise", 2),
        ("21", "data formatting", 1),
    ]


def test_a_framework_op_without_hlo_is_one_op_for_each_of_its_kernels() -> None:
    metadata, gpu = gpu_of_two_programs()
    gpu.line("Stream #1(Kernel)", [launched(gpu, name, i * 10, tf_op=Ref("layer/Mul:Mul")) for i, name in enumerate("xxy")])
    rows = xprof_hlo_stats(opened(metadata, gpu), VERSION)
    assert [(row["hlo_op_name"], row["category"], row["occurrences"]) for row in rows] == [
        ("layer/Mul/x", "Mul", 2),
        ("layer/Mul/y", "Mul", 1),
    ]


def test_a_kernel_whose_instruction_is_not_in_the_hlo_is_the_modules() -> None:
    metadata, gpu = gpu_of_two_programs()
    told: dict[str, Any] = {"hlo_module": Ref("m"), "tf_op": Ref("XlaModule:"), "name": Ref("a/b")}
    kernels = [launched(gpu, "k", i * 10, hlo_op=Ref("op"), program_id=Signed(program), **told) for i, program in enumerate((20, 99))]
    gpu.line("Stream #1(Kernel)", kernels)
    assert sorted(row["op_name"] for row in xprof_kernel_stats(opened(metadata, gpu), VERSION)) == ["", "XlaModule"]
