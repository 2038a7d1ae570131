"""Graph launches with the work that they replay, and how many layers it has, told by what repeats."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.intervals import union
from roofterm.analysis.steps import US
from roofterm.results import GraphReplay
from roofterm_parsers.profile import HOST_CALL_KINDS, Profile

I64 = NDArray[np.int64]

GRAPH_LAUNCH = r"GraphLaunch"
"""cudaGraphLaunch, cuGraphLaunch, hipGraphLaunch and their variants."""

LONGEST_PERIOD = 4096
"""No layer is looked for that has more pieces of work."""

REPLAYS = pl.Schema(
    {
        "launch": pl.UInt32,  # slice of the call
        "source": pl.UInt16,
        "start_ps": pl.Int64,  # of the call
        "end_ps": pl.Int64,
        "pieces": pl.UInt32,  # pieces of device work
        "first_ps": pl.Int64,  # start of the first piece; null: none in the file
        "last_ps": pl.Int64,  # end of the last one
        "busy_ps": pl.Int64,  # union of the pieces
        "work_key": pl.UInt32,  # equal for launches that replay the same kernels in the same order
    }
)
"""One row a graph launch, in order of source and start."""


class Repetition(NamedTuple):
    """A run of `times` equal stretches of `length` each, beginning at `start`."""

    start: int
    length: int
    times: int

    @property
    def text(self) -> str:
        return f"{self.times} x {self.length}"


def graph_replays(profile: Profile) -> pl.DataFrame:
    """The graph launches of a profile, schema `REPLAYS`."""
    calls = _graph_calls(profile)
    if calls.size == 0:
        return pl.DataFrame(schema=REPLAYS)
    slices = profile.slices
    start, dur = slices["start_ps"].to_numpy()[calls], slices["dur_ps"].to_numpy()[calls]
    source = profile.tracks["source"].to_numpy()[slices["track"].to_numpy()[calls]]
    order = np.lexsort((start, source))
    calls, start, dur, source = calls[order], start[order], dur[order], source[order]
    runs = replayed_work(profile, calls)
    names = slices["name"].to_numpy()
    begin = slices["start_ps"].to_numpy()
    end = begin + slices["dur_ps"].to_numpy()
    keys: dict[bytes, int] = {}
    return pl.DataFrame(
        {
            "launch": calls.astype(np.uint32),
            "source": source,
            "start_ps": start,
            "end_ps": start + dur,
            "pieces": [run.size for run in runs],
            "first_ps": [int(begin[run].min()) if run.size else None for run in runs],
            "last_ps": [int(end[run].max()) if run.size else None for run in runs],
            "busy_ps": [union(begin[run], end[run]).length for run in runs],
            "work_key": [keys.setdefault(names[run].tobytes(), len(keys)) for run in runs],
        },
        schema=REPLAYS,
    )


def replay_groups(profile: Profile, capture: list[str | None]) -> list[GraphReplay]:
    """The graphs that a profile replays, most device time first: one record for launches of the same work from the same capture.

    `capture`: for each row of `graph_replays` the capture trace that it was joined to.
    """
    replays = graph_replays(profile).with_columns(capture=pl.Series(capture, dtype=pl.String))
    names = profile.slices["name"].to_numpy()
    groups = []
    for (_, path), rows in replays.group_by("work_key", "capture", maintain_order=True):
        run = replayed_work(profile, rows["launch"].head(1).to_numpy())[0]
        found = repetition(names[run])
        busy = float(rows["busy_ps"].sum()) / rows.height / US
        groups.append(GraphReplay(rows.height, run.size, busy, found.text if found else None, None if path is None else str(path)))
    return sorted(groups, key=lambda group: -group.launches * group.device_us)


def repetition(codes: NDArray[np.generic]) -> Repetition | None:
    """The repetition that covers most of a sequence; of equally good ones that of the shortest stretch. None: nothing repeats."""
    best: Repetition | None = None
    for length in range(1, min(codes.size // 2, LONGEST_PERIOD) + 1):
        start, run = _longest_run(codes[:-length] == codes[length:])
        times = (run + length) // length
        if times >= 2 and (best is None or times * length > best.times * best.length):
            best = Repetition(start, length, times)
    return best


def _longest_run(same: NDArray[np.bool_]) -> tuple[int, int]:
    """Start and length of the longest run of True, the first of equals."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], same, [False])).astype(np.int8)))
    if edges.size == 0:
        return 0, 0
    start, end = edges[::2], edges[1::2]
    longest = int(np.argmax(end - start))
    return int(start[longest]), int(end[longest] - start[longest])


def _graph_calls(profile: Profile) -> I64:
    wanted = profile.names["text"].str.contains(GRAPH_LAUNCH).arg_true().to_numpy()
    if wanted.size == 0:
        return np.zeros(0, np.int64)
    slices = profile.slices
    mine = np.isin(slices["name"].to_numpy(), wanted) & np.isin(slices["kind"].to_numpy(), np.array(HOST_CALL_KINDS, np.uint8))
    # A driver call inside the runtime call of the same launch is the same launch: the one with work is kept, else the outer.
    calls = np.flatnonzero(mine)
    parent = slices["parent"].to_numpy()[calls]
    nested = np.isin(parent, calls)
    working = np.isin(calls, profile.links["launch"].drop_nulls().to_numpy())
    outer = np.isin(calls, parent[nested & working])
    return calls[(working | ~nested) & ~outer]


def replayed_work(profile: Profile, launches: NDArray[np.integer]) -> list[I64]:
    """The work of each launch: by the graph's node numbers where every piece has one, else in order of start."""
    links = profile.links.filter(pl.col("launch").is_in(pl.Series(launches, dtype=pl.UInt32).implode())).select("launch", slice="work")
    links = links.join(profile.kernels.select("slice", "graph_node"), on="slice", how="left", maintain_order="left")
    links = links.with_columns(start_ps=profile.slices["start_ps"][links["slice"]])
    numbered = pl.col("graph_node").is_not_null().all().over("launch")
    links = links.with_columns(node=pl.when(numbered).then("graph_node").otherwise(0)).sort("launch", "node", "start_ps", "slice")
    runs = {int(key[0]): group["slice"].to_numpy().astype(np.int64) for key, group in links.group_by("launch", maintain_order=True)}
    nothing = np.zeros(0, np.int64)
    return [runs.get(int(launch), nothing) for launch in launches]
