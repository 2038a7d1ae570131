"""Every real profile, written as a Chrome trace and opened again, has the same facts."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest

from roofterm.analysis.study import Study
from roofterm.report.as_trace import trace_json
from roofterm_parsers import open_profile
from roofterm_parsers.profile import Profile
from tests.reference import reference, root

NO_CHROME = ("execution_trace_pair_et", "param_et_", "rocprofv3")
LARGE = ("owlv2", "xdit_flux1", "rank3of8", "param_2080ti")
"""A second each and of no other kind than the rest."""

NOT_IN_A_TRACE = {
    "hosts", "peak_mem_bytes", "flops_total", "mfu_pct", "mfu_palm_pct", "hfu_pct", "mbu_pct", "device_names",
}  # fmt: skip
"""What the trace viewer's JSON of an XPlane has no place for: host, memory events, a device's name and peaks, costs of the HLO."""

SIDES = (
    "kernels", "copies", "runtime", "waits", "collectives", "python", "ops", "links", "backward", "memory", "devices", "steps",
)  # fmt: skip


def traces(folder: str, ending: str) -> list[str]:
    base = root()
    if base is None:
        return [f"{folder}/tracelens_h100_bert_small.json.gz"]
    found = sorted((base / folder).glob(f"*{ending}"))
    return [str(p.relative_to(base)) for p in found if not any(word in p.name for word in (*NO_CHROME, *LARGE))]


def facts(profile: Profile) -> dict[str, object]:
    found: dict[str, object] = msgspec.to_builtins(Study(profile).summary())
    return found


def spans(profile: Profile) -> pl.DataFrame:
    """Name, start and duration of every slice, exact, in an order that does not rest on the file's."""
    text = profile.names["text"].gather(profile.slices["name"])
    return profile.slices.select("start_ps", "dur_ps", "kind").with_columns(text=text).sort("start_ps", "dur_ps", "kind", "text")


def again(profile: Profile, path: Path) -> Profile:
    path.write_bytes(b"".join(trace_json(profile, np.ones(profile.slices.height, np.bool_), whole=True)))
    return open_profile(path, cache=False)


@pytest.mark.parametrize("name", [*traces("traces/torch", ".json.gz"), *traces("traces/torch_cpu", ".json.gz")])
def test_pytorch_traces(name: str, tmp_path: Path):
    profile = open_profile(reference(name))
    back = again(profile, tmp_path / "again.trace.json")
    assert facts(back) == facts(profile)
    for side in SIDES:
        assert getattr(back, side).height == getattr(profile, side).height, side
    assert spans(back).equals(spans(profile))


@pytest.mark.parametrize("name", traces("traces/xplane", ".trace.json.gz"))
def test_trace_viewer_files(name: str, tmp_path: Path):
    profile = open_profile(reference(name))
    assert facts(again(profile, tmp_path / "again.trace.json")) == facts(profile)


@pytest.mark.parametrize("name", traces("traces/xplane", ".xplane.pb"))
def test_xplanes(name: str, tmp_path: Path):
    profile = open_profile(reference(name))
    before, after = facts(profile), facts(again(profile, tmp_path / "again.trace.json"))
    assert {key for key in before if before[key] != after[key]} <= NOT_IN_A_TRACE
