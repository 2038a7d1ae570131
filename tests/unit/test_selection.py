from __future__ import annotations

import polars as pl
import pytest

from roofterm.analysis.scope import Scope, ScopeError
from roofterm.analysis.selection import select
from roofterm.analysis.steps import step_windows
from roofterm.analysis.work import WORK, device_work
from roofterm_parsers.profile import Profile
from tests.build import US, Build

NO_CLASSES = pl.DataFrame(schema={"slice": pl.UInt32, "work_class": pl.UInt8})


def four_steps() -> Profile:
    """Steps 10 to 13 of 100 us, the first of 200 us; each launches one kernel, and one kernel has no launch."""
    build = Build(rank=3)
    for number, (start, length) in enumerate([(0, 200), (200, 100), (300, 100), (400, 100)]):
        build.step(10 + number, start, length)
        build.host("op", start + 1, 20)
        build.kernel(f"k{number}", start + 20, 30, launch=build.call(start + 5, 2))
    build.kernel("orphan", 0, 5)
    return build.profile()


def names(profile: Profile, scope: Scope) -> list[str]:
    work = device_work(profile, profile.slices["dur_ps"].to_numpy(), NO_CLASSES)
    chosen = select(profile, work, step_windows(profile, work), scope)
    return sorted(profile.names["text"].gather(profile.slices["name"].gather(chosen.work["slice"])).to_list())


def test_all_takes_everything():
    assert names(four_steps(), Scope(step="all")) == ["k0", "k1", "k2", "k3", "orphan"]


def test_steady_leaves_the_slow_first_step_and_orphans_out():
    assert names(four_steps(), Scope(step="steady")) == ["k1", "k2", "k3"]


def test_steps_are_named_by_their_numbers():
    assert names(four_steps(), Scope(step="11")) == ["k1"]
    assert names(four_steps(), Scope(step="11-12")) == ["k1", "k2"]


def test_an_unknown_step_says_which_there_are():
    with pytest.raises(ScopeError, match="there are 10 to 13"):
        names(four_steps(), Scope(step="7"))
    with pytest.raises(ScopeError, match="write steady, all"):
        names(four_steps(), Scope(step="first"))


def test_a_window_takes_what_overlaps_it():
    assert names(four_steps(), Scope(step="all", window_ps=(240 * US, 330 * US))) == ["k1", "k2"]


def test_an_unknown_rank_says_which_there_are():
    assert names(four_steps(), Scope(step="all", rank=3)) == ["k0", "k1", "k2", "k3", "orphan"]
    with pytest.raises(ScopeError, match=r"there are \[3\]"):
        names(four_steps(), Scope(step="all", rank=0))


def test_a_profile_without_steps_is_taken_whole_when_steady_steps_are_asked_for():
    build = Build()
    build.kernel("k", 0, 10)
    assert names(build.profile(), Scope(step="steady")) == ["k"]
    with pytest.raises(ScopeError, match="no steps"):
        names(build.profile(), Scope(step="3"))


def test_the_length_of_a_selection_is_that_of_its_steps():
    profile = four_steps()
    work = device_work(profile, profile.slices["dur_ps"].to_numpy(), NO_CLASSES)
    assert select(profile, work, step_windows(profile, work), Scope(step="steady")).length_ps == 300 * US
    assert work.schema == WORK
