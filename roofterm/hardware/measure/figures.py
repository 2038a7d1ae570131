"""Roofs out of the details of the tests, and doubts about them."""

from __future__ import annotations

from typing import Any

from .box import AGREE, ENOUGH, Box


def best_gemms(details: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Best size of each dtype, under the name of the path it takes (`fp64_tensor`, `fp32_matrix`)."""
    found = {by_size.get("path", dtype): sizes_of(by_size) for dtype, by_size in details.get("gemm", {}).items()}
    return {path: max(sizes, key=lambda size: float(size["per_s"])) for path, sizes in found.items() if sizes}


def sizes_of(by_size: dict[str, Any]) -> list[dict[str, Any]]:
    return [size for size in by_size.values() if isinstance(size, dict)]


def bandwidths(details: dict[str, Any]) -> dict[str, float]:
    """`hbm`: the best of copy, triad and read (a roof is the most that was seen; a write alone is no mix that ops have)."""
    found = details.get("bandwidth", {})
    rates = [found[name]["per_s"] for name in ("copy", "triad", "read") if name in found]
    levels = {"hbm": max(rates)} if rates else {}
    sweep, last = details.get("caches", {}).get("sweep", []), details.get("caches", {}).get("llc_bytes", 0)
    spacing = details.get("launch", {}).get("spacing", {}).get("best_s", 0.0)
    # A pass that is no longer than a few launches says more of the launch than of the cache.
    inside = [point["per_s"] for point in sweep if last / 8 <= point["working_set"] <= last * 0.75 and point["seconds"] > spacing / 2]
    if inside and rates and max(inside) > max(rates):
        levels["l2" if details["caches"].get("on_device") else "llc"] = max(inside)
    return levels


def links(details: dict[str, Any], box: Box) -> dict[str, float]:
    """`pcie`: the quicker direction, pinned. Between devices: bus bandwidth of the all-reduce, by what carries it."""
    found: dict[str, float] = {}
    copies = [details.get("pcie", {}).get(name, {}).get("per_s", 0.0) for name in ("h2d_pinned", "d2h_pinned")]
    if max(copies):
        found["pcie"] = max(copies)
    bus = [size["bus_per_s"] for size in details.get("collectives", {}).get("all_reduce", {}).values()]
    if bus:
        beyond_pcie = max(bus) > 1.3 * max(copies)
        found[("xgmi" if box.hip else "nvlink") if beyond_pcie else "peer"] = max(bus)
    return found


def noisy(details: dict[str, Any]) -> list[str]:
    """The figures that users rely on whose best three samples do not agree."""
    said = [
        f"{name}: the best three samples differ by {timed['spread']:.0%}"
        for name, timed in details.get("bandwidth", {}).items()
        if timed["spread"] > AGREE
    ]
    said += [
        f"gemm {dtype}: the best three samples differ by {timed['spread']:.0%}"
        for dtype, timed in best_gemms(details).items()
        if timed["spread"] > AGREE
    ]
    return said


def merge_passes(details: dict[str, Any]) -> list[str]:
    """Keep the better of the two passes over main memory; a note where they are far apart."""
    first, again = details.setdefault("bandwidth", {}), details.pop("bandwidth again", {})
    said = []
    for name, timed in again.items():
        other = first.get(name, timed)
        rates = [other["per_s"], timed["per_s"]]
        first[name] = {**max(other, timed, key=lambda one: float(one["per_s"])), "passes_per_s": rates}
        if max(rates) > min(rates) * (1 + AGREE):
            said.append(
                f"{name}: {rates[0] / 1e9:.1f} GB/s at first, {rates[1] / 1e9:.1f} later: others use the memory too; the better counts"
            )
    return said


def slower_while_hot(details: dict[str, Any]) -> list[str]:
    said = []
    for dtype, timed in best_gemms(details).items():
        lost = 1 - timed["first_third_s"] / timed["last_third_s"]
        if lost > AGREE and timed["samples"] >= ENOUGH:
            said.append(f"gemm {dtype} lost {lost:.0%} while it ran: the device throttles (power or heat), or somebody joined")
    return said
