"""The roofs of a profile's devices: peaks, bandwidths and links, each with where it comes from.

For each figure the first source that has it counts: what the user gave on the command line; the source named by
`--roofs`; the user's `config.toml`; roofs measured on the same node and device; for a TPU what its profile states, since
libtpu writes it for the core that ran; the vendor's figures from the hardware table. A GPU's profile comes last: XLA
states half the memory bandwidth of MI300X and MI355X (reference: XProf reads the same stat).
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from roofterm.hardware.choice import RoofChoice
from roofterm.hardware.config_devices import UserDevice, load_user_devices, match_user_device
from roofterm.hardware.lookup import WHAT_TO_DO, Facts, Match, find, resolve
from roofterm.hardware.partition import Scale
from roofterm.hardware.store import MeasuredRoofs, find_roofs, load_roofs
from roofterm.hardware.table import LINKS, Device, load_table, vendor_bandwidths, vendor_links
from roofterm.results import DeviceInfo, RoofSet
from roofterm_parsers.errors import ProfileError
from roofterm_parsers.profile import Profile, Warning

MFU_DTYPES = ("bf16", "fp16")


def device_infos(profile: Profile, choice: RoofChoice | None = None) -> list[DeviceInfo]:
    """The profile's devices that worked, or all if none did, in the profile's order.

    Raises ProfileError if `choice` names a device that is not known or roofs that no device has, or if the user's
    `config.toml` or measured roofs cannot be read.
    """
    choice = choice or RoofChoice()
    rows = profile.devices.to_dicts()
    rows = [row for row in rows if row["worked"]] or rows
    if not rows:
        return []
    store, user = load_roofs(), load_user_devices()
    hosts = [metadata_host(source.metadata) or source.host for source in profile.sources]
    infos = [_info(row, choice, store, user, hosts[row["source"]] if row["source"] < len(hosts) else None) for row in rows]
    if choice.roofs is not None and not any(choice.roofs in info.sets for info in infos):
        raise ProfileError(_no_such_roofs(choice.roofs, infos[0]))
    return infos


def _info(
    row: Mapping[str, Any], choice: RoofChoice, store: Sequence[MeasuredRoofs], user: Mapping[str, UserDevice], host: str | None
) -> DeviceInfo:
    """Roofs of a device, or of a host that worked itself, which no table knows."""
    from roofterm.hardware.host import host_info

    if row["kind"] == "cpu" and choice.device is None:
        return host_info(host, choice, store, user)
    return device_info(row, choice, store, user, host)


def device_info(
    row: Mapping[str, Any],
    choice: RoofChoice | None = None,
    store: Sequence[MeasuredRoofs] = (),
    user: Mapping[str, UserDevice] | None = None,
    host: str | None = None,
) -> DeviceInfo:
    """One device with its roofs. `row`: a row of the profile's `devices` frame (missing columns count as null); `store`:
    measured roofs; `user`: the devices of `config.toml`; `host`: where the profile was recorded, None: taken as this node."""
    choice, user = choice or RoofChoice(), dict(user or {})
    facts = Facts(
        name=row.get("name"),
        units=row.get("units"),
        memory_bytes=row.get("memory_bytes"),
        capability=row.get("capability"),
        warp_size=row.get("warp_size"),
        kind=row.get("kind"),
        clock_hz=row.get("clock_hz"),
    )
    match, own = _match(facts, choice, user)
    kind = facts.kind or "gpu"
    sets: dict[str, RoofSet] = {}
    if match.entry is not None:
        sets["vendor"] = vendor_roofs(match.entry, match.scale)
    trace = _trace(row)
    if trace is not None and choice.device is None:
        sets["trace"] = trace
    measured = find_roofs(list(store), host or platform.node(), facts.name, facts.units, facts.memory_bytes)
    if measured is not None and choice.device is None:
        sets["measured"] = measured_roofs(measured)
    if own is not None:
        sets["given"] = RoofSet(own[1].peaks(), own[1].bandwidths(), own[1].links(), f"config.toml, [devices.{own[0]}]")

    order = [name for name in _order(choice, kind) if name in sets]
    peaks, bandwidths, links, sources = _merged(sets, order, match)
    given_links = {level: rate for level, rate in choice.bandwidths.items() if level in LINKS}
    given_levels = {level: rate for level, rate in choice.bandwidths.items() if level not in LINKS}
    for figures, given in ((peaks, choice.peaks), (bandwidths, given_levels), (links, given_links)):
        figures.update(given)
        sources.update(dict.fromkeys(given, "given"))

    return DeviceInfo(
        id=int(row.get("id") or 0),
        name=facts.name,
        model=_model(match, own),
        kind=kind,
        units=facts.units,
        memory_bytes=facts.memory_bytes or _memory_bytes(kind, match),
        peaks=peaks,
        bandwidths=bandwidths,
        roofs_from=_roofs_from(choice, order, match),
        ridge=ridges(peaks, bandwidths),
        notes=_notes(row, match, own, measured, order, choice, bool(peaks or bandwidths)),
        links=links,
        matched_by=match.how if match.entry is not None or own is None else f"config.toml, [devices.{own[0]}]",
        sources=sources,
        sets=sets,
        partition=match.scale.partition,
        launch_s=measured.launch_s.get("spacing") if measured is not None and order[:1] == ["measured"] else None,
    )


def named_device(name: str, choice: RoofChoice | None = None) -> DeviceInfo:
    """A device by its name or id alone, whole: roofs of the hardware table and of `config.toml`, and what `choice` gives.

    Of a TPU it is one core, as profiles show it. Raises ProfileError if there is no such device.
    """
    asked = msgspec.structs.replace(choice or RoofChoice(), device=name)
    found = find(name)
    kind = "tpu" if isinstance(found, Device) and found.vendor == "google" else None
    user = load_user_devices()
    info = device_info({"name": None, "kind": kind}, asked, user=user)
    entry = load_table().by_id(info.model or "")
    own = match_user_device(user, name, info.model)
    memory_bytes = own[1].memory_bytes if own is not None and own[1].memory_bytes else entry.memory.bytes if entry is not None else None
    return msgspec.structs.replace(info, name=name, memory_bytes=memory_bytes)


def ridges(peaks: Mapping[str, float], bandwidths: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Ridge point of each dtype and level, FLOP/byte: the intensity from which on the peak is the lower roof (Williams 2009)."""
    return {dtype: {level: peak / bandwidth for level, bandwidth in bandwidths.items() if bandwidth} for dtype, peak in peaks.items()}


def mfu_peak(info: DeviceInfo) -> tuple[str, float] | None:
    """dtype and FLOP/s that MFU and HFU are held against: the vendor's dense bf16 peak, fp16 where there is none.

    Measured roofs never change it; a peak that the user gave does. Without a vendor's figure, the one in use that is not measured.
    """
    given = {dtype: peak for dtype, peak in info.peaks.items() if info.sources.get(dtype) == "given"}
    vendor = info.sets["vendor"].peaks if "vendor" in info.sets else {}
    rest = {dtype: peak for dtype, peak in info.peaks.items() if info.sources.get(dtype) != "measured"}
    for dtype in MFU_DTYPES:
        for peaks in (given, vendor, rest):
            if dtype in peaks:
                return dtype, peaks[dtype]
    return None


def mbu_bandwidth(info: DeviceInfo) -> float | None:
    """Bytes/s of main memory that MBU is held against: the vendor's, or one that the user gave; never a measured one."""
    level = next((name for name in ("hbm",) if name in info.bandwidths), None)
    if level is None or info.sources.get(level) == "given":
        return info.bandwidths.get(level or "")
    vendor = info.sets["vendor"].bandwidths.get(level) if "vendor" in info.sets else None
    return vendor or (info.bandwidths[level] if info.sources.get(level) != "measured" else None)


def device_warnings(infos: Sequence[DeviceInfo]) -> list[Warning]:
    """What a reader must know before trusting a roof: codes `partition` and `unknown-device`, one for each kind of device."""
    found: dict[tuple[str, str], int] = {}
    for info in infos:
        if info.partition is not None:
            message = next((note for note in info.notes if note.startswith(info.partition) or " of " in note), info.partition)
            found[("partition", message)] = found.get(("partition", message), 0) + 1
        if not info.peaks and not info.bandwidths:
            message = next((note for note in info.notes if WHAT_TO_DO in note), f"no roof is known; {WHAT_TO_DO}")
            found[("unknown-device", message)] = found.get(("unknown-device", message), 0) + 1
    return [Warning(code, message, count) for (code, message), count in found.items()]


def _match(facts: Facts, choice: RoofChoice, user: dict[str, UserDevice]) -> tuple[Match, tuple[str, UserDevice] | None]:
    if choice.device is not None:
        return _chosen(choice.device, facts, user)
    match = resolve(facts)
    own = match_user_device(user, facts.name, match.entry.id if match.entry is not None else None)
    if own is not None and match.entry is None and own[1].like:
        match = Match(_entry(own[1].like), f"config.toml, [devices.{own[0]}], like {own[1].like}", derived=True)
    return match, own


def _chosen(name: str, facts: Facts, user: dict[str, UserDevice]) -> tuple[Match, tuple[str, UserDevice] | None]:
    own = match_user_device(user, name, None)
    if own is not None:
        entry = _entry(own[1].like) if own[1].like else load_table().by_id(own[0])
        return Match(entry, f"--device {name} (config.toml)", derived=entry is not None), own
    entry = _entry(name, user)
    per_core = resolve(Facts(name=entry.names[0], kind=facts.kind))
    note = f"roofs are those of {entry.id} (--device), not of the profile's own device"
    match = Match(entry, f"--device {name}", per_core.scale, entry.confidence != "vendor", [note, *per_core.scale.notes], [entry.id])
    correction = user.get(entry.id)
    return match, (entry.id, correction) if correction is not None else None


def _entry(name: str, user: Mapping[str, UserDevice] | None = None) -> Device:
    found = find(name)
    if isinstance(found, Device):
        return found
    if found:
        raise ProfileError(f"--device {name} may be any of {', '.join(found)}: give one of these ids")
    own = f"; config.toml has {', '.join(user)}" if user else ""
    raise ProfileError(f"there is no device {name} in the hardware table (`roofterm devices` lists it{own})")


def vendor_roofs(entry: Device, scale: Scale) -> RoofSet:
    """The table's figures for a device that is this share of the entry."""
    # L1 comes with the units, on AMD's multi-die parts L2 too (one to each die); the rest with the memory slices.
    with_units = ("l1", "l2") if entry.vendor == "amd" else ("l1",)
    bandwidths = {
        level: value * (scale.compute if level in with_units else scale.memory) for level, value in vendor_bandwidths(entry).items()
    }
    links = {link: value if link == "pcie" else value * scale.links for link, value in vendor_links(entry).items()}
    links = {link: value for link, value in links.items() if value}
    peaks = {dtype: value * scale.compute for dtype, value in entry.peak_flops_dense.items()}
    return RoofSet(peaks, bandwidths, links, _source_text(entry))


def _source_text(entry: Device) -> str:
    sources = load_table().sources
    parts = []
    for group in ("compute", "memory"):
        key = entry.source.get(group)
        if key:
            parts.append(f"{group}: {sources[key].text if key in sources else key}")
    return "; ".join(parts)


def _memory_bytes(kind: str, match: Match) -> int | None:
    """A TPU core's memory by the hardware table: its planes state none, and a TPU's name leaves no doubt."""
    return round(match.entry.memory.bytes * match.scale.memory) if kind == "tpu" and match.entry is not None else None


def _trace(row: Mapping[str, Any]) -> RoofSet | None:
    """What the file states: libtpu's peak is normalised to bf16 (reference: XProf divides every op's FLOPs by it)."""
    peak, text = row.get("peak_flops"), row.get("bandwidths")
    levels: dict[str, float] = msgspec.json.decode(text, type=dict[str, float]) if text else {}
    bandwidths = {level: value for level, value in levels.items() if value > 0}
    peaks = {"bf16": float(peak)} if peak else {}
    return RoofSet(peaks, bandwidths, {}, "stated in the profile") if peaks or bandwidths else None


def measured_roofs(record: MeasuredRoofs) -> RoofSet:
    """A record of `roofterm measure` as one source's figures."""
    note = f"measured on {record.node}, {record.measured_at}, torch {record.torch}" + ("; noisy" if record.noisy else "")
    return RoofSet(dict(record.peaks), dict(record.bandwidths), dict(record.links), note)


def _order(choice: RoofChoice, kind: str) -> list[str]:
    usual = ["given", "measured", "trace", "vendor"] if kind == "tpu" else ["given", "measured", "vendor", "trace"]
    return sorted(usual, key=lambda name: name != choice.roofs)


def _merged(
    sets: Mapping[str, RoofSet], order: Sequence[str], match: Match
) -> tuple[dict[str, float], dict[str, float], dict[str, float], dict[str, str]]:
    """Peaks, bandwidths and links, each figure from the first source of `order` that has it, and where each is from."""
    merged: tuple[dict[str, float], dict[str, float], dict[str, float]] = ({}, {}, {})
    sources: dict[str, str] = {}
    for name in order:
        one = sets[name]
        for into, figures in zip(merged, (one.peaks, one.bandwidths, one.links), strict=True):
            for key, value in figures.items():
                if key not in into:
                    into[key] = value
                    sources[key] = _label(name, key, match)
    return *merged, sources


def _label(source: str, key: str, match: Match) -> str:
    """No vendor states an L2 bandwidth: it is a formula or somebody's measurement; L1 is bytes per clock times units times clock."""
    if source == "vendor":
        inferred = match.derived or key in ("l1", "l2")
        return "derived" if inferred else "vendor"
    return source


def _roofs_from(choice: RoofChoice, order: Sequence[str], match: Match) -> str | None:
    if choice.peaks or choice.bandwidths or (order and order[0] == "given"):
        return "option"
    if not order:
        return None
    if order[0] == "vendor" and match.derived:
        return "derived"
    return order[0]


def _model(match: Match, own: tuple[str, UserDevice] | None) -> str | None:
    return match.model or (own[0] if own is not None else None)


def _notes(
    row: Mapping[str, Any],
    match: Match,
    own: tuple[str, UserDevice] | None,
    measured: MeasuredRoofs | None,
    order: Sequence[str],
    choice: RoofChoice,
    has_roof: bool,
) -> list[str]:
    notes = list(match.notes) if match.entry is not None or not has_roof else []
    if match.entry is not None:
        notes += match.entry.notes
    if row.get("note"):
        notes.append(str(row["note"]))
    if own is not None:
        notes.append(own[1].note or f"figures of config.toml, [devices.{own[0]}]")
    if choice.peaks or choice.bandwidths:
        notes.append("peaks or bandwidths given by --peak and --bandwidth")
    if measured is not None and "measured" in order:
        notes.append(
            f"measured on {measured.node} with torch {measured.torch} at {measured.measured_at}: "
            + ("in use" if order[0] == "measured" else "beside the others")
            + (f"; noisy: {'; '.join(measured.noisy)}" if measured.noisy else "")
        )
    if choice.roofs is not None and choice.roofs not in order:
        notes.append(f"no {choice.roofs} roofs for this device")
    return list(dict.fromkeys(notes))


def metadata_host(metadata: Mapping[str, Any]) -> str | None:
    """The host that a file's own facts name (Kineto since March 2026; an XPlane file that has only one)."""
    hosts = metadata.get("hosts")
    name = metadata.get("host_name") or (hosts[0] if isinstance(hosts, list) and len(hosts) == 1 else None)
    return name if isinstance(name, str) and name else None


def _no_such_roofs(roofs: str, info: DeviceInfo) -> str:
    what = {
        "measured": "no roofs were measured for this device on this node: run `roofterm measure` there",
        "trace": "the profile states no peaks or bandwidths",
        "vendor": f"the hardware table has no entry for {info.name or 'the device'}",
    }
    if roofs not in what:
        return f"--roofs {roofs}: choose measured, vendor or trace"
    return f"--roofs {roofs}: {what[roofs]}"
