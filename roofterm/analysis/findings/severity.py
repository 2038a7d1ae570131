"""How grave a finding is: by the share of the step at stake, in one place.

high from 10 % of the step, medium from 3 %, low from 1 %, info below. A rule that is about trust in the figures and not
about time (a cut profile, an unknown device) states its severity itself. Where the profiler's flags with_stack,
profile_memory or record_shapes were on, a finding about the host drops one severity, since a part of the host's time is
the profiler's.
"""

from __future__ import annotations

LEVELS = ("high", "medium", "low", "info")

HIGH_PCT, MEDIUM_PCT, LOW_PCT = 10.0, 3.0, 1.0

SLOWING_FLAGS = ("with_stack", "profile_memory", "record_shapes")
"""Flags of torch.profiler that lengthen the host's time by more than a few percent."""


def severity_of(share_of_step_pct: float | None, stated: str | None = None, slowed: bool = False) -> str:
    """The severity of a finding. `stated`: what the rule itself says; `slowed`: flags lengthened the time it is about."""
    at = LEVELS.index(stated) if stated is not None else _by_share(share_of_step_pct)
    return LEVELS[min(at + slowed, len(LEVELS) - 1)]


def _by_share(share_pct: float | None) -> int:
    if share_pct is None:
        return LEVELS.index("info")
    return next((at for at, least in enumerate((HIGH_PCT, MEDIUM_PCT, LOW_PCT)) if share_pct >= least), LEVELS.index("info"))
