"""Roofs of the CPU that ran a profile without an accelerator."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence

from roofterm.hardware.choice import RoofChoice
from roofterm.hardware.config_devices import UserDevice, load_user_devices, match_user_device
from roofterm.hardware.roofs import measured_roofs, ridges
from roofterm.hardware.store import MeasuredRoofs, find_roofs, load_roofs
from roofterm.results import DeviceInfo, RoofSet

HOST_ID = -1
"""The id of the host among devices: no accelerator has it."""

WHAT_TO_DO = "run `roofterm measure --device cpu` on the host that recorded it, or give --peak fp32=TFLOPS and --bandwidth hbm=GBPS"


def host_info(
    host: str | None,
    choice: RoofChoice | None = None,
    store: Sequence[MeasuredRoofs] | None = None,
    user: Mapping[str, UserDevice] | None = None,
) -> DeviceInfo:
    """The CPU of a host. A profile names neither model nor clock, so its roofs are measured or given, or there are none.

    `host`: as the profile names it. Measured roofs count if that is the node they were measured on, or, where it names none,
    if `--roofs measured` says that it was this one.
    `hbm` is main memory. `store` and `user` are read from the user's files by default (ProfileError if they cannot be used).
    """
    choice = choice or RoofChoice()
    store = load_roofs() if store is None else store
    user = dict(load_user_devices() if user is None else user)
    measured = find_roofs(list(store), host or platform.node(), None, kind="cpu")
    if host is None and choice.roofs != "measured":
        measured = None
    sets: dict[str, RoofSet] = {}
    own = match_user_device(user, "cpu", None)
    if own is not None:
        sets["given"] = RoofSet(own[1].peaks(), own[1].bandwidths(), own[1].links(), f"config.toml, [devices.{own[0]}]")
    if measured is not None:
        sets["measured"] = measured_roofs(measured)
    peaks: dict[str, float] = {}
    bandwidths: dict[str, float] = {}
    sources: dict[str, str] = {}
    given = RoofSet(choice.peaks, choice.bandwidths, {})
    rising = ("given", "measured") if choice.roofs == "measured" else ("measured", "given")
    for name, roofs in (*((name, sets[name]) for name in rising if name in sets), ("given", given)):
        for into, figures in ((peaks, roofs.peaks), (bandwidths, roofs.bandwidths)):
            into.update(figures)
            sources.update(dict.fromkeys(figures, name))
    labels = set(sources.values())
    return DeviceInfo(
        id=HOST_ID,
        name=measured.device.name if measured is not None else None,
        model=None,
        kind="cpu",
        units=measured.device.units if measured is not None else None,
        memory_bytes=measured.device.memory_bytes if measured is not None else None,
        peaks=peaks,
        bandwidths=bandwidths,
        roofs_from="option" if "given" in labels else "measured" if labels else None,
        ridge=ridges(peaks, bandwidths),
        notes=_notes(measured, bool(labels)),
        matched_by="measured on this node" if measured is not None else None,
        sources=sources,
        sets=sets,
    )


def _notes(measured: MeasuredRoofs | None, has_roof: bool) -> list[str]:
    if measured is None:
        return [] if has_roof else [f"no roof is known for the CPU: {WHAT_TO_DO}"]
    notes = [f"measured on {measured.node} with torch {measured.torch} at {measured.measured_at}, {measured.threads} threads"]
    return notes + ([f"noisy: {'; '.join(measured.noisy)}"] if measured.noisy else [])
