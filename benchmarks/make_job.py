"""Write a job of several ranks that fits together: every rank's Kineto trace, with what is wrong with the job known beforehand.

    python -m benchmarks.make_job FOLDER --ranks 8 --steps 6 --straggler 3 --slower 10
    python -m benchmarks.make_job FOLDER --lost 2 --skew 1500

Each rank computes its kernels one after the other on one stream and meets the others in an all-reduce after every layer; nobody
leaves before the last has come and the bytes have gone round. Nothing was recorded; the same plan gives the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

KERNELS = {
    "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn": ("aten::mm", 180_000),
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16> >(int)": ("aten::add", 40_000),
    "void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 10>(int)": ("aten::_softmax", 60_000),
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int)": ("aten::native_layer_norm", 50_000),
}
"""Name: the op that launches it, and its length in ns."""

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
ELEMENTS = 8_388_608
TRANSFER_NS = 120_000
"""an all-reduce of them, once all have come"""
LAYERS = 8
LAUNCH_NS = 4_000
START_NS = 7_000_000_000
BASE_NS = 1_790_857_026 * 10**9
COMPUTE, COMMUNICATION = 7, 20
FIRST_STEP = 3

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Plan:
    """A job, and what is wrong with it."""

    ranks: int = 4
    steps: int = 5
    seed: int = 0
    noise: float = 0.01
    """standard deviation of a kernel's length, as a share of it"""
    straggler: int | None = None
    slower: float = 0.10
    """by so much are the straggler's kernels longer"""
    lost: int | None = None
    """a rank whose trace is missing"""
    skew_ns: dict[int, int] = field(default_factory=dict)
    """by so much a rank's clock is ahead of the others'"""
    planted: dict[str, float] = field(default_factory=dict)
    """kernel: its length, as a multiple of the usual one"""


class Rank:
    """One rank as it runs: host thread and two streams, and the events that its profiler keeps."""

    def __init__(self, plan: Plan, number: int) -> None:
        self.plan = plan
        self.number = number
        self.random = Random(1000 * plan.seed + number)
        self.host = START_NS
        self.device = START_NS
        self.events: list[Event] = []
        self.correlation = 0
        self.slow = 1 + plan.slower if plan.straggler == number else 1.0

    def compute(self) -> None:
        """The kernels of one layer, each launched by its op."""
        for name, (op, length) in KERNELS.items():
            usual = length * self.slow * self.plan.planted.get(name, 1.0)
            taken = int(usual * max(0.5, 1 + self.random.gauss(0, self.plan.noise)))
            launch = self._launched(op, {})
            start = max(self.device, launch + 2_000)
            self._kernel(name, COMPUTE, start, start + taken, {"grid": [1024, 1, 1], "block": [256, 1, 1]})
            self.device = start + taken

    def arrive(self) -> tuple[int, int]:
        """Launch an all-reduce: when it starts on the device, and its number."""
        args = {"Collective name": "allreduce", "In msg nelems": ELEMENTS, "Out msg nelems": ELEMENTS, "Group size": self.plan.ranks}
        args |= {"dtype": "BFloat16", "Process Group Name": "0", "Process Group Description": "default_pg"}
        args["Process Group Ranks"] = json.dumps(list(range(self.plan.ranks)))
        launch = self._launched("nccl:all_reduce", args)
        return max(self.device, launch + 2_000), self.correlation

    def leave(self, start: int, end: int, correlation: int) -> None:
        self._kernel(ALL_REDUCE, COMMUNICATION, start, end, {"grid": [24, 1, 1], "block": [512, 1, 1]}, correlation)
        self.device = end

    def step(self, number: int, start: int) -> None:
        """The host waits for its device at the end of each step."""
        self.correlation += 1
        self._slice(
            "cuda_runtime", "cudaDeviceSynchronize", self.host, max(self.device, self.host) + 1_000, {"correlation": self.correlation}
        )
        self.host = max(self.device, self.host) + 2_000
        self._slice("user_annotation", f"ProfilerStep#{number}", start, self.host, {"External id": 10_000_000 + number})

    def _launched(self, op: str, args: dict[str, Any]) -> int:
        self.correlation += 1
        start = self.host
        self._slice("cpu_op", op, start, start + LAUNCH_NS, {"External id": self.correlation, **args})
        call = {"External id": self.correlation, "correlation": self.correlation}
        self._slice("cuda_runtime", "cudaLaunchKernel", start + 1_000, start + LAUNCH_NS - 1_000, call)
        self.host = start + LAUNCH_NS + 500
        return start + LAUNCH_NS - 1_000

    def _kernel(self, name: str, stream: int, start: int, end: int, args: dict[str, Any], correlation: int | None = None) -> None:
        number = self.correlation if correlation is None else correlation
        place = {"device": self.number, "context": 1, "stream": stream, "correlation": number, "External id": number}
        event = self._slice("kernel", name, start, end, {**place, "registers per thread": 64, "shared memory": 0, **args})
        event["pid"], event["tid"] = self.number, stream

    def _slice(self, category: str, name: str, start: int, end: int, args: dict[str, Any]) -> Event:
        at = start + self.plan.skew_ns.get(self.number, 0)
        event: Event = {"ph": "X", "cat": category, "name": name, "pid": 4000 + self.number, "tid": 4000 + self.number}
        event |= {"ts": at / 1000, "dur": (end - start) / 1000, "args": args}
        self.events.append(event)
        return event


def play(plan: Plan) -> list[Rank]:
    """Run the job to its end."""
    ranks = [Rank(plan, number) for number in range(plan.ranks)]
    network = Random(plan.seed + 0.5)
    for number in range(FIRST_STEP, FIRST_STEP + plan.steps):
        starts = [rank.host for rank in ranks]
        for _ in range(LAYERS):
            for rank in ranks:
                rank.compute()
            arrivals = [rank.arrive() for rank in ranks]
            done = max(start for start, _ in arrivals) + TRANSFER_NS
            for rank, (start, correlation) in zip(ranks, arrivals, strict=True):
                rank.leave(start, done + int(800 * network.random()), correlation)
        for rank, start in zip(ranks, starts, strict=True):
            rank.step(number, start)
    return ranks


def write(plan: Plan, folder: Path) -> list[Path]:
    """The traces of a job's ranks in `folder`, the lost one's left out."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for rank in play(plan):
        if rank.number == plan.lost:
            continue
        path = folder / f"rank{rank.number}.pt.trace.json.gz"
        with path.open("wb") as file, gzip.GzipFile("", "wb", 3, file, mtime=0) as packed:
            for piece in _text(rank):
                packed.write(piece)
        paths.append(path)
    return paths


def _text(rank: Rank) -> Iterator[bytes]:
    everyone = list(range(rank.plan.ranks))
    group = {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": rank.plan.ranks, "ranks": everyone}
    head = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": rank.number, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 85_899_345_920, "numSms": 108}],
        "distributedInfo": {
            "backend": "nccl",
            "rank": rank.number,
            "world_size": rank.plan.ranks,
            "pg_count": 1,
            "pg_config": [group],
        },
        "baseTimeNanoseconds": BASE_NS,
    }
    yield json.dumps(head)[:-1].encode() + b', "traceEvents": [\n'
    events = sorted(rank.events, key=lambda event: float(event["ts"]))
    yield ",\n".join(json.dumps(event) for event in events).encode()
    yield b"\n]}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--straggler", type=int, help="a rank that computes longer than the others")
    parser.add_argument("--slower", type=float, default=10, help="by so many percent (10)")
    parser.add_argument("--lost", type=int, help="a rank that leaves no trace")
    parser.add_argument("--skew", type=float, default=0, help="by so many us the last rank's clock is ahead")
    args = parser.parse_args()
    plan = Plan(
        ranks=args.ranks,
        steps=args.steps,
        seed=args.seed,
        straggler=args.straggler,
        slower=args.slower / 100,
        lost=args.lost,
        skew_ns={args.ranks - 1: int(args.skew * 1000)},
    )
    for path in write(plan, args.folder):
        print(path)


if __name__ == "__main__":
    main()
