"""The cost of one call, for tests that work it out by hand."""

from __future__ import annotations

import json
from typing import Any

from roofterm.analysis.costs import Cost, cost

BF16, FP32, FP8 = "c10::BFloat16", "float", "c10::Float8_e4m3fn"


def found(name: str, dims: list[Any], dtype: str = BF16, concrete: list[str] | None = None, **more: Any) -> Cost:
    """The cost of a call whose every tensor has one type."""
    types = more.pop("types", [("TensorList" if shape and isinstance(shape[0], list) else dtype) if shape else "Scalar" for shape in dims])
    answer = cost(name, json.dumps(dims), json.dumps(types), concrete=json.dumps(concrete) if concrete is not None else None, **more)
    assert answer is not None
    return answer
