"""Which rows of steps a scope speaks of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.scope import Scope

if TYPE_CHECKING:
    from roofterm.analysis.study import Study


def chosen_steps(study: Study, scope: Scope) -> NDArray[np.bool_]:
    """Row for row with `Study.steps`: whether a scope names the step, and its window, which cuts none, meets it.

    The scope's filter plays no part. Raises ScopeError for a step or rank that is not there.
    """
    part = study.selection(Scope(step=scope.step, rank=scope.rank))
    chosen = pl.col("step").is_in(part.windows["step"].implode())
    if scope.rank is not None:
        chosen &= pl.col("source").is_in([row for row, source in enumerate(study.profile.sources) if source.rank == scope.rank])
    if scope.window_ps is not None:
        first, last = scope.window_ps
        chosen &= (pl.col("start_ps") < last) & (pl.col("end_ps") > first)
    return study.windows.select(chosen).to_series().to_numpy()
