"""Every nasty input of the reference, opened by the library: what opens, what is refused and how, and the facts that frames tell."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import roofterm_parsers as rp
from roofterm_parsers.nesting import self_times
from roofterm_parsers.profile import WORK_KINDS, Kind, TrackKind
from tests.reference import REASON, root

Case = dict[str, Any]


@functools.cache
def manifest() -> list[Case]:
    folder = root()
    if folder is None:
        return []
    cases: list[Case] = json.loads((folder / "nasty" / "nasty.json").read_text())["cases"]
    return cases


def cases(*expected: str) -> list[Any]:
    found = [pytest.param(case, id=case["file"]) for case in manifest() if case["expected"] in expected]
    return found or [pytest.param(None, id="none", marks=pytest.mark.skip(reason=REASON))]


def place(case: Case) -> Path:
    folder = root()
    assert folder is not None
    return folder / "nasty" / str(case["file"])


@pytest.mark.parametrize("case", cases("opens"))
def test_what_can_be_saved_opens_with_the_facts_and_warnings_that_are_wanted(case: Case) -> None:
    check_opened(case, rp.open_profile(place(case)))


@pytest.mark.parametrize("case", cases("refuses"))
def test_what_cannot_be_shown_is_refused_in_words_that_name_the_file(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(rp.ProfileError) as refused:
        rp.open_profile(place(case))
    check_refused(case, str(refused.value))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("case", cases("either"))
def test_the_rest_opens_right_or_is_refused_in_plain_words(case: Case) -> None:
    try:
        profile = rp.open_profile(place(case))
    except rp.ProfileError as refused:
        check_refused(case, str(refused))
    else:
        check_opened(case, profile)


def check_refused(case: Case, sentence: str) -> None:
    assert place(case).name in sentence
    assert any(word.lower() in sentence.lower() for word in case["error"]["any"]), sentence
    assert "\n" not in sentence.strip()


def check_opened(case: Case, profile: rp.Profile) -> None:
    profile.check()
    for name, tell in FACTS.items():
        if name in case.get("facts", {}):
            assert matches(case["facts"][name], tell(profile)), f"{name}: {tell(profile)}, wanted {case['facts'][name]}"
    words = case.get("warnings") or {}
    told = [warning.message.lower() for warning in profile.warnings]
    # Words that are wanted in a warning may come from the analysis too: here it is only held that no wrong one is said.
    assert not [word for word in words.get("not", []) for message in told if word.lower() in message]
    if case["kind"].split("/")[0] in ("container", "encoding", "json", "ranks", "xplane") and words.get("any"):
        assert any(word.lower() in message for word in words["any"] for message in told), told


def matches(wanted: Any, got: Any) -> bool:
    """True if a fact is as the manifest wants it; a plain number within 0.001 %."""
    if isinstance(wanted, dict):
        if "any_of" in wanted:
            return any(matches(one, got) for one in wanted["any_of"])
        if "value" in wanted:
            return bool(abs(got - wanted["value"]) <= wanted["tol"])
        if set(wanted) <= {"min", "max"}:
            return bool(wanted.get("min", -np.inf) <= got <= wanted.get("max", np.inf))
        return all(matches(one, got.get(key)) for key, one in wanted.items())
    if isinstance(wanted, list):
        return (
            all(one in got for one in wanted) if isinstance(wanted[0], str) else len(wanted) == len(got) and all(map(matches, wanted, got))
        )
    return bool(abs(got - wanted) <= max(1e-5 * abs(wanted), 1e-6))


# The facts, by the definitions of the manifest's README, straight from the frames.


def work(profile: rp.Profile, *kinds: Kind) -> pl.DataFrame:
    slices = profile.slices.with_row_index("slice")
    own = self_times(slices["parent"].to_numpy(), slices["start_ps"].to_numpy(), slices["dur_ps"].to_numpy())
    tracks = profile.tracks.select("source", "device", track_kind="kind").with_row_index("track")
    return slices.with_columns(self_ps=pl.Series(own)).filter(pl.col("kind").is_in([int(kind) for kind in kinds])).join(tracks, on="track")


def us(profile: rp.Profile, *kinds: Kind) -> float:
    """Sum of lengths; in XPlane files, whose ops nest on their line, time counted once."""
    column = "self_ps" if profile.sources[0].format == "xplane" else "dur_ps"
    return int(work(profile, *kinds)[column].sum()) / 1e6


def kernel_us_by_rank(profile: rp.Profile) -> dict[str, float]:
    sums = work(profile, Kind.KERNEL).group_by("source").agg(pl.col("dur_ps").sum())
    return {str(profile.sources[source].rank): dur_ps / 1e6 for source, dur_ps in sums.rows()}


def unlinked_kernels(profile: rp.Profile) -> int:
    kernels = work(profile, Kind.KERNEL).select("slice")
    return kernels.join(profile.links.filter(pl.col("launch").is_not_null()), left_on="slice", right_on="work", how="anti").height


def threads(profile: rp.Profile) -> int:
    used = profile.tracks.with_row_index("track").join(profile.slices.select("track").unique(), on="track")
    return used.filter(pl.col("kind") == int(TrackKind.HOST)).select("source", "process", "thread").n_unique()


def busy_us(profile: rp.Profile) -> float:
    """Union of kernels, copies and sets on each device, added over devices."""
    total = 0
    for _, rows in work(profile, *WORK_KINDS).group_by("source", "device"):
        end = -(1 << 62)
        for start, dur in rows.sort("start_ps").select("start_ps", "dur_ps").rows():
            total += max(start + dur - max(start, end), 0)
            end = max(end, start + dur)
    return total / 1e6


FACTS: dict[str, Callable[[rp.Profile], Any]] = {
    "slices": lambda profile: profile.slices.height,
    "kernels": lambda profile: work(profile, Kind.KERNEL).height,
    "kernel_us": lambda profile: us(profile, Kind.KERNEL),
    "memcpy_us": lambda profile: us(profile, Kind.COPY, Kind.MEMSET),
    "kernel_us_by_rank": kernel_us_by_rank,
    "unlinked_kernels": unlinked_kernels,
    "threads": threads,
    "devices": lambda profile: int(profile.devices["worked"].sum()),
    "device_names": lambda profile: profile.devices["name"].to_list(),
    "ranks": lambda profile: len({source.rank for source in profile.sources}),
    "hosts": lambda profile: len({source.host for source in profile.sources}),
    "steps": lambda profile: profile.steps["number"].n_unique(),
    "gpu_busy_us": busy_us,
}
