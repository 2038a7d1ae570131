"""What `roofterm devices [NAME]` shows: the hardware table, and what a name resolves to and why."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec
import polars as pl

from roofterm.hardware.config_devices import UserDevice, load_user_devices, match_user_device
from roofterm.hardware.lookup import Facts, find, resolve
from roofterm.hardware.roofs import ridges, vendor_roofs
from roofterm.hardware.store import MeasuredRoofs, load_roofs
from roofterm.hardware.table import Device, Table, load_table
from roofterm.text.units import si

DEVICES_TABLE = pl.Schema(
    {
        "id": pl.String,
        "names": pl.String,  # as profiles carry them
        "arch": pl.String,
        "units": pl.Int64,
        "bf16_tflops": pl.Float64,  # dense, 32-bit accumulation
        "fp16_tflops": pl.Float64,
        "fp32_tflops": pl.Float64,  # vector
        "fp8_tflops": pl.Float64,
        "memory_bytes": pl.Int64,
        "memory_tbps": pl.Float64,
        "ridge_flop_per_byte": pl.Float64,  # bf16 (fp16, fp32 where there is none) over memory bandwidth
        "confidence": pl.String,  # vendor, community, derived or config.toml
    }
)


class Described(msgspec.Struct, frozen=True):
    """What a name resolves to. Figures are of the device as a profile would show it: a slice, a die or a core."""

    name: str
    model: str | None
    """None: not in the table, see `notes` and `near`"""
    matched_by: str
    notes: list[str]
    near: list[str]
    """ids that come near, when nothing matches"""
    entry: Device | None = None
    partition: str | None = None
    """what part of the entry it is: a MIG slice, ...; None: the whole"""
    peaks: dict[str, float] = {}
    """dtype: dense FLOP/s"""
    bandwidths: dict[str, float] = {}
    """level: bytes/s"""
    links: dict[str, float] = {}
    """link: bytes/s in one direction"""
    ridge: dict[str, dict[str, float]] = {}
    sources: dict[str, str] = {}
    """group of figures (names, compute, memory, interconnect, ...): where they are from, in words"""
    unchecked: list[str] = []
    """groups whose source was not opened when they were entered"""
    disagreements: list[str] = []
    measured_by_others: dict[str, str] = {}
    measured_here: list[MeasuredRoofs] = []


def devices_frame(user: Mapping[str, UserDevice] | None = None) -> pl.DataFrame:
    """The hardware table and the user's own devices, one row each (`DEVICES_TABLE`), in the table's order.

    `user`: the devices of `config.toml`, read from there by default (ProfileError if it cannot be used).
    """
    user = load_user_devices() if user is None else user
    table = load_table()
    rows = [_row(device, user.get(device.id)) for device in table.devices]
    rows += [_own_row(name, device) for name, device in user.items() if table.by_id(name) is None]
    return pl.DataFrame(rows, schema=DEVICES_TABLE, orient="row")


def describe(
    name: str,
    units: int | None = None,
    memory_bytes: int | None = None,
    user: Mapping[str, UserDevice] | None = None,
    store: Sequence[MeasuredRoofs] | None = None,
) -> Described:
    """What a device's name, or an id of the table, resolves to and why, with sources, disagreements and measurements.

    `user` and `store` are read from the user's files by default (ProfileError if they cannot be used).
    """
    user = dict(load_user_devices() if user is None else user)
    store = load_roofs() if store is None else store
    table = load_table()
    if name.strip().casefold() in (*table.cpu.names, table.cpu.id):
        return _host_processor(name, table, store)
    kind = "tpu" if re.match(r"\s*tpu", name, re.IGNORECASE) else None
    match = resolve(Facts(name=name, units=units, memory_bytes=memory_bytes, kind=kind), table)
    entry, how, notes, near = match.entry, match.how, match.notes, match.candidates
    if entry is None:
        found = find(name, table)
        if isinstance(found, Device):
            entry, how, notes, near = found, "id or unmistakable part of one", [], []
        elif found:
            near, notes = found, [f"{name!r} may be any of {', '.join(found)}: give one of these ids"]
    own = match_user_device(user, name, entry.id if entry is not None else None)
    if own is not None and entry is None:
        entry = table.by_id(own[1].like) if own[1].like else None
        how, notes, near = f"config.toml, [devices.{own[0]}]", [], []
    roofs = vendor_roofs(entry, match.scale) if entry is not None else None
    peaks, bandwidths, links = (roofs.peaks, roofs.bandwidths, roofs.links) if roofs else ({}, {}, {})
    if own is not None:
        peaks, bandwidths, links = {**peaks, **own[1].peaks()}, {**bandwidths, **own[1].bandwidths()}, {**links, **own[1].links()}
        notes = [*notes, f"figures of config.toml, [devices.{own[0]}]: {', '.join(_given(own[1])) or 'none'}"]
    return Described(
        name=name,
        model=entry.id if entry is not None and (own is None or own[0] == entry.id) else own[0] if own is not None else None,
        matched_by=how,
        notes=[*notes, *(entry.notes if entry is not None else [])],
        near=near if entry is None and own is None else [],
        entry=entry,
        partition=match.scale.partition,
        peaks=peaks,
        bandwidths=bandwidths,
        links=links,
        ridge=ridges(peaks, bandwidths),
        sources=_sources(entry, table) if entry is not None else {},
        unchecked=entry.unchecked_groups if entry is not None else [],
        disagreements=entry.disagreements if entry is not None else [],
        measured_by_others=_measured_by_others(entry) if entry is not None else {},
        measured_here=_measured_here(name, entry, store),
    )


def _host_processor(name: str, table: Table, store: Sequence[MeasuredRoofs]) -> Described:
    cpu = table.cpu
    return Described(
        name=name,
        model=cpu.id,
        matched_by="no CPU model is listed: measure it",
        notes=[
            f"peak = {cpu.peak_formula}",
            f"bandwidth = {cpu.memory_formula}",
            cpu.per_core_memory_cap,
            *(f"{isa}: {', '.join(f'{dtype} {rate:g}' for dtype, rate in rates.items())} FLOP/clk a core" for isa, rates in _isas(table)),
            *cpu.notes,
        ],
        near=[],
        sources=dict(cpu.source),
        measured_here=sorted(
            (record for record in store if record.device.kind == "cpu"), key=lambda record: record.measured_at, reverse=True
        ),
    )


def _isas(table: Table) -> list[tuple[str, dict[str, float]]]:
    return list(table.cpu.flop_per_clk_per_core.items())


def _row(device: Device, correction: UserDevice | None) -> tuple[object, ...]:
    peaks = {**device.peak_flops_dense, **(correction.peaks() if correction else {})}
    bandwidth = (correction.bandwidths() if correction else {}).get("hbm", device.memory.bandwidth_Bps)
    return (
        device.id,
        ", ".join([*device.names, *device.board_names]),
        device.arch,
        device.compute_units or device.tensor_cores_per_chip,
        *_figures(peaks),
        device.memory.bytes,
        bandwidth / 1e12,
        _ridge(peaks, bandwidth),
        "config.toml" if correction else device.confidence,
    )


def _own_row(name: str, device: UserDevice) -> tuple[object, ...]:
    base = load_table().by_id(device.like) if device.like else None
    peaks = {**(base.peak_flops_dense if base else {}), **device.peaks()}
    bandwidth = device.bandwidths().get("hbm", base.memory.bandwidth_Bps if base else None)
    return (
        name,
        ", ".join(device.names),
        device.arch or (base.arch if base else None),
        device.units or (base.compute_units if base else None),
        *_figures(peaks),
        device.memory_bytes or (base.memory.bytes if base else None),
        bandwidth / 1e12 if bandwidth else None,
        _ridge(peaks, bandwidth),
        "config.toml",
    )


def _figures(peaks: Mapping[str, float]) -> list[float | None]:
    return [peaks[dtype] / 1e12 if dtype in peaks else None for dtype in ("bf16", "fp16", "fp32", "fp8")]


def _ridge(peaks: Mapping[str, float], bandwidth: float | None) -> float | None:
    main = next((peaks[dtype] for dtype in ("bf16", "fp16", "fp32") if dtype in peaks), None)
    return main / bandwidth if main and bandwidth else None


def _sources(entry: Device, table: Table) -> dict[str, str]:
    return {group: table.sources[key].text if key in table.sources else key for group, key in entry.source.items()}


def _given(device: UserDevice) -> list[str]:
    return [*device.peaks_tflops, *device.bandwidths_gbps, *device.links_gbps]


def _measured_by_others(entry: Device) -> dict[str, str]:
    units = {"Bps": "B/s", "ops": "OP/s"}
    return {
        key: si(value, units.get(key.rsplit("_", 1)[-1], "FLOP/s")) if isinstance(value, int | float) else str(value)
        for key, value in entry.measured.items()
    }


def _measured_here(name: str, entry: Device | None, store: Sequence[MeasuredRoofs]) -> list[MeasuredRoofs]:
    """Roofs measured on devices of this name, or of a name that resolves to this entry; newest first."""
    fits = [
        record
        for record in store
        if record.device.name.casefold() == name.casefold().strip()
        or (entry is not None and (found := resolve(Facts(name=record.device.name)).entry) is not None and found.id == entry.id)
    ]
    return _newest_first(fits)


def _newest_first(records: list[MeasuredRoofs]) -> list[MeasuredRoofs]:
    return sorted(records, key=lambda record: record.measured_at, reverse=True)
