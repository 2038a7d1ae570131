"""A device under test, with a stopwatch that suits it."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

AGREE = 0.10
"""Best three samples further apart than this: the figure is noisy."""

GOAL = 0.02
"""Sampling stops early when the best three are this close."""

ENOUGH, LONG_ENOUGH_S = 9, 0.4
"""Samples and seconds before it may stop early."""


class Box:
    """torch on one device, with a stopwatch that suits it."""

    def __init__(self, torch: Any, device: str | None, threads: int | None = None) -> None:
        self.torch = torch
        if threads:
            torch.set_num_threads(threads)
        self.device = torch.device(device or self._first())
        self.kind: str = self.device.type
        self.accelerator = self.kind != "cpu"
        self.module: Any = vars(torch).get(self.kind)
        self.index: int = self.device.index or 0
        self.count: int = self.module.device_count() if self.accelerator else 1
        self.properties: Any = self.module.get_device_properties(self.index) if self.accelerator else None
        self.hip = self.kind == "cuda" and getattr(torch.version, "hip", None) is not None
        self.samples = self.preempted = 0
        if self.accelerator:
            self.module.set_device(self.index)
            torch.zeros(1, device=self.device)
            self.sync()

    def _first(self) -> str:
        for kind in ("cuda", "xpu"):
            module = getattr(self.torch, kind, None)
            if module is not None and module.is_available():
                return f"{kind}:0"
        return "cpu"

    def sync(self) -> None:
        if self.accelerator:
            self.module.synchronize()

    def time(self, call: Callable[[], Any], until: float, sample_s: float | None = None, most: int = 200) -> dict[str, Any]:
        """Seconds a call: `best_s`, `median_s`, how far the best three lie apart (`spread`), samples, and calls a sample.

        A sample is as many calls as fill `sample_s`, so that the clock's resolution and the launch do not count.
        """
        sample_s = sample_s or (0.02 if self.accelerator else 0.006)
        call()
        self.sync()
        begin = time.perf_counter()
        call()
        self.sync()
        once = max(time.perf_counter() - begin, 1e-7)
        repeats = max(1, min(20000, round(sample_s / once)))
        seconds: list[float] = []
        early = time.perf_counter() + LONG_ENOUGH_S
        while len(seconds) < 3 or (len(seconds) < most and time.perf_counter() < until):
            seconds.append(self._sample(call, repeats))
            if len(seconds) >= ENOUGH and time.perf_counter() > early and spread(seconds) <= GOAL:
                break
        return {
            "best_s": min(seconds),
            "median_s": statistics.median(seconds),
            "spread": spread(seconds),
            "samples": len(seconds),
            "calls_a_sample": repeats,
            "first_third_s": min(seconds[: max(1, len(seconds) // 3)]),
            "last_third_s": min(seconds[-max(1, len(seconds) // 3) :]),
        }

    def _sample(self, call: Callable[[], Any], repeats: int) -> float:
        if self.accelerator:
            before, after = self.module.Event(enable_timing=True), self.module.Event(enable_timing=True)
            before.record()
            for _ in range(repeats):
                call()
            after.record()
            after.synchronize()
            return float(before.elapsed_time(after)) * 1e-3 / repeats
        switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
        begin = time.perf_counter()
        for _ in range(repeats):
            call()
        seconds = (time.perf_counter() - begin) / repeats
        self.samples += 1
        self.preempted += resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw > switches
        return seconds

    def ones(self, elements: int) -> Any:
        return self.torch.ones(elements, dtype=self.torch.float32, device=self.device)

    def capability(self) -> tuple[int, int] | None:
        major, minor = getattr(self.properties, "major", None), getattr(self.properties, "minor", None)
        return None if major is None or minor is None else (int(major), int(minor))

    def gfx(self) -> str:
        return str(getattr(self.properties, "gcnArchName", "")).split(":")[0]


def spread(seconds: list[float]) -> float:
    """How far the best three lie apart, over the best; 0 for fewer than two."""
    best = sorted(seconds)[:3]
    return best[-1] / best[0] - 1
