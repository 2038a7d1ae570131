"""Write the synthetic TPU sample and the figures that must be found in it. The same files each time.

python make_xplane_tpu.py            # beside this script
python make_xplane_tpu.py FOLDER     # elsewhere

Six training steps of a small decoder on one TensorCore, written as if from a TPU v6e: matmuls at 60 to 75 % of its peak, what
streams memory at 70 to 90 % of its bandwidth. No TPU was measured. The fourth step waits 6 ms for its batch; the profile ends
within the last step. The attention is a Pallas kernel, whose costs stand on its events.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.xspace import Plane, Ref, Signed, breakdown, space, tpu_plane

NAME = "decoder_tpu_synthetic"
PEAK_TFLOPS, HBM_GBS, VMEM_READ_GBS, VMEM_WRITE_GBS = 946.7, 1637.993152512, 23296.0, 16128.0
TOKENS, WIDTH, HIDDEN, HEADS, LAYERS, VOCABULARY = 4096, 2048, 8192, 16, 4, 32768
STEPS, LATE_STEP, FIRST_NUMBER = 6, 3, 20
START_NS = 1_760_000_000_000_000_000
PROGRAM = 7_301_444_403_301_237_006
US, BF16 = 1_000_000, 2


@dataclass(frozen=True, slots=True)
class Op:
    """One instruction. Costs are those of an occurrence; `on_events`: the compiler states none, each event does."""

    name: str
    category: str
    text: str
    framework: str
    flops: int = 0
    hbm_read: int = 0
    hbm_write: int = 0
    vmem_read: int = 0
    vmem_write: int = 0
    waits_us: float = 0.0
    on_events: bool = False

    @property
    def bytes(self) -> int:
        return self.hbm_read + self.hbm_write + self.vmem_read + self.vmem_write


def matmul(name: str, m: int, k: int, n: int, framework: str) -> Op:
    """The weights come from HBM; activations stay in VMEM."""
    tiled = "{1,0:T(8,128)(2,1)S(1)}"
    text = f"%{name} = bf16[{m},{n}]{tiled} fusion(bf16[{m},{k}]{tiled} %a, bf16[{k},{n}]{{1,0}} %w), kind=kOutput"
    return Op(
        name,
        "convolution fusion",
        text,
        framework,
        flops=2 * m * k * n,
        hbm_read=k * n * BF16,
        vmem_read=m * k * BF16,
        vmem_write=m * n * BF16,
    )


def streaming(name: str, elements: int, flops_each: int, reads: int, framework: str) -> Op:
    text = f"%{name} = bf16[{elements}]{{0:T(1024)}} fusion(bf16[{elements}]{{0:T(1024)}} %x), kind=kLoop"
    size = elements * BF16
    return Op(name, "loop fusion", text, framework, flops=flops_each * elements, hbm_read=reads * size, hbm_write=size)


STEP = "jit(train_step)/jit(main)"
PAIRS = TOKENS * (TOKENS + 1) // 2
PARAMETERS = LAYERS * (4 * WIDTH * WIDTH + 2 * WIDTH * HIDDEN) + VOCABULARY * WIDTH
INFEED = Op("infeed.1", "infeed", "%infeed.1 = (s32[1,4096]) infeed(token[] %after-all)", "", hbm_write=4 * TOKENS, waits_us=180)
EMBED = streaming("fusion.embed", TOKENS * WIDTH, 0, 1, f"{STEP}/gather")
LAYER = (
    streaming("fusion.norm", TOKENS * WIDTH, 4, 1, f"{STEP}/layers/norm/mul"),
    matmul("fusion.qkv", TOKENS, WIDTH, 3 * WIDTH, f"{STEP}/layers/attention/dot_general"),
    Op(
        "attention_kernel.1",
        "custom-call",
        f"%attention_kernel.1 = bf16[{HEADS},{TOKENS},{WIDTH // HEADS}] custom-call(bf16[{TOKENS},{3 * WIDTH}] %qkv), "
        'custom_call_target="tpu_custom_call"',
        f"{STEP}/layers/attention/pallas_call",
        flops=4 * PAIRS * WIDTH,
        hbm_read=3 * TOKENS * WIDTH * BF16,
        hbm_write=TOKENS * WIDTH * BF16,
        on_events=True,
    ),
    matmul("fusion.out", TOKENS, WIDTH, WIDTH, f"{STEP}/layers/attention/out/dot_general"),
    matmul("fusion.up", TOKENS, WIDTH, HIDDEN, f"{STEP}/layers/mlp/dot_general"),
    matmul("fusion.down", TOKENS, HIDDEN, WIDTH, f"{STEP}/layers/mlp/dot_general"),
)
LOSS = matmul("fusion.loss", TOKENS, WIDTH, VOCABULARY, f"{STEP}/loss/dot_general")
REDUCE = Op(
    "all-reduce.1",
    "all-reduce",
    f"%all-reduce.1 = bf16[{PARAMETERS}] all-reduce(bf16[{PARAMETERS}] %gradients), replica_groups=[1,8]<=[8]",
    f"{STEP}/psum",
    flops=PARAMETERS,
    hbm_read=PARAMETERS * BF16,
    hbm_write=PARAMETERS * BF16,
)
UPDATE = streaming("fusion.update", PARAMETERS, 11, 3, f"{STEP}/adam/add")
LOOP = Op("while.1", "while", "%while.1 = (s32[], bf16[4096,2048]) while((s32[], bf16[4096,2048]) %tuple)", f"{STEP}/layers/while")


@dataclass(slots=True)
class Totals:
    occurrences: int = 0
    total_ps: int = 0
    self_ps: int = 0


@dataclass(slots=True)
class Run:
    """The core while it runs: events so far and what will be found in them."""

    core: Plane
    random: Random
    now: int = 0
    ops: list[bytes] = field(default_factory=list)
    totals: dict[str, Totals] = field(default_factory=lambda: defaultdict(Totals))

    def play(self, op: Op, extra_us: float = 0.0) -> None:
        length = self.length_ps(op) + round(extra_us * US)
        self.emit(op, self.now, length)
        self.totals[op.name].self_ps += length
        self.now += length + self.random.randrange(40, 400) * 1000

    def loop(self, ops: tuple[Op, ...], times: int) -> None:
        """A loop whose body is these ops; its own time is what they leave of it."""
        start, place = self.now, len(self.ops)
        inside = sum(totals.total_ps for totals in self.totals.values())
        for _ in range(times):
            for op in ops:
                self.play(op)
        inside = sum(totals.total_ps for totals in self.totals.values()) - inside
        self.emit(LOOP, start, self.now - start, place)
        self.totals[LOOP.name].self_ps += self.now - start - inside

    def emit(self, op: Op, start: int, length: int, place: int | None = None) -> None:
        costs: dict[str, Any] = {"flops": op.flops, "model_flops": op.flops, "bytes_accessed": op.bytes} if op.on_events else {}
        event = self.core.event(metadata(self.core, op), start, length, **clock(start, start + length), **costs)
        self.ops.insert(len(self.ops) if place is None else place, event)
        self.totals[op.name].occurrences += 1
        self.totals[op.name].total_ps += length

    def length_ps(self, op: Op) -> int:
        """By what limits the op, at a share of the peak that a good kernel reaches."""
        compute = op.flops / (PEAK_TFLOPS * 1e12 * self.random.uniform(0.60, 0.75))
        memory = (op.hbm_read + op.hbm_write) / (HBM_GBS * 1e9 * self.random.uniform(0.70, 0.90))
        return round(max(compute, memory, op.waits_us * 1e-6, 1e-6) * 1e12)


def clock(start: int, end: int) -> dict[str, int]:
    """By the device's own clock, which starts with the profile here."""
    return {"device_offset_ps": start, "device_duration_ps": end - start}


def metadata(core: Plane, op: Op) -> int:
    costs: dict[str, Any] = {}
    if not op.on_events:
        parts = ((1, 1, op.hbm_read), (2, 1, op.hbm_write), (1, 3, op.vmem_read), (2, 3, op.vmem_write))
        held = breakdown(*(part for part in parts if part[2]))
        costs = {"flops": op.flops, "model_flops": op.flops, "bytes_accessed": op.bytes, "memory_access_breakdown": held}
    return core.op(
        op.text,
        display=op.name,
        hlo_category=op.category,
        program_id=PROGRAM,
        symbol_id=sum(op.name.encode()),
        deduplicated_name=op.name,
        tf_op=Ref(op.framework + ":"),
        source=Ref("train.py:41"),
        **costs,
    )


def main(folder: Path) -> None:
    core = tpu_plane(
        device_type_string="TPU v6 Lite",
        peak_teraflops_per_second=PEAK_TFLOPS,
        peak_hbm_bw_gigabytes_per_second=HBM_GBS,
        peak_vmem_rd_bw_gigabytes_per_second=VMEM_READ_GBS,
        peak_vmem_wr_bw_gigabytes_per_second=VMEM_WRITE_GBS,
        has_megacore=Signed(0),
        has_merged_vmem=Signed(1),
    )
    host = Plane("/host:CPU", id=1)
    run = Run(core, Random(6))
    marks = [one_step(run, host, number) for number in range(STEPS)]
    steps = [core.event(str(FIRST_NUMBER + i), a, b - a, group_id=FIRST_NUMBER + i, **clock(a, b)) for i, (a, b, _) in enumerate(marks)]
    programs = [core.event(f"jit_train_step({PROGRAM})", a, b - a, run_id=i, **clock(a, b)) for i, (a, b, _) in enumerate(marks)]
    core.line("Steps", steps, id=1, start_ns=0)
    core.line("XLA Modules", programs, id=2, start_ns=0)
    core.line("XLA Ops", run.ops, id=3, start_ns=0)
    host.line("python", [event for _, _, events in marks for event in events], id=900, start_ns=0)
    environment = Plane(
        "Task Environment", id=9, stats={"profile_start_time": START_NS, "synthetic": "not recorded: written by make_xplane_tpu.py"}
    )
    data = space(core, host, environment, host="synthetic-tpu")
    (folder / f"{NAME}.xplane.pb").write_bytes(data)
    figures = {"made_by": "bookkeeping of samples/make_xplane_tpu.py", **books(run, marks)}
    (folder / f"{NAME}.expected.json").write_text(json.dumps(figures, indent=1) + "\n")


def one_step(run: Run, host: Plane, number: int) -> tuple[int, int, list[bytes]]:
    """Start and end on the core, and the host's events."""
    start = run.now
    run.play(INFEED, extra_us=6000 if number == LATE_STEP else 0)
    run.play(EMBED)
    run.loop(LAYER, LAYERS if number < STEPS - 1 else LAYERS // 2)
    if number < STEPS - 1:  # the profile ends within the last step
        for op in (LOSS, REDUCE, UPDATE):
            run.play(op)
    end = run.now
    calls = [
        host.event("train", start, 900 * US, step_num=FIRST_NUMBER + number, _r=1),
        host.event("PjitFunction(train_step)", start + 20 * US, 700 * US),
    ]
    run.now += 50 * US
    return start, end, calls


def books(run: Run, marks: list[tuple[int, int, list[bytes]]]) -> dict[str, Any]:
    known = {op.name: op for op in (INFEED, EMBED, *LAYER, LOSS, REDUCE, UPDATE, LOOP)}
    return {
        "steps": [{"name": str(FIRST_NUMBER + i), "dur_us": (b - a) / US} for i, (a, b, _) in enumerate(marks)],
        "ops": {
            name: {
                "category": known[name].category,
                "calls": totals.occurrences,
                "total_us": totals.total_ps / US,
                "self_us": totals.self_ps / US,
                "flops": known[name].flops * totals.occurrences,
                "bytes": known[name].bytes * totals.occurrences,
                "hbm_bytes": None if known[name].on_events else (known[name].hbm_read + known[name].hbm_write) * totals.occurrences,
            }
            for name, totals in run.totals.items()
        },
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent)
