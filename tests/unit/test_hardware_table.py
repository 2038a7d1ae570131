"""The hardware table against itself and against arithmetic: units x FLOP per clock and unit x clock."""

from __future__ import annotations

import re

import pytest

from roofterm.hardware.lookup import Facts, resolve
from roofterm.hardware.table import DTYPES, LEVELS, LINKS, Device, capability_of, load_table, vendor_bandwidths, vendor_links

TABLE = load_table()

# Sold with tensor units that run below the die's rate (the entries' notes say so), or quoted at another clock.
CUT = {"h20", "a10g", "l40", "l20", "rtx-2080ti", "rtx-3090", "rtx-3090ti", "rtx-4090", "rtx-4090d", "rtx-5090", "rtx-5090d"}


def _ids(device: Device) -> str:
    return device.id


def test_ids_and_names_are_of_one_device_each() -> None:
    ids = [device.id for device in TABLE.devices]
    of_each = [{name.casefold() for name in (*device.names, *device.board_names, *device.aliases)} for device in TABLE.devices]
    names = [name for names in of_each for name in names]
    assert len(set(ids)) == len(ids)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("device", TABLE.devices, ids=_ids)
def test_every_name_resolves_to_its_own_device(device: Device) -> None:
    for name in device.names:
        assert resolve(Facts(name=name)).model == device.id
        assert resolve(Facts(name=name.upper())).model == device.id


@pytest.mark.parametrize("device", TABLE.devices, ids=_ids)
def test_a_names_pattern_finds_it_too_and_no_other_device_by_a_longer_match(device: Device) -> None:
    assert device.name_regex is not None
    for name in device.names:
        spans = {
            other.id: len(hit.group())
            for other in TABLE.devices
            if other.name_regex and (hit := re.search(other.name_regex, name, re.IGNORECASE))
        }
        if device.id in spans:
            assert max(spans, key=lambda one: spans[one]) == device.id, spans


@pytest.mark.parametrize("device", TABLE.devices, ids=_ids)
def test_keys_and_sources_are_known(device: Device) -> None:
    assert set(device.peak_flops_dense) <= set(DTYPES)
    assert set(vendor_bandwidths(device)) <= set(LEVELS)
    assert set(vendor_links(device)) <= set(LINKS)
    assert set(device.source.values()) <= set(TABLE.sources)
    assert device.confidence.split()[0] in ("vendor", "community", "derived")


@pytest.mark.parametrize("device", [device for device in TABLE.devices if device.id not in CUT], ids=_ids)
def test_tensor_peaks_are_units_times_rate_times_clock(device: Device) -> None:
    rates = TABLE.flop_per_clk_per_unit.get(device.arch, {})
    clock = device.clock_tensor_spec_hz or device.clock_boost_hz
    for dtype in ("fp16", "bf16", "fp8"):
        if dtype in rates and dtype in device.peak_flops_dense and device.compute_units and clock:
            assert device.peak_flops_dense[dtype] == pytest.approx(device.compute_units * rates[dtype] * clock, rel=0.07)


@pytest.mark.parametrize("device", TABLE.devices, ids=_ids)
def test_memory_and_bandwidth_are_of_a_plausible_size(device: Device) -> None:
    """GB against GiB and GB/s against TB/s: a device reads its whole memory in 1 ms to 1 s."""
    assert 0.001 < device.memory.bytes / device.memory.bandwidth_Bps < 1.0


def test_figures_known_by_heart() -> None:
    h100, mi300x, v5p = (TABLE.by_id(name) for name in ("h100-sxm5-80gb", "MI300X", "tpu-v5p"))
    assert h100 is not None
    assert mi300x is not None
    assert v5p is not None
    assert h100.peak_flops_dense["bf16"] == 989.4e12
    assert mi300x.peak_flops_dense["bf16"] == pytest.approx(304 * 2048 * 2.1e9, rel=1e-3)
    assert vendor_links(v5p)["ici"] == 6 * 90e9


def test_capability_of_amd_is_the_gfx_version() -> None:
    of = {device.id: capability_of(device) for device in TABLE.devices}
    assert (of["mi100"], of["mi250-gcd"], of["mi300x"], of["mi355x"], of["rx-7900-xtx"]) == ("9.0", "9.0", "9.4", "9.5", "11.0")
    assert of["tpu-v4"] is None
