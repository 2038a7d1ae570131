"""Memory in the triage report: the fullest pool, how its use went, who held it, and what it asked of the driver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from roofterm.results import MemoryBlock, MemoryCurve, MemoryPool, MemoryPressure, MemoryReport
from roofterm.text.course import course
from roofterm.text.safe import safe_text
from roofterm.text.units import bytes_text, count, duration_us, figures, pct

_HOLDERS_SHOWN = 3
_CALLS_SHOWN = 3
_NAME = 40
_LEAST_CURVE = 10
_FRAGMENTED_PCT = 1.0


def memory_lines(memory: MemoryReport, width: int) -> Iterator[str]:
    """What the report says of memory, a sentence or the curve at a time; `width`: cells there are for the curve."""
    on_device = [number for number, pool in enumerate(memory.pools) if pool.on_device]
    shown = on_device or list(range(len(memory.pools)))
    known = [number for number in shown if memory.pools[number].peak_bytes is not None]
    if known:
        fullest = max(known, key=lambda number: (memory.pools[number].peak_pct or 0.0, memory.pools[number].peak_bytes or 0))
        yield _peak(memory.pools[fullest], len(known))
        curve = next((curve for curve in memory.curves if curve.pool == fullest), None)
        if curve is not None and len(curve.used_bytes) >= _LEAST_CURVE:
            yield _curve(curve, width)
        held = [holder for holder in memory.holders if holder.pool == fullest][:_HOLDERS_SHOWN]
        if held:
            names = (f"{safe_text(holder.op or 'what is in no op', _NAME)} {bytes_text(holder.bytes)}" for holder in held)
            yield f"held at the peak by {', '.join(names)}"
        blocks = [block for block in memory.blocks if block.pool == fullest and (block.shape or block.dtype)][:_HOLDERS_SHOWN]
        if blocks:
            yield f"its largest arrays: {', '.join(map(_block, blocks))}"
    failed = [time for number in shown for time in memory.pools[number].out_of_memory_us]
    if failed:
        times = "once" if len(failed) == 1 else f"{count(len(failed))} times"
        yield f"out of memory {times}, first at {duration_us(min(failed))}"
    if memory.pressure:
        yield _pressure(memory.pressure)


def _peak(pool: MemoryPool, pools: int) -> str:
    of = f" of {bytes_text(pool.capacity_bytes)}" if pool.capacity_bytes else ""
    reserved = f", up to {bytes_text(pool.reserved_peak_bytes)} reserved" if pool.reserved_peak_bytes else ""
    share = f" ({pct(pool.peak_pct)})" if pool.peak_pct is not None else ""
    parts = [f"peak {bytes_text(pool.peak_bytes)} in use{reserved}{of}{share}"]
    parts += ["on the host"] if not pool.on_device else [f"the fullest of {count(pools)} devices"] if pools > 1 else []
    parts += [f"in {safe_text(pool.peak_op, _NAME)}"] if pool.peak_op else []
    parts += [safe_text(pool.peak_step, _NAME)] if pool.peak_step else []
    parts += [f"fragmented {pct(pool.fragmentation_pct)}"] if (pool.fragmentation_pct or 0.0) >= _FRAGMENTED_PCT else []
    of_it = [f"{bytes_text(pool.held_before_bytes)} of it from before the recording"] if pool.held_before_bytes else []
    of_it += [f"{bytes_text(pool.stack_bytes)} of it the program's stack"] if pool.stack_bytes else []
    return "; ".join([", ".join(parts), *of_it])


def _block(block: MemoryBlock) -> str:
    what = safe_text(" ".join(part for part in (block.dtype, block.shape) if part), _NAME)
    return (
        f"{count(block.blocks)} x {what} {bytes_text(block.held_bytes)}" if block.blocks > 1 else f"{what} {bytes_text(block.held_bytes)}"
    )


def _curve(curve: MemoryCurve, width: int) -> str:
    """Use over time: of the parts that share a cell the most."""
    length = f" over {duration_us(curve.part_us * len(curve.used_bytes))}"
    cells = min(width - len(length) - 2, len(curve.used_bytes))
    edges = [at * len(curve.used_bytes) // cells for at in range(cells + 1)]
    most = [max(curve.used_bytes[first:last]) for first, last in pairwise(edges)]
    return f"[{course(most)}]{length}"


def _pressure(calls: Sequence[MemoryPressure]) -> str:
    named = ", ".join(
        f"{count(call.calls)} x {safe_text(call.name, _NAME)} ({duration_us(call.total_us)})" for call in calls[:_CALLS_SHOWN]
    )
    steady = [call.calls_per_step for call in calls if call.calls_per_step is not None]
    inside = "" if not steady else f"; {figures(sum(steady))} calls a steady step" if sum(steady) else "; none in the steady steps"
    return f"from the driver: {named}{inside}"
