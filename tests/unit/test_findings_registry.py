"""The registry: every finding has its question, definition and source, leads to its evidence, and is ordered by time at stake."""

from __future__ import annotations

import pytest

from roofterm.analysis.filters import parse
from roofterm.analysis.findings import find_all, rules
from roofterm.analysis.findings.registry import rule
from roofterm.analysis.findings.severity import severity_of
from roofterm.analysis.scope import ALL, STEADY
from roofterm.analysis.study import Study
from roofterm_parsers.profile import Profile
from tests.build import Build
from tests.unit.made_steps import GEMM, findings, launched
from tests.unit.test_findings_device import ADD, MUL, SGEMM
from tests.unit.test_findings_host import dispatching, loading

VIEWS = {"overview", "roofline", "ops", "timeline", "steps", "ranks", "memory", "device"}


def test_there_are_at_least_25_findings_each_with_question_definition_and_source():
    assert len(rules()) >= 25
    for one in rules().values():
        assert one.question.endswith("?")
        assert len(one.definition) > 60
        assert one.source
        assert one.id == one.id.lower().replace("_", "-")


def test_two_rules_cannot_share_an_id():
    with pytest.raises(ValueError, match="overhead-bound"):
        rule("overhead-bound", "Again?", "again", "nowhere")(lambda _: None)


def test_severity_goes_by_share_and_drops_by_one_under_the_profilers_flags():
    assert [severity_of(share) for share in (10, 9.9, 3, 1, 0.9, None)] == ["high", "medium", "medium", "low", "info", "info"]
    assert severity_of(50, slowed=True) == "medium"
    assert severity_of(0.1, slowed=True) == "info"
    assert severity_of(50, stated="info") == "info"


def everything_wrong() -> Profile:
    """A loader, launches that come late, products on the vector units, unfused chains, one after the other."""
    build = Build()
    for number in range(4):
        start = number * 9000.0
        build.step(number, start, 9000)
        build.host("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start, 1500)
        at = start + 1500
        for name, op in ((SGEMM, "aten::mm"), (ADD, "aten::add"), (MUL, "aten::mul")) * 12:
            launched(build, name, at, at + 6, 60, op)
            at += 200
    return build.profile()


@pytest.mark.parametrize("profile", [everything_wrong(), dispatching(150), loading(2500)])
def test_findings_lead_to_a_view_with_a_filter_that_is_understood(profile: Profile):
    found = find_all(Study(profile), STEADY)
    assert found
    for finding in found:
        assert finding.where["view"] in VIEWS
        parse(finding.where["filter"])
        assert finding.advice.endswith(".")


@pytest.mark.parametrize("profile", [everything_wrong(), dispatching(150), loading(2500)])
def test_findings_are_ordered_by_time_at_stake_which_never_exceeds_its_part_of_the_step(profile: Profile):
    study = Study(profile)
    found = find_all(study, STEADY)
    stakes = [finding.time_at_stake_us for finding in found if finding.time_at_stake_us is not None]
    assert stakes == sorted(stakes, reverse=True)
    steps = [row for row in study.steps() if row.steady]
    mean = {
        "idle": sum(row.idle_us or 0 for row in steps) / len(steps),
        "compute": sum(row.compute_us or 0 for row in steps) / len(steps),
        "exposed_copy": sum(row.exposed_copy_us or 0 for row in steps) / len(steps),
        "exposed_comm": sum(row.exposed_comm_us or 0 for row in steps) / len(steps),
    }
    for finding in found:
        if finding.evidence.get("per") == "step" and finding.time_at_stake_us is not None:
            limit = sum(mean.get(pool, 0.0) for pool in finding.evidence["claims_on"].split(" and "))
            assert finding.time_at_stake_us <= limit * (1 + 1e-9), finding.id


def test_the_host_is_never_idle_for_two_reasons_at_once():
    found = findings(everything_wrong())
    row = Study(everything_wrong()).steps()[0]
    assert row.idle_us is not None
    claimed = sum(
        found[name].time_at_stake_us or 0 for name in ("input-bound", "overhead-bound", "host-pauses", "blocking-syncs") if name in found
    )
    assert claimed <= row.idle_us


def test_an_empty_profile_and_a_host_alone_have_no_findings_and_no_faults():
    assert find_all(Study(Build().profile()), ALL) == []
    build = Build()
    build.host("aten::mm", 0, 10)
    assert find_all(Study(build.profile()), STEADY) == []


def test_text_of_the_file_is_made_safe_in_titles_and_advice():
    build = Build()
    name = "checkpoint\x1b[31m\u202ewriter"
    for number in range(3):
        start = number * 13_000.0
        build.step(number, start, 13_000)
        build.host(name, start, 3000)
        for row in range(30):
            launched(build, GEMM, start + 3010 + row * 9, start + 3050 + row * 330, 330)
    found = findings(build.profile())["host-pauses"]
    assert "\x1b" not in found.title + found.advice
    assert "\u202e" not in found.title + found.advice
