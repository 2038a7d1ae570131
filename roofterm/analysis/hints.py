"""How to read one slice: the reading table of the torch.profiler guide, row by row, for the detail pane.

The rows are: Self CPU far above Self CUDA; an occupancy query before a launch; aten::matmul over aten::bmm; a
Torch-Compiled Region; a device-to-device copy before a GEMM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from roofterm.analysis.categories import Category
from roofterm.analysis.intervals import union
from roofterm.text.units import duration_us, figures
from roofterm_parsers.profile import HOST_CALL_KINDS, ROOT, WORK_KINDS, Kind

if TYPE_CHECKING:
    from roofterm.analysis.study import Study

FAR_ABOVE = 10.0
"""The guide's own example has milliseconds on the host against microseconds on the device."""

HANDED_OVER_PS = 20_000_000
"""A copying call that takes longer (20 us) waits for the copy."""

OCCUPANCY = ("cudaOccupancy", "hipOccupancy", "cuOccupancy", "hipModuleOccupancy")
_CALLS = tuple(int(kind) for kind in HOST_CALL_KINDS)
_WORK = tuple(int(kind) for kind in WORK_KINDS)

REGION = "Torch-Compiled Region"


def hints(study: Study, slice_id: int) -> list[str]:
    """What the guide's table says of a slice, one sentence a row that fits; an empty list if none does.

    Of a piece of device work the rows are asked for its launch and the op behind it. Source: torch.profiler guide, trace
    reading table.
    """
    found = (
        _overhead(study, slice_id),
        _occupancy_query(study, slice_id),
        _batched_product(study, slice_id),
        _compiled_region(study, slice_id),
        _bias_copy(study, slice_id),
    )
    return [hint for hint in found if hint is not None]


def _overhead(study: Study, slice_id: int) -> str | None:
    """Self CPU >> Self CUDA, for an op with all device work that was launched within it, or for a kernel and its op.

    Other host slices are not asked: while a Python frame or a step is open, another thread may launch for it.
    """
    host = _op_of(study, slice_id) if _is_work(study, slice_id) else slice_id
    if host is None or int(study.kind[host]) != int(Kind.OP):
        return None
    first, last = _inside(study, host)
    links = study.profile.links
    launch = links["launch"].fill_null(ROOT).to_numpy()
    work = links["work"].to_numpy()[(launch >= first) & (launch < last)]
    if work.size == 0:
        return None
    device_ps = union(study.start_ps[work], study.start_ps[work] + study.dur_ps[work]).length
    waiting = _waiting(study, first, last)
    host_ps = int(study.dur_ps[host]) - waiting
    if device_ps == 0 or host_ps < FAR_ABOVE * device_ps:
        return None
    return (
        f"Overhead-bound: {duration_us(host_ps / 1e6)} on the host for {duration_us(device_ps / 1e6)} on the device "
        f"({figures(host_ps / device_ps)} times); a larger batch or fused operations give each launch more work."
    )


def _occupancy_query(study: Study, slice_id: int) -> str | None:
    """cudaOccupancy... before a launch: no fault, it tells of an adaptive kernel."""
    if _is_work(study, slice_id):
        launch = _launch_of(study, slice_id)
        asked = launch is not None and _asked_before(study, launch)
    elif int(study.kind[slice_id]) in _CALLS:
        asked = _text(study, slice_id).startswith(OCCUPANCY) or _asked_before(study, slice_id)
    else:
        asked = int(study.kind[slice_id]) == int(Kind.OP) and any(
            _text(study, row).startswith(OCCUPANCY) for row in _own_calls(study, slice_id)
        )
    if not asked:
        return None
    return (
        "Occupancy query before the launch: a heavy kernel (GEMM, convolution) whose launch adapts to what the device has room for; "
        "no fault. Elementwise kernels and reductions do not ask."
    )


def _batched_product(study: Study, slice_id: int) -> str | None:
    """aten::matmul with an aten::bmm inside, seen from either or from the kernel."""
    host = _op_of(study, slice_id) if _is_work(study, slice_id) else slice_id
    if host is None:
        return None
    text = _text(study, host)
    if text == "aten::matmul":
        first, last = _inside(study, host)
        names = study.profile.slices["name"][first:last].unique()
        batched = bool((study.profile.names["text"][names] == "aten::bmm").any())
    else:
        batched = text == "aten::bmm" and any(_text(study, row) == "aten::matmul" for row in _above(study, host))
    return "aten::matmul became aten::bmm: a batched product, since the tensors have three or more dimensions." if batched else None


def _compiled_region(study: Study, slice_id: int) -> str | None:
    host = _op_of(study, slice_id) if _is_work(study, slice_id) else slice_id
    if host is None:
        return None
    region = next((_text(study, row) for row in (host, *_above(study, host)) if _text(study, row).startswith(REGION)), None)
    if region is None:
        return None
    which = region.removeprefix(REGION).strip(": ")
    frame = f" (frame and version {which})" if which else ""
    return f"Runs in a region that torch.compile optimised{frame}: its kernels are generated, and fused where that could be done."


def _bias_copy(study: Study, slice_id: int) -> str | None:
    """Memcpy DtoD directly before a GEMM of the same op, seen from the copy or from the GEMM."""
    if not _is_work(study, slice_id):
        return None
    is_copy, is_gemm = _is_copy_within(study, slice_id), int(study.category[slice_id]) == int(Category.GEMM)
    other = _neighbour(study, slice_id, 1 if is_copy else -1) if is_copy or is_gemm else None
    if other is None or _op_of(study, other) is None or _op_of(study, other) != _op_of(study, slice_id):
        return None
    fits = int(study.category[other]) == int(Category.GEMM) if is_copy else _is_copy_within(study, other)
    if not fits:
        return None
    return "Device-to-device copy before a GEMM: the bias is copied into the result first, and the product's epilogue adds to it (addmm)."


def _text(study: Study, row: int) -> str:
    return str(study.profile.names["text"][int(study.profile.slices["name"][row])])


def _is_work(study: Study, row: int) -> bool:
    return int(study.kind[row]) in _WORK


def _is_copy_within(study: Study, row: int) -> bool:
    text = _text(study, row)
    return int(study.kind[row]) == int(Kind.COPY) and ("DtoD" in text or "Device -> Device" in text)


def _link(study: Study, work: int, column: str) -> int | None:
    links = study.profile.links
    at = int(np.searchsorted(links["work"].to_numpy(), work))
    if at >= links.height or int(links["work"][at]) != work:
        return None
    value = links[column][at]
    return None if value is None else int(value)


def _launch_of(study: Study, work: int) -> int | None:
    return _link(study, work, "launch")


def _op_of(study: Study, work: int) -> int | None:
    return _link(study, work, "op")


def _inside(study: Study, row: int) -> tuple[int, int]:
    """Ids of the slices inside a slice: they follow it, in order of start, on its track."""
    end = int(study.start_ps[row] + study.dur_ps[row])
    track = study.profile.slices["track"].to_numpy()
    last = int(np.searchsorted(track, track[row], side="right"))
    return row + 1, row + 1 + int(np.searchsorted(study.start_ps[row + 1 : last], end, side="left"))


def _above(study: Study, row: int) -> list[int]:
    parent = study.profile.slices["parent"]
    found = []
    while (above := int(parent[row])) != ROOT:
        found.append(above)
        row = above
    return found


def _own_calls(study: Study, row: int) -> list[int]:
    """Runtime calls that an op makes itself."""
    first, last = _inside(study, row)
    parent = study.profile.slices["parent"].to_numpy()[first:last]
    found: list[int] = (first + np.flatnonzero(np.isin(study.kind[first:last], _CALLS) & (parent == row))).tolist()
    return found


def _waiting(study: Study, first: int, last: int) -> int:
    """Time in calls that wait for the device, ps: synchronising ones, and copies that do not return at once."""
    rows = first + np.flatnonzero(np.isin(study.kind[first:last], _CALLS))
    names = study.profile.names["text"][study.profile.slices["name"].to_numpy()[rows]]
    copies = names.str.contains(r"^(cuda|hip)Memcpy").to_numpy() & (study.dur_ps[rows] > HANDED_OVER_PS)
    return int(study.dur_ps[rows[(study.kind[rows] == int(Kind.SYNC)) | copies]].sum())


def _asked_before(study: Study, launch: int) -> bool:
    """Whether an occupancy query stands between a launch and the launch before it, under the same parent."""
    parent = study.profile.slices["parent"]
    row = launch - 1
    while row >= 0 and row != int(parent[launch]) and int(parent[row]) == int(parent[launch]):
        text = _text(study, row)
        if text.startswith(OCCUPANCY):
            return True
        if "Launch" in text:
            return False
        row -= 1
    return False


def _neighbour(study: Study, row: int, by: int) -> int | None:
    """The next or previous piece of work on the same stream."""
    track = study.profile.slices["track"]
    other = row + by
    if not 0 <= other < study.profile.slices.height or track[other] != track[row] or not _is_work(study, other):
        return None
    return other
