"""The command line: exit codes, error sentences and formats of contract.md, on the project's own samples."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from roofterm import __version__
from roofterm.cli.arguments import COMMANDS, parse
from roofterm.cli.errors import UsageError
from roofterm.cli.main import main
from roofterm.cli.selecting import memory_limit, scope_of
from roofterm.report.breakdown import cell_shares
from roofterm.text.safe import cell_width
from roofterm_parsers.profile import Profile

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
H100 = SAMPLES / "transformer_h100_synthetic.pt.trace.json.gz"
CPU = SAMPLES / "transformer_cpu.pt.trace.json.gz"
RUN = [sys.executable, "-m", "roofterm.cli.main"]


def answer(capfdbinary: pytest.CaptureFixture[bytes], *arguments: str) -> bytes:
    assert main(list(arguments)) == 0
    return capfdbinary.readouterr().out


def refusal(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The sentence of a command that cannot be done: exit code 2, one line on standard error, nothing on standard output."""
    assert main(list(arguments)) == 2
    shown = capfd.readouterr()
    assert shown.out == ""
    assert len(shown.err.strip().splitlines()) == 1
    assert "Traceback" not in shown.err
    return shown.err


def test_version(capfdbinary: pytest.CaptureFixture[bytes]):
    assert answer(capfdbinary, "--version").decode() == f"roofterm {__version__}\n"


def test_help_names_every_command(capfdbinary: pytest.CaptureFixture[bytes]):
    text = answer(capfdbinary, "--help").decode()
    assert all(f"  {command.name} " in text for command in COMMANDS)


@pytest.mark.parametrize("command", [c.name for c in COMMANDS])
def test_every_command_has_help(command: str, capfdbinary: pytest.CaptureFixture[bytes]):
    assert f"roofterm {command}" in answer(capfdbinary, command, "--help").decode()


# Faults


def test_a_missing_file_is_a_sentence(capfd: pytest.CaptureFixture[str]):
    assert "no_such_file.json" in refusal(capfd, "report", "no_such_file.json")


def test_a_wrong_option_is_a_sentence(capfd: pytest.CaptureFixture[str]):
    assert "--fromat" in refusal(capfd, "report", str(CPU), "--fromat", "json")


def test_no_path_is_a_sentence(capfd: pytest.CaptureFixture[str]):
    assert "PATH" in refusal(capfd, "report")


def test_a_wrong_filter_points_at_its_fault(capfd: pytest.CaptureFixture[str]):
    # "fast" begins at the 12th character.
    assert "at character 12" in refusal(capfd, "ops", str(H100), "--where", "cat:mm dur>fast")


def test_an_unknown_step_says_which_there_are(capfd: pytest.CaptureFixture[str]):
    assert "there are 10 to 15" in refusal(capfd, "ops", str(H100), "--step", "99")


def test_an_unknown_sort_column_lists_the_columns(capfd: pytest.CaptureFixture[str]):
    assert "total_us" in refusal(capfd, "ops", str(H100), "--sort", "speed")


def test_grouping_of_kernels_is_refused(capfd: pytest.CaptureFixture[str]):
    assert "--group" in refusal(capfd, "ops", str(H100), "--by", "kernel", "--group", "shape")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--peak", "bf16"),
        ("--peak", "bf16=-3"),
        ("--bandwidth", "=4"),
        ("--window", "3ms"),
        ("--window", "9ms..2ms"),
        ("--max-memory", "lots"),
    ],
)
def test_values_that_mean_nothing_are_refused(option: str, value: str, capfd: pytest.CaptureFixture[str]):
    assert option in refusal(capfd, "report", str(H100), option, value)


def test_a_fault_that_names_a_hostile_file_is_safe(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    path = tmp_path / "\x1b[2Jx\x07.json"
    path.write_text("{}")
    text = refusal(capfd, "report", str(path))
    assert "\x1b" not in text
    assert "\x07" not in text


# Options as values


def test_memory_sizes_take_decimal_and_binary_units():
    assert [memory_limit(t) for t in (None, "8GiB", "500MB", "2g", "1024")] == [None, 8 * 2**30, 500 * 10**6, 2 * 10**9, 1024]


def test_windows_are_times_from_the_start():
    scope = scope_of(parse(["ops", "x", "--window", "10ms..0.5"]), "all")
    assert scope.window_ps == (10 * 10**9, 5 * 10**11)


def test_a_path_that_is_no_command_opens_the_explorer():
    assert parse(["trace.json"]).command.name == "open"
    with pytest.raises(UsageError):
        parse(["trace.json", "--nonsense"])


# Formats


def test_report_json_is_strict_and_has_the_contracts_keys(capfdbinary: pytest.CaptureFixture[bytes]):
    def refuse(constant: str) -> Any:
        raise ValueError(constant)

    report = json.loads(answer(capfdbinary, "report", str(H100), "--format", "json", "--no-cache"), parse_constant=refuse)
    assert report["schema"] == "roofterm.report/1"
    assert set(report) >= {"source", "summary", "warnings", "devices", "steps", "tables", "roofline", "findings"}
    assert set(report["tables"]) == {"kernels", "ops", "categories"}
    assert report["source"]["format"] == "kineto"
    for step in report["steps"]:
        parts = ("compute_us", "exposed_comm_us", "exposed_copy_us", "idle_us")
        assert sum(step[part] for part in parts) == pytest.approx(step["dur_us"], abs=1e-6)


def test_ops_json_and_csv_hold_the_same_rows(capfdbinary: pytest.CaptureFixture[bytes]):
    rows = json.loads(answer(capfdbinary, "ops", str(H100), "--format", "json", "--top", "5"))["rows"]
    table = list(csv.DictReader(io.StringIO(answer(capfdbinary, "ops", str(H100), "--format", "csv", "--top", "5").decode())))
    assert len(rows) == len(table) == 5
    assert [(r["name"], r["calls"]) for r in rows] == [(r["name"], int(r["calls"])) for r in table]
    assert [r["total_us"] for r in rows] == [float(r["total_us"]) for r in table]


def test_top_0_gives_every_row_and_where_and_sort_choose(capfdbinary: pytest.CaptureFixture[bytes]):
    def rows(*more: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(answer(capfdbinary, "ops", str(H100), "--format", "json", "--top", "0", *more))["rows"]
        return found

    everything = rows()
    gemms = rows("--where", "cat:gemm")
    assert 0 < len(gemms) < len(everything)
    assert {r["category"] for r in gemms} == {"gemm"}
    calls = [r["calls"] for r in rows("--sort", "calls")]
    assert calls == sorted(calls, reverse=True)
    names = [r["name"] for r in rows("--sort", "name:desc")]
    assert names == sorted(names, reverse=True)


def test_text_lines_keep_to_the_width(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]):
    for width in (60, 80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        for command in (["report", str(H100)], ["ops", str(H100)], ["steps", str(H100)], ["roofline", str(H100)]):
            lines = answer(capfdbinary, *command).decode().splitlines()
            assert max(map(cell_width, lines)) <= width, command


def test_ascii_output_is_ascii(capfdbinary: pytest.CaptureFixture[bytes]):
    for command in ("report", "ops", "steps", "roofline"):
        assert answer(capfdbinary, command, str(H100), "--ascii").isascii()


def test_no_escape_code_reaches_a_pipe(capfdbinary: pytest.CaptureFixture[bytes]):
    for command in ("report", "ops", "steps", "roofline"):
        assert b"\x1b" not in answer(capfdbinary, command, str(H100))


def test_markdown_is_a_table(capfdbinary: pytest.CaptureFixture[bytes]):
    lines = answer(capfdbinary, "ops", str(H100), "--format", "markdown", "--top", "3").decode().splitlines()
    assert len(lines) == 5
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1


def test_output_goes_whole_into_a_file(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]):
    path = tmp_path / "out.json"
    assert answer(capfdbinary, "ops", str(H100), "--format", "json", "-o", str(path)) == b""
    assert json.loads(path.read_text())["schema"] == "roofterm.ops/1"
    assert list(tmp_path.iterdir()) == [path]


def test_output_that_cannot_be_written_is_a_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    assert "cannot write" in refusal(capfd, "ops", str(H100), "-o", str(tmp_path / "none" / "out.txt"))


def test_steps_give_a_row_a_step(capfdbinary: pytest.CaptureFixture[bytes]):
    rows = json.loads(answer(capfdbinary, "steps", str(H100), "--format", "json"))["rows"]
    assert [r["name"] for r in rows] == [f"ProfilerStep#{n}" for n in range(10, 16)]


def test_given_peaks_are_used_and_labelled(capfdbinary: pytest.CaptureFixture[bytes]):
    """Half the peak: twice the share of it."""
    plain = json.loads(answer(capfdbinary, "roofline", str(H100), "--format", "json"))
    given = json.loads(answer(capfdbinary, "roofline", str(H100), "--format", "json", "--peak", "bf16=494.7"))
    roof = next(r for r in given["roofs"] if r["dtype"] == "bf16")
    assert (roof["value"], roof["source"]) == (494.7e12, "given")
    share = {r["name"] + r["shapes"]: r["pct_of_peak_flops"] for r in plain["rows"] if r["name"] == "aten::mm"}
    for row in given["rows"]:
        if row["name"] == "aten::mm":
            assert row["pct_of_peak_flops"] == pytest.approx(2 * share[row["name"] + row["shapes"]])


def test_devices_lists_the_table_and_describes_one(capfdbinary: pytest.CaptureFixture[bytes]):
    rows = json.loads(answer(capfdbinary, "devices", "--format", "json"))["rows"]
    assert {"h100-sxm5-80gb", "mi300x", "tpu-v6e"} <= {r["id"] for r in rows}
    text = answer(capfdbinary, "devices", "NVIDIA", "H100", "80GB", "HBM3").decode()
    assert "h100-sxm5-80gb" in text
    assert "989.4 TFLOP/s" in text


# Processes


def test_a_reader_that_leaves_is_no_fault():
    first = subprocess.run(f"{' '.join(RUN)} ops {H100} --top 0 | head -n 1", shell=True, capture_output=True, text=True, check=False)
    assert first.stdout.startswith("name")
    assert first.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is always full")
@pytest.mark.parametrize("arguments", ["--version", f"ops {H100}", f"export {H100} -o -"])
def test_standard_output_that_cannot_be_written_is_a_sentence(arguments: str) -> None:
    done = subprocess.run(f"{' '.join(RUN)} {arguments} > /dev/full", shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_closed_streams_are_no_fault() -> None:
    done = subprocess.run(f"{' '.join(RUN)} ops {H100} >&-", shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    done = subprocess.run(f"{' '.join(RUN)} ops nowhere 2>&-", shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")


def test_what_is_half_written_is_deleted_at_the_end_of_the_process(tmp_path: Path) -> None:
    code = f"""
import pathlib, sys
from unittest import mock
from roofterm.cli import main as cli, ops
from roofterm.report import files

kept = []

def half(args):
    kept.append(files.replacing(pathlib.Path({str(tmp_path / "out.csv")!r})))
    kept[0].__enter__().write(b"half")
    return 0

with mock.patch.object(ops, "run", half), mock.patch.object(sys, "argv", ["roofterm", "ops", "x"]):
    cli.program()
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert list(tmp_path.iterdir()) == []


def wait_for_handler(pid: int, number: int) -> None:
    """Until a process catches this signal, as its status in /proc says: how fast it starts is not the question."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        caught = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt"))
        if int(caught.split()[1], 16) >> (number - 1) & 1:
            return
        time.sleep(0.05)
    pytest.fail("the signal is never caught")


def test_a_signal_that_comes_too_late_for_reading_to_hear_it_is_heard_all_the_same(monkeypatch: pytest.MonkeyPatch):
    """As where the last rank is read and the ranks are merged."""

    def merged(*_: Any, **__: Any) -> Profile:
        os.kill(os.getpid(), signal.SIGINT)
        return Profile()

    monkeypatch.setattr("roofterm.cli.loading.open_profile", merged)
    assert main(["steps", "made.json", "-q"]) == 130


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_loading_with_130(number: signal.Signals):
    reading = subprocess.Popen([*RUN, "report", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert reading.stdin is not None
    reading.stdin.write(b'{"traceEvents": [')
    reading.stdin.flush()
    wait_for_handler(reading.pid, signal.SIGTERM)
    reading.send_signal(number)
    try:
        # It is noticed between two blocks of input, or at once where the pipe has nothing.
        out, err = reading.communicate(b" " * 2**20, timeout=10)
    finally:
        reading.kill()
    assert (reading.returncode, out, err) == (130, b"", b"")


def test_without_a_terminal_a_path_alone_prints_the_report():
    done = subprocess.run([*RUN, str(CPU)], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    assert "health" in done.stdout
    assert done.stderr == ""


def test_the_bars_cells_add_up():
    assert cell_shares([1, 1, 1], 10) in ([4, 3, 3], [3, 4, 3], [3, 3, 4])
    assert sum(cell_shares([0.1, 97, 2.9], 63)) == 63
    assert cell_shares([0, 0], 5) == [0, 0]
