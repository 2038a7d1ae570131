"""`roofterm roofline` through its options: whose roofs, with their labels, and several profiles on one roof."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import pytest

from roofterm.cli.main import main
from roofterm.hardware.roofs import metadata_host
from roofterm.hardware.store import MeasuredDevice, MeasuredRoofs, keep_roofs
from roofterm_parsers import open_profile
from tests.reference import reference

H100 = Path(__file__).resolve().parents[2] / "samples" / "transformer_h100_synthetic.pt.trace.json.gz"
TWO_RANKS = H100.parent / "transformer_h100_2ranks_synthetic"


@pytest.fixture(autouse=True)
def no_user_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))


def said(capfdbinary: pytest.CaptureFixture[bytes], *options: str, path: Path = H100) -> str:
    assert main(["roofline", str(path), *options]) == 0
    return capfdbinary.readouterr().out.decode()


def found(capfdbinary: pytest.CaptureFixture[bytes], *options: str, path: Path = H100) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(said(capfdbinary, "--format", "json", *options, path=path))
    return answer


def refusal(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["roofline", *arguments]) == 2
    return capfd.readouterr().err


def roofs(answer: dict[str, Any]) -> dict[str, tuple[float, str]]:
    """Value and source of each roof, by its type, level or kind."""
    return {roof["dtype"] or roof["level"] or roof["kind"]: (roof["value"], roof["source"]) for roof in answer["roofs"]}


def product(answer: dict[str, Any]) -> dict[str, Any]:
    """The largest product: 8,192 x 4,096 by 4,096 x 14,336 in bf16, bound by arithmetic."""
    return next(row for row in answer["rows"] if row["shapes"] == "[[8192,4096],[4096,14336]]")


def memory_bound(answer: dict[str, Any]) -> dict[str, Any]:
    return next(row for row in answer["rows"] if row["name"] == "aten::_fused_adamw_")


FLOPS_OF_PRODUCTS = 72 * 2 * 8192 * 4096 * 14336
"""gate, up and the gradient of down's input, in 4 layers and 6 steps"""


def test_without_options_the_vendors_roofs_hold(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    answer = found(capfdbinary)
    known = roofs(answer)
    assert known["bf16"] == (989.4e12, "vendor")
    assert known["nvlink"] == (450e9, "vendor")
    assert known["l1"][1] == "derived"
    assert known["launch"] == (2e-6, "derived")
    row = product(answer)
    assert row["flops"] == FLOPS_OF_PRODUCTS
    assert row["time_bound_us"] == pytest.approx(FLOPS_OF_PRODUCTS / 989.4e12 * 1e6)


def test_given_roofs_replace_their_own_and_nothing_else(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    plain = found(capfdbinary)
    answer = found(capfdbinary, "--peak", "bf16=500", "--bandwidth", "hbm=2000", "--bandwidth", "nvlink=100")
    known = roofs(answer)
    assert known["bf16"] == (500e12, "given")
    assert known["hbm"] == (2e12, "given")
    assert known["nvlink"] == (100e9, "given")
    assert known["fp32"] == roofs(plain)["fp32"]
    assert product(answer)["time_bound_us"] == pytest.approx(FLOPS_OF_PRODUCTS / 500e12 * 1e6)
    assert product(answer)["pct_of_roof"] == pytest.approx(product(plain)["pct_of_roof"] * 989.4 / 500)
    assert memory_bound(answer)["pct_of_roof"] == pytest.approx(memory_bound(plain)["pct_of_roof"] * 3.352e12 / 2e12, rel=1e-3)
    collective = next(row for row in answer["rows"] if row["category"] == "communication")
    same = next(row for row in plain["rows"] if row["category"] == "communication")
    assert collective["time_bound_us"] == pytest.approx(same["time_bound_us"] * 4.5)


def test_another_devices_roofs(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    answer = found(capfdbinary, "--device", "a100-sxm4-80gb")
    assert answer["device"] == "NVIDIA H100 80GB HBM3"  # where it ran
    assert roofs(answer)["bf16"] == (312e12, "vendor")
    assert "fp8" not in roofs(answer)
    assert product(answer)["time_bound_us"] == pytest.approx(FLOPS_OF_PRODUCTS / 312e12 * 1e6)


def test_the_text_names_the_sources_of_its_roofs(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert "roofs: derived, vendor, launch 2 us" in said(capfdbinary)
    given = said(capfdbinary, "--peak", "bf16=500")
    assert "roofs: derived, given, vendor" in given
    assert "500T bf16 given" in given


def measured() -> MeasuredRoofs:
    source = open_profile(str(H100)).sources[0]
    return MeasuredRoofs(
        node=str(source.host or metadata_host(source.metadata) or platform.node()),  # where the profile was recorded
        measured_at="2026-01-01T00:00:00Z",
        device=MeasuredDevice("NVIDIA H100 80GB HBM3", "gpu", units=132),
        torch="2.13.0",
        driver=None,
        power_limit_w=None,
        clocks_mhz={},
        partition=None,
        threads=None,
        peaks={"bf16": 790e12},
        bandwidths={"hbm": 3.0e12},
        links={},
        launch_s={"spacing": 3.5e-6, "enqueue": 5e-6},
        noisy=[],
        notes=[],
        seconds=20.0,
    )


def test_measured_roofs_come_first_and_the_vendors_fill_in(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    keep_roofs(measured())
    known = roofs(found(capfdbinary))
    assert known["bf16"] == (790e12, "measured")
    assert known["hbm"] == (3.0e12, "measured")
    assert known["fp8"][0] == pytest.approx(1979e12, rel=1e-3)
    assert known["fp8"][1] == "vendor"
    assert known["launch"] == (3.5e-6, "measured")
    assert roofs(found(capfdbinary, "--roofs", "measured")) == known


def test_the_vendors_roofs_are_taken_where_they_are_asked_for(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    keep_roofs(measured())
    known = roofs(found(capfdbinary, "--roofs", "vendor"))
    assert known["bf16"] == (989.4e12, "vendor")
    assert known["launch"] == (2e-6, "derived")


def test_roofs_that_nobody_measured_are_refused(capfd: pytest.CaptureFixture[str]) -> None:
    assert "run `roofterm measure`" in refusal(capfd, str(H100), "--roofs", "measured")
    assert "states no peaks" in refusal(capfd, str(H100), "--roofs", "trace")


def test_roofs_of_the_trace(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """libtpu states 918 TFLOP/s and 1,638 GB/s for the core of a TPU v6e."""
    path = reference("traces/xplane/tpu_v6e_inference.xplane.pb")
    known = roofs(found(capfdbinary, "--roofs", "trace", path=path))
    assert known["bf16"][1] == "trace"
    assert known["bf16"][0] == pytest.approx(918e12, rel=0.05)
    assert known["hbm"][0] == pytest.approx(1.638e12, rel=0.01)
    assert known["hbm"][1] == "trace"


@pytest.mark.parametrize("option", [("--peak", "bf16"), ("--peak", "bf16=-1"), ("--bandwidth", "hbm=fast"), ("--device", "no-such-device")])
def test_what_is_no_roof_is_said(option: tuple[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    assert option[1].partition("=")[0] in refusal(capfd, str(H100), *option)


# Several profiles on one roof


def test_labelled_profiles_keep_apart(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    alone = found(capfdbinary)
    ranks = [str(TWO_RANKS / f"rank{number}.pt.trace.json.gz") for number in (0, 1)]
    assert main(["roofline", str(H100), ranks[0], "--label", "one", "--label", "two", "--format", "json", "--top", "0"]) == 0
    answer = json.loads(capfdbinary.readouterr().out)
    assert [one["label"] for one in answer["profiles"]] == ["one", "two"]
    assert {row["profile"] for row in answer["rows"]} == {"one", "two"}
    mine = [row for row in answer["rows"] if row["profile"] == "one"]
    assert {(row["name"], row["shapes"], row["time_us"]) for row in mine} == {
        (row["name"], row["shapes"], row["time_us"]) for row in alone["rows"]
    }
    assert [row["time_us"] for row in answer["rows"]] == sorted((row["time_us"] for row in answer["rows"]), reverse=True)


def test_labelled_profiles_have_a_letter_each(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    rank = str(TWO_RANKS / "rank0.pt.trace.json.gz")
    assert main(["roofline", str(H100), rank, "--label", "before", "--label", "after", "--ascii", "--where", "cat:gemm"]) == 0
    lines = capfdbinary.readouterr().out.decode().splitlines()
    assert any(line.startswith("before: h100-sxm5-80gb, 6 steady steps") for line in lines)
    assert any(line in ("a before  b after", "b after  a before") for line in lines)
    header = next(line for line in lines if line.startswith("name"))
    assert header.split()[1] == "profile"


def test_profiles_of_different_devices_say_so(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    other = str(reference("traces/torch/tracelens_mi300x_qwen05b_chat.json.gz"))
    assert main(["roofline", str(H100), other, "--label", "h", "--label", "m", "--top", "1"]) == 0
    text = " ".join(capfdbinary.readouterr().out.decode().split())
    assert "drawn are the roofs of h100-sxm5-80gb" in text
    assert "(m: another one)" in text


def test_labels_must_fit(capfd: pytest.CaptureFixture[str]) -> None:
    assert "give one for each profile" in refusal(capfd, str(H100), str(H100), "--label", "a")
    assert "the same label" in refusal(capfd, str(H100), str(H100), "--label", "a", "--label", "a")


# Levels


def test_the_levels_phase_and_module(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    path = reference("traces/torch/tracelens_h100_qwen05b_chat.json.gz")
    rows = found(capfdbinary, "--level", "module", "--top", "0", path=path)["rows"]
    assert {row["level"] for row in rows} == {"module"}
    (linear,) = [row for row in rows if row["name"] == "Linear_3"]
    assert linear["module_path"] == "Qwen2Model_0/Qwen2DecoderLayer_0/Qwen2Attention_0/Linear_3"
    phases = found(capfdbinary, "--level", "phase")["rows"]
    assert {"forward", "backward", "optimizer", "communication"} <= {row["name"] for row in phases}


def test_hardware_counters_are_a_program_row(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    path = reference("traces/torch/hta_a100_cupti_profiler_range.json.gz")
    rows = found(capfdbinary, "--level", "program", path=path)["rows"]
    (row,) = [row for row in rows if row["dtype"] == "fp32"]
    assert (row["step"], row["flops"], row["flops_per_s"]) == ("Total (HW)", 79_679_454_712, None)
    assert "tensor cores not counted" in row["flags"]
    assert "tensor cores not counted" in said(capfdbinary, "--level", "program", path=path)


def test_busy_and_idle_time_and_the_ridge_are_numbers_in_sight(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    answer = found(capfdbinary, "--level", "program", "--step", "all")
    use, whole = answer["use"], answer["rows"][0]
    assert use["time_us"] == whole["time_us"]
    assert use["busy_us"] + use["idle_us"] == pytest.approx(use["time_us"])
    assert use["mfu_pct"] == pytest.approx(100 * whole["model_flops"] / (whole["time_us"] * 1e-6) / 989.4e12)
    assert use["hfu_pct"] == pytest.approx(100 * whole["flops"] / (whole["time_us"] * 1e-6) / 989.4e12)
    assert answer["ridge"]["bf16"]["hbm"] == pytest.approx(989.4e12 / 3.35232e12)
    text = " ".join(said(capfdbinary, "--level", "program", "--step", "all").split())
    assert "% busy" in text
    assert "idle, MFU" in text
    assert "989.4 TFLOP/s bf16 (vendor, ridge 295.1 FLOP/byte)" in text
    assert "fp8" not in text  # nothing ran in it


def test_a_picture_holds_every_row_that_has_a_place(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    placed = [row for row in found(capfdbinary)["rows"] if row["flops_per_s"] or row["bytes_per_s"]]
    picture = said(capfdbinary, "--format", "svg")
    assert picture.startswith("<svg ")
    assert picture.count("<title>") == len(placed)
    assert H100.name in picture


def test_programs_of_several_profiles_are_joined_in_their_order(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    paths = (str(H100), str(TWO_RANKS))
    assert main(["roofline", *paths, "--label", "one", "--label", "two", "--level", "program", "--format", "svg"]) == 0
    picture = capfdbinary.readouterr().out.decode()
    assert picture.count("<polyline") == 1
    assert picture.count("<title>") == 2
