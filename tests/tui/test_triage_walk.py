"""The first questions that are asked of a slow job, answered at 80x24 by the screen alone, in at most four keys each.

Five real profiles, eleven questions. What must be in sight is told by the files themselves (names, counts, what their makers
say of them) or by the figures of the commands, which have tests of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import pytest

from roofterm.analysis.clocks import aligned_study
from roofterm.analysis.digest import digest, steps_counted, whole_breakdown
from roofterm.analysis.study import Study
from roofterm.report.breakdown import mean_breakdown
from roofterm.text.units import count, duration_us, pct
from roofterm.tui.app import RooftermApp
from roofterm.tui.explorer import Explorer
from roofterm.tui.opened import prepare
from roofterm.tui.options import Options
from roofterm_parsers import open_profile
from tests.reference import reference
from tests.tui.harness import press, screen_text, settled

MOST_KEYS = 4


class Trace(NamedTuple):
    path: str
    device: str
    """as the file names it, in short"""
    blocker: str
    """call in which the host waits longest, by the file's runtime rows; empty: it has none"""
    line: str
    """what launches the kernel with most time: a line of Python, an op, a module"""
    to_line: str
    """the keys from the Overview to it"""
    input: str
    """what is said of the input"""


TRACES = {
    "training on a V100": Trace(
        "traces/torch/kineto_v100_resnet50_2021_workers0.pt.trace.json.gz",
        "V100-DGXS-32GB",
        "cudaDeviceSynchronize",
        r"aten::cudnn_convolution_backward_input[\s\S]*resnet50_profiler_api\.py\(46\)",
        "3 enter",
        r"for input 5\d\.\d+ ms \(33\.\d%\)[\s\S]*Input-bound",  # num_workers=0: its makers' example of a slow loader
    ),
    "prefill of a language model": Trace(
        "traces/torch/tracelens_mi300x_sglang_qwen3_8b_prefilldecode.json.gz",
        "Instinct MI300X",
        "hipMemcpyWithStream",
        r"aten::mm[\s\S]*tuned_gemm\.py\(395\)",
        "3 enter",
        r"for input 0 us",
    ),
    "eight ranks": Trace(
        "traces/torch/param_v100_dlrm_8ranks",
        "8x V100-SXM2-32GB",
        "cudaStreamSynchronize",
        r"launched by +\S+",
        "3 enter",
        r"for input \d+\.\d us \(6\.3%\)",
    ),
    "attention in JAX": Trace(
        "traces/xplane/gpu_mi300x_jax_attention.xplane.pb", "mi300x", "", r"jit\(matmul\)/\S*dot_general", "3 v v v", r"input +\S+"
    ),
    "training on a CPU": Trace(
        "traces/torch_cpu/transformer_train_all_flags.pt.trace.json.gz",
        "none: only the host was recorded",
        "",
        r"called from[\s\S]*gen_torch_cpu_traces\.py",
        "3 u u enter",
        r"loading input \d+\.\d+ us",
    ),
}


class Question(NamedTuple):
    asks: str
    keys: Callable[[Trace], str]
    """from the Overview, apart by blanks"""
    answer: Callable[[Trace, Study], list[str]]
    """regular expressions that the screen must show"""


def here(trace: Trace) -> str:
    return ""


def said(text: str | None) -> str:
    return re.escape(text or "--")


def usable(trace: Trace, study: Study) -> list[str]:
    s = study.summary()
    doubt = any(finding.id == "profile-unusable" for finding in study.findings())
    return [r"health +" + ("to be read with care" if doubt else "whole"), said(f"{count(s.slices)} slices · {count(s.kernels)} kernels")]


def ran_on(trace: Trace, study: Study) -> list[str]:
    devices = study.devices()
    return [r"device +" + said(trace.device), *([rf"{devices[0].roofs_from} roofs \S+ [\d.]+ .FLOP/s"] if devices else [])]


def step_time(trace: Trace, study: Study) -> list[str]:
    d = digest(study.steps())
    if d.p50_us is None:
        return ["no steps are marked"]
    slowest = "slowest .*" + said(duration_us(d.slowest_us)) if d.counted > 1 else said(d.slowest)
    return [r"step +p50 " + said(duration_us(d.p50_us)), slowest, f"{d.counted} of {d.steps} {d.counted_as}"]


def busy(trace: Trace, study: Study) -> list[str]:
    if not study.work.height:
        return [r"host +busy \d"]
    d, s = digest(study.steps()), study.summary()
    return [r"busy +" + said(pct(d.busy_pct if d.busy_pct is not None else s.gpu_busy_pct))]


def where_a_step_goes(trace: Trace, study: Study) -> list[str]:
    counted, _ = steps_counted(study.steps())
    shares = mean_breakdown(counted) if counted else whole_breakdown(study.summary())
    if shares is None:
        return [r"forward \d+\.\d%", r"backward \d+\.\d%", r"optimizer \d+\.\d%"]
    return [r"\w+ " + said(pct(100 * share / sum(shares.values()))) for share in shares.values() if share > 0.02 * sum(shares.values())]


def launch_bound(trace: Trace, study: Study) -> list[str]:
    path = study.launch_path()
    if path is None:
        return ["only the host was recorded"]
    balance = study.host_balance()
    reading = balance.reading if balance and balance.reading in ("overhead-bound", "compute-bound") else ""
    mean = "mean kernel " + said(duration_us(path.mean_kernel_us))
    return [r"launches +[\d,]+ ", mean, said(pct(path.short_kernels_pct)) + " < 10 us", reading]


def blocked(trace: Trace, study: Study) -> list[str]:
    return [trace.blocker] if trace.blocker else [""]


def in_syncs(trace: Trace, study: Study) -> list[str]:
    balance = study.host_balance()
    return ["in syncs " + said(duration_us(balance.blocked_us))] if balance else ["only the host was recorded"]


def top_kernels(trace: Trace, study: Study) -> list[str]:
    by = "kernel" if study.work.height else "op"
    sort = "total_us" if by == "kernel" else "self_us"
    rows = study.table(by).sort(sort, descending=True)
    return [rf"\n>.* {said(duration_us(row[sort]))} +{said(pct(row['pct']))}" for row in rows.head(1).iter_rows(named=True)]


def communication(trace: Trace, study: Study) -> list[str]:
    d = digest(study.steps())
    if not study.summary().comm_us:
        return [r"comm +none"]
    return [r"comm +" + said(duration_us(d.comm_us)) + r" a step · exposed [\d.]+ \ws \(\d"]


QUESTIONS = {
    1: Question("Is this profile usable?", here, usable),
    2: Question("What did it run on, and whose are the roofs?", here, ran_on),
    3: Question("How long is a step, and is it steady?", here, step_time),
    4: Question("Is the accelerator busy at all?", here, busy),
    5: Question("Where does a step go?", here, where_a_step_goes),
    6: Question("Is it waiting for input?", here, lambda trace, study: [trace.input]),
    7: Question("Is it launch or Python bound?", here, launch_bound),
    8: Question("Who blocks the host?", lambda trace: "3 v v" if trace.blocker else "", blocked),
    9: Question("Which kernels take the time?", lambda trace: "3", top_kernels),
    10: Question("Which op, module or line launches them?", lambda trace: trace.to_line, lambda trace, study: [trace.line]),
    11: Question("How much is communication, and is it hidden?", here, communication),
    12: Question("How long does the host wait in it?", here, in_syncs),
}
"""Questions 1 to 11; the last is the second half of 8."""


@pytest.mark.parametrize("name", TRACES)
async def test_eleven_questions_are_answered_on_the_screen(name):
    trace = TRACES[name]
    study = aligned_study(Study(open_profile(reference(trace.path), cache=False)))
    app = RooftermApp([trace.path], opened=prepare(study, Options(), trace.path.rsplit("/", 1)[-1]))
    missing = []
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot, 5)
        for number, question in QUESTIONS.items():
            keys = question.keys(trace)
            assert len(keys.split()) <= MOST_KEYS
            await press(pilot, keys)
            await settled(pilot)
            text = screen_text(pilot)
            missing += [(number, question.asks, wanted, text) for wanted in question.answer(trace, study) if not re.search(wanted, text)]
            while not isinstance(app.screen, Explorer):
                await press(pilot, "escape")
            if keys:
                await press(pilot, "V V" if keys == "3 v v" else "V V V" if keys == "3 v v v" else "U U" if keys == "3 u u enter" else "")
                await press(pilot, "1")
    assert app.fault is None
    assert not missing, "\n".join(f"{number} {asks} lacks {wanted!r} on\n{text}" for number, asks, wanted, text in missing)
