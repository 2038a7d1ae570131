"""Every collective that ran on a device, with what is known of it: kind, group, message, and how far compute hides it.

A collective is recognised by its arguments first (Kineto writes them on NCCL kernels and on `record_param_comms`), then by the
op or instruction that launched it, then by the kernel's name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import msgspec
import numpy as np
import polars as pl

from roofterm.analysis.categories import short_name
from roofterm.analysis.costs.communication import bus_factor, collective_kind
from roofterm.analysis.costs.signature import ITEM_BYTES, Inputs, Tensor, dtype_name
from roofterm.analysis.intervals import Intervals, covered
from roofterm.analysis.lookup import index_of, joined, looked_up, rows_by_id, rows_of, taken
from roofterm.analysis.work import WorkClass
from roofterm_parsers.occurring import occurring
from roofterm_parsers.profile import ROOT, Profile

CALLS = pl.Schema(
    {
        "slice": pl.UInt32(),  # the piece of device work
        "source": pl.UInt16(),
        "device": pl.UInt16(),
        "step": pl.UInt32(),  # row of Profile.steps that it counts for
        "start_ps": pl.Int64(),
        "end_ps": pl.Int64(),
        "kind": pl.String(),  # all_reduce, all_gather, ..., other
        "collective": pl.String(),  # as the file calls it
        "library": pl.String(),  # nccl, rccl, custom all-reduce, ...; null: the name does not tell
        "group": pl.String(),
        "ranks": pl.String(),
        "group_size": pl.Int64(),
        "sequence": pl.Int64(),
        "dtype": pl.String(),
        "message_bytes": pl.Float64(),  # the larger of the two buffers
        "wire_bytes": pl.Float64(),  # message x factor of nccl-tests
        "evidence": pl.Enum(("args", "op", "name")),
        "exposed_ps": pl.Int64(),  # of the time that no earlier collective covers, what no compute covers
        "hidden_ps": pl.Int64(),  # and what compute covers
    }
)
"""One row a collective's piece of device work, in order of start."""

_CUSTOM = r"(?i)cross_device_reduce|custom_all_?reduce|trtllm_allreduce|allreduce_fusion|lamport|quick_?reduce"
_LIBRARIES = (
    ("msccl", r"(?i)msccl"),
    ("nvshmem", r"(?i)nvshmem"),
    ("deep_ep", r"(?i)deep_ep"),
    ("custom all-reduce", _CUSTOM),
    ("symmetric memory", r"(?i)multimem|one_shot|two_shot|symm_mem"),
    ("nccl", r"(?i)nccl|rccl"),
)
_RCCL = r"(?i)rccl|ncclDevKernel_Generic"

_OPS = re.compile(
    r"^(?:c10d|_c10d_functional|c10d_functional|nccl|rccl|gloo|ucc|mpi|torch_ccl|vllm|_C_custom_ar|sgl_kernel|sglang|trtllm|flashinfer|deep_ep)\W"
    r"|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all",
    re.IGNORECASE,
)
"""Names of ops and annotations that may speak of a collective: not every "reduce" or "gather" does."""

_KERNEL_KINDS = (
    ("all_reduce", r"cross_device_reduce|lamport|allreduce|all_reduce"),
    ("all_to_all", r"(?:intranode|internode|internode_ll)::(?:cached_)?(?:dispatch|combine|notify)"),
)
"""What kernels do whose names do not say it as ops do."""


class Collective(NamedTuple):
    """What one piece of evidence tells."""

    kind: str
    collective: str
    dtype: str | None = None
    message_bytes: float | None = None
    group_size: int | None = None


def collective_calls(profile: Profile, work: pl.DataFrame, compute: dict[int, Intervals]) -> pl.DataFrame:
    """The collectives of a profile's device work (schema `work.WORK`): frame of schema `CALLS`.

    `compute`: the union of each device's compute. Each moment of communication belongs to the collective that began first,
    so that exposed and hidden times add up to the device's.
    """
    calls = work.filter(pl.col("work_class") == int(WorkClass.COMMUNICATION)).sort("start_ps", maintain_order=True)
    if calls.height == 0:
        return pl.DataFrame(schema=CALLS)
    texts, size = profile.names["text"], profile.slices.height
    kernel = profile.slices["name"][calls["slice"]]
    instruction = looked_up(profile.hlo["op"], profile.hlo["slice"], size, calls["slice"])
    calls = calls.with_columns(source=profile.devices["source"][calls["device"]])
    calls = _with_arguments(profile, calls)
    calls = _told_by(calls, "op_", calls["op"], size, _by_op(profile))
    calls = _told_by(calls, "hlo_", instruction, profile.hlo_ops.height, lambda row: _instruction(*profile.hlo_ops.row(row)[2:5]))
    calls = _told_by(calls, "name_", kernel, texts.len(), lambda row: _by_name(texts[row]))
    calls = calls.with_columns(
        kind=pl.coalesce("args_kind", "op_kind", "hlo_kind", "name_kind"),
        collective=pl.coalesce("args_collective", "op_collective", "hlo_collective", "name_collective"),
        dtype=pl.coalesce("args_dtype", "op_dtype", "hlo_dtype"),
        message_bytes=pl.coalesce("args_message_bytes", "op_message_bytes", "hlo_message_bytes"),
        group_size=pl.coalesce("args_group_size", "hlo_group_size", _world_size(profile, calls)),
        evidence=pl.when(pl.col("args_kind").is_not_null())
        .then(pl.lit("args"))
        .when(pl.coalesce("op_kind", "hlo_kind").is_not_null())
        .then(pl.lit("op"))
        .otherwise(pl.lit("name")),
        library=_libraries(profile, calls, kernel),
    )
    factors = calls.select("kind", "group_size").unique()
    known = [bus_factor(*row) for row in factors.iter_rows()]
    factors = factors.with_columns(factor=pl.Series(known, dtype=pl.Float64))
    calls = calls.join(factors, on=["kind", "group_size"], how="left", nulls_equal=True, maintain_order="left")
    calls = calls.with_columns(wire_bytes=pl.col("message_bytes") * pl.col("factor"))
    return _with_exposure(calls, compute).select(list(CALLS)).cast(CALLS)


def _with_arguments(profile: Profile, calls: pl.DataFrame) -> pl.DataFrame:
    """The recorded arguments, from the kernel itself or from the op around its launch."""
    known = profile.collectives.unique("slice", keep="first").filter(pl.col("collective").is_not_null())
    own = calls.select("slice").join(known, on="slice", how="inner")
    through = calls.select("slice", "op").join(known.rename({"slice": "op"}), on="op", how="inner").drop("op")
    found = pl.concat([own, through]).unique("slice", keep="first", maintain_order=True)
    names = [(collective_kind(name) or "other", dtype_name(dtype)) for name, dtype in found.select("collective", "dtype").iter_rows()]
    item = pl.Series([ITEM_BYTES.get(dtype or "") for _, dtype in names], dtype=pl.Float64)
    told = found.select(
        "slice",
        "sequence",
        "ranks",
        group=pl.coalesce(pl.when(pl.col("group_description") != "undefined").then("group_description"), "group"),
        args_kind=pl.Series([kind for kind, _ in names], dtype=pl.String),
        args_collective="collective",
        args_dtype=pl.Series([dtype for _, dtype in names], dtype=pl.String),
        args_message_bytes=pl.max_horizontal("in_elements", "out_elements") * item,
        args_group_size="group_size",
    )
    return calls.join(told, on="slice", how="left", maintain_order="left")


def _told_by(calls: pl.DataFrame, prefix: str, evidence: pl.Series, size: int, tell: Callable[[int], Collective | None]) -> pl.DataFrame:
    """Calls with what one kind of evidence tells of each, in columns of its own. `evidence`: a number below `size` for each call,
    null for none; `tell` is asked once for each that differs."""
    distinct = evidence.drop_nulls().unique()
    told = [tell(number) for number in distinct.to_list()]
    index = index_of(rows_of(rows_by_id(distinct, size), evidence))
    types = {"kind": pl.String, "collective": pl.String, "dtype": pl.String, "message_bytes": pl.Float64, "group_size": pl.Int64}
    columns = [
        taken(pl.Series(f"{prefix}{name}", [None if one is None else getattr(one, name) for one in told], dtype=kind), index)
        for name, kind in types.items()
    ]
    return calls.with_columns(columns)


def _by_op(profile: Profile) -> Callable[[int], Collective | None]:
    """By the ops around the launch: the innermost that names a collective, and the largest buffer that any of them shows."""
    parent, name = profile.slices["parent"].to_numpy(), profile.slices["name"].to_numpy()
    texts = profile.names["text"]
    index = rows_by_id(profile.ops["slice"], parent.size)
    signature = profile.ops["signature"]
    text_of, speaks = cache(lambda row: texts[row]), cache(lambda text: _OPS.search(text) is not None)

    @cache
    def largest_buffer(row: int) -> Tensor | None:
        dims, types = profile.signatures["dims"][row], profile.signatures["types"][row]
        buffers = [tensor for tensor in _buffers(dims, types) if tensor.bytes]
        return max(buffers, key=lambda tensor: tensor.bytes or 0, default=None)

    def climb(op: int) -> Collective | None:
        kind = called = dtype = None
        size = 0.0
        while op != ROOT and kind is None:
            text = text_of(int(name[op]))
            row = signature[int(index[op])] if index[op] >= 0 else None
            if row is not None and (text == "record_param_comms" or speaks(text)):
                largest = largest_buffer(row)
                if largest is not None and (largest.bytes or 0) > size:
                    size, dtype = largest.bytes or 0.0, largest.dtype
            if speaks(text):
                kind, called = collective_kind(text), text
            op = int(parent[op])
        return None if kind is None or called is None else Collective(kind, called, dtype, size or None)

    return climb


def _buffers(dims: str | None, types: str | None) -> list[Tensor]:
    """The message's buffers: the first tensor arguments, a list of tensors added up."""
    inputs = Inputs(dims, types)
    found = []
    for slot in range(min(len(inputs), 2)):
        one = inputs.tensor(slot)
        if one is not None and one.dims:
            found.append(one)
        elif several := inputs.tensors(slot):
            found.append(Tensor((sum(tensor.elements for tensor in several),), several[0].dtype))
    return found


_RESULT = re.compile(r"=\s*\(?\s*([a-z]+\d*\w*)\[([\d,]*)\]")
_GROUPS_LISTED = re.compile(r"replica_groups=\{\{([\d,]+)\}")
_GROUPS_IOTA = re.compile(r"replica_groups=\[\d+,(\d+)\]")
_HLO_TYPES = {
    "f64": 8,
    "f32": 4,
    "f16": 2,
    "bf16": 2,
    "s64": 8,
    "u64": 8,
    "s32": 4,
    "u32": 4,
    "s16": 2,
    "u16": 2,
    "s8": 1,
    "u8": 1,
    "pred": 1,
}
_HLO_NAMES = {"f64": "fp64", "f32": "fp32", "f16": "fp16", "s64": "int64", "s32": "int32", "s16": "int16", "s8": "int8", "u8": "int8"}


def _instruction(name: str | None, category: str | None, text: str | None) -> Collective | None:
    """By the HLO instruction of an XLA program: kind, result and replica groups stand in its text.

    `name`, `category` and `text` of a row of `hlo_ops`. A pair of -start and -done is one message, told of the -done."""
    kind = collective_kind(name) or collective_kind(category)
    if kind is None:
        return None
    text = text or ""
    group = _GROUPS_IOTA.search(text)
    listed = _GROUPS_LISTED.search(text)
    size = int(group[1]) if group else listed[1].count(",") + 1 if listed else None
    result = _RESULT.search(text)
    if result is None or (name or "").split(".", maxsplit=1)[0].endswith("-start"):
        return Collective(kind, name or kind, None, None, size)
    item = _HLO_TYPES.get(result[1], 1 if result[1].startswith("f8") else None)
    elements = float(np.prod([int(part) for part in result[2].split(",") if part], dtype=np.float64))
    message = None if item is None else elements * item * (size or 1 if kind == "reduce_scatter" else 1)
    return Collective(kind, name or kind, _HLO_NAMES.get(result[1], result[1]), message, size)


def _by_name(name: str) -> Collective:
    return Collective(_kind_of_kernel(name), short_name(name))


def _kind_of_kernel(name: str) -> str:
    for kind, pattern in _KERNEL_KINDS:
        if re.search(pattern, name, re.IGNORECASE):
            return kind
    return collective_kind(name.split("(", maxsplit=1)[0]) or "other"


def _world_size(profile: Profile, calls: pl.DataFrame) -> pl.Series:
    """Ranks of the whole job where the file names no group and has but one: all of them take part."""
    sizes: list[int | None] = []
    for source in profile.sources:
        groups = (source.metadata.get("distributedInfo") or {}).get("pg_count")
        sizes.append(source.world_size if groups in (None, 1) else None)
    return pl.Series(sizes, dtype=pl.Int64)[calls["source"]]


def _libraries(profile: Profile, calls: pl.DataFrame, kernel: pl.Series) -> pl.Series:
    """Library of each call; `kernel`: its name, row of names."""
    distinct = kernel.unique()
    text = pl.col("text")
    by_name = pl.coalesce(pl.when(text.str.contains(pattern)).then(pl.lit(name)) for name, pattern in _LIBRARIES)
    told = profile.names[distinct].select(by_name=by_name, rccl=text.str.contains(_RCCL))
    told = joined(calls.select("hlo_kind", "device"), kernel, told.with_columns(name=distinct), "name", profile.names.height)
    amd = (profile.devices["warp_size"] == 64).fill_null(False)[calls["device"]]
    rccl = (pl.col("by_name") == "nccl") & (amd | pl.col("rccl"))
    library = pl.coalesce(
        pl.when(pl.col("hlo_kind").is_not_null()).then(pl.lit("xla")), pl.when(rccl).then(pl.lit("rccl")), pl.col("by_name")
    )
    return told.select(library).to_series()


def _with_exposure(calls: pl.DataFrame, compute: dict[int, Intervals]) -> pl.DataFrame:
    """Of each call the part that no earlier one covers, split into what compute hides and what it does not."""
    reach = pl.col("end_ps").cum_max().shift(1).over("device", order_by="start_ps")
    calls = calls.with_columns(fresh_ps=pl.max_horizontal("start_ps", reach)).with_columns(fresh_ps=pl.min_horizontal("fresh_ps", "end_ps"))
    start, end = calls["fresh_ps"].to_numpy(), calls["end_ps"].to_numpy()
    device = calls["device"].to_numpy()
    hidden = np.zeros(start.size, np.int64)
    for number in occurring(device):
        mine = device == number
        hidden[mine] = covered(compute[int(number)], start[mine], end[mine])
    return calls.with_columns(hidden_ps=pl.Series(hidden), exposed_ps=pl.Series(end - start - hidden))


def inside_link_domain(group_size: int | None, ranks: str | None, domain: int) -> bool | None:
    """Whether a group lies behind one link domain of `domain` devices, numbered through; None: its size is unknown.

    Ranks of one domain are taken to follow each other: 0 to 7 do, 0 and 8 do not.
    """
    if group_size is None:
        return None
    numbers = listed_ranks(ranks)
    if numbers:
        return len({number // domain for number in numbers}) == 1
    return group_size <= domain


def listed_ranks(ranks: str | None) -> list[int]:
    """The members of a group as its calls list them ("[0, 1]"); empty where they do not."""
    try:
        found = msgspec.json.decode(ranks or "[]")
    except msgspec.DecodeError:
        return []
    return [number for number in found if isinstance(number, int)] if isinstance(found, list) else []
