"""Two profiles compared by hand, and the conditions that a pipeline fails on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from roofterm.analysis.compare import CHANGES, compare
from roofterm.analysis.compare_notes import notes
from roofterm.analysis.conditions import ConditionError, fires, parse_condition
from roofterm.analysis.scope import Scope
from roofterm.analysis.study import Study
from roofterm.cli.main import main
from tests.build import Build

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
RANKS = SAMPLES / "transformer_h100_2ranks_synthetic"
UNITS = {"step_us": "us", "mfu_pct": "pct", "peak_mem_bytes": "bytes", "kernels": "count"}


def stepped(gemm: float, names: tuple[str, ...] = ("volta_sgemm",), steps: int = 2) -> Study:
    """Steps of 100 us, each with a kernel of `gemm` us for each name, launched by aten::mm of 20 us."""
    build = Build()
    for number in range(steps):
        start = 100.0 * number
        build.step(number, start, 100)
        op = build.host("aten::mm", start, 20, external_id=number)
        call = build.call(start + 2, 3)
        for at, name in enumerate(names):
            build.kernel(name, start + 10 + 30 * at, gemm, launch=call, op=op)
    return Study(build.profile())


def rows(base: Study, new: Study, level: str) -> dict[str, dict[str, Any]]:
    found = compare(base, new)
    assert found.changes.schema == CHANGES
    return {row["name"]: row for row in found.changes.iter_rows(named=True) if row["level"] == level}


def test_steps_are_compared_by_their_means():
    """A GEMM of 10 us becomes one of 15: 5 us more of compute in a step of 100, so 5 us less idle."""
    step = rows(stepped(10), stepped(15), "step")
    assert (step["compute_us"]["base"], step["compute_us"]["new"], step["compute_us"]["change"], step["compute_us"]["change_pct"]) == (
        10,
        15,
        5,
        50,
    )
    assert (step["idle_us"]["change"], step["step_us"]["change"], step["step_us"]["status"]) == (-5, 0, "same")
    assert (step["compute_busy_pct"]["base"], step["compute_busy_pct"]["new"], step["compute_busy_pct"]["unit"]) == (10, 15, "pct")
    assert (step["mbu_pct"]["status"], step["mbu_pct"]["change"]) == ("unknown", None)


def test_kernels_are_compared_a_step_whatever_the_number_of_steps():
    """Two steps against four: each has one call of 10 us."""
    (kernel,) = rows(stepped(10, steps=2), stepped(10, steps=4), "kernel").values()
    assert (kernel["base"], kernel["new"], kernel["base_calls"], kernel["new_calls"], kernel["status"]) == (10, 10, 1, 1, "same")


def test_added_and_removed_kernels_count_from_and_to_nothing():
    kernels = rows(stepped(10, ("volta_sgemm", "old_kernel")), stepped(12, ("volta_sgemm", "new_kernel")), "kernel")
    assert {name: (row["status"], row["change"]) for name, row in kernels.items()} == {
        "volta_sgemm": ("changed", 2),
        "old_kernel": ("removed", -10),
        "new_kernel": ("added", 12),
    }
    assert list(kernels) == ["new_kernel", "old_kernel", "volta_sgemm"]
    assert kernels["new_kernel"]["change_pct"] is None


def test_ops_are_compared_on_the_device_and_on_the_host():
    (device,) = rows(stepped(10), stepped(15), "op").values()
    assert (device["name"], device["base"], device["new"]) == ("aten::mm", 10, 15)
    host = rows(stepped(10), stepped(15), "host op")
    assert (host["aten::mm"]["base"], host["aten::mm"]["status"]) == (17, "same")


def test_a_change_is_judged_by_the_steps_own_spread():
    """GEMMs of 10, 11, 12 us against 11, 12, 13: 1 us more, of a standard error of 0.82. Against 30, 31, 32 it is 20 us more."""
    base = varying((10, 11, 12))
    (near,) = rows(base, varying((11, 12, 13)), "kernel").values()
    (far,) = rows(base, varying((30, 31, 32)), "kernel").values()
    assert (near["change"], near["status"]) == (1, "within spread")
    assert (far["change"], far["status"]) == (20, "changed")
    # t of 4 degrees of freedom at 0.1 % is 8.610, variances are 1: 8.610 x sqrt(1/3 + 1/3).
    assert far["spread"] == pytest.approx(8.610 * (2 / 3) ** 0.5, rel=1e-4)
    (alone,) = rows(base, varying((30,)), "kernel").values()
    assert (alone["spread"], alone["status"]) == (None, "differs")


def varying(lengths: tuple[float, ...], name: str = "volta_sgemm", device: str = "NVIDIA H100 80GB HBM3", dims: str | None = None) -> Study:
    """A step of 100 us for each length, with one kernel of it."""
    build = Build(device_name=device)
    for number, length in enumerate(lengths):
        build.step(number, 100.0 * number, 100)
        op = build.host("aten::mm", 100.0 * number, 20, external_id=number, dims=dims)
        build.kernel(name, 100.0 * number + 10, length, launch=build.call(100.0 * number + 2, 3), op=op)
    return Study(build.profile())


def test_kernels_meet_by_what_they_compute_and_keep_their_names():
    """Another tile and stage count of one GEMM: one row, with both names."""
    base = varying((10, 10), "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn")
    new = varying((12, 12), "ampere_bf16_s16816gemm_bf16_64x64_ldg8_f2f_stages_32x5_tn")
    (row,) = rows(base, new, "kernel").values()
    assert (row["name"], row["change"], row["status"]) == ("ampere_bf16_s16816gemm_bf16_f2f_tn", 2, "changed")
    assert row["base_name"].endswith("128x64_ldg8_f2f_stages_64x3_tn")
    assert row["new_name"].endswith("64x64_ldg8_f2f_stages_32x5_tn")


def test_ops_are_matched_by_their_shapes_too_where_both_have_them():
    small, large = "[[64,64],[64,64]]", "[[128,64],[64,64]]"
    found = rows(varying((10, 10), dims=small), varying((10, 10), dims=large), "op with shapes")
    assert {name: row["status"] for name, row in found.items()} == {f"aten::mm {small}": "removed", f"aten::mm {large}": "added"}
    assert rows(varying((10, 10)), varying((10, 10), dims=large), "op with shapes") == {}


def test_two_vendors_are_compared_by_op_and_said_to_be_two():
    found = compare(varying((10, 10)), varying((15, 15), "Cijk_Ailk_Bljk_BBS", device="AMD Instinct MI300X"))
    assert found.two_vendors
    assert any("two vendors" in note for note in notes(found))
    statuses = {(row["level"], row["name"]): row["status"] for row in found.changes.iter_rows(named=True)}
    assert statuses["op", "aten::mm"] == "changed"
    assert (statuses["kernel", "volta_sgemm"], statuses["kernel", "Cijk_Ailk_Bljk_BBS"]) == ("removed", "added")


def test_the_notes_say_what_a_comparison_comes_to():
    """10 us more of compute in steps of 100 us, all of it a GEMM, and as much less idle time before the next launch."""
    said = notes(compare(varying((10, 10, 10)), varying((20, 20, 20))))
    assert said[0] == "step: 100.0 us on both sides"
    assert said[1] == "of which compute +10.00 us; idle -10.00 us"
    assert said[2] == "kernels: volta_sgemm +10.00 us"
    assert notes(compare(varying((10,)), varying((20,))))[-1] == "one step on a side: no spread to judge changes by"
    same = notes(compare(varying((10, 10)), varying((10, 10))))
    assert same == ["step: 100.0 us on both sides", "kernel time unchanged"]


def test_steps_that_are_asked_for_are_compared():
    base, new = varying((10, 10, 50)), varying((10, 10, 10))
    found = compare(base, new, Scope(step="2"))
    (kernel,) = (row for row in found.changes.iter_rows(named=True) if row["level"] == "kernel")
    assert (kernel["base"], kernel["new"], found.base_text) == (50, 10, "step 2")


def test_a_filter_speaks_of_rows_and_of_slices():
    """Kernels of 10 and 20 us in two steps: longer than 15 us is the second alone, 20 us in two steps; more calls than one has none."""
    base = varying((10, 20))
    found = compare(base, base, Scope(step="steady", where="dur>15us cat:gemm")).changes
    assert found.filter(level="kernel").select("name", "base", "base_calls").rows() == [("volta_sgemm", 10.0, 0.5)]
    assert compare(base, base, Scope(step="steady", where="calls>2")).changes.filter(level="kernel").height == 0


def test_without_steps_whole_files_are_compared():
    build = Build()
    build.kernel("gemm", 0, 30)
    build.kernel("gemm", 40, 30)
    found = compare(stepped(10), Study(build.profile()))
    assert found.per_step is False
    (removed, added) = (
        row for row in found.changes.iter_rows(named=True) if row["level"] == "kernel" and row["name"] in ("gemm", "volta_sgemm")
    )
    assert {removed["name"]: removed["change"], added["name"]: added["change"]} == {"gemm": 60, "volta_sgemm": -20}


@pytest.mark.parametrize(
    ("text", "base", "new", "holds"),
    [
        ("step_us>5%", 100.0, 106.0, True),
        ("step_us>5%", 100.0, 105.0, False),
        ("step_us >= 5 %", 100.0, 105.0, True),
        ("step_us<-5%", 100.0, 94.0, True),
        ("step_us>5%", 0.0, 1.0, True),
        ("step_us>5%", 0.0, 0.0, False),
        ("step_us>1.5ms", 0.0, 1501.0, True),
        ("step_us>1.5ms", 9e9, 1500.0, False),
        ("mfu_pct<40", None, 39.9, True),
        ("peak_mem_bytes>=1GiB", 0.0, 2.0**30, True),
        ("kernels>1k", 5000.0, 999.0, False),
    ],
)
def test_conditions(text: str, base: float | None, new: float, holds: bool):
    assert fires(parse_condition(text, UNITS), base, new) is holds


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("step_us", "write FIGURE>NUMBER"),
        ("step_us>fast", "write FIGURE>NUMBER"),
        ("steps_us>5%", "did you mean step_us?"),
        ("step_us>5GiB", "GiB is no unit of step_us"),
        ("mfu_pct>5ms", "it takes no unit, or % of its change"),
    ],
)
def test_a_condition_that_cannot_be_read_says_how_to_write_it(text: str, said: str):
    with pytest.raises(ConditionError, match=said.replace("?", r"\?")):
        parse_condition(text, UNITS)


@pytest.mark.parametrize(("base", "new", "side"), [(1.0, None, "NEW"), (None, 1.0, "BASE")])
def test_an_unknown_figure_is_no_pass(base: float | None, new: float | None, side: str):
    with pytest.raises(ConditionError, match=f"unknown in {side}"):
        fires(parse_condition("mfu_pct<-1%", UNITS), base, new)


def run(capsysbinary: pytest.CaptureFixture[bytes], *arguments: str) -> tuple[int, str, str]:
    code = main(["compare", *arguments, "--no-cache", "-q"])
    out, err = capsysbinary.readouterr()
    return code, out.decode(), err.decode()


def test_a_profile_against_itself_has_not_changed(capsysbinary: pytest.CaptureFixture[bytes]):
    path = str(SAMPLES / "transformer_cpu.pt.trace.json.gz")
    code, out, _ = run(capsysbinary, path, path, "--format", "json", "--top", "0", "--fail-on", "step_us>0%")
    answer = json.loads(out)
    assert (code, answer["schema"], answer["failed"], answer["per_step"]) == (0, "roofterm.compare/1", [], True)
    assert {row["status"] for row in answer["rows"]} == {"same", "unknown"}
    code, out, _ = run(capsysbinary, path, path)
    assert "ops, own host time: no change" in out


def test_a_limit_that_is_passed_ends_with_3_and_says_which(capsysbinary: pytest.CaptureFixture[bytes]):
    """Rank 1 of the sample computes a third slower in one of three steps: 113.7 against 103.2 ms, 10.1 % more."""
    paths = [str(RANKS / f"rank{rank}.pt.trace.json.gz") for rank in (0, 1)]
    code, out, err = run(capsysbinary, *paths, "--fail-on", "compute_us>10%", "--fail-on", "compute_us>11%", "--format", "json")
    assert (code, json.loads(out)["failed"]) == (3, ["compute_us>10%"])
    assert err.count("\n") == 1
    assert "compute_us>10%: compute_us was 103249" in err


def test_a_wrong_condition_ends_with_2(capsysbinary: pytest.CaptureFixture[bytes]):
    path = str(SAMPLES / "transformer_cpu.pt.trace.json.gz")
    code, out, err = run(capsysbinary, path, path, "--fail-on", "steps_us>5%")
    assert (code, out) == (2, "")
    assert "did you mean" in err
    assert main(["compare", path]) == 2


def test_texts_have_their_units_and_csv_its_numbers(capsysbinary: pytest.CaptureFixture[bytes]):
    paths = [str(RANKS / f"rank{rank}.pt.trace.json.gz") for rank in (0, 1)]
    _, out, _ = run(capsysbinary, *paths)
    (line,) = [line for line in out.splitlines() if line.startswith("compute_us")]
    # Steps of 103 ms against 103, 134 and 104: the one slow step makes the change no surprise.
    assert line.split()[1:9] == ["103.2", "ms", "113.7", "ms", "+10.46", "ms", "+10.1%", "~"]
    _, out, _ = run(capsysbinary, *paths, "--format", "csv", "--top", "1")
    levels = [line.split(",")[0] for line in out.splitlines()[1:]]
    assert sorted(set(levels)) == ["category", "host op", "host phase", "kernel", "op", "op with shapes", "phase", "step"]
    assert {levels.count(level) for level in levels if level != "step"} == {1}


def test_where_chooses_rows(capsysbinary: pytest.CaptureFixture[bytes]):
    paths = [str(RANKS / f"rank{rank}.pt.trace.json.gz") for rank in (0, 1)]
    _, out, _ = run(capsysbinary, *paths, "--where", "nvjet", "--format", "json", "--top", "0")
    names = {row["level"]: row["name"] for row in json.loads(out)["rows"] if row["level"] != "step"}
    assert set(names) == {"kernel"}
    assert names["kernel"].startswith("nvjet")
    code, _, err = run(capsysbinary, *paths, "--where", "dur:")
    assert (code, "a value is missing" in err) == (2, True)
