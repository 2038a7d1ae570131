"""The state and its history: pure values, no terminal."""

from __future__ import annotations

from roofterm.tui.state import History, Selection, Sort, ViewState, changed, cleared, cycled, is_limited, limits_text


def test_clearing_takes_filter_step_and_window_and_nothing_else():
    chosen, sorts = Selection("kernel", "x"), {"kernel": Sort("calls")}
    state = ViewState(screen="ops", filter="nccl", step="12", window_ps=(1, 2), selection=chosen, sorts=sorts)
    after = cleared(state)
    assert (after.filter, after.step, after.window_ps) == ("", None, None)
    assert (after.screen, after.selection, after.sorts) == (state.screen, state.selection, state.sorts)
    assert is_limited(state)
    assert not is_limited(after)


def test_cycling_a_category_goes_through_all_and_none():
    values = ["gemm", "attention"]
    state = ViewState(filter="nccl")
    seen = []
    for _ in range(3):
        state = cycled(state, "cat", values, 1)
        seen.append(state.filter)
    assert seen == ["nccl cat:gemm", "nccl cat:attention", "nccl"]
    assert cycled(state, "cat", values, -1).filter == "nccl cat:attention"


def test_limits_are_said_in_words():
    state = ViewState(filter="cat:gemm", step="3", window_ps=(1_500_000_000, 2_000_000_000), infeed=False)
    assert limits_text(state) == "filter cat:gemm · step 3 · window 1.500 to 2.000 ms · no infeed"
    assert limits_text(ViewState()) == ""


def test_history_returns_states_in_reverse_and_keeps_no_repeats():
    history = History()
    first, second = ViewState(), changed(ViewState(), screen="ops")
    for state in (first, first, second):
        history.keep(state)
    assert len(history) == 2
    assert [history.back(), history.back(), history.back()] == [second, first, None]


def test_history_forgets_the_oldest():
    history = History(limit=2)
    for number in range(4):
        history.keep(changed(ViewState(), filter=str(number)))
    assert [s.filter if (s := history.back()) else None for _ in range(3)] == ["3", "2", None]
