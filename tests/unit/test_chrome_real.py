"""Every Chrome trace of the reference against the standard library's JSON: counts by category, times to the last digit."""

from __future__ import annotations

import gzip
import io
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from roofterm_parsers.chrome import reader, splitting
from roofterm_parsers.chrome.reader import read
from roofterm_parsers.profile import Profile, Source
from tests.reference import REASON, reference, root
from tests.unit.chrome_traces import named, texts_of

NOT_CHROME = ("_et.json.gz", "param_et_", "rocprofv3")


def traces() -> list[Any]:
    folder = root()
    found = []
    if folder is not None:
        for path in sorted((folder / "traces").rglob("*.json.gz")):
            if not any(word in path.name for word in NOT_CHROME):
                found.append(pytest.param(path, id=path.name))
    return found or [pytest.param(None, id="none", marks=pytest.mark.skip(reason=REASON))]


def load(path: Path, text: bytes | None = None) -> Profile:
    data = gzip.decompress(path.read_bytes()) if text is None else text
    profile = read(io.BytesIO(data), Source(path=path.name, format="", container="gzip"), lambda _: None)
    profile.check()
    return profile


def events_of(text: bytes, **options: Any) -> list[dict[str, Any]]:
    trace = json.loads(text.decode("utf-8", "replace"), strict=False, **options)
    return trace if isinstance(trace, list) else trace["traceEvents"]


@pytest.mark.parametrize("path", traces())
def test_all_complete_events_are_slices_of_their_category(path: Path) -> None:
    text = gzip.decompress(path.read_bytes())
    events = Counter((event.get("ph"), event.get("cat", "")) for event in events_of(text))
    profile = load(path, text)
    counts = profile.names["cat"].gather(profile.slices["name"]).value_counts()
    assert dict(counts.rows()) == {category: count for (phase, category), count in events.items() if phase == "X"}
    assert profile.flows.height == sum(count for (phase, _), count in events.items() if phase in ("s", "t", "f"))
    damage = {"mended", "skipped", "cut", "no-length", "off-axis", "unmatched"}
    assert not damage & {warning.code for warning in profile.warnings}


@pytest.mark.parametrize(
    "name",
    [
        "torch/hta_v100_resnet_ns_absolute_ts.pt.trace.json.gz",  # 19 digits: no double holds them
        "torch/tracelens_mi300x_normalization_ops.json.gz",
        "torch_cpu/transformer_train_lean.pt.trace.json.gz",
        "xplane/tpu_v6e_inference.trace.json.gz",  # six decimals, some as 17 digits of a double
        "xplane/gpu_v100x8_tf_multiworker.trace.json.gz",
    ],
)
def test_times_are_those_of_decimal_fractions(name: str) -> None:
    path = reference(f"traces/{name}")
    text = gzip.decompress(path.read_bytes())
    exact = [
        (event["name"], Decimal(event["ts"]), Decimal(event["dur"]))
        for event in events_of(text, parse_float=Decimal, parse_int=Decimal)
        if event.get("ph") == "X"
    ]
    zero = min(start for _, start, _ in exact)

    def picoseconds(us: Decimal) -> int:
        return int((us * 1_000_000).to_integral_value())

    shortest = 1 if name.startswith("xplane/") else 0  # what XLA's writer gives events without a length
    lengths = [0 if picoseconds(dur) == shortest else picoseconds(dur) for _, _, dur in exact]
    wanted = Counter((text, picoseconds(start) - picoseconds(zero), dur) for (text, start, _), dur in zip(exact, lengths, strict=True))
    assert Counter(named(load(path)).select("text", "start_ps", "dur_ps").rows()) == wanted


@pytest.mark.parametrize(
    ("name", "orphans", "work"),
    [
        # work launched before the window, counted by hand over correlation ids (kineto reference, 1.7)
        ("torch/tracelens_mi300x_resnet_act_ckpt_rank0of8.json.gz", 968, 3653),
        ("torch/tracelens_mi300x_qwen05b_chat.json.gz", 463, 1517),
        ("torch/tracelens_h100_qwen05b_chat.json.gz", 509, 1707),
        ("torch/kineto_v100_resnet50_2021_list.pt.trace.json.gz", 765, 9927),
    ],
)
def test_work_without_a_launch_in_the_file_is_what_was_launched_before(name: str, orphans: int, work: int) -> None:
    links = load(reference(f"traces/{name}")).links
    assert (links["launch"].null_count(), links.height) == (orphans, work)
    assert links.filter(pl.col("launch").is_null() & pl.col("op").is_not_null()).is_empty()


def test_the_op_of_a_launch_is_the_one_that_its_external_id_names() -> None:
    profile = load(reference("traces/torch/tracelens_h100_bert_small.json.gz"))
    external = dict(profile.ops.select("slice", "external_id").rows())
    of_call = dict(profile.runtime.select("slice", "external_id").rows())
    pairs = profile.links.filter(pl.col("op").is_not_null()).select("launch", "op").rows()
    assert len(pairs) == 61
    assert all(external[op] == of_call[launch] for launch, op in pairs)


def test_graph_launches_own_hundreds_of_kernels() -> None:
    path = reference("traces/torch/tracelens_mi300x_sglang_qwen3_8b_decode.json.gz")
    events = [event for event in events_of(gzip.decompress(path.read_bytes())) if event.get("ph") == "X"]
    call = {event["args"]["correlation"]: event["name"] for event in events if event["cat"] == "cuda_runtime"}
    wanted = Counter(call[e["args"]["correlation"]] for e in events if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset"))
    profile = load(path)
    assert Counter(texts_of(profile, profile.links["launch"])) == wanted
    assert wanted["hipGraphLaunch"] > 500


def test_backward_ops_find_the_forward_op_of_their_sequence_number() -> None:
    profile = load(reference("traces/torch_cpu/transformer_train_lean.pt.trace.json.gz"))
    names = dict(zip(texts_of(profile, profile.backward["backward"]), texts_of(profile, profile.backward["forward"]), strict=True))
    assert names["autograd::engine::evaluate_function: AddmmBackward0"] == "aten::addmm"
    assert names["NllLossBackward0"] == "aten::nll_loss_forward"


@pytest.mark.parametrize(
    "name",
    [
        "torch/kineto_v100_resnet50_2021_list.pt.trace.json.gz",
        "torch/tracelens_mi300x_resnet_act_ckpt_rank0of8.json.gz",
        "torch_cpu/transformer_train_all_flags.pt.trace.json.gz",
        "xplane/tpu_v6e_inference.trace.json.gz",
    ],
)
def test_workers_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = gzip.decompress(reference(f"traces/{name}").read_bytes())
    monkeypatch.setattr(reader, "ALONE_BYTES", 0)
    monkeypatch.setattr(splitting, "BLOCK_BYTES", 256 << 10)
    source = Source(path=name, format="", container="gzip")
    alone, together = (reader.read(io.BytesIO(text), source, lambda _: None, workers=workers) for workers in (0, 2))
    for frame, held in alone.frames().items():
        assert held.equals(together.frames()[frame]), frame
    assert (alone.warnings, alone.sources) == (together.warnings, together.sources)
