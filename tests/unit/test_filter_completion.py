"""What a filter that is being typed is completed to, and that every offer is a filter."""

from __future__ import annotations

from pathlib import Path

import pytest

from roofterm.analysis.filter_completion import Vocabulary, complete, vocabulary
from roofterm.analysis.filters import FIELDS, FilterError, parse
from roofterm.analysis.study import Study
from roofterm_parsers import open_profile

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
KNOWN = Vocabulary(
    {"cat": ("gemm", "attention", "host io", "all"), "stream": ("7", "13"), "op": ("aten::mm", 'odd"name')},
    ("flash_fwd_kernel", "gemm_tn", "calls_me"),
)


@pytest.mark.parametrize(
    ("text", "offers"),
    [
        ("ca", ["cat:", "calls>", "calls_me"]),
        ("CAT:g", ["CAT:gemm"]),
        ("cat:", ["cat:gemm", "cat:attention", 'cat:"host io"', "cat:all"]),
        ("cat:A", ["cat:attention", "cat:all"]),
        ("cat:gemm|a", ["attention", "all"]),
        ("nvjet cat:g", ["cat:gemm"]),
        ("!cat:g", ["cat:gemm"]),
        ("fl", ["flops>", "flash_fwd_kernel"]),
        ("x|fl", ["flops>", "flash_fwd_kernel"]),
        ("name:fl", ["name:flash_fwd_kernel"]),
        ("stream:1", ["stream:13"]),
        ("dur>10", ["dur>10ns", "dur>10us", "dur>10ms", "dur>10s"]),
        ("bytes>=64", ["bytes>=64KiB", "bytes>=64MiB", "bytes>=64GiB"]),
        ("flops>1.5", ["flops>1.5k", "flops>1.5M", "flops>1.5G", "flops>1.5T"]),
        ("roof<50", ["roof<50%"]),
        ("dur>10us", []),
        ("dur>", []),
        ('cat:"host', ['cat:"host io"']),
        ("/ca", []),
        ("/a b/ ca", ["cat:", "calls>", "calls_me"]),
        ("name:/ca", []),
        ("zzz", []),
        ("cat:gemm", []),
        ("op:", ["op:aten::mm"]),
    ],
)
def test_what_could_come_next(text, offers):
    found = complete(text, len(text), KNOWN)
    assert found.offers == offers


def test_only_the_condition_before_the_cursor_is_replaced():
    text = "nvjet cat:g dur>10us"
    found = complete(text, len("nvjet cat:g"), KNOWN)
    assert text[: found.start] == "nvjet "
    assert found.offers == ["cat:gemm"]


def test_nothing_typed_offers_every_field():
    assert [offer.rstrip(":>") for offer in complete("", 0, KNOWN).offers] == list(FIELDS)


@pytest.mark.parametrize(
    "sample", ["transformer_h100_synthetic.pt.trace.json.gz", "decoder_tpu_synthetic.xplane.pb", "transformer_cpu.pt.trace.json.gz"]
)
def test_every_offer_of_a_profile_is_a_filter(sample):
    known = vocabulary(Study(open_profile(SAMPLES / sample, cache=False)))
    for field in FIELDS:
        for text in (f"{field}:", f"x {field}:1"):
            found = complete(text, len(text), known)
            for offer in found.offers:
                try:
                    parse(text[: found.start] + offer)
                except FilterError as fault:
                    pytest.fail(f"{offer}: {fault}")
    assert {"gemm", "attention"} & set(known.values.get("cat", ())) or sample.startswith("transformer_cpu")
