"""The columns of tables that XProf's users know: kernels by launch, framework ops, counters."""

from __future__ import annotations

from dataclasses import replace

from roofterm.report.fields import (
    BLOCK,
    BOUND,
    BYTES,
    CALLS,
    CATEGORY,
    DTYPE,
    FLAGS,
    FLOPS,
    GRID,
    MAX,
    MEAN,
    MIN,
    NAME,
    OCCUPANCY,
    P50,
    P99,
    REGISTERS,
    ROOF,
    SELF,
    SHARE,
    SHARED,
    TENSOR,
    TOTAL,
    Column,
    amount,
    words,
)

LAUNCH_COLUMNS = (
    replace(NAME, about="kernel"),
    CALLS,
    TOTAL,
    SHARE,
    MEAN,
    MIN,
    MAX,
    replace(GRID, about="blocks"),
    replace(BLOCK, about="threads of a block"),
    replace(REGISTERS, about="of a thread"),
    replace(SHARED, about="of a block"),
    replace(OCCUPANCY, about="as the file states it for this launch"),
    Column("tf_op", "framework op", words, right=False, needs_value=True, about="op of the framework that it was launched for"),
    TENSOR,
    DTYPE,
    ROOF,
    BOUND,
    CATEGORY,
    P50,
    P99,
    FLOPS,
    BYTES,
    FLAGS,
)

FRAMEWORK_COLUMNS = (
    replace(NAME, about="op of the framework; without one the HLO instruction"),
    Column("side", "on", words, right=False, about="device or host"),
    Column("op_type", "type", words, right=False, about="kind of op, as its framework names it"),
    replace(CALLS, about="runs of that of its instructions that ran most often"),
    replace(SELF, about="outside of what is nested in it"),
    replace(SHARE, about="of the self time of its side, device or host"),
    TOTAL,
    MEAN,
    ROOF,
    BOUND,
    CATEGORY,
    DTYPE,
    FLOPS,
    BYTES,
    FLAGS,
)

COUNTER_COLUMNS = (
    replace(NAME, about="counter, as in the file"),
    Column("value_mean", "mean", amount, about="over its samples"),
    Column("value_min", "min", amount, about="the least sample"),
    Column("value_max", "max", amount, about="the largest sample"),
    Column("value_last", "last", amount, about="the last sample"),
    Column("value_sum", "sum", amount, about="over its samples"),
    replace(CALLS, title="samples", about="how often it was read"),
    Column("counted_for", "counted for", words, right=False, about="device, kernel or process"),
)
