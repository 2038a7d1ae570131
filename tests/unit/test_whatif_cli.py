"""`roofterm whatif`: formats, both states side by side, limits, sweeps, and the sentences of what cannot be answered."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from roofterm.cli.main import main
from roofterm.glossary import glossary
from roofterm.results import WhatIf, WhatIfRow, WhatIfState
from roofterm.text.safe import cell_width

H100 = Path(__file__).resolve().parents[2] / "samples" / "transformer_h100_synthetic.pt.trace.json.gz"
CPU = H100.parent / "transformer_cpu.pt.trace.json.gz"


@pytest.fixture(autouse=True)
def no_user_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))


@pytest.fixture
def config(tmp_path: Path) -> str:
    """Llama 2 7B."""
    path = tmp_path / "config.json"
    values: dict[str, Any] = {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
        "vocab_size": 32000, "torch_dtype": "float16",
    }  # fmt: skip
    path.write_text(json.dumps(values))
    return str(path)


def said(capfdbinary: pytest.CaptureFixture[bytes], *arguments: str) -> str:
    assert main(["whatif", *arguments]) == 0
    return capfdbinary.readouterr().out.decode()


def refusal(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["whatif", *arguments]) == 2
    shown = capfd.readouterr()
    assert shown.out == ""
    assert len(shown.err.strip().splitlines()) == 1
    return shown.err


def test_a_model_alone_in_json(config: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    options = ("--model", config, "--device", "h100", "--batch", "64", "--context", "2048", "--slo", "itl=50ms", "--format", "json")
    answer = json.loads(said(capfdbinary, *options))
    assert answer["schema"] == "roofterm.whatif/1"
    (decode,) = answer["answers"]
    assert (decode["base"]["phase"], decode["base"]["sequences"], decode["base"]["context"]) == ("decode", 64, 2048)
    # 13.2 GB of weights and 68.7 GB of KV cache at 3.352 TB/s: 24.4 ms, and 0.2 ms for what lies between
    assert decode["base"]["bound_us"] == pytest.approx(24_650, abs=50)
    assert decode["base"] == {**decode["whatif"], "estimate_us": None}
    assert decode["kv_token_bytes"] == 524_288
    assert {limit["name"] for limit in decode["limits"]} == {"ridge_products", "ridge_step", "memory", "slo_itl"}
    assert {(roof["level"], roof["source"]) for roof in answer["roofs"]} >= {("hbm", "vendor"), ("nvlink", "vendor")}
    assert decode["held"]


def test_prompt_and_context_give_two_answers(config: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    answer = json.loads(
        said(capfdbinary, "--model", config, "--device", "h100", "--prompt", "512", "--context", "2048", "--format", "json")
    )
    assert [one["base"]["phase"] for one in answer["answers"]] == ["prefill", "decode"]
    assert all({row["phase"] for row in one["rows"]} == {one["base"]["phase"]} for one in answer["answers"])


def test_both_states_stand_side_by_side(config: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    text = said(capfdbinary, "--model", config, "--device", "h100", "--batch", "8", "--context", "1024", "--weights", "int4", "--tp", "2")
    lines = text.splitlines()
    assert lines[0].split() == ["now", "what", "if"]
    (types,) = [line for line in lines if line.startswith("types")]
    assert types.split(maxsplit=1)[1].startswith("fp16 ")
    assert "weights int4, a scale each 128 elements" in types
    assert any(line.startswith("device") and "2 x h100-sxm5-80gb" in line for line in lines)
    assert "times as fast" in text
    assert any(line.startswith("held: ") for line in lines)


def test_one_state_where_nothing_is_asked(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    text = said(capfdbinary, str(H100))
    assert "what if" not in text
    assert text.splitlines()[0].split(maxsplit=1) == ["step", "training, 2 x 4,096 tokens each"]


def test_a_profiles_step_for_twice_the_batch(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    (answer,) = json.loads(said(capfdbinary, str(H100), "--batch", "4", "--format", "json", "--top", "0"))["answers"]
    products = [row for row in answer["rows"] if row["name"] == "aten::mm"]
    assert products
    for row in products:  # forward, gradients of inputs and of weights alike
        assert row["whatif_us"] == pytest.approx(2 * row["bound_us"], rel=0.05)
        assert not row["held"]
    (optimizer,) = [row for row in answer["rows"] if row["name"] == "aten::_fused_adamw_"]
    assert optimizer["held"]
    assert optimizer["whatif_us"] == optimizer["bound_us"]
    assert answer["measured_us"] > answer["base"]["bound_us"]


def test_another_device_and_given_roofs(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    answer = json.loads(said(capfdbinary, str(H100), "--device", "b200", "--bandwidth", "hbm=7000", "--format", "json"))
    known = {roof["dtype"] or roof["level"]: (roof["value"], roof["source"]) for roof in answer["roofs"]}
    assert known["hbm"] == (7e12, "given")
    assert known["bf16"] == (2250e12, "vendor")
    (one,) = answer["answers"]
    assert (one["base"]["device"], one["whatif"]["device"]) == ("h100-sxm5-80gb", "b200-sxm")
    # memory-bound parts alone: bytes are the same, so their time goes with the bandwidths
    assert one["whatif"]["memory_us"] == pytest.approx(one["base"]["memory_us"] * 3.352 / 7, rel=1e-3)


def test_a_sweep_in_every_format(config: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    options = ("--model", config, "--device", "h100", "--context", "1024", "--sweep", "batch=1..16")
    answer = json.loads(said(capfdbinary, *options, "--format", "json"))
    assert [row["value"] for row in answer["rows"]] == [1, 2, 4, 8, 16]
    assert [row["sequences"] for row in answer["rows"]] == [1, 2, 4, 8, 16]
    rows = list(csv.DictReader(io.StringIO(said(capfdbinary, *options, "--format", "csv"))))
    assert [float(row["bound_us"]) for row in rows] == [row["bound_us"] for row in answer["rows"]]
    text = said(capfdbinary, *options, "--ascii").splitlines()
    assert "a 1  b 2  c 4  d 8  e 16" in text
    assert any(line.split()[:2] == ["value", "phase"] for line in text)
    table = said(capfdbinary, *options, "--format", "markdown")
    assert table.count("\n") == 5 + 2
    picture = said(capfdbinary, *options, "--format", "svg")
    assert picture.count("<title>") == 5
    assert "batch=1..16" in picture


def test_a_sweep_says_where_memory_and_the_time_between_tokens_end(config: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """A 7B model, 13.5 GB of weights in fp16; 4,096 tokens of 524,288 bytes a sequence, so 80 GB hold 33 of them."""
    options = ("--model", config, "--device", "h100", "--context", "4096", "--sweep", "batch=16,32,64", "--slo", "itl=20ms")
    text = said(capfdbinary, *options)
    assert "of the device's memory: 64" in text
    # 13.2 GB of weights and 2.1 GB of cache a sequence at 3.352 TB/s: 14.4, 24.7 and 45.2 ms
    assert "20 ms between tokens kept, at the bound: 16" in text
    assert "batch 1, since none is given" not in text
    rows = json.loads(said(capfdbinary, *options, "--format", "json"))["rows"]
    assert [row["fits"] for row in rows] == [True, True, False]
    tokens = rows[0]["held_bytes"] - rows[1]["held_bytes"] + 16 * 4096 * 524288
    assert tokens == pytest.approx(0)


def test_text_keeps_to_the_width(config: str, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    for width in (60, 80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        for options in ((str(H100), "--batch", "4"), ("--model", config, "--device", "h100", "--spec", "4,0.7", "--weights", "int8")):
            lines = said(capfdbinary, *options).splitlines()
            assert max(map(cell_width, lines)) <= width


def test_a_name_out_of_a_configuration_is_made_safe(config: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    values = json.loads(Path(config).read_text())
    Path(config).write_text(json.dumps({**values, "_name_or_path": "a\x1b[2Jb"}))
    text = said(capfdbinary, "--model", config, "--device", "h100")
    assert "\x1b" not in text
    assert "a\\x1b[2Jb" in text


def test_rows_as_csv_and_markdown(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    rows = list(csv.DictReader(io.StringIO(said(capfdbinary, str(H100), "--dtype", "fp8", "--format", "csv", "--top", "5"))))
    assert len(rows) == 5
    assert float(rows[0]["whatif_us"]) == pytest.approx(float(rows[0]["bound_us"]) * 989.4 / 1979, rel=1e-3)
    assert said(capfdbinary, str(H100), "--format", "markdown", "--top", "3").startswith("| name")


def test_parts_can_be_filtered_and_sorted(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    options = (str(H100), "--format", "json", "--where", "cat:attention", "--sort", "flops:asc")
    (answer,) = json.loads(said(capfdbinary, *options))["answers"]
    assert [row["name"] for row in answer["rows"]] == ["aten::_flash_attention_forward", "aten::_flash_attention_backward"]


FAULTS = [
    ((), "name a profile, or a model"),
    (("--model", "MODEL"), "name a device"),
    (("--model", "MODEL", "--device", "no such device"), "no such device"),
    (("--model", "/no/such/config.json", "--device", "h100"), "cannot read"),
    (("--model", "MODEL", "--device", "h100", "--weights", "int3"), "--weights int3"),
    (("--model", "MODEL", "--device", "h100", "--spec", "many"), "--spec many"),
    (("--model", "MODEL", "--device", "h100", "--spec", "4,1.5"), "--spec 4,1.5"),
    (("--model", "MODEL", "--device", "h100", "--slo", "ttft=1s"), "--slo ttft=1s"),
    (("--model", "MODEL", "--device", "h100", "--slo", "itl=soon"), "soon is no time"),
    (("--model", "MODEL", "--device", "h100", "--batch", "none"), "--batch none"),
    (("--model", "MODEL", "--device", "h100", "--batch", "x2"), "times which batch"),
    (("--model", "MODEL", "--device", "h100", "--tp", "5"), "32 heads cannot be split"),
    (("--model", "MODEL", "--device", "h100", "--tp", "0"), "--tp 0"),
    (("--model", "MODEL", "--device", "h100", "--sweep", "colour=1..4"), "--sweep colour"),
    (("--model", "MODEL", "--device", "a100-sxm4-80gb", "--dtype", "fp8"), "no known peak for fp8"),
    ((str(H100), "--context", "4096"), "--context speaks of decode"),
    ((str(H100), "--spec", "4"), "--spec speaks of decode"),
    ((str(H100), "--slo", "itl=50ms"), "--slo itl speaks of decode"),
    ((str(H100), "--kv-dtype", "fp8"), "no op of these steps is known to read a KV cache"),
    ((str(H100), "--step", "999"), "no such step"),
    ((str(H100), "--where", "cat:"), "--where"),
    ((str(CPU),), "no roof is known for the CPU"),
]


@pytest.mark.parametrize(("arguments", "why"), FAULTS)
def test_what_cannot_be_answered_is_a_sentence(
    arguments: tuple[str, ...], why: str, config: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert why in refusal(capfd, *(config if one == "MODEL" else one for one in arguments))


NAMES = {
    "accept", "base", "batch", "bound_by", "busy_us", "bytes_by_role", "calls", "category", "context", "device", "drafts", "dtype", "fits",
    "held", "kv_dtype", "limits",
    "measured_us", "name", "phase", "rows", "sequences", "shapes", "state", "text", "time_us", "tokens", "tp", "value",
    "weights", "whatif", "whatif_bound_by", "weight_bytes", "kv_bytes", "activation_bytes", "other_bytes", "wire_bytes", "tokens_per_s",
    "launch_us",
}  # fmt: skip
"""What is no figure but a name, or says itself what it is."""


@pytest.mark.parametrize("record", [WhatIf, WhatIfState, WhatIfRow])
def test_every_figure_has_a_definition(record: type) -> None:
    assert [name for name in record.__struct_fields__ if name not in NAMES and name not in glossary()] == []  # type: ignore[attr-defined]


def test_every_limit_has_a_definition(config: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    (answer,) = json.loads(said(capfdbinary, "--model", config, "--device", "h100", "--slo", "itl=1s", "--format", "json"))["answers"]
    assert {limit["name"] for limit in answer["limits"]} - {"memory"} <= set(glossary())


def test_of_a_prompt_and_its_decode_only_decode_drafts_tokens(config: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    asked = ("--model", config, "--device", "h100", "--batch", "8", "--prompt", "512", "--context", "2048", "--spec", "4,0.7")
    prefill, decode = (answer["whatif"] for answer in json.loads(said(capfdbinary, *asked, "--format", "json"))["answers"])
    assert (prefill["phase"], prefill["drafts"]) == ("prefill", 0)
    assert (decode["phase"], decode["drafts"], decode["tokens"]) == ("decode", 4, 5)
    assert "prefill" in said(capfdbinary, *asked, "--sweep", "batch=1..4")


def test_a_cpu_can_be_asked_about_with_its_roofs(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    text = said(capfdbinary, str(CPU), "--batch", "x2", "--peak", "fp32=1.5", "--bandwidth", "hbm=40", "--format", "json")
    answer = json.loads(text)["answers"][0]
    assert answer["whatif"]["sequences"] == 2 * answer["base"]["sequences"] == 8
    assert answer["base"]["launch_us"] is None
    assert answer["whatif"]["arithmetic_us"] == pytest.approx(2 * answer["base"]["arithmetic_us"], rel=0.01)
