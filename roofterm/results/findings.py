"""What to fix first."""

from __future__ import annotations

from typing import Any

import msgspec


class Finding(msgspec.Struct):
    id: str
    severity: str
    title: str
    time_at_stake_us: float | None
    share_of_step_pct: float | None
    evidence: dict[str, Any]
    advice: str
    where: dict[str, str]
