"""Graph replays joined to the trace of their capture, on traces written here as ROCm and CUDA write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from roofterm.analysis.capture import captured_graphs, match_captures
from roofterm.analysis.graphs import graph_replays
from roofterm.analysis.joining import join_captures, replay_sizes
from roofterm.analysis.scope import ALL
from roofterm.analysis.study import Study
from roofterm.captures import CaptureFile, open_captures, wanted
from roofterm_parsers.errors import ProfileError
from roofterm_parsers.opening import open_profile
from roofterm_parsers.profile import Profile
from tests.unit.chrome_traces import call, kernel, opened, x

MM: dict[str, Any] = {"Input Dims": [[4, 8], [8, 16]], "Input type": ["float", "float"], "External id": 1}
NORM: dict[str, Any] = {"Input Dims": [[4, 16]], "Input type": ["float"], "External id": 2}
GRID = [16, 1, 1]


def captured(
    size: int | None = 4,
    at: float = 0,
    names: tuple[str, ...] = ("gemm", "norm"),
    dims: list[list[int]] | None = None,
    layer: int = 0,
    rocm: bool = True,
) -> list[dict[str, Any]]:
    """A graph as its capture records it, within 100 us: in the module of a layer aten::mm launches a gemm and norm a norm."""
    maker = "hip" if rocm else "cuda"
    events = [
        x("aten::warm_up", at, 2),
        x(f"nn.Module: Layer_{layer}", at + 5, 80, cat="python_function", **{"Python id": 10 + layer, "Python module id": layer}),
        call(f"{maker}StreamBeginCapture", at + 6, 1, 900 + int(at)),
        call(f"{maker}StreamEndCapture", at + 90, 1, 901 + int(at)),
    ]
    if size is not None:
        events.append(x(f"capture_{size}_DECODE", at + 4, 95, cat="user_annotation"))
    for place, name in enumerate(names):
        op, args = ("aten::mm", MM) if name.startswith("gemm") else ("my::norm", NORM)
        if dims is not None and op == "aten::mm":
            args = {**args, "Input Dims": dims}
        start = at + 10 + 10 * place
        said = {"kernel": name, "grid": GRID, "block": [64, 1, 1], "shared memory": 256} if rocm else {}
        events += [x(op, start, 8, **args), call(f"{maker}LaunchKernel", start + 2, 2, 500 + int(at) + place, **said)]
    return events


def replayed(launches: dict[float, tuple[str, ...]], annotations: tuple[dict[str, Any], ...] = (), **facts: Any) -> Profile:
    """Graph launches by their time, with the names of what each replays, one piece every 10 us, of 5 us."""
    events = list(annotations)
    for start, names in launches.items():
        correlation = 100 + int(start)
        events.append(call("hipGraphLaunch", start, 5, correlation))
        events += [kernel(name, start + 20 + 10 * place, 5, correlation, **facts) for place, name in enumerate(names)]
    return opened(events)


def decode(start: float, dur: float, size: int) -> dict[str, Any]:
    return x(f"step[DECODE bs={size}]", start, dur, cat="user_annotation")


def names_of(profile: Profile, slices: pl.Series) -> list[str | None]:
    return profile.names["text"].gather(profile.slices["name"].gather(slices)).to_list()


def launched_by(study: Study) -> dict[str, str | None]:
    """For each kernel the op that the kernel table names."""
    return dict(study.table("kernel").select("name", "launched_by").iter_rows())


def test_a_capture_s_calls_are_a_graph_with_size_mode_and_kernels() -> None:
    (graph,) = captured_graphs(opened(captured()))
    assert (graph.size, graph.mode, graph.keys) == (4, "DECODE", ("gemm", "norm"))


def test_calls_outside_of_a_capture_or_with_work_belong_to_no_graph() -> None:
    events = [
        *captured(),
        call("hipLaunchKernel", 1, 1, 7, kernel="before", grid=GRID, block=GRID),
        call("hipLaunchKernel", 8, 1, 8, kernel="ran at once", grid=GRID, block=GRID),
        kernel("ran at once", 9, 1, 8),
    ]
    (graph,) = captured_graphs(opened(events))
    assert graph.keys == ("gemm", "norm")


def test_a_trace_without_marks_of_its_capture_is_one_graph() -> None:
    events = [event for event in captured() if "Capture" not in event["name"]]
    (graph,) = captured_graphs(opened(events))
    assert graph.keys == ("gemm", "norm")


def test_copies_and_sets_are_part_of_a_graph() -> None:
    events = [*captured(), call("hipMemcpyAsync", 70, 2, 77), call("hipMemsetAsync", 75, 2, 78)]
    (graph,) = captured_graphs(opened(events))
    assert graph.keys == ("gemm", "norm", "(copy)", "(copy)")


def test_a_replay_of_what_was_captured_gets_its_ops() -> None:
    study = Study(replayed({0: ("gemm", "norm")}), captures=[opened(captured())])
    assert launched_by(study) == {"gemm": "aten::mm", "norm": "my::norm"}
    assert study.captured.match.warnings == []


def test_replayed_products_are_costed_by_the_captured_shapes() -> None:
    """[4, 8] times [8, 16] twice: 2 x 4 x 8 x 16 FLOPs each, and 4 bytes for each of 32 + 128 + 64 elements."""
    study = Study(replayed({0: ("gemm", "norm"), 200: ("gemm", "norm")}), captures=[opened(captured())])
    (row,) = [row for row in study.roofline(ALL).ops if row.name == "aten::mm"]
    assert (row.calls, row.flops, row.bytes["hbm"]) == (2, 2 * 1024, 2 * 4 * 224)
    assert row.shapes == "[[4,8],[8,16]]"
    assert study.summary().flops_total == 2048


def test_captured_shared_memory_and_grids_stand_where_the_replay_has_none() -> None:
    joined = Study(replayed({0: ("gemm", "norm")}), captures=[opened(captured())]).joined
    assert joined.kernels.select("grid_x", "block_x", "shared_bytes").rows() == [(16, 64, 256)] * 2


def test_the_profile_itself_stays_as_it_was_read() -> None:
    """Counts, times and the profiler's own table know nothing of the captured ops."""
    profile = replayed({0: ("gemm", "norm")})
    alone, study = Study(profile), Study(profile, captures=[opened(captured())])
    assert study.profile.slices.equals(profile.slices)
    assert study.summary().slices == alone.summary().slices == 3
    assert study.summary().cpu_top == alone.summary().cpu_top
    assert study.table("op")["name"].to_list() == alone.table("op")["name"].to_list()


def test_the_joined_profile_keeps_slices_names_and_tracks_in_their_places() -> None:
    profile, capture = replayed({0: ("gemm", "norm")}), opened(captured())
    match = match_captures(profile, [capture])
    joined, placed = join_captures(profile, [capture], match.joined)
    joined.check()
    for frame in ("slices", "names", "tracks"):
        before = getattr(profile, frame)
        assert getattr(joined, frame).head(before.height).equals(before)
    assert names_of(joined, placed["op"]) == ["aten::mm", "my::norm"]
    assert names_of(joined, placed["call"]) == ["hipLaunchKernel", "hipLaunchKernel"]
    above = joined.slices["parent"].gather(placed["op"])
    assert names_of(joined, above) == ["nn.Module: Layer_0", "nn.Module: Layer_0"]


def test_the_chain_of_a_replayed_kernel_leads_through_the_capture() -> None:
    profile = replayed({0: ("gemm", "norm")})
    study = Study(profile, captures=[opened(captured())])
    gemm = int(study.work["slice"][0])
    assert [(link.kind, link.name) for link in study.dispatch_chain(gemm)] == [
        ("graph", "hipGraphLaunch"),
        ("captured annotation", "capture_4_DECODE"),
        ("captured module", "Layer_0"),
        ("captured op", "aten::mm"),
        ("captured call", "hipLaunchKernel"),
        ("kernel", "gemm"),
    ]
    assert study.dispatch_chain(gemm)[2].start_us is None


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (("gemm", "norm", "norm"), "one kernel more"),
        (("gemm",), "one kernel less"),
        (("gemm", "softmax"), "another kernel"),
        (("norm", "norm"), "not as many of each"),
    ],
)
def test_a_mismatch_joins_nothing_and_says_so(names: tuple[str, ...], why: str) -> None:
    study = Study(replayed({0: names}), captures=[opened(captured())])
    assert study.joined is study.profile
    assert set(launched_by(study).values()) == {None}, why
    (warning,) = study.captured.match.warnings
    assert warning.code == "capture"
    pieces = f"{len(names)} piece{'s' if len(names) > 1 else ''} of work"
    assert warning.message == (f"made.json (size 4, 2 captured launches) does not fit 1 graph launch of {pieces}: nothing was joined to it")
    assert warning in study.warnings()


def test_a_grid_that_differs_is_a_mismatch() -> None:
    assert match_captures(replayed({0: ("gemm", "norm")}, grid=[16, 1, 1]), [opened(captured())]).joined.height == 2
    assert match_captures(replayed({0: ("gemm", "norm")}, grid=[17, 1, 1]), [opened(captured())]).joined.height == 0


def test_a_replay_may_lack_its_very_last_records_and_that_is_said() -> None:
    """Of 200 captured launches 1 is lost: half a percent. 3 lost ones would be 1.5 %."""
    names = tuple(f"norm{i}" for i in range(200))
    capture = opened(long_capture(names))
    match = match_captures(replayed({0: names[:199]}), [capture])
    assert match.joined.height == 199
    assert [warning.message for warning in match.warnings] == [
        "made.json (size 4, 200 captured launches): the last 1 of them are lost in 1 graph launch"
    ]
    assert match_captures(replayed({0: names[:197]}), [capture]).joined.height == 0
    assert match_captures(replayed({0: names[1:]}), [capture]).joined.height == 0


def long_capture(names: tuple[str, ...]) -> list[dict[str, Any]]:
    events = [
        x("capture_4_DECODE", 0, 5000, cat="user_annotation"),
        call("hipStreamBeginCapture", 1, 1, 1),
        call("hipStreamEndCapture", 4990, 1, 2),
    ]
    for place, name in enumerate(names):
        events += [call("hipLaunchKernel", 10 + 10 * place, 2, 10 + place, kernel=name, grid=GRID, block=GRID)]
    return events


def test_kernels_of_several_streams_are_paired_by_name_where_their_order_differs() -> None:
    study = Study(replayed({0: ("norm", "gemm")}), captures=[opened(captured())])
    assert launched_by(study) == {"gemm": "aten::mm", "norm": "my::norm"}


def test_the_smallest_graph_that_holds_the_batch_is_replayed() -> None:
    """Captured for 2, 4 and 8; a batch of 3 is padded to 4."""
    capture = opened(
        [
            *captured(2, 0, dims=[[2, 8], [8, 16]]),
            *captured(4, 200, dims=[[4, 8], [8, 16]]),
            *captured(8, 400, dims=[[8, 8], [8, 16]]),
        ]
    )
    study = Study(replayed({10: ("gemm", "norm")}, (decode(0, 100, 3),)), captures=[capture])
    assert [row.shapes for row in study.roofline(ALL).ops if row.name == "aten::mm"] == ["[[4,8],[8,16]]"]


def test_without_a_batch_size_unlike_graphs_with_the_same_kernels_are_not_guessed_between() -> None:
    capture = opened([*captured(2, 0, dims=[[2, 8], [8, 16]]), *captured(4, 200, dims=[[4, 8], [8, 16]])])
    match = match_captures(replayed({10: ("gemm", "norm")}), [capture])
    assert match.joined.height == 0
    assert "2 captured graphs of unlike shapes fit 1 graph launch of 2 pieces" in match.warnings[0].message


def test_a_batch_too_large_for_every_graph_is_joined_to_none() -> None:
    match = match_captures(replayed({10: ("gemm", "norm")}), [opened(captured(4))], [9])
    assert match.joined.height == 0
    assert "no captured graph is large enough for 1 graph launch" in match.warnings[0].message


def test_piecewise_graphs_are_paired_in_the_order_of_their_launches() -> None:
    """Two layers with the same kernels, twice: the first launch of an iteration is of the first graph."""
    capture = opened([*captured(4, 0, layer=0), *captured(4, 200, layer=1)])
    profile = replayed(dict.fromkeys((10, 110, 310, 410), ("gemm", "norm")), (decode(0, 200, 4), decode(300, 200, 4)))
    study = Study(profile, captures=[capture])
    gemms = study.work.filter(study.profile.names["text"].gather(study.profile.slices["name"].gather(study.work["slice"])) == "gemm")
    layers = [next(link.name for link in study.dispatch_chain(piece) if link.kind == "captured module") for piece in gemms["slice"]]
    assert layers == ["Layer_0", "Layer_1", "Layer_0", "Layer_1"]


def test_captures_on_cuda_name_no_kernels_and_are_paired_by_number_and_kind() -> None:
    cuda = opened(captured(rocm=False))
    (graph,) = captured_graphs(cuda)
    assert graph.keys == (None, None)
    study = Study(replayed({0: ("gemm", "norm")}), captures=[cuda])
    assert launched_by(study) == {"gemm": "aten::mm", "norm": "my::norm"}
    assert match_captures(replayed({0: ("gemm", "norm", "more")}), [cuda]).joined.height == 0
    assert match_captures(replayed({0: ("gemm", "__amd_rocclr_copyBuffer")}), [cuda]).joined.height == 0


def test_a_trace_that_captured_nothing_says_so() -> None:
    match = match_captures(replayed({0: ("gemm", "norm")}), [opened([x("aten::mm", 0, 5)])])
    assert [warning.message for warning in match.warnings] == [
        "made.json: no captured launch is in it; nothing of it was joined to 1 graph launch"
    ]


def test_a_profile_without_graph_launches_says_so() -> None:
    match = match_captures(opened([kernel("k", 0, 5)]), [opened(captured())])
    assert "no graph is launched in this profile" in match.warnings[0].message


def test_the_record_of_a_graph_names_its_capture() -> None:
    study = Study(replayed({0: ("gemm", "norm"), 100: ("softmax",)}), captures=[opened(captured())])
    assert [(graph.pieces, graph.capture) for graph in study.graph_replays()] == [(2, "made.json"), (1, None)]


def test_the_size_of_a_replay_is_that_of_the_iteration_that_launches_it() -> None:
    profile = replayed(dict.fromkeys((10, 150, 310), ("gemm",)), (decode(0, 100, 3), decode(300, 100, 7)))
    study = Study(profile)
    assert replay_sizes(graph_replays(profile), study.iterations) == [3, None, 7]


A, B, C = (CaptureFile(f"bs_{size}_rank0.json", size, 0) for size in (8, 16, 32))


@pytest.mark.parametrize(
    ("sizes", "chosen"),
    [([16], [B]), ([9], [B]), ([1, 30], [C, A]), ([33], []), ([None], [B, C, A]), ([], [])],
)
def test_files_are_chosen_by_the_sizes_that_are_replayed(sizes: list[int | None], chosen: list[CaptureFile]) -> None:
    """The smallest that holds each; without a size all of them, in order of their names."""
    assert wanted([A, B, C], sizes, {0}) == chosen


def test_files_of_other_ranks_are_left_alone() -> None:
    other = CaptureFile("bs_8_rank1.json", 8, 1)
    assert wanted([A, other], [8], {1}) == [other]
    assert wanted([A, other], [8], {None}) == [A, other]


def written(folder: Path, name: str, events: list[dict[str, Any]]) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": events}))
    return path


def serving(folder: Path) -> Path:
    events = [decode(0, 100, 3), call("hipGraphLaunch", 10, 5, 110), kernel("gemm", 30, 5, 110), kernel("norm", 40, 5, 110)]
    return written(folder, "run.json", events)


def test_capture_traces_beside_the_profile_are_found_and_chosen_by_size(tmp_path: Path) -> None:
    path = serving(tmp_path)
    for size in (2, 4, 8):
        written(tmp_path / "capture_traces", f"bs_{size}.json", captured(size))
    captures = open_captures(open_profile(path, cache=False), None, cache=False)
    assert [Path(source.path).name for capture in captures for source in capture.sources] == ["bs_4.json"]


def test_sizes_may_stand_in_a_list_beside_the_traces(tmp_path: Path) -> None:
    path = serving(tmp_path)
    for name in ("a.json", "b.json"):
        written(tmp_path / "capture_traces", name, captured(4))
    rows = [{"file": "a.json", "batch_size": 2, "mode": "FULL"}, {"file": "b.json", "batch_size": 4, "mode": "FULL"}]
    (tmp_path / "capture_traces" / "execution_details.json").write_text(json.dumps(rows))
    captures = open_captures(open_profile(path, cache=False), None, cache=False)
    assert [Path(capture.sources[0].path).name for capture in captures] == ["b.json"]


def test_a_profile_that_replays_nothing_opens_no_capture(tmp_path: Path) -> None:
    path = written(tmp_path, "eager.json", [x("aten::mm", 0, 5)])
    written(tmp_path / "capture_traces", "bs_4.json", captured())
    assert open_captures(open_profile(path, cache=False), None, cache=False) == []


def test_a_capture_beside_it_that_cannot_be_opened_is_a_warning(tmp_path: Path) -> None:
    profile = open_profile(serving(tmp_path), cache=False)
    (tmp_path / "capture_traces").mkdir()
    (tmp_path / "capture_traces" / "bs_4.json").write_text("hello")
    assert open_captures(profile, None, cache=False) == []
    assert "capture is not read from it" in profile.warnings[-1].message


def test_a_capture_that_was_named_must_be_one(tmp_path: Path) -> None:
    profile = open_profile(serving(tmp_path), cache=False)
    with pytest.raises(ProfileError, match="no such file"):
        open_captures(profile, str(tmp_path / "nothing.json"), cache=False)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ProfileError, match="no trace is in this folder"):
        open_captures(profile, str(tmp_path / "empty"), cache=False)


def test_a_folder_with_capture_traces_is_one_run(tmp_path: Path) -> None:
    serving(tmp_path)
    written(tmp_path / "capture_traces", "bs_4.json", captured())
    profile = open_profile(tmp_path, cache=False)
    assert [Path(source.path).name for source in profile.sources] == ["run.json"]
    assert profile.warnings == []
