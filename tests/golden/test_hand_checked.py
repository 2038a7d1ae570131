"""Facts of five real traces of different eras, counted and added up apart from roofterm (json, Decimal, a sweep over sorted intervals)."""

from __future__ import annotations

from typing import Any

import pytest

from roofterm.analysis.study import Study
from roofterm_parsers import open_profile
from tests.reference import reference

FACTS: dict[str, dict[str, Any]] = {
    # Early 2021: a bare list, capital categories, text thread ids, whole microseconds since the epoch.
    "kineto_v100_resnet50_2021_list.pt.trace.json.gz": {
        "slices": 63166, "kernels": 9538, "kernel_us": 635237.0, "memcpy_us": 14235.0, "gpu_busy_us": 649472.0,
        "step_us": [211206.0, 211112.0, 210811.0, 216799.0, 220457.0, 212280.0],
    },
    # 2022: today's categories, whole microseconds, eight ranks, collectives over everything.
    "hta_a100_rank3of8_train.json.gz": {
        "slices": 74937, "kernels": 8568, "kernel_us": 446813.0, "memcpy_us": 54754.0, "gpu_busy_us": 388587.0,
        "step_us": [75473.0, 76940.0, 76212.0, 76727.0, 78473.0, 81120.0],
    },
    # April 2024: microseconds since the epoch with three decimals, which a double cannot hold.
    "hta_v100_resnet_ns_absolute_ts.pt.trace.json.gz": {
        "slices": 45420, "kernels": 4350, "kernel_us": 468153.602, "memcpy_us": 4300.839, "gpu_busy_us": 472454.441,
        "step_us": [35115.869, 72077.474, 95697.341, 95551.087, 95699.037],
    },
    # 2025, torch 2.6: relative times, Python stacks, one step.
    "tracelens_h100_timesformer.json.gz": {
        "slices": 47336, "kernels": 446, "kernel_us": 154855.595, "memcpy_us": 3577.579, "gpu_busy_us": 158433.174,
        "step_us": [382535.558],
    },
    # 2025, ROCm: device numbers that deviceProperties lacks, a host that runs ahead.
    "tracelens_mi300x_resnet_act_ckpt_rank0of8.json.gz": {
        "slices": 49208, "kernels": 2995, "kernel_us": 97255.826, "memcpy_us": 2974.246, "gpu_busy_us": 84002.056,
        "step_us": [16798.984, 15950.958, 15887.029],
    },
}  # fmt: skip


@pytest.mark.parametrize("name", FACTS)
def test_summary_is_what_was_counted_by_hand(name: str):
    summary = Study(open_profile(reference(f"traces/torch/{name}"), cache=False)).summary()
    assert {key: getattr(summary, key) for key in FACTS[name]} == FACTS[name]
