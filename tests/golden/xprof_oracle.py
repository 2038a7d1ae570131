"""What XProf itself gave for the reference traces (reference data: oracle/xprof), and cells held against it."""

from __future__ import annotations

import gzip
import json
from functools import cache
from typing import Any

import pytest

from roofterm_parsers.profile import Profile, Source
from roofterm_parsers.xplane.reader import read
from tests.reference import reference

FOLDER = {"2.24.2": "oracle/xprof", "2.23.1": "oracle/xprof-2.23.1"}
TRACES = (
    "tpu_v6e_inference",
    "tpu_v6e_pallas_matmul",
    "cpu_jax_mlp_8steps",
    "gpu_v100x8_tf_multiworker",
    "gpu_mi300x_jax_gemm",
    "gpu_mi300x_jax_attention",
    "gpu_mi300x_jax_elementwise",
    "gpu_mi300x_jax_conv",
    "gpu_mi300x_jax_conv_legacy",
    "gpu_mi355x_jax_te_fused_attn",
)


@cache
def profile_of(trace: str) -> Profile:
    path = reference(f"traces/xplane/{trace}.xplane.pb")
    return read(path.read_bytes(), Source(str(path), "xplane", "plain"), lambda size: None, cancelled=lambda: False)


def tables_of(folder: str, tool: str) -> list[dict[str, Any]]:
    found = json.loads(gzip.decompress(reference(f"{folder}/{tool}.json.gz").read_bytes()))
    return found if isinstance(found, list) else [found]


def rows_of(table: dict[str, Any]) -> list[dict[str, Any]]:
    ids = [column["id"] for column in table["cols"]]
    return [dict(zip(ids, [cell.get("v") if cell else None for cell in row["c"]], strict=True)) for row in table["rows"]]


def differing(want: list[dict[str, Any]], got: list[dict[str, Any]], columns: set[str]) -> list[str]:
    """Cells that are not equal: numbers within 1e-6."""
    found = [] if len(want) == len(got) else [f"{len(got)} rows, wanted {len(want)}"]
    for i, (a, b) in enumerate(zip(want, got, strict=False)):
        for column in sorted(columns):
            expected, value = a[column], b.get(column)
            if isinstance(expected, int | float) and not isinstance(expected, bool):
                same = value is not None and value == pytest.approx(expected, rel=1e-6, abs=1e-9)
            else:
                same = expected == value
            if not same:
                found.append(f"row {i} {column}: {value!r}, wanted {expected!r}")
    return found
