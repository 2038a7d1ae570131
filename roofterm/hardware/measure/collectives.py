"""All-reduce over the devices of the node."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import time
from typing import Any

from .box import Box, spread
from .node import free_bytes

MIB = 1 << 20
SIZES = (32 << 10, MIB, 64 * MIB, 512 * MIB)


def collectives(program: list[str], box: Box, seconds: float) -> tuple[dict[str, Any], list[str]]:
    """All-reduce over all devices of the node, one process each: bus bandwidth 2(n-1)/n x bytes / time (nccl-tests)."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    with tempfile.TemporaryFile() as answer:
        ranks = [
            subprocess.Popen(
                [*program, "--world", str(box.count), "--rank", str(rank)],
                stdout=answer if rank == 0 else subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
            for rank in range(box.count)
        ]
        end = time.perf_counter() + seconds
        try:
            codes = [rank.wait(timeout=max(0.1, end - time.perf_counter())) for rank in ranks]
        except subprocess.TimeoutExpired:
            return {}, [f"collectives were not measured: {box.count} processes were not ready within {seconds:.0f} s"]
        finally:
            for rank in ranks:
                if rank.poll() is None:
                    rank.kill()
                    rank.wait()
        answer.seek(0)
        text = answer.read().decode(errors="replace")
    if any(codes):
        return {}, [f"collectives were not measured: a process ended with code {next(code for code in codes if code)}"]
    return json.loads(text), []


def collective_rank(torch: Any, rank: int, world: int) -> dict[str, Any]:
    """What each process of `collectives` runs; rank 0's answer counts. Seconds by bytes of an all-reduce of float32."""
    box = Box(torch, f"cuda:{rank}")
    distributed = torch.distributed

    distributed.init_process_group("nccl", rank=rank, world_size=world)
    found: dict[str, Any] = {"world": world, "all_reduce": {}}
    for size in SIZES:
        if size * 2 > free_bytes(box):
            continue
        data = torch.zeros(size // 4, device=box.device)
        calls = 20 if size <= MIB else 5
        seconds = []
        for sample in range(6):
            before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            before.record()
            for _ in range(calls):
                distributed.all_reduce(data)
            after.record()
            after.synchronize()
            if sample:
                seconds.append(before.elapsed_time(after) * 1e-3 / calls)
        bus = 2 * (world - 1) / world * size / min(seconds)
        found["all_reduce"][str(size)] = {"best_s": min(seconds), "spread": spread(seconds), "bus_per_s": bus}
    distributed.destroy_process_group()
    return found
