"""Profiles put together: rows shifted, dictionaries united, times on one axis, and nothing linked across sources."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from roofterm_parsers.errors import ProfileError
from roofterm_parsers.merging import MOST_APART_NS, REFERENCES, TIMES, UNITED, merge
from roofterm_parsers.profile import FRAMES, ROOT, Profile, Source, Warning, empty

DAY_NS = 86_400 * 10**9
SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
PLAIN_INTEGERS = {(frame, column) for frame in ("kernels", "launches") for column in SHAPE} | {
    ("kernels", "registers"),
    ("slices", "depth"),
}
"""Columns of the types that row numbers have, which are counts."""
LENGTHS = {("slices", "dur_ps"), ("steps", "dur_ps"), ("device_clock", "dur_ps"), ("hlo_events", "dma_stall_ps")}
OF_A_LINE = {("allocations", "line_ps")}
"""counted from the zero of a thread's own line, which no merge moves"""


OF_INSTRUCTIONS = ("hlo_facts", "hlo_roles")
"""Side tables of hlo_ops: an instruction of two hosts keeps one row."""


def made(seed: int, zero_unix_ns: int | None, rows: int = 30) -> Profile:
    """A profile with random rows in every frame, whose references are all in range; slices nest two deep on each track."""
    chance = np.random.default_rng(seed)
    heights = {frame: int(chance.integers(1, rows)) for frame in FRAMES} | {"tracks": 3, "slices": rows, "sources": 1}
    profile = Profile(sources=[Source(path=f"{seed}.json", format="kineto", container="plain")], zero_unix_ns=zero_unix_ns)
    for frame, schema in FRAMES.items():
        n = heights[frame]
        columns = {}
        for column, kind in schema.items():
            target = REFERENCES.get(frame, {}).get(column)
            if target is not None:
                values = pl.Series(chance.integers(0, heights[target], n))
            elif kind == pl.String:
                values = pl.Series([f"text {value}" for value in chance.integers(0, 4, n)])
            elif kind == pl.Boolean:
                values = pl.Series(chance.integers(0, 2, n) == 1)
            else:
                values = pl.Series(chance.integers(0, 100, n))
            if column in ("launch", "op", "device", "signature", "sequence", "external_id") and frame not in ("hlo", *OF_INSTRUCTIONS):
                values = values.set(pl.Series(chance.integers(0, 3, n) == 0), None)
            columns[column] = values.alias(column).cast(kind)
        setattr(profile, frame, pl.DataFrame(columns, schema=schema))
    tracks = np.sort(chance.integers(0, 3, rows)).astype(np.uint32)
    parents = np.where(np.arange(rows) % 3 == 0, ROOT, np.arange(rows) - 1).astype(np.uint32)
    slices = profile.slices.with_columns(track=pl.Series(tracks), parent=pl.Series(parents), start_ps=pl.int_range(rows) * 1000)
    profile.slices = slices.sort("track", "start_ps").cast(FRAMES["slices"])
    for frame in OF_INSTRUCTIONS:
        setattr(profile, frame, getattr(profile, frame).unique("op", maintain_order=True))
    profile.check()
    return profile


def test_one_profile_is_returned_as_it_is() -> None:
    profile = made(1, None)
    assert merge([profile]) is profile


@pytest.mark.parametrize("seeds", [(1, 2), (3, 4, 5)])
def test_every_row_of_every_part_is_found_again(seeds: tuple[int, ...]) -> None:
    parts = [made(seed, 10**18 + 7 * seed) for seed in seeds]
    merged = merge(parts)
    merged.check()
    start = dict.fromkeys((*FRAMES, "sources"), 0)
    for part in parts:
        shift_ps = 1000 * 7 * (int(part.sources[0].path.split(".")[0]) - seeds[0])
        for frame, schema in FRAMES.items():
            if frame in (*UNITED, *OF_INSTRUCTIONS):
                continue
            ours, theirs = part.frames()[frame], merged.frames()[frame].slice(start[frame], part.frames()[frame].height)
            for column in schema:
                target = REFERENCES.get(frame, {}).get(column)
                then, now = ours[column], theirs[column]
                if target in UNITED:
                    assert rows_of(merged, target, now).equals(rows_of(part, target, then)), (frame, column)
                elif column == "parent":
                    assert [parent if parent == ROOT else parent + start["slices"] for parent in then] == now.to_list()
                elif (frame, column) == ("flows", "id"):
                    assert [f"{start['sources']}/{flow}" for flow in then] == now.to_list()
                elif target is not None:
                    assert (then.cast(pl.Int64) + start[target]).equals(now.cast(pl.Int64), check_names=True), (frame, column)
                elif TIMES.get(frame) == column:
                    assert (then + shift_ps).equals(now), (frame, column)
                else:
                    assert then.equals(now), (frame, column)
        for frame in FRAMES:
            start[frame] += part.frames()[frame].height
        start["sources"] += 1
    assert merged.sources == [part.sources[0] for part in parts]


def rows_of(profile: Profile, frame: str, rows: pl.Series) -> pl.DataFrame:
    wanted = rows.to_frame("row").with_columns(pl.col("row").cast(pl.UInt32))
    return wanted.join(profile.frames()[frame].with_row_index("row"), on="row", how="left", maintain_order="left").drop("row")


def test_every_column_that_numbers_rows_is_known_to_the_merge() -> None:
    """A new column of a row number's type must be put into REFERENCES, or here among the counts."""
    numbers = {(frame, column) for frame, schema in FRAMES.items() for column, kind in schema.items() if kind in (pl.UInt16, pl.UInt32)}
    assert numbers - {(frame, column) for frame, columns in REFERENCES.items() for column in columns} == PLAIN_INTEGERS


def test_every_column_of_times_is_known_to_the_merge() -> None:
    times = {(frame, column) for frame, schema in FRAMES.items() for column in schema if column.endswith("_ps")}
    assert times - set(TIMES.items()) == LENGTHS | OF_A_LINE


def test_equal_names_become_one_and_unlike_ones_stay_apart() -> None:
    a, b = made(1, 0), made(2, 0)
    a.names = pl.DataFrame({"text": ["x", "y"], "cat": ["kernel", ""]}, schema=FRAMES["names"])
    b.names = pl.DataFrame({"text": ["y", "x", "z"], "cat": ["", "cpu_op", ""]}, schema=FRAMES["names"])
    for part in (a, b):
        part.slices = part.slices.with_columns(name=pl.col("name") % part.names.height)
        part.instants = part.instants.with_columns(name=pl.col("name") % part.names.height)
    merged = merge([a, b])
    assert merged.names.rows() == [("x", "kernel"), ("y", ""), ("x", "cpu_op"), ("z", "")]
    assert merged.slices["name"].slice(a.slices.height).to_list() == [(1, 2, 3)[name] for name in b.slices["name"]]


def test_hlo_ops_of_two_hosts_are_one_also_where_facts_are_unknown() -> None:
    op = {"program_id": 7, "program": "jit_f", "name": "fusion.1", "flops": 2.5}
    a, b = made(1, 0), made(2, 0)
    for part in (a, b):
        part.hlo_ops = pl.DataFrame([op], schema=FRAMES["hlo_ops"])
        part.hlo = pl.DataFrame({"slice": [0], "op": [0]}, schema=FRAMES["hlo"])
        for frame in OF_INSTRUCTIONS:
            setattr(part, frame, empty(frame))
    merged = merge([a, b])
    assert merged.hlo_ops.height == 1
    assert merged.hlo["op"].to_list() == [0, 0]
    assert merged.hlo["slice"].to_list() == [0, a.slices.height]


def test_one_set_of_facts_is_kept_for_an_op_of_two_hosts() -> None:
    a, b = made(3, 0), made(3, 0)
    merged = merge([a, b])
    for frame in OF_INSTRUCTIONS:
        assert merged.frames()[frame]["op"].is_unique().all()
        assert merged.frames()[frame]["op"].to_list() == a.frames()[frame]["op"].to_list()


def one_slice(zero_unix_ns: int | None, start_ps: int = 0) -> Profile:
    profile = Profile(sources=[Source(path=f"{zero_unix_ns}.json", format="kineto", container="plain")], zero_unix_ns=zero_unix_ns)
    profile.tracks = pl.DataFrame([{"kind": 0, "source": 0, "process": "1", "thread": "1"}], schema=FRAMES["tracks"])
    row = {"start_ps": start_ps, "dur_ps": 1, "track": 0, "name": 0, "kind": 0, "parent": ROOT, "depth": 0, "offset": 0}
    profile.slices = pl.DataFrame([row], schema=FRAMES["slices"])
    profile.names = pl.DataFrame({"text": ["x"], "cat": [""]}, schema=FRAMES["names"])
    return profile


def test_times_are_aligned_by_the_wall_clock_to_the_picosecond() -> None:
    """Two ranks on either side of a boundary of baseTimeNanoseconds: base plus time counts, not the time in the file."""
    early, late = one_slice(1_700_000_000_000_000_123, start_ps=7), one_slice(1_700_000_000_000_001_000, start_ps=9)
    merged = merge([late, early])
    assert merged.zero_unix_ns == 1_700_000_000_000_000_123
    assert merged.slices["start_ps"].to_list() == [9 + (1_000 - 123) * 1000, 7]
    assert merged.warnings == []


def test_without_a_clock_in_every_file_each_starts_at_zero_and_a_warning_says_so() -> None:
    merged = merge([one_slice(10**18, 5), one_slice(None, 6)])
    assert merged.slices["start_ps"].to_list() == [5, 6]
    assert merged.zero_unix_ns is None
    assert [warning.code for warning in merged.warnings] == ["clock"]
    assert "None.json" in merged.warnings[0].message


def test_files_too_far_apart_for_one_axis_are_not_aligned() -> None:
    assert merge([one_slice(0), one_slice(MOST_APART_NS)]).slices["start_ps"].to_list() == [0, 50 * DAY_NS * 1000]
    far = merge([one_slice(0, 1), one_slice(MOST_APART_NS + 1, 2)])
    assert far.slices["start_ps"].to_list() == [1, 2]
    assert "50 days apart" in far.warnings[0].message


def test_warnings_of_all_parts_are_kept() -> None:
    a, b = one_slice(0), one_slice(0)
    a.warnings, b.warnings = [Warning("cut", "a")], [Warning("cut", "b")]
    assert [warning.message for warning in merge([a, b]).warnings] == ["a", "b"]


def test_parts_are_left_as_they_were() -> None:
    a, b = made(1, 5), made(2, 900)
    before = [frame.clone() for part in (a, b) for frame in part.frames().values()]
    merge([a, b])
    assert all(was.equals(now) for was, now in zip(before, [frame for part in (a, b) for frame in part.frames().values()], strict=True))


def test_consumed_parts_give_the_same_and_are_let_go_of() -> None:
    expected = merge([made(1, 5), made(2, 900)])
    a, b = made(1, 5), made(2, 900)
    merged = merge([a, b], consumed=True)
    assert all(frame.equals(merged.frames()[name], null_equal=True) for name, frame in expected.frames().items())
    assert all(frame.height == 0 for part in (a, b) for frame in part.frames().values())


def test_more_rows_than_a_row_number_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roofterm_parsers.merging.ROOT", 59)
    with pytest.raises(ProfileError, match="60 slices, and one profile holds 59: open fewer"):
        merge([made(1, 0), made(2, 0)])


def test_empty_side_tables_merge() -> None:
    merged = merge([one_slice(0), one_slice(1000)])
    merged.check()
    assert merged.kernels.height == 0
    assert merged.tracks["source"].to_list() == [0, 1]
