"""Findings about communication: what each claims, and that together they never exceed exposed communication."""

from __future__ import annotations

import pytest

from roofterm.analysis.study import Study
from roofterm_parsers.merging import merge
from roofterm_parsers.profile import Profile
from tests.build import Build
from tests.unit.made_steps import GEMM, findings, launched, with_collectives

REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
ALL = ("exposed-communication", "late-rank", "unequal-collectives")


def training(lengths: list[list[float]], rank: int | None = None, hidden: bool = False, product: float = 100) -> Profile:
    """Steps of 20 products, then the step's all-reduces, one after the other; `hidden`: on a stream beside the products.

    `lengths` has for each step the lengths of its all-reduces. The host runs ahead.
    """
    build = Build(rank=rank)
    host, at = 0.0, 6.0
    for number, reduces in enumerate(lengths):
        build.step(number, host, 9 * (20 + len(reduces)))
        start = at
        for _ in range(20):
            launched(build, GEMM, host, at, product)
            host, at = host + 9, at + product
        beside = start
        for dur in reduces:
            launched(build, REDUCE, host, beside if hidden else at, dur, "c10d::allreduce_", stream=20)
            host, beside, at = host + 9, beside + dur, at if hidden else at + dur
    return build.profile()


def test_exposed_communication_is_what_no_compute_covers():
    found = findings(training([[300.0, 200.0]] * 3))["exposed-communication"]
    # 500 us of collectives after 2,000 us of products.
    assert found.time_at_stake_us == pytest.approx(500)
    assert found.share_of_step_pct == pytest.approx(100 * 500 / 2500, rel=0.01)
    assert found.evidence["hidden_pct"] == pytest.approx(0)
    assert "open all ranks" in found.advice


def test_hidden_communication_is_no_fault():
    assert not set(ALL) & set(findings(training([[300.0, 200.0]] * 3, hidden=True)))


def test_exposed_communication_that_the_host_outlasts_wins_nothing():
    """Each launch comes only after the device has run dry: a shorter all-reduce would leave it idle for longer."""
    build = Build()
    for number in range(3):
        start = number * 6000.0
        build.step(number, start, 6000)
        for row in range(20):
            launched(build, GEMM, start + 300 * row, start + 300 * row + 6, 40)
            launched(build, REDUCE, start + 300 * row + 60, start + 300 * row + 66, 50, "c10d::allreduce_", stream=20)
    found = findings(build.profile())
    assert "overhead-bound" in found
    assert not set(ALL) & set(found)


def ranks(late: float) -> Profile:
    """Two ranks of one job. Rank 1's products take `late` us longer, so rank 0 waits so long in each all-reduce of 200 us."""
    first = training([[200.0 + late]] * 3, rank=0)
    second = training([[200.0]] * 3, rank=1, product=100 + late / 20)
    return merge([first, second])


def test_a_late_rank_claims_the_others_waiting_and_leaves_the_transfer():
    found = findings(ranks(late=400))
    # Rank 0 waits 400 us a step, rank 1 not at all: 200 us for the mean of a rank's step. The transfer of 200 us stays exposed.
    assert found["late-rank"].time_at_stake_us == pytest.approx(200)
    assert found["late-rank"].evidence["late_rank"] == "1"
    assert found["late-rank"].evidence["wait_us_by_rank"] == {"0": pytest.approx(400), "1": 0}
    assert found["exposed-communication"].time_at_stake_us == pytest.approx(200)


def test_ranks_that_arrive_together_are_not_late():
    found = findings(ranks(late=5))
    assert "late-rank" not in found
    assert found["exposed-communication"].evidence["ranks_seen"] == 2


def unequal(lengths: list[list[float]], elements: int | None = 1 << 20) -> Profile:
    return with_collectives(
        training(lengths), REDUCE, collective="allreduce", group="0", group_size=8, in_elements=elements, dtype="BFloat16"
    )


def test_unequal_collectives_claim_what_exceeds_the_median_of_their_like():
    found = findings(unequal([[100.0, 100.0, 100.0], [100.0, 100.0, 700.0]]))
    # Median 100, one call takes 600 more: 300 a step. The other 300 a step stay exposed.
    assert found["unequal-collectives"].time_at_stake_us == pytest.approx(300)
    assert found["exposed-communication"].time_at_stake_us == pytest.approx(300)


def test_unequal_collectives_are_silent_for_equal_ones_and_for_unknown_sizes():
    assert "unequal-collectives" not in findings(unequal([[100.0, 100.0, 100.0], [100.0, 100.0, 150.0]]))
    assert "unequal-collectives" not in findings(unequal([[100.0, 100.0, 100.0], [100.0, 100.0, 700.0]], elements=None))


@pytest.mark.parametrize("profile", [ranks(400), ranks(5), unequal([[100.0] * 3, [100.0, 100.0, 700.0]]), training([[300.0, 200.0]] * 3)])
def test_claims_on_communication_never_exceed_exposed_communication(profile: Profile):
    found = findings(profile)
    claimed = sum(found[name].time_at_stake_us or 0.0 for name in ALL if name in found)
    rows = Study(profile).steps()
    exposed = sum(row.exposed_comm_us or 0.0 for row in rows) / len(rows)
    assert claimed <= exposed * (1 + 1e-9)
