"""How a piece of work came about, on profiles made by hand; times in us."""

from __future__ import annotations

import polars as pl

from roofterm.analysis.study import Study
from roofterm.results import ChainLink
from roofterm_parsers.profile import BACKWARD, Kind, Profile
from tests.build import Build


def slice_named(profile: Profile, name: str) -> int:
    rows = profile.slices.with_row_index("slice").filter(profile.names["text"].gather(profile.slices["name"]) == name)
    return int(rows["slice"][0])


def chain(profile: Profile, name: str) -> list[tuple[str, str]]:
    return [(link.kind, link.name) for link in Study(profile).dispatch_chain(slice_named(profile, name))]


def eager() -> Build:
    build = Build()
    build.step(4, 0, 100)
    build.host("train.py(10): main", 1, 98, Kind.PYTHON)
    build.host("forward", 4, 90, Kind.ANNOTATION)
    build.host("nn.Module: Mlp_0", 5, 80, Kind.PYTHON)
    build.host("mlp.py(7): forward", 6, 70, Kind.PYTHON)
    build.host("torch/nn/functional.py(90): linear", 7, 60, Kind.PYTHON)
    build.host("nn.Module: Linear_1", 8, 50, Kind.PYTHON)
    build.host("<built-in function linear>", 9, 40, Kind.PYTHON)
    build.host("aten::linear", 10, 30)
    build.host("aten::addmm", 12, 20)
    build.kernel("gemm", 50, 20, launch=build.call(14, 4))
    return build


def test_a_kernel_s_chain_leads_from_the_step_to_the_call() -> None:
    """Of the Python frames one line of the user's own code is kept, of the modules all."""
    assert chain(eager().profile(), "gemm") == [
        ("step", "ProfilerStep#4"),
        ("annotation", "forward"),
        ("module", "Mlp_0"),
        ("python", "mlp.py(7): forward"),
        ("module", "Linear_1"),
        ("op", "aten::linear"),
        ("op", "aten::addmm"),
        ("call", "cudaLaunchKernel"),
        ("kernel", "gemm"),
    ]


def test_a_link_tells_its_slice_and_times() -> None:
    profile = eager().profile()
    gemm = slice_named(profile, "gemm")
    links = Study(profile).dispatch_chain(gemm)
    assert links[-1] == ChainLink("kernel", "gemm", 50, 20, gemm)
    assert (links[-2].start_us, links[-2].dur_us) == (14, 4)


def test_a_range_that_nests_in_nothing_is_told_by_time() -> None:
    build = Build()
    build.host("a.py(1): run", 0, 100, Kind.PYTHON)
    build.host("<built-in method _record_function_enter_new>", 2, 3, Kind.PYTHON)
    build.host("my range", 4, 60, Kind.ANNOTATION)
    build.host("aten::mul", 20, 10)
    build.kernel("mul", 40, 5, launch=build.call(22, 2))
    assert ("annotation", "my range") in chain(build.profile(), "mul")


def test_without_own_code_the_innermost_line_is_told() -> None:
    build = Build()
    build.host("torch/nn/modules/module.py(1): _call_impl", 0, 90, Kind.PYTHON)
    build.host("torch/nn/modules/linear.py(2): forward", 1, 80, Kind.PYTHON)
    build.kernel("k", 50, 5, launch=build.call(22, 2))
    assert chain(build.profile(), "k")[0] == ("python", "torch/nn/modules/linear.py(2): forward")


def test_a_backward_kernel_names_its_forward_op_and_module() -> None:
    build = Build()
    build.host("nn.Module: Linear_1", 0, 30, Kind.PYTHON)
    build.host("aten::addmm", 5, 10)
    build.host("AddmmBackward0", 50, 20, thread=2)
    build.kernel("gemm backward", 80, 5, launch=build.call(52, 2, thread=2))
    profile = build.profile()
    pair = [(slice_named(profile, "AddmmBackward0"), slice_named(profile, "aten::addmm"))]
    profile.backward = pl.DataFrame(pair, schema=BACKWARD, orient="row")
    assert chain(profile, "gemm backward") == [
        ("module", "Linear_1"),
        ("forward", "aten::addmm"),
        ("op", "AddmmBackward0"),
        ("call", "cudaLaunchKernel"),
        ("kernel", "gemm backward"),
    ]


def test_a_replayed_kernel_names_the_launch_of_its_graph() -> None:
    build = Build()
    build.host("decode", 0, 50, Kind.ANNOTATION)
    build.kernel("k", 60, 5, launch=build.call(10, 5, "hipGraphLaunch"))
    assert chain(build.profile(), "k") == [("annotation", "decode"), ("graph", "hipGraphLaunch"), ("kernel", "k")]


def test_work_without_a_call_is_a_chain_of_one_or_hangs_on_its_op() -> None:
    build = Build()
    op = build.host("aten::mm", 0, 10)
    build.kernel("orphan", 60, 5)
    build.kernel("named", 70, 5, op=op)
    profile = build.profile()
    assert chain(profile, "orphan") == [("kernel", "orphan")]
    assert chain(profile, "named") == [("op", "aten::mm"), ("kernel", "named")]


def test_a_host_slice_has_what_is_around_it() -> None:
    assert chain(eager().profile(), "aten::addmm")[-2:] == [("op", "aten::linear"), ("op", "aten::addmm")]
