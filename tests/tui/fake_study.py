"""A study with made-up results, as of a transformer trained on an H100, and a small profile for its timeline.

Figures are round and unchanging: screens are tested with it, figures are tested elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from roofterm import results
from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.filter_completion import Vocabulary
from roofterm.analysis.next_command import NextCommand
from roofterm.analysis.scope import ALL, STEADY, Scope, ScopeError
from roofterm.analysis.selection import Selection
from roofterm.analysis.work import device_work
from roofterm_parsers.profile import ROOT, Kind, Profile, Source, TrackKind, Warning, empty
from tests.tui import fake_memory, fake_ranks

STEPS = 8
TEXTS = ("short_name", "dtype", "bound_by", "shapes")
STEP_US = 1000.0

FLASH = "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>, true>"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int)"
SUM = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float>>>"
NASTY = "kernel [bold]with markup[/bold] and \x1b[31mescape\x1b[0m \u202eand bidi 中文宽字"

KERNELS = (
    # name, category, calls, mean us, flops, bound, % of roof, dtype, tensor core, launched by
    ("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NNT", "gemm", 96, 24.0, 1.6e12, "compute", 72.1, "bf16", True, "aten::mm"),
    (FLASH, "attention", 32, 41.5, 5.1e11, "compute", 55.0, "bf16", True, "aten::_flash_attention_forward"),
    (ALL_REDUCE, "communication", 16, 60.25, None, "link", 81.0, "bf16", False, "c10d::allreduce_"),
    ("triton_poi_fused_add_mul_silu_3", "fused_elementwise", 64, 9.75, 2.0e9, "hbm", 84.2, "bf16", False, "CompiledFunction"),
    (ADD, "elementwise", 128, 3.5, None, "hbm", 61.0, "bf16", False, "aten::add"),
    (
        "void vectorized_layer_norm_kernel<c10::BFloat16, float>",
        "norm",
        64,
        5.0,
        9.0e8,
        "hbm",
        72.4,
        "bf16",
        False,
        "aten::native_layer_norm",
    ),
    ("Memcpy DtoD (Device -> Device)", "copy", 24, 6.0, None, "hbm", 79.0, None, False, "aten::copy_"),
    ("triton_red_fused__softmax_native_dropout_7", "fused_reduction", 16, 8.1, None, "hbm", 66.0, "bf16", False, "CompiledFunction"),
    ("nvjet_tst_64x128_64x6_1x2_h_bz_TNN", "gemm", 16, 7.4, 2.1e11, "compute", 104.5, "bf16", True, "aten::addmm"),
    (SUM, "reduction", 32, 3.1, None, "hbm", 21.0, "fp32", False, "aten::sum"),
    ("void at::native::index_put_kernel", "embedding", 8, 2.4, None, None, None, None, False, None),
    ("Memset (Device)", "memset", 48, 0.9, None, None, None, None, False, None),
    (NASTY, "other", 2, 1.5, None, None, None, None, None, None),
)

OPS = (
    "aten::mm",
    "aten::linear",
    "aten::_flash_attention_forward",
    "aten::add",
    "aten::copy_",
    "ProfilerStep*",
    "Optimizer.step#AdamW.step",
)


class FakeStudy:
    """Answers what the explorer asks of a Study."""

    def __init__(self, steps: int = STEPS, many: int = 0, host_only: bool = False, ranks: int = fake_ranks.RANKS) -> None:
        self._steps = steps
        self._host_only = host_only
        self.profile = fake_profile(steps, ranks)
        work = device_work(
            self.profile, self.profile.slices["dur_ps"].to_numpy(), pl.DataFrame(schema={"slice": pl.UInt32, "work_class": pl.UInt8})
        )
        self.work = work.head(0) if host_only else work
        self._tables = {"kernel": kernel_frame(many), "op": op_frame(), "category": category_frame()}
        self.category = (
            self.profile.slices["kind"]
            .replace_strict(
                {int(Kind.OP): int(Category.OP), int(Kind.STEP): int(Category.STEP), int(Kind.RUNTIME): int(Category.RUNTIME)},
                default=int(Category.GEMM),
                return_dtype=pl.UInt8,
            )
            .to_numpy()
            .copy()
        )
        names = self.profile.slices["name"].to_numpy()
        for code, category in ((5, Category.ATTENTION), (6, Category.COMMUNICATION), (7, Category.ELEMENTWISE)):
            self.category[names == code] = int(category)
        self.start_ps = self.profile.slices["start_ps"].to_numpy()
        self.dur_ps = self.profile.slices["dur_ps"].to_numpy()
        self.self_ps = self.dur_ps
        self.kind = self.profile.slices["kind"].to_numpy()
        self.names = self.profile.names.select(dtype=pl.lit(None, pl.String))
        self.memory = fake_memory.memory()
        self.collective_calls = pl.DataFrame({"slice": [1, 2]})
        self.matched_calls = self.order_matched = pl.DataFrame({"slice": [1, 2], "meets": [True, True]})
        self.clocks = None
        self.windows = pl.DataFrame(
            {
                "step": range(steps),
                "source": [0] * steps,
                "host_start_ps": self.profile.steps["start_ps"],
                "host_end_ps": self.profile.steps["start_ps"] + self.profile.steps["dur_ps"],
            }
        )

    is_torch = True

    # Ranks and memory

    @property
    def roofed(self) -> FakeStudy:
        return self

    def ranks(self) -> list[results.RankRow]:
        return fake_ranks.rank_rows()

    def rank_steps(self) -> pl.DataFrame:
        return fake_ranks.rank_steps(self._steps)

    def rank_groups(self) -> list[results.RankGroup]:
        return fake_ranks.groups()

    def memory_report(self) -> results.MemoryReport:
        return fake_memory.report()

    def memory_ops(self, window_ps: tuple[int, int] | None = None) -> pl.DataFrame:
        return fake_memory.ops()

    def xla_overview(self) -> None:
        return None

    @property
    def nests(self) -> bool:
        return False

    def table(self, by: str, scope: Scope = ALL, group: str | None = None) -> pl.DataFrame:
        self.selection(scope)
        return self._tables[by].head(0) if self._host_only and by != "op" else self._tables[by]

    def dispatch_chain(self, slice_id: int) -> list[results.ChainLink]:
        """The launching call and the work, as far as the profile links them."""
        names = self.profile.names["text"].gather(self.profile.slices["name"])
        links = self.profile.links.filter(pl.col("work") == slice_id)
        calls = [results.ChainLink("call", str(names[launch]), None, None, launch) for launch in links["launch"].drop_nulls()]
        return [*calls, results.ChainLink("kernel", str(names[slice_id]), None, None, slice_id)]

    def hints(self, slice_id: int) -> list[str]:
        return []

    def selection(self, scope: Scope) -> Selection:
        numbers = self.profile.steps["number"].to_list()
        if scope.step not in ("all", "steady") and int(scope.step.split("-")[0]) not in numbers:
            raise ScopeError(f"--step {scope.step}: no such step")
        text = {"all": "whole file", "steady": f"{self._steps - 1} steady steps"}.get(scope.step, f"step {scope.step}")
        return Selection(pl.DataFrame(), lambda: None, pl.DataFrame(), 0, text)

    def warnings(self) -> list[Warning]:
        return [Warning("launches_unlinked", "3 kernels have no launch in this file", 3)]

    def steps(self) -> list[results.StepRow]:
        return [step_row(number) for number in range(self._steps)]

    def devices(self) -> list[results.DeviceInfo]:
        return [
            results.DeviceInfo(
                id=number,
                name="NVIDIA H100 80GB HBM3",
                model="h100-sxm",
                kind="gpu",
                units=132,
                memory_bytes=85_000_000_000,
                peaks={"bf16": 989.4e12, "fp8": 1978.9e12, "tf32": 494.7e12, "fp32": 66.9e12},
                bandwidths={"hbm": 3.35e12, "l2": 12.0e12},
                roofs_from="vendor",
                ridge={"bf16": {"hbm": 295.0, "l2": 82.5}, "fp32": {"hbm": 20.0, "l2": 5.6}},
                notes=["SXM5 board, 700 W"],
                links={"nvlink": 450e9},
                matched_by="exact name",
            )
            for number in range(2)
        ]

    def summary(self) -> results.Summary:
        values: dict[str, Any] = dict.fromkeys(results.Summary.__struct_fields__)
        values |= {
            "slices": 412_908,
            "kernels": 9612,
            "kernel_us": 6800.0,
            "memcpy_us": 187.2,
            "gpu_busy_us": 6990.0,
            "gpu_busy_pct": 87.4,
            "comm_us": 964.0,
            "exposed_comm_us": 488.0,
            "steps": self._steps,
            "step_us": [STEP_US] * self._steps,
            "step_names": [f"ProfilerStep#{n}" for n in range(self._steps)],
            "devices": 2,
            "device_names": ["NVIDIA H100 80GB HBM3"],
            "kernel_us_by_device": {"0": 3400.0, "1": 3400.0},
            "unlinked_kernels": 3,
            "total_self_us": 9000.0,
            "self_us_min": 0.0,
            "sync_us": 1300.0,
            "span_us": 8200.0,
            "flops_total": 2.4e15,
            "distinct_kernels": 13,
            "threads": 4,
            "process_names": ["python"],
            "counter_series": [],
            "compute_busy_pct": 79.1,
            "device_step_us": [STEP_US] * self._steps,
        }
        return results.Summary(**values)

    def next_command(self, kind: str, name: str, slice_id: int | None = None) -> NextCommand:
        return NextCommand(f"ncu --kernel-name {name[:20]}", "counters")

    def vocabulary(self) -> Vocabulary:
        return Vocabulary({"cat": ("gemm", "attention", "copy"), "op": ("aten::mm",)}, ("nvjet_tst", "flash_fwd_kernel"))

    def findings(self, scope: Scope = STEADY) -> list[results.Finding]:
        rows = (
            ("exposed_collectives", "high", "all-reduce runs while nothing computes", 61.0, 6.1, "communication"),
            (
                "launch_bound",
                "medium",
                "1,912 kernels shorter than 5 us: the host cannot launch them fast enough",
                48.0,
                4.8,
                "elementwise",
            ),
            ("host_sync", "low", "the host waits for the device in .item()", 12.5, 1.25, "copy"),
        )
        return [
            results.Finding(id_, severity, title, stake, share, {}, "advice", {"view": "ops", "filter": f"cat:{cat}"})
            for id_, severity, title, stake, share, cat in rows
        ]

    def host_balance(self, scope: Scope = STEADY) -> results.HostBalance | None:
        if self._host_only:
            return None
        return results.HostBalance("step", 400.0, 900.0, 0.44, None, None, None, 4.2, "compute-bound", 12.0, 1.2, 81.0, 54.0)

    def launch_path(self, scope: Scope = STEADY) -> results.LaunchPath | None:
        """Ten launches a step, one kernel in ten under 10 us."""
        if self._host_only:
            return None
        short = (40, 10.0, 0.4)
        return results.LaunchPath(400, 10.0, 400, 88.2, *short, 9.0, 8.5, 20.0, 25.0, 0, 1.5, 3, 25.0, 0, 0, 0, 0)

    def phase_times(self, rows: Sequence[int]) -> list[results.PhaseTime]:
        return [
            results.PhaseTime("forward", 250.0, 250.0, 3.0, 120.0),
            results.PhaseTime("backward", 500.0, 400.0, 5.0, 200.0),
            results.PhaseTime("optimizer", 90.0, 90.0, 2.0, 60.0),
        ]

    def roofline(self, scope: Scope = STEADY, top: int = 1000) -> results.Roofline:
        roofs = [
            results.Roof("compute", None, "bf16", 989.4e12, "FLOP/s", "vendor"),
            results.Roof("compute", None, "fp32", 66.9e12, "FLOP/s", "vendor"),
            results.Roof("memory", "hbm", None, 3.35e12, "B/s", "vendor"),
            results.Roof("memory", "l2", None, 12.0e12, "B/s", "derived"),
        ]
        ops = [
            roofline_row("kernel", "Total", name, category, calls, mean, at) for at, (name, category, calls, mean, *_) in enumerate(KERNELS)
        ]
        program = [roofline_row("program", step, "Program", None, 1, STEP_US, 3) for step in ("Total", "Average")]
        steps = [roofline_row("program", str(n), "Program", None, 1, STEP_US + n, 2 + n % 3) for n in range(self._steps)]
        return results.Roofline(results.Coverage(78.2, 12.4, 9.4), roofs, program, steps, ops[:top])


def step_row(number: int) -> results.StepRow:
    """Steps of 1,000 us; step 0 is slow and not steady, step 5 is the slowest steady one, the last is cut."""
    length = {0: 1900.0, 5: 1240.0}.get(number, STEP_US + 2 * number)
    idle = 126.0 + (length - STEP_US if number in (0, 5) else 0.0)
    return results.StepRow(
        name=f"ProfilerStep#{number}",
        rank=0,
        phase=None,
        complete=number != STEPS - 1,
        steady=number not in (0, STEPS - 1),
        start_us=number * STEP_US,
        dur_us=length,
        host_dur_us=length - 30.0,
        compute_us=length - idle - 61.0 - 4.0,
        exposed_comm_us=61.0,
        exposed_copy_us=4.0,
        idle_us=idle,
        comm_us=120.5,
        copy_us=23.4,
        host_wait_us=idle - 44.0,
        kernel_gap_us=40.0,
        launched_device_us=870.0,
        busy_pct=100 * (1 - idle / length),
        compute_busy_pct=100 * (length - idle - 65.0) / length,
        launches=1912,
        mfu_pct=41.2,
    )


def roofline_row(level: str, step: str, name: str, category: str | None, calls: int, mean: float, at: int) -> results.RooflineRow:
    known = at < 10 and category != "communication"
    intensity = (412.0, 155.1, 0.0, 0.25, 0.25, 0.9, 0.1, 0.6, 98.1, 0.3)[at] if known else None
    rate = min(989.4e12, intensity * 3.35e12) * 0.7 if intensity else None
    return results.RooflineRow(
        level=level,
        step=step,
        name=name,
        category=category,
        calls=calls,
        time_us=calls * mean,
        time_per_unit_us=None,
        flops=rate * calls * mean * 1e-6 if rate else None,
        model_flops=None,
        bytes={"hbm": 1.0e9} if known else {},
        flops_per_s=rate,
        bytes_per_s={"hbm": rate / intensity} if rate and intensity else {},
        intensity={"hbm": intensity} if intensity else {},
        bytes_by_role=None,
        bound_by=("compute" if at in (0, 1, 8) else "hbm") if known else None,
        limiter=("compute" if at in (0, 1, 8) else "hbm") if known else None,
        pct_of_peak_flops=70.0 if known else None,
        pct_of_peak_bw=70.0 if known else None,
        pct_of_roof=70.0 if known else None,
        time_bound_us=calls * mean * 0.7 if known else None,
        headroom_us=calls * mean * 0.3 if known else None,
        dtype="bf16",
        flops_from="shapes" if known else "none",
        bytes_from="shapes" if known else "none",
        flags=[],
        shapes="[[8192,4096],[4096,14336]]" if known else None,
        op="aten::mm" if known else None,
    )


def kernel_frame(many: int = 0) -> pl.DataFrame:
    """The kernels above, or `many` made of them with other names."""
    frame = pl.DataFrame([kernel_record(*row) for row in KERNELS], infer_schema_length=None)
    if many:
        frame = pl.concat([frame] * (many // frame.height + 1)).head(many)
        frame = frame.with_columns(
            name=pl.col("name").str.head(20) + "_" + pl.int_range(pl.len()).cast(pl.String),
            total_us=pl.int_range(pl.len(), 0, -1).cast(pl.Float64),
        )
    frame = frame.with_columns(pct=100 * pl.col("total_us") / pl.col("total_us").sum())
    return completed(frame, "kernel").sort("total_us", descending=True)


def completed(frame: pl.DataFrame, by: str) -> pl.DataFrame:
    """All columns of a table in their order, those not made up here without a value."""
    absent = [name for name in results.TABLES[by] if name not in frame.columns]
    missing = [pl.lit(None, pl.String if name in TEXTS else pl.Float64).alias(name) for name in absent]
    return frame.with_columns(missing).select(results.TABLES[by])


def kernel_record(name, category, calls, mean, flops, bound, roof, dtype, tensor, launcher):
    return {
        "name": name,
        "category": category,
        "calls": calls,
        "total_us": calls * mean,
        "self_us": calls * mean,
        "mean_us": mean,
        "min_us": mean * 0.9,
        "max_us": mean * 1.4,
        "p50_us": mean,
        "p99_us": mean * 1.3,
        "pct": 0.0,
        "device_us": calls * mean,
        "host_us": None,
        "flops": flops,
        "bytes": None if flops is None else flops / 100,
        "dtype": dtype,
        "bound_by": bound,
        "pct_of_roof": roof,
        "stream_ids": [7, 20] if category == "communication" else [7],
        "grid": "132,1,1",
        "block": "384,1,1",
        "occupancy_pct": 18.75,
        "tensor_core": tensor,
        "launched_by": launcher,
    }


def op_frame() -> pl.DataFrame:
    rows = []
    for at, name in enumerate(OPS):
        total = 1000.0 - 100 * at
        row = dict.fromkeys(results.TABLES["op"])
        row |= {
            "name": name,
            "category": "op",
            "calls": 96 - at,
            "total_us": total,
            "self_us": total / 2 if at else -1.5,
            "mean_us": total / (96 - at),
            "min_us": 1.0,
            "max_us": 40.0,
            "p50_us": 9.0,
            "p99_us": 30.0,
            "pct": 20.0 - at,
            "device_us": 2 * total,
            "host_us": total,
            "self_device_us": 2 * total,
            "shapes": "[[8192, 4096], [4096, 14336]]",
            "is_backward": False,
            "memory_bytes": 1 << 20,
            "self_memory_bytes": 0,
        }
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None).with_columns(
        pl.col("flops", "bytes", "pct_of_roof").cast(pl.Float64), pl.col("dtype", "bound_by").cast(pl.String)
    )


def category_frame() -> pl.DataFrame:
    kernels = kernel_frame()
    sums = kernels.group_by("category", maintain_order=True).agg(
        pl.col("calls", "total_us", "pct").sum(), pl.col("min_us").min(), pl.col("max_us").max()
    )
    frame = sums.with_columns(
        name=pl.col("category"), mean_us=pl.col("total_us") / pl.col("calls"), self_us=pl.col("total_us"), device_us=pl.col("total_us")
    )
    return completed(frame, "category").sort("total_us", descending=True)


NAMES = (
    ("ProfilerStep#", "user_annotation"),
    ("aten::mm", "cpu_op"),
    ("cudaLaunchKernel", "cuda_runtime"),
    (KERNELS[3][0], "kernel"),
    (KERNELS[0][0], "kernel"),
    (KERNELS[1][0], "kernel"),
    (KERNELS[2][0], "kernel"),
    (KERNELS[4][0], "kernel"),
)


def fake_profile(steps: int, ranks: int = 1) -> Profile:
    """A host thread and two streams: each step has ten rounds of op, launch, GEMM and, on the other stream, an all-reduce."""
    us = 1_000_000
    rows: list[tuple[int, int, int, int, int, int, int]] = []  # track, start, dur, name, kind, parent mark, depth
    launches: list[tuple[int, int]] = []
    for step in range(steps):
        begin = int(step * STEP_US) * us
        rows.append((0, begin, 980 * us, 0, int(Kind.STEP), -1, 0))
        for turn in range(10):
            at = begin + (10 + 90 * turn) * us
            rows.append((0, at, 30 * us, 1, int(Kind.OP), -2, 1))
            rows.append((0, at + 5 * us, 8 * us, 2, int(Kind.RUNTIME), -3, 2))
            launches.append((len(launches), at + 5 * us))
            rows.append((1, at + 20 * us, (60 + turn) * us, (4, 5, 7)[turn % 3], int(Kind.KERNEL), -1, 0))
        rows.append((2, begin + 700 * us, 240 * us, 6, int(Kind.KERNEL), -1, 0))
    frame = pl.DataFrame(rows, schema=["track", "start_ps", "dur_ps", "name", "kind", "mark", "depth"], orient="row")
    frame = frame.sort("track", "start_ps", -pl.col("dur_ps"), maintain_order=True).with_row_index("id")
    parents = parent_ids(frame)
    slices = frame.select(
        "start_ps",
        "dur_ps",
        pl.col("track").cast(pl.UInt32),
        pl.col("name").cast(pl.UInt32),
        pl.col("kind").cast(pl.UInt8),
        pl.Series("parent", parents, pl.UInt32),
        pl.col("depth").cast(pl.UInt16),
        pl.lit(0, pl.UInt64).alias("offset"),
    )
    calls = frame.filter(pl.col("kind") == int(Kind.RUNTIME))["id"]
    work = frame.filter((pl.col("kind") == int(Kind.KERNEL)) & (pl.col("track") == 1))["id"]
    profile = Profile(
        sources=[
            Source(
                "llama_step.trace.json.gz",
                "kineto",
                "gzip",
                events=frame.height,
                bytes=48_000_000,
                rank=rank,
                metadata={"record_shapes": 1, "with_stack": 1},
            )
            for rank in range(ranks)
        ]
    )
    profile.slices = slices
    profile.tracks = empty("tracks").vstack(
        pl.DataFrame(
            [
                track(TrackKind.HOST, "100", "100", "python", None, None),
                track(TrackKind.DEVICE, "0", "7", "GPU 0", 0, 7),
                track(TrackKind.DEVICE, "0", "20", "GPU 0", 0, 20),
            ],
            schema=empty("tracks").schema,
        )
    )
    profile.memory = fake_memory.frame()
    profile.names = pl.DataFrame(NAMES, schema=empty("names").schema, orient="row")
    profile.links = pl.DataFrame({"work": work, "launch": calls, "op": calls - 1}, schema=empty("links").schema)
    profile.devices = empty("devices").vstack(
        pl.DataFrame(
            [
                {
                    **dict.fromkeys(empty("devices").columns),
                    "source": 0,
                    "id": 0,
                    "name": "NVIDIA H100 80GB HBM3",
                    "kind": "gpu",
                    "worked": True,
                }
            ],
            schema=empty("devices").schema,
        )
    )
    marks = frame.filter(pl.col("kind") == int(Kind.STEP))
    profile.steps = pl.DataFrame(
        {
            "source": [0] * steps,
            "number": list(range(steps)),
            "name": [f"ProfilerStep#{n}" for n in range(steps)],
            "start_ps": marks["start_ps"],
            "dur_ps": marks["dur_ps"],
            "slice": marks["id"],
            "device": [None] * steps,
        },
        schema=empty("steps").schema,
    )
    return profile


def parent_ids(frame: pl.DataFrame) -> list[int]:
    """On the host a step holds ops, and an op its launch; elsewhere nothing nests."""
    parents, step, op = [], ROOT, ROOT
    for row in frame.iter_rows(named=True):
        if row["mark"] == -2:
            parents.append(step)
            op = row["id"]
        elif row["mark"] == -3:
            parents.append(op)
        else:
            parents.append(ROOT)
            step = row["id"]
    return parents


def track(kind: TrackKind, process: str, thread: str, title: str, device: int | None, stream: int | None):
    return {
        "kind": int(kind),
        "source": 0,
        "process": process,
        "thread": thread,
        "process_name": title,
        "thread_name": f"stream {thread}" if stream else f"thread {thread}",
        "device": device,
        "stream": stream,
        "sort": None,
    }
