"""What stands above a roofline: what has figures and why the rest has none, and roofs with their doubts."""

from __future__ import annotations

from roofterm.report.roofline_head import coverage_lines, roof_lines, use_lines
from roofterm.results import Coverage, DeviceInfo, Roof, ScopeUse


def device(**facts: object) -> DeviceInfo:
    made: dict[str, object] = {
        "id": 0,
        "name": None,
        "model": None,
        "kind": "gpu",
        "units": None,
        "memory_bytes": None,
        "peaks": {},
        "bandwidths": {},
    }
    return DeviceInfo(**{**made, "roofs_from": None, "ridge": {}, "notes": [], **facts})  # type: ignore[arg-type]


def test_the_unknown_is_told_apart_with_what_would_have_told_it() -> None:
    found = Coverage(10.0, 5.0, 85.0, {"graph": 60.0, "no shapes": 25.0, "orphan": 0.01}, "record with record_shapes=True")
    assert coverage_lines("1 step", found, 200) == [
        "1 step: 10.0% of busy time modelled, 5.0% bytes only, 85.0% unknown",
        "  of it unknown: 60.0% graph replays, 25.0% ops without recorded shapes",
        "  record with record_shapes=True",
    ]
    assert coverage_lines("1 step", Coverage(90.0, 10.0, 0.0), 200) == [
        "1 step: 90.0% of busy time modelled, 10.0% bytes only, 0.0% unknown"
    ]
    assert coverage_lines("1 step", Coverage(None, None, None), 200) == ["1 step: nothing that a roofline speaks of ran in it"]


def test_a_device_without_a_roof_says_what_to_do() -> None:
    assert roof_lines(device(notes=["no peak is known: give --peak"]), [], 100) == ["no peak is known: give --peak"]
    assert roof_lines(None, [], 100) == []


def test_roofs_stand_with_their_source_their_ridge_and_their_noise() -> None:
    cpu = device(
        kind="cpu",
        peaks={"fp32": 1e12},
        bandwidths={"hbm": 1e11},
        ridge={"fp32": {"hbm": 10.0}},
        notes=["measured on box", "noisy: copy: the best three samples differ by 38%"],
    )
    roofs = [Roof("compute", None, "fp32", 1e12, "FLOP/s", "measured", drawn=True), Roof("memory", "hbm", None, 1e11, "B/s", "measured")]
    assert roof_lines(cpu, roofs, 200) == [
        "roofs of the CPU: 1.000 TFLOP/s fp32 (measured, ridge 10.00 FLOP/byte), 100.0 GB/s HBM (measured)",
        "noisy: copy: the best three samples differ by 38%",
    ]


def test_use_is_of_the_cpus_time_where_the_cpu_worked() -> None:
    use = ScopeUse(time_us=100.0, busy_us=60.0, idle_us=40.0, busy_pct=60.0, mfu_pct=None, hfu_pct=None, at_least=False, mbu_pct=None)
    assert use_lines(use, device(kind="cpu"), 200) == ["100.0 us of CPU time: 60.0% busy, 40.00 us idle, MFU --, HFU --, MBU --"]
    assert use_lines(use, device(), 200)[0].startswith("100.0 us of device time")
    assert use_lines(None, None, 200) == []
