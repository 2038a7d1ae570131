"""XProf's own tables of a whole profile, by its column ids, units and rules, for those who hold the two against each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

from roofterm.analysis.scope import Scope, ScopeError
from roofterm.analysis.xprof.framework_op_stats import xprof_framework_op_stats
from roofterm.analysis.xprof.hlo_stats import xprof_hlo_stats
from roofterm.analysis.xprof.host_ops import host_ops
from roofterm.analysis.xprof.input_ops import input_ops
from roofterm.analysis.xprof.input_pipeline import TO_DEVICE, xprof_input_pipeline
from roofterm.analysis.xprof.kernel_stats import xprof_kernel_stats
from roofterm.analysis.xprof.peaks import VERSIONS
from roofterm_parsers.profile import Profile

VERSION = VERSIONS[-1]


def _input_steps(profile: Profile, version: str) -> list[dict[str, Any]]:
    steps = xprof_input_pipeline(profile, version)["steps"]
    return [{name: value for name, value in step.items() if name != TO_DEVICE} for step in steps]


TABLES: dict[str, Callable[[Profile, str], list[dict[str, Any]]]] = {
    "xprof-hlo-stats": xprof_hlo_stats,
    "xprof-kernel-stats": xprof_kernel_stats,
    "xprof-framework-op-stats": xprof_framework_op_stats,
    "xprof-input-steps": _input_steps,
    "xprof-input-ops": lambda profile, version: input_ops(host_ops(profile)),
}


def xprof_frame(profile: Profile, name: str, scope: Scope) -> pl.DataFrame:
    """A table of `TABLES`. Raises ScopeError for a part of the profile: XProf speaks of all of it."""
    if scope.step != "all" or scope.window_ps is not None or scope.rank is not None:
        raise ScopeError(f"--table {name} is XProf's of the whole file: leave --step, --window and --rank out")
    return pl.DataFrame(TABLES[name](profile, VERSION), infer_schema_length=None)
