"""Measures this machine's roofs with torch: bandwidth, caches, GEMM by dtype, launch latency, PCIe, links between GPUs.

A program of its own, in one file that needs nothing but torch, since it runs in the interpreter that has it (the job's,
not ours: `python measure.py`). It therefore keeps to Python 3.9. Standard output carries one JSON object a line:
`{"progress": {...}}` while it runs, then `{"result": {...}}` (the fields of `store.MeasuredRoofs`) or `{"error": text}`.

Method: every figure is the best of many short samples, after warm-up (a shared host preempts us, and a median then tells
of the neighbours: STREAM and ERT take the best too); sampling goes on until the three best agree, or the time is up.
Inputs are normally distributed, since zeros over-state GEMM through the power limit. Nothing is counted that torch does
not do: bf16 on a CPU without the instructions is emulated, and that is the figure.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable

AGREE = 0.10
"""Best three samples further apart than this: the figure is noisy."""

GOAL = 0.03
"""Sampling stops early when the best three are this close."""

MIB = 1 << 20
COLLECTIVE_BYTES = (32 << 10, MIB, 64 * MIB, 512 * MIB)
COLLECTIVE_SECONDS = 14.0
FLOPS_PER_MULTIPLY_ADD = 2

Sample = dict[str, Any]


def main() -> int:
    options = _options()
    output = _own_stdout()
    if options.rank is not None:
        print(json.dumps(_collective_rank(options.rank, options.world)), file=output)
        return 0
    try:
        result = measure(options.device, options.budget, options.threads, lambda line: print(json.dumps(line), file=output, flush=True))
    except (ImportError, RuntimeError, OSError, ValueError) as error:
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
    bench = Bench(device, threads)
    # The time for importing torch and waking the device is the user's too.
    bench.deadline = started + budget_s
    notes = bench.neighbours()
    several = bench.accelerator and bench.count > 1
    shares = {"launch": 0.05, "bandwidth": 0.25, "caches": 0.18, "gemm": 0.42 if bench.accelerator else 0.52, "pcie": 0.1}
    tests: list[tuple[str, Callable[[float], dict[str, Any]]]] = [
        ("launch", bench.launch),
        ("bandwidth", bench.bandwidth),
        ("caches", bench.caches),
        ("gemm", bench.gemm),
    ]
    if bench.accelerator:
        tests.append(("pcie", bench.pcie))
    details: dict[str, Any] = {}
    spent = 0.0
    with bench.torch.inference_mode():
        left = bench.deadline - time.perf_counter()
        for name, test in tests:
            bench.progress = lambda stage, figure=None, unit=None: say(  # noqa: E731
                {"progress": {"stage": stage, "share": min(1.0, spent), "elapsed_s": time.perf_counter() - started, "figure": figure, "unit": unit}}
            )
            bench.progress(name)
            try:
                details[name] = test(time.perf_counter() + left * shares[name])
            except (RuntimeError, NotImplementedError, TypeError, AttributeError, OSError) as error:
                details[name] = {"error": f"{type(error).__name__}: {error}"[:300]}
                notes.append(f"{name} was not measured: {details[name]['error']}")
            spent += shares[name]
    if several:
        say({"progress": {"stage": "collectives", "share": 1.0, "elapsed_s": time.perf_counter() - started, "figure": None, "unit": None}})
        details["collectives"] = _collectives(bench, notes)
    notes += bench.throttled() + bench.contended()
    noisy = _noisy(details)
    if bench.busy:
        noisy.insert(0, bench.busy)
    return {
        "node": socket.gethostname(),
        "measured_at": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "device": bench.identity(),
        "torch": str(bench.torch.__version__),
        "driver": bench.driver(),
        "power_limit_w": bench.power_limit_w(),
        "clocks_mhz": bench.clocks_mhz(),
        "partition": bench.partition(),
        "threads": None if bench.accelerator else bench.torch.get_num_threads(),
        "peaks": _peaks(details.get("gemm", {})),
        "bandwidths": _bandwidths(details),
        "links": _links(details, bench),
        "launch_s": {key: value["best_s"] for key, value in details.get("launch", {}).items() if isinstance(value, dict)},
        "noisy": noisy,
        "notes": notes,
        "seconds": time.perf_counter() - started,
        "details": details,
    }
