"""Modules: which layer of the model each piece of device work belongs to, and the roofline of each.

In a PyTorch profile with stacks (with_stack, with_modules) it is the innermost `nn.Module: X_n` frame around the call that
launched the work, on the call's own thread; work of a backward op counts for the module of its forward op, since autograd
runs outside of any module. TorchScript's ops state their modules themselves (Module Hierarchy). In a profile of compiled
programs it is the path in the instruction's own name (`tf_op`), without the transformations of JAX:
`jit(f)/transpose(jvp(Model))/layer_0/dot_general` is of Model/layer_0.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.bounded import Bounded
from roofterm.analysis.call_stacks import bearers, stated
from roofterm.analysis.levels import records, summed, with_shares
from roofterm.results import DeviceInfo, RooflineRow
from roofterm_parsers.profile import ROOT, Kind, Profile

I64 = NDArray[np.int64]

PREFIX = "nn.Module: "
_HIERARCHY = re.compile(r"[^.()]+\([^()]*\)(?:::[^.()]+)?")
"""One module of a Module Hierarchy with the method that was called: `fc(Linear)::forward`"""
NO_MODULE = "(no module)"
NONE = -1

_KEPT = r"(?:jvp|transpose|vmap|remat|checkpoint|custom_jvp|custom_vjp|linearize)\(([^()]*)\)"
_DROPPED = r"(?:jit|pjit|xla_pmap|pmap|shard_map)\([^()]*\)"
_CONTROL = frozenset(("", "while", "body", "cond", "checkpoint", "remat", "rematted_computation", "shard_map", "closed_call", "main"))


class Modules(NamedTuple):
    """The module of each piece of work."""

    of_work: I64
    """row of the two lists for each piece, NONE where nothing tells"""
    names: list[str]
    """Linear_22: class and number of the instance; of a compiled program the last two parts of the path"""
    paths: list[str | None]
    """the modules around it, from the outermost: Model_0/Layer_5/Linear_22"""


def work_modules(profile: Profile, work: pl.DataFrame) -> Modules:
    """The module of every piece of device work (schema `work.WORK`), row for row."""
    frames = _module_frames(profile)
    of_frame, names, paths = _paths(profile, frames)
    found = np.full(work.height, NONE, np.int64)
    for behind in (work["launch"], work["op"]):  # of captured work the op alone lies inside of modules
        known = np.flatnonzero((found == NONE) & behind.is_not_null().to_numpy())
        if frames.size and known.size:
            distinct, back = np.unique(behind.to_numpy()[known].astype(np.int64), return_inverse=True)
            frame = _innermost(profile, distinct, _flags(profile, frames))
            code = np.where(frame == NONE, NONE, of_frame[np.searchsorted(frames, np.maximum(frame, 0)) % frames.size])
            found[known] = code[back]
    return _with_instructions(profile, work, _with_hierarchies(profile, work, Modules(found, names, paths)))


def module_paths(profile: Profile, slices: pl.Series) -> pl.Series:
    """The modules around each host slice, itself included, from the outermost; null where there is none. A backward op has those of
    its forward op."""
    frames, rows = _module_frames(profile), slices.to_numpy().astype(np.int64)
    if frames.size == 0 or rows.size == 0:
        return _stated_paths(profile, rows)
    of_frame, _, paths = _paths(profile, frames)
    frame = _innermost(profile, rows, _flags(profile, frames))
    code = np.where(frame == NONE, len(paths), of_frame[np.searchsorted(frames, np.maximum(frame, 0)) % frames.size])
    return pl.Series([*paths, None], dtype=pl.String)[pl.Series(code)]


def module_rows(found: Bounded, work: pl.DataFrame, modules: Modules, device: DeviceInfo | None) -> list[RooflineRow]:
    """One roofline row a module, most time first. An op counts for the module in which its first kernel was launched."""
    of_piece = pl.DataFrame({"slice": work["slice"], "start_ps": work["start_ps"], "module": modules.of_work})
    pieces = found.costed.pieces.select("slice", "item").join(of_piece, on="slice", how="inner")
    of_item = pieces.sort("start_ps", maintain_order=True).group_by("item", maintain_order=True).agg(pl.col("module").first())
    names = pl.Series([*modules.names, NO_MODULE], dtype=pl.String)
    paths = pl.Series([*modules.paths, None], dtype=pl.String)
    row = pl.Series(np.where(of_item["module"].to_numpy() == NONE, len(modules.names), of_item["module"].to_numpy()))
    of_item = of_item.select("item", text=names[row], path=paths[row])
    items = found.items.drop("text").join(of_item, on="item", how="inner", maintain_order="left")
    rows = summed(items, ["text", "path"]).with_columns(rate_s=pl.when(pl.col("known_ps") > 0).then(pl.col("known_ps") / 1e12))
    return records(with_shares(rows, pl.col("rate_s")).sort("time_ps", descending=True, maintain_order=True), "module", device)


def _module_frames(profile: Profile) -> I64:
    """Slices that are calls of modules, ascending."""
    named = profile.names["text"].str.starts_with(PREFIX).arg_true().to_numpy()
    if named.size == 0:
        return np.zeros(0, np.int64)
    slices = profile.slices
    return np.flatnonzero((slices["kind"].to_numpy() == Kind.PYTHON) & np.isin(slices["name"].to_numpy(), named))


def _flags(profile: Profile, frames: I64) -> NDArray[np.bool_]:
    is_module = np.zeros(profile.slices.height, np.bool_)
    is_module[frames] = True
    return is_module


def _innermost(profile: Profile, slices: I64, is_module: NDArray[np.bool_]) -> I64:
    """The innermost module around each slice; where there is none, that around the forward op of a backward op around it."""
    found, passed = _climb(profile, slices, is_module)
    behind = np.flatnonzero((found == NONE) & (passed != NONE))
    if behind.size:
        found[behind], _ = _climb(profile, passed[behind], is_module)
    return found


def _climb(profile: Profile, slices: I64, is_module: NDArray[np.bool_]) -> tuple[I64, I64]:
    """For each slice the innermost module around it, itself included, and the forward op of the first backward op on the way."""
    parent = profile.slices["parent"].to_numpy()
    forward = np.full(parent.size, NONE, np.int64)
    forward[profile.backward["backward"].to_numpy()] = profile.backward["forward"].to_numpy()
    found, passed = np.full(slices.size, NONE, np.int64), np.full(slices.size, NONE, np.int64)
    active, current = np.arange(slices.size), slices
    while active.size:
        hit = is_module[current]
        found[active[hit]] = current[hit]
        first = (passed[active] == NONE) & (forward[current] != NONE)
        passed[active[first]] = forward[current[first]]
        above = parent[current]
        inside = ~hit & (above != ROOT)
        active, current = active[inside], above[inside].astype(np.int64)
    return found, passed


def _paths(profile: Profile, frames: I64) -> tuple[I64, list[str], list[str | None]]:
    """For each module call the row of the distinct paths, and their last parts and whole texts."""
    codes = np.full(frames.size, NONE, np.int64)
    names: list[str] = []
    paths: list[str | None] = []
    if frames.size == 0:
        return codes, names, paths
    slices = profile.slices
    is_module = _flags(profile, frames)
    parent = slices["parent"].to_numpy()[frames]
    outer = np.full(frames.size, NONE, np.int64)
    nested = np.flatnonzero(parent != ROOT)
    around, _ = _climb(profile, parent[nested].astype(np.int64), is_module)
    outer[nested] = np.where(around == NONE, NONE, np.searchsorted(frames, np.maximum(around, 0)))
    name = slices["name"].to_numpy()[frames].astype(np.int64)
    texts = profile.names["text"]
    known: dict[tuple[int, int], int] = {}
    waiting = np.arange(frames.size)
    while waiting.size:  # one turn for each level of nesting
        ready = (outer[waiting] == NONE) | (codes[outer[waiting]] != NONE)
        rows, waiting = waiting[ready], waiting[~ready]
        above = np.where(outer[rows] == NONE, NONE, codes[outer[rows]])
        pairs, back = np.unique(np.stack((above, name[rows]), axis=1), axis=0, return_inverse=True)
        of_pair = []
        for inside, of_name in pairs.tolist():
            if (inside, of_name) not in known:
                known[inside, of_name] = len(names)
                names.append(str(texts[of_name]).removeprefix(PREFIX))
                paths.append(names[-1] if inside == NONE else f"{paths[inside]}/{names[-1]}")
            of_pair.append(known[inside, of_name])
        codes[rows] = np.array(of_pair, np.int64)[back.reshape(-1)]
    return codes, names, paths


def _with_hierarchies(profile: Profile, work: pl.DataFrame, modules: Modules) -> Modules:
    """The modules that ops of TorchScript state themselves, for work that has none yet."""
    if profile.callers["modules"].null_count() == profile.callers.height:
        return modules
    at = np.flatnonzero((modules.of_work == NONE) & work["op"].is_not_null().to_numpy())
    paths = _stated_paths(profile, work["op"].to_numpy()[at].astype(np.int64))
    distinct = paths.unique(maintain_order=True).drop_nulls().to_list()
    code = {path: len(modules.names) + row for row, path in enumerate(distinct)}
    found = modules.of_work.copy()
    found[at] = [NONE if path is None else code[path] for path in paths.to_list()]
    return Modules(found, modules.names + [path.rpartition("/")[2] for path in distinct], [*modules.paths, *distinct])


def _stated_paths(profile: Profile, rows: I64) -> pl.Series:
    """Module Hierarchy of ops as a path: `TOP(Net)::forward.fc(Linear)::forward.` is TOP(Net)/fc(Linear).

    Of a backward op that of its forward op or, where that tells nothing, its own.
    """
    told = pl.select(pl.coalesce(stated(profile, bearers(profile, rows), "modules"), stated(profile, rows, "modules"))).to_series()
    distinct = told.unique().drop_nulls().to_list()
    paths = {text: "/".join(part.partition("::")[0] for part in _HIERARCHY.findall(text)) or text for text in distinct}
    return told.replace_strict(paths, default=None, return_dtype=pl.String)


def _with_instructions(profile: Profile, work: pl.DataFrame, modules: Modules) -> Modules:
    """The modules that instructions of compiled programs name themselves, for work that has none yet."""
    if profile.hlo.height == 0:
        return modules
    paths = instruction_paths(profile.hlo_ops["framework_op"])
    distinct = [path for path in paths.unique(maintain_order=True).to_list() if path is not None]
    first = len(modules.names)
    code: Callable[[str | None], int] = {path: first + row for row, path in enumerate(distinct)}.get  # type: ignore[assignment]
    of_op = np.array([NONE if path is None else code(path) for path in paths.to_list()], np.int64)
    op = work.select("slice").join(profile.hlo.unique("slice", keep="first"), on="slice", how="left", maintain_order="left")["op"]
    known = op.is_not_null().to_numpy()
    by_name = np.where(known, of_op[op.fill_null(0).to_numpy()], NONE)
    found = np.where(modules.of_work == NONE, by_name, modules.of_work)
    return Modules(found, modules.names + ["/".join(path.split("/")[-2:]) for path in distinct], [*modules.paths, *distinct])


def instruction_paths(framework_ops: pl.Series) -> pl.Series:
    """The module path in the name of each instruction, row for row; null where the name holds none."""
    bare = framework_ops.str.replace(r":\w*$", "")
    for _ in range(4):  # transformations nest: transpose(jvp(vmap(x)))
        bare = bare.str.replace_all(_DROPPED, "").str.replace_all(_KEPT, "$1")
    paths = [_path(text) for text in bare.to_list()]
    return pl.Series("path", paths, dtype=pl.String)


def _path(name: str | None) -> str | None:
    """The parts of a name but the last, which is the op, and those of control flow."""
    parts = [part for part in (name or "").split("/")[:-1] if part not in _CONTROL]
    return "/".join(parts) or None
