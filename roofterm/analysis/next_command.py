"""What to run next: the counter profiler on one launch of a kernel, or the profiler's flag whose absence leaves a question open.

Nsight Compute filters by a kernel's bare function name (`--kernel-name-base function`, its default; its demangled names are
written otherwise than Kineto's), and counts `--launch-skip` over the launches that match (docs.nvidia.com/nsight-compute,
Training, filter options). rocprof-compute takes a part of the name (`-k`; rocm.docs.amd.com, rocprofiler-compute, basic usage).
"""

from __future__ import annotations

import re
from shlex import quote
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import polars as pl

from roofterm.analysis.categories import Category
from roofterm.analysis.scope import STEADY
from roofterm_parsers.profile import Kind

if TYPE_CHECKING:
    from roofterm.analysis.study import Study

COMMAND = "YOUR_COMMAND"
"""Stands for the job's own command, which no profile tells."""

FLAGS = {
    "shapes": "record_shapes=True",
    "stacks": "with_stack=True",
}
"""What torch.profiler.profile takes for it."""

_OUTPUT_CHARACTERS = 40


class NextCommand(msgspec.Struct, frozen=True):
    text: str
    """for a shell, or for the place where the profiler is called"""
    why: str
    """one or two sentences: what it answers, and what it takes for granted"""


def next_command(study: Study, kind: str, name: str, slice_id: int | None = None) -> NextCommand | None:
    """What to run to know more about a kernel, an op or a slice by its id; None where nothing fits.

    `kind`: kernel, op, hlo, slice, or anything else for the profile as a whole.
    """
    if slice_id is None and kind in ("kernel", "hlo"):
        slice_id = launch_of(study, name)
    if slice_id is not None and int(study.kind[slice_id]) == int(Kind.KERNEL):
        if int(study.category[slice_id]) == int(Category.COMMUNICATION):
            return _collective(study)
        return _counters(study, slice_id) or _compiler(study, slice_id) or _flags(study)
    return _flags(study)


def function_name(kernel: str) -> str:
    """The bare function of a demangled kernel name: without return type, namespaces, template arguments and parameters."""
    plain = kernel.replace("(anonymous namespace)::", "")
    head = re.split(r"[<(]", plain, maxsplit=1)[0]
    return head.split("::")[-1].split(" ")[-1] or plain


def launch_of(study: Study, name: str) -> int | None:
    """The first launch of a kernel in a steady step, since what comes before is warm-up; else its first."""
    codes = np.flatnonzero((study.profile.names["text"] == name).to_numpy())
    mine = study.work.filter(pl.Series(np.isin(study.profile.slices["name"].to_numpy()[study.work["slice"].to_numpy()], codes)))
    steady = mine.join(study.selection(STEADY).work.select("slice"), on="slice", how="semi")
    first = (steady if steady.height else mine).sort("start_ps")
    return int(first["slice"][0]) if first.height else None


def launches_before(study: Study, slice_id: int) -> int:
    """Launches of kernels of the same function on the same device, before this one, in the order in which they ran."""
    profile = study.profile
    wanted = function_name(_name(study, slice_id))
    same = profile.names["text"].map_elements(lambda text: function_name(text) == wanted, return_dtype=pl.Boolean)
    device = study.work.filter(pl.col("slice") == slice_id)["device"][0]
    before = study.work.filter(
        (pl.col("device") == device) & (pl.col("start_ps") < int(study.start_ps[slice_id])) & (pl.col("kind") == int(Kind.KERNEL))
    )
    return int(same[profile.slices["name"][before["slice"]]].sum())


def _counters(study: Study, slice_id: int) -> NextCommand | None:
    function = function_name(_name(study, slice_id))
    out = re.sub(r"\W+", "_", function)[:_OUTPUT_CHARACTERS].strip("_") or "kernel"
    vendor = _vendor(study)
    if vendor == "amd":
        return NextCommand(
            f"rocprof-compute profile -n {out} -k {quote(function)} -- {COMMAND}",
            "Counters, occupancy and a measured roofline of this kernel. Put the job's own command at the end; run few steps, "
            "since every kernel of that name is replayed.",
        )
    if vendor != "nvidia":
        return None
    skip = launches_before(study, slice_id)
    return NextCommand(
        f"ncu --set full --kernel-name {quote(f'regex:^{re.escape(function)}$')} --launch-skip {skip} --launch-count 1 -o {out} {COMMAND}",
        "Counters, occupancy, stalls and a roofline of this launch. Put the job's own command at the end. The launches skipped are "
        "counted from where recording began: add those of the steps that ran before.",
    )


def _collective(study: Study) -> NextCommand:
    """No counters: those tools run a kernel again and again, and a collective would wait for its peers for ever."""
    library = "RCCL" if _vendor(study) == "amd" else "NCCL"
    return NextCommand(
        f"NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING {COMMAND}",
        f"Which rings, links, algorithm and protocol {library} chose. A collective cannot be replayed for counters: its peers would wait.",
    )


def _compiler(study: Study, slice_id: int) -> NextCommand | None:
    profile = study.profile
    ops = profile.hlo.filter(pl.col("slice") == slice_id)["op"]
    if not ops.len():
        return None
    program = profile.hlo_ops["program"][int(ops[0])]
    module = re.sub(r"\(\d+\)$", "", str(program)) if program else None
    only = f" --xla_dump_hlo_module_re={re.escape(module)}" if module else ""
    return NextCommand(
        f"XLA_FLAGS={quote(f'--xla_dump_to=hlo --xla_dump_hlo_as_text{only}')} {COMMAND}",
        "The program as compiled, in which this instruction's operands, layouts and fusion can be read.",
    )


def _flags(study: Study) -> NextCommand | None:
    source = study.profile.sources[0]
    if source.format != "kineto":
        return None
    missing = [flag for what, flag in FLAGS.items() if not _recorded(study, what)]
    if study.work.height == 0:
        return NextCommand(
            "torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True)",
            "The file holds no work of a device: record both activities, in a step that uses it.",
        )
    if not missing:
        return None
    answers = {"record_shapes=True": "FLOPs and bytes of ops", "with_stack=True": "the line of Python that launched them"}
    return NextCommand(
        f"torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], {', '.join(missing)})",
        f"Not recorded, and so not known: {', '.join(answers[flag] for flag in missing)}. Both slow the host a little.",
    )


def _recorded(study: Study, what: str) -> bool:
    profile = study.profile
    if what == "stacks":
        return profile.python.height > 0
    return profile.ops.height > 0 and profile.ops["signature"].null_count() < profile.ops.height


def _vendor(study: Study) -> str | None:
    """Whose tools fit: by the device's name, else by what wrote the file."""
    device = study.device
    told = " ".join(filter(None, (device.name if device else None, device.model if device else None, study.profile.sources[0].producer)))
    if re.search(r"amd|instinct|radeon|gfx\d|\bmi\d{3}|rocm", told, re.IGNORECASE):
        return "amd"
    if re.search(r"nvidia|tesla|geforce|quadro|\b[abhv]\d{2,3}\b|\bgh?200\b|cuda", told, re.IGNORECASE):
        return "nvidia"
    return None


def _name(study: Study, slice_id: int) -> str:
    profile = study.profile
    return str(profile.names["text"][int(profile.slices["name"][slice_id])])
