"""What keeps the host from launching, told by the names of its slices: compilation, input, start-up, allocation, copies, waits."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.compilation import COMPILATION
from roofterm.analysis.intervals import NONE, Intervals, union
from roofterm.analysis.memory import CALLS as ALLOCATION
from roofterm_parsers.profile import Kind, TrackKind

if TYPE_CHECKING:
    from roofterm.analysis.study import Study


class Cause(IntEnum):
    """In the order in which idle time is put down to them: what the first explains is not given to the next."""

    PROFILER = 0
    COMPILE = 1
    INPUT = 2
    START_UP = 3
    ALLOCATION = 4
    COPY = 5
    SYNC = 6
    DISPATCH = 7
    """none of them: Python, operators and launches, each for less than a millisecond"""
    PAUSE = 8
    """none of them, for a millisecond or more at once: the host does something else"""


INPUT = "|".join(
    (
        r"^enumerate\((DataLoader|DataPipe)\)",
        r"DataLoaderIter\.__next__$|torch/utils/data/(dataloader|_utils/\w+)\.py\(\d+\): (__next__|_next_data|fetch|_try_get_data)$",
        r"(?i:^(## ?)?(data_?load(ing|er)?|(load|get|next|read)_batch|fetch_(batch|data)|data_?time|input_pipeline)( ##)?$)",
        r"(image_processing|feature_extraction)_\w+\.py\(\d+\): ",
        r"\.py\(\d+\): (preprocess|collate_fn|read_video\w*|default_collate)$",
        r"^(PIL|cv2|torchvision/(io|transforms|datasets)|webdataset|albumentations|librosa|soundfile|decord)/",
        r"^Iterator::|^IteratorGetNext|InfeedEnqueue|TransferToInfeed|^InputPipeline",
    )
)
"""Loading and preparing the input on the host: torch's loaders (tb_plugin's rule), tf.data, and frames of the usual libraries."""

START_UP = "|".join(
    (
        r"^(cuda|hip)(StreamCreate|DeviceGetStreamPriorityRange|GetDeviceProperties|InitDevice|SetDevice$|HostAlloc|HostMalloc|MallocHost)",
        r"^(cuda|hip)(FuncGetAttributes|ModuleLoad|LibraryLoad|DeviceReset|IpcOpenMemHandle|DeviceSetLimit)",
        r"^cu(ModuleLoad|LibraryLoad|LibraryGet|ModuleGetFunction|Init|CtxCreate|DevicePrimaryCtxRetain|LinkCreate|LinkComplete)",
        r"^(cublas|cudnn|rocblas|miopen|hipblas)\w*Create",
    )
)
"""Calls that are slow once: contexts, streams, lazy loading of modules, libraries' handles."""

COPY_CALL = r"^(cuda|hip)Memcpy|^cuMemcpy"

SLOW_START_PS = 100_000_000
"""A call of start-up that is done in less (100 us) was warm already."""

SLOW_LAUNCH_PS = 1_000_000_000
"""The first launch of a kernel that takes longer (1 ms) loads its module."""

FIRST_FACTOR = 5.0
"""A first call is slow if it takes so many medians of the later ones."""

_BY_NAME = (
    (Cause.COMPILE, COMPILATION),
    (Cause.INPUT, INPUT),
    (Cause.START_UP, START_UP),
    (Cause.ALLOCATION, ALLOCATION),
    (Cause.COPY, COPY_CALL),
)
_CALLS_ONLY = (Cause.START_UP, Cause.ALLOCATION, Cause.COPY)


class HostCauses:
    """The causes' intervals on each host thread, merged."""

    def __init__(self, study: Study) -> None:
        profile = study.profile
        kind = study.kind
        host = np.isin(profile.tracks["kind"].to_numpy(), (TrackKind.HOST, TrackKind.PROFILER))
        texts, cats = profile.names["text"], profile.names["cat"]
        by_name = np.full(texts.len(), int(Cause.DISPATCH), np.uint8)
        for named, pattern in reversed(_BY_NAME):
            by_name[texts.str.contains(pattern).to_numpy()] = int(named)
        name = profile.slices["name"].to_numpy()
        cause = by_name[name] if texts.len() else np.zeros(0, np.uint8)
        call = np.isin(kind, (int(Kind.RUNTIME), int(Kind.SYNC)))
        cause[np.isin(cause, [int(c) for c in _CALLS_ONLY]) & ~call] = int(Cause.DISPATCH)
        cause[(cause == int(Cause.START_UP)) & (study.dur_ps < SLOW_START_PS)] = int(Cause.DISPATCH)
        cause[_slow_first_launches(study)] = int(Cause.START_UP)
        cause[kind == int(Kind.SYNC)] = int(Cause.SYNC)
        whole_span = (cats.str.to_lowercase() == "trace").to_numpy()
        cause[(kind == int(Kind.OVERHEAD)) & ~whole_span[name]] = int(Cause.PROFILER)
        track = profile.slices["track"].to_numpy()
        cause[~host[track]] = int(Cause.DISPATCH)
        self.rows = np.flatnonzero(cause != int(Cause.DISPATCH))
        """slices that have a cause"""
        self.cause = cause[self.rows]
        self._track = track[self.rows]
        self._start = study.start_ps[self.rows]
        self._end = self._start + study.dur_ps[self.rows]
        self._kept: dict[tuple[int, int], Intervals] = {}

    def on(self, track: int, cause: Cause) -> Intervals:
        """When a thread was in slices of a cause; the profiler's own slices count for every thread."""
        key = (-1 if cause == Cause.PROFILER else track, int(cause))
        if key not in self._kept:
            mine = self.cause == int(cause)
            if cause != Cause.PROFILER:
                mine &= self._track == track
            self._kept[key] = union(self._start[mine], self._end[mine]) if mine.any() else NONE
        return self._kept[key]

    def slices(self, *causes: Cause) -> NDArray[np.int64]:
        """Ids of the slices of some causes."""
        return self.rows[np.isin(self.cause, [int(cause) for cause in causes])]


def _slow_first_launches(study: Study) -> NDArray[np.int64]:
    """Calls that launch a kernel for the first time in the file and take far longer over it than later ones."""
    linked = study.work.drop_nulls("launch")
    if linked.height == 0:
        return np.zeros(0, np.int64)
    launch = linked["launch"].to_numpy().astype(np.int64)
    frame = pl.DataFrame(
        {
            "launch": launch,
            "name": study.profile.slices["name"][linked["slice"]],
            "start": study.start_ps[launch],
            "dur": study.dur_ps[launch],
            "call": study.profile.slices["name"][linked["launch"]],
            "kernel": linked["kind"] == int(Kind.KERNEL),
        }
    )
    graphs = study.profile.names["text"].str.contains("GraphLaunch").arg_true()
    calls = frame.filter(pl.col("kernel") & ~pl.col("call").is_in(graphs.implode())).sort("start", maintain_order=True)
    first = calls.group_by("name", maintain_order=True).agg(
        pl.col("launch", "dur").first(), later=pl.col("dur").slice(1).median().fill_null(0.0)
    )
    slow = first.filter((pl.col("dur") >= SLOW_LAUNCH_PS) & (pl.col("dur") >= FIRST_FACTOR * pl.col("later")))
    found: NDArray[np.int64] = slow["launch"].to_numpy()
    return found
