"""The process groups of a job: who is in them, whether their calls are equal on all ranks, what they move and how they wait."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from roofterm.analysis.collective_calls import listed_ranks
from roofterm.results import RankGroup
from roofterm_parsers.profile import Source

US = 1e6

_ROLES: tuple[tuple[str, str], ...] = (
    ("tensor", r"(^|[_\W])(tp|tensor|mp|model_parallel)([_\W\d]|$)|tensor_model_parallel"),
    ("pipeline", r"(^|[_\W])(pp|pipe|pipeline)([_\W\d]|$)|pipeline_model_parallel"),
    ("expert", r"(^|[_\W])(ep|expert|moe)([_\W\d]|$)|expert_model_parallel"),
    ("context", r"(^|[_\W])(cp|dcp|sp|context|sequence)([_\W\d]|$)"),
    ("data", r"(^|[_\W])(dp|ddp|fsdp|hsdp|data|replicate|shard|zero)([_\W\d]|$)|data_parallel"),
    ("world", r"default_pg|^world$"),
)
"""What a group is for, by its name or description, the first that fits (Megatron, DeepSpeed, vLLM, torch's device meshes)."""


def rank_groups(sources: Sequence[Source], calls: pl.DataFrame, matched: pl.DataFrame, steps: int) -> list[RankGroup]:
    """One record a process group that was used, most time first. Times are means a step (of `steps`) and device.

    `calls` is of schema `collective_calls.CALLS`, `matched` of `matching.MATCHED`.
    """
    known = _members(sources)
    rows = calls.join(matched.select("slice", "match", "wait_ps", "transfer_ps"), on="slice", how="left", maintain_order="left")
    rows = rows.with_columns(key=pl.coalesce("ranks", "group", pl.lit("")), length_ps=pl.col("end_ps") - pl.col("start_ps"))
    found = [_group(key, part, known, steps) for (key,), part in rows.group_by(["key"], maintain_order=True)]
    return sorted(found, key=lambda group: -group.total_us)


def _group(key: Any, rows: pl.DataFrame, known: dict[str, list[int]], steps: int) -> RankGroup:
    name = next((str(text) for text in rows["group"].drop_nulls().unique(maintain_order=True)), None)
    listed = listed_ranks(key) or known.get(name or "", [])
    by_source = rows.group_by("source").len()
    met = rows.filter(pl.col("match").is_not_null())
    devices = max(rows["device"].n_unique(), 1)
    each = devices * steps * US
    return RankGroup(
        name=name,
        role=_role(name),
        ranks=listed,
        size=int(rows["group_size"].max()) if rows["group_size"].drop_nulls().len() else (len(listed) or None),  # type: ignore[arg-type]
        seen=by_source.height,
        calls=rows.height / devices / steps,
        least_calls=int(by_source["len"].min()),  # type: ignore[arg-type]
        most_calls=int(by_source["len"].max()),  # type: ignore[arg-type]
        matched_pct=100 * met.height / rows.height,
        total_us=float(rows["length_ps"].sum()) / each,
        wait_us=float(met["wait_ps"].sum()) / each if met.height else None,
        transfer_us=float(met["transfer_ps"].sum()) / each if met.height else None,
        message_bytes=float(rows["message_bytes"].sum()) / devices / steps if rows["message_bytes"].null_count() == 0 else None,
        bus_bw=_bus_bandwidth(met),
    )


def _bus_bandwidth(met: pl.DataFrame) -> float | None:
    """Bytes on the wire over transfer time, of the matched calls whose size is known."""
    sized = met.filter(pl.col("wire_bytes").is_not_null() & (pl.col("transfer_ps") > 0))
    seconds = float(sized["transfer_ps"].sum()) / 1e12
    return float(sized["wire_bytes"].sum()) / seconds if seconds > 0 else None


def _members(sources: Iterable[Source]) -> dict[str, list[int]]:
    """Ranks of each group by its name and its description, as the files' headers list them; of a name for several groups nothing."""
    found: dict[str, list[int]] = {}
    for source in sources:
        stated = source.metadata.get("distributedInfo")
        groups = stated.get("pg_config") if isinstance(stated, dict) else None
        for group in groups if isinstance(groups, list) else []:
            ranks = group.get("ranks") if isinstance(group, dict) else None
            numbers = [number for number in ranks if isinstance(number, int)] if isinstance(ranks, list) else []
            for called in {str(group.get("pg_name") or ""), str(group.get("pg_desc") or "")} if numbers else ():
                if found.setdefault(called, numbers) != numbers:
                    found[called] = []
    return found


def _role(name: str | None) -> str | None:
    text = (name or "").casefold()
    return next((role for role, pattern in _ROLES if re.search(pattern, text)), None)
