"""Measures this machine's roofs with torch: bandwidth, caches, GEMM by dtype, launch latency, PCIe, links between GPUs.

A program of its own that needs nothing but torch and imports nothing of roofterm, since it runs in the interpreter that
has torch (the job's, not ours): `python .../roofterm/hardware/measure`. It therefore keeps to Python 3.9. Standard output
carries one JSON object a line: `{"progress": {...}}` while it runs, then `{"result": {...}}` (the fields of
`store.MeasuredRoofs`) or `{"error": text}`.

Method: every figure is the best of many short samples after warm-up (a shared host preempts us, and a median then tells
of the neighbours; STREAM and ERT take the best too). Sampling goes on until the three best agree, or the time is up.
Inputs are normally distributed, since zeros over-state GEMM through the power limit. Nothing is counted that torch does
not do: bf16 on a CPU without the instructions is emulated, and that is the figure.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import time
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from .box import Box
from .collectives import collective_rank, collectives
from .figures import bandwidths, best_gemms, links, merge_passes, noisy, slower_while_hot
from .loops import bandwidth, caches, gemm, launch, pcie
from .node import contended, driver, identity, neighbours, partition, smi, taken_devices

COLLECTIVE_SECONDS = 15.0
SHARES = {"launch": 0.04, "bandwidth": 0.16, "caches": 0.16, "gemm": 0.40, "pcie": 0.10, "bandwidth again": 0.14}
"""Of the time that is left once torch is loaded. Bandwidth twice: a neighbour may hold the memory for a while, and then the
best samples of that while agree with each other."""


def main() -> int:
    options = _options()
    output = _own_stdout()
    if options.rank is not None:
        print(json.dumps(collective_rank(_torch(), options.rank, options.world)), file=output, flush=True)
        return 0
    try:
        result = measure(options.device, options.budget, options.threads, lambda line: print(json.dumps(line), file=output, flush=True))
    except (ImportError, RuntimeError, OSError, ValueError, AssertionError) as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"[:400]}), file=output, flush=True)
        return 1
    print(json.dumps({"result": result}), file=output, flush=True)
    return 0


def measure(device: str | None, budget_s: float, threads: int | None, say: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """All tests within about `budget_s` seconds on one device ("cuda:0", "xpu:0", "cpu"; None: the first accelerator).

    `say` gets the progress objects. Gives the result as a JSON object: rates in FLOP/s and bytes/s, times in seconds.
    Raises ImportError without torch, RuntimeError if the device cannot be used.
    """
    started = time.perf_counter()
    box = Box(_torch(), device, threads)
    notes, busy = neighbours(box)
    end = started + budget_s
    several = box.accelerator and box.count > 1
    if several:
        end -= min(COLLECTIVE_SECONDS, budget_s / 3)
    tests: dict[str, Callable[[Box, float, Callable[..., None]], dict[str, Any]]] = {
        "launch": launch,
        "bandwidth": bandwidth,
        "caches": caches,
        "gemm": gemm,
    }
    if box.accelerator:
        tests["pcie"] = pcie
    tests["bandwidth again"] = bandwidth
    left, done = end - time.perf_counter(), 0.0
    whole = sum(SHARES[name] for name in tests)
    details: dict[str, Any] = {}

    def progress(stage: str, figure: float | None = None, unit: str | None = None) -> None:
        elapsed = time.perf_counter() - started
        say({"progress": {"stage": stage, "share": min(1.0, elapsed / budget_s), "elapsed_s": elapsed, "figure": figure, "unit": unit}})

    with box.torch.inference_mode():
        for name, test in tests.items():
            progress(name)
            done += SHARES[name] / whole
            try:
                details[name] = test(box, end - left * (1 - done), progress)
            except (RuntimeError, NotImplementedError, TypeError, AttributeError, OSError) as error:
                details[name] = {}
                notes.append(f"{name} was not measured: {type(error).__name__}: {error}"[:300])
    if several and (taken := taken_devices()):
        notes.append(f"collectives were not measured: others use {taken} of the node's devices")
    elif several:
        progress("collectives")
        details["collectives"], said = collectives(
            [sys.executable, os.path.dirname(os.path.abspath(__file__))],
            box,
            max(COLLECTIVE_SECONDS, started + budget_s - time.perf_counter()),
        )
        notes += said
    notes += merge_passes(details) + slower_while_hot(details) + contended(box)
    device_facts = smi(box)
    return {
        "node": socket.gethostname(),
        "measured_at": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),  # noqa: UP017 (Python 3.9)
        "device": identity(box, device_facts.get("uuid")),
        "torch": str(box.torch.__version__),
        "driver": device_facts.get("driver") or driver(box),
        "power_limit_w": device_facts.get("power_limit_w"),
        "clocks_mhz": device_facts.get("clocks_mhz", {}),
        "partition": partition(box),
        "threads": None if box.accelerator else box.torch.get_num_threads(),
        "peaks": {dtype: best["per_s"] for dtype, best in best_gemms(details).items()},
        "bandwidths": bandwidths(details),
        "links": links(details, box),
        "launch_s": {key: value["best_s"] for key, value in details.get("launch", {}).items()},
        "noisy": busy + noisy(details),
        "notes": notes,
        "seconds": time.perf_counter() - started,
        "details": details,
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures this machine's roofs with torch; prints JSON lines.")
    parser.add_argument("--device", help="cuda:0, xpu:0 or cpu; default: the first accelerator, else the CPU")
    parser.add_argument("--budget", type=float, default=25.0, help="seconds")
    parser.add_argument("--threads", type=int, help="CPU threads; default: torch's own")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--world", type=int, default=1, help=argparse.SUPPRESS)
    return parser.parse_args()


def _own_stdout() -> Any:
    """Our own handle on standard output; whatever libraries print goes to standard error instead."""
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return output


def _torch() -> Any:
    import torch

    return torch
