"""The roofline plot: where a point, a roof and a ridge land, worked out by hand, and what holds for any points."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from math import inf, log10, nan

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofterm.results import Roof
from roofterm.tui.widgets.glyphs import Look
from roofterm.tui.widgets.plot_adapter import MEMORY, PlotGrid, PlotSpec, View, draw, fit
from roofterm.tui.widgets.plot_points import MIDDLE, REST, TOP, memory_levels, points_of
from roofterm.tui.widgets.plot_roofs import RoofLine, launch_text, roof_lines
from tests.unit.roofline_rows import KEY, compute, memory, row

ASCII = Look("ascii", colour=False)
NOTHING = points_of([], KEY, "hbm")


def lines_of(grid: PlotGrid) -> list[str]:
    return ["".join(map(chr, line)) for line in grid.chars.tolist()]


def test_a_small_plot_as_worked_out_by_hand() -> None:
    """13 columns for 3 decades are 4 a decade, 9 rows for 4 decades are 2 a decade.

    Roofs of 1e10 B/s and 1e12 FLOP/s meet at 100 FLOP/byte: column 8, row 6 from below. The slope begins at (1, 1e10):
    column 0, row 2. The GEMM at 10^1.5 FLOP/byte and 1e11 FLOP/s is in column 6, row 4. The copy moves 10^9.5 B/s: on the
    left edge (1 FLOP/byte) that is the height of 10^9.5 FLOP/s, row 1.
    """
    rows = [
        row(category="gemm", intensity=10**1.5, flops_per_s=1e11),
        row(category="copy", bytes_per_s=10**9.5),
    ]
    roofs = (RoofLine("compute", "", 12.0, 2.0), RoofLine("memory", "", 10.0, 2.0))
    grid = draw(PlotSpec(18, 11, View(0, 3, 9, 13), points_of(rows, KEY, "hbm"), KEY, roofs, ASCII))
    assert lines_of(grid) == [
        " 10T+             ",
        "    |             ",
        "  1T+        -----",
        "    |      //     ",
        "100G+    //g      ",
        "    |  //         ",
        " 10G+//           ",
        "    |>            ",
        "  1G+             ",
        "    ++-------+----",
        "     1      100   ",
    ]


def test_points_of_a_baseline_stand_beside_and_give_way() -> None:
    """On the plot above the baseline's GEMM ran at 1e10 FLOP/s: column 6, row 2; its copy at the same place as the GEMM now."""
    now = [row(category="gemm", intensity=10**1.5, flops_per_s=1e11)]
    before = [
        row(category="gemm", intensity=10**1.5, flops_per_s=1e10),
        row(category="copy", intensity=10**1.5, flops_per_s=1e11),
        row(category="gemm", intensity=10**9, flops_per_s=1e10),
    ]
    spec = PlotSpec(18, 11, View(0, 3, 9, 13), points_of(now, KEY, "hbm"), KEY, (), ASCII, ghosts=points_of(before, KEY, "hbm"))
    grid = draw(spec)
    assert lines_of(grid)[6] == " 10G+      %      "
    assert lines_of(grid)[4] == "100G+      g      "
    assert grid.owner[6, 11] == -1
    assert sum(line.count("%") for line in lines_of(grid)) == 1


def test_cells_and_places_are_one_map() -> None:
    """61 columns for 6 decades are 10 a decade, 21 rows for 5 decades are 4 a decade."""
    grid = draw(PlotSpec(66, 23, View(-2, 4, 9, 14), NOTHING, KEY, (), ASCII))
    assert (grid.left, grid.columns, grid.rows) == (5, 61, 21)
    assert grid.cell(0, 12) == (5 + 20, 20 - 12)
    assert grid.cell(-2, 9) == (5, 20)
    assert grid.cell(4, 14) == (5 + 60, 0)
    assert list(grid.place(5 + 20, 20 - 12)) == pytest.approx([0, 12])


def test_a_braille_cell_holds_the_dot_of_its_point() -> None:
    """122 by 84 dots: the middle of the window is dot (61, 42) from below, the lower right one of cell (30, 10), dots 0-3 up.

    x: floor(0.5 + 121/2) = 61, the right dot of column 30. y: floor(0.5 + 83/2) = 42 = 4 * 10 + 2, the third dot from below.
    """
    heavy = row(category="norm", intensity=10.0**3, flops_per_s=1e13, time_us=1000)
    light = row(category="gemm", intensity=10.0, flops_per_s=10**11.5, time_us=1)
    grid = draw(PlotSpec(66, 23, View(-2, 4, 9, 14), points_of([heavy, light], KEY, "hbm"), KEY, (), Look()))
    column, line = grid.cell(1, 11.5)
    assert (column, line) == (5 + 30, 20 - 10)
    assert chr(grid.chars[line, column]) == "⠐"  # dot 5: right, second from above
    assert chr(grid.chars[grid.cell(3, 13)[::-1]]) == "n"  # most of the time: a letter


def test_quadrants_show_the_same_middle() -> None:
    """122 by 42 dots: the middle is dot (61, 21): right dot of column 30, upper dot of row 10."""
    heavy = row(category="norm", intensity=10.0**3, flops_per_s=1e13, time_us=1000)
    light = row(category="gemm", intensity=10.0, flops_per_s=10**11.5, time_us=1)
    grid = draw(PlotSpec(66, 23, View(-2, 4, 9, 14), points_of([heavy, light], KEY, "hbm"), KEY, (), Look("quadrant")))
    column, line = grid.cell(1, 11.5)
    assert (column, line) == (5 + 30, 20 - 10)
    assert chr(grid.chars[line, column]) == "▝"


@pytest.mark.parametrize("look", [Look(), Look("quadrant"), ASCII])
def test_the_ridge_lies_on_both_roofs(look: Look) -> None:
    roofs = tuple(roof_lines([compute(989.4e12), memory(3.352e12)], "bound", frozenset({"hbm"}), frozenset({"bf16"})))
    ridge = log10(989.4e12 / 3.352e12)
    assert [roof.ridge for roof in roofs] == [pytest.approx(ridge), pytest.approx(ridge)]
    grid = draw(PlotSpec(80, 22, View(-2, 4, 10, 15.3), NOTHING, KEY, roofs, look))
    assert _inked(grid, ridge, log10(989.4e12))
    assert _inked(grid, ridge - 1, log10(989.4e12) - 1)
    assert _inked(grid, ridge + 1, log10(989.4e12))
    assert not _inked(grid, ridge + 1, log10(989.4e12) - 1)


def _inked(grid: PlotGrid, x: float, y: float) -> bool:
    """Whether a line passes through a cell or the one beside it: plotext cuts the dots of a slope down, so it may be one off."""
    column, line = grid.cell(x, y)
    return bool((grid.chars[line, column - 1 : column + 2] != ord(" ")).any())


def test_the_point_with_most_time_owns_its_cell() -> None:
    rows = [
        row("short", category="norm", intensity=10, flops_per_s=1e11, time_us=1),
        row("long", intensity=10, flops_per_s=1e11, time_us=9),
    ]
    grid = draw(PlotSpec(40, 12, View(0, 3, 9, 13), points_of(rows, KEY, "hbm"), KEY, (), ASCII))
    column, line = grid.cell(1, 11)
    assert grid.owner[line, column] == 1
    assert chr(grid.chars[line, column]) == "g"


def test_the_nearest_point_counts_a_cell_as_twice_as_high_as_wide() -> None:
    """Points three columns right and two rows up of the cell asked for: 3 against 4 columns' widths."""
    view = View(0, 6, 0, 5)  # 10 columns and 4 rows a decade, as above
    rows = [row(intensity=10**3.3, flops_per_s=10**2.5), row(intensity=10**3.0, flops_per_s=10**3.0)]
    grid = draw(PlotSpec(66, 23, view, points_of(rows, KEY, "hbm"), KEY, (), ASCII))
    column, line = grid.cell(3.0, 2.5)
    assert (grid.cell(3.3, 2.5), grid.cell(3.0, 3.0)) == ((column + 3, line), (column, line - 2))
    assert grid.nearest(column, line) == 0
    assert grid.towards(column, line, 1, 0) == 0
    assert grid.towards(column, line, 0, -1) == 1
    assert grid.towards(column, line, -1, 0) is None


def test_rows_without_a_logarithm_have_no_point() -> None:
    rows = [
        row("zero", intensity=0.0, flops_per_s=0.0),
        row("negative", intensity=-1.0, flops_per_s=1e9),
        row("nan", intensity=nan, flops_per_s=1e9),
        row("infinite", intensity=inf, flops_per_s=1e9),
        row("time only"),
        row("bytes only", bytes_per_s=1e12),
        row("flops only", flops_per_s=1e12),
        row("good", intensity=1.0, flops_per_s=1e9),
    ]
    points = points_of(rows, KEY, "hbm")
    assert np.flatnonzero(np.isfinite(points.x)).tolist() == [7]
    assert np.flatnonzero(np.isfinite(points.rate)).tolist() == [5]
    assert (points.plotted, points.bytes_only, points.time_only) == (1, 1, 6)


def test_tiers_are_shares_of_the_time() -> None:
    # 50 us hold the first half of 100; 45 more reach 95, of which the third began at 90 and is the rest.
    rows = [row(intensity=1.0, flops_per_s=1e9, time_us=t) for t in (5.0, 50.0, 40.0, 5.0)]
    points = points_of(rows, KEY, "hbm")
    assert points.order.tolist() == [1, 2, 0, 3]
    assert points.tier.tolist() == [REST, TOP, MIDDLE, REST]


def test_a_frame_of_rows_gives_the_same_points() -> None:
    rows = [row(intensity=2.0, flops_per_s=1e9, bytes_per_s=5e8), row(category=None, bytes_per_s=1e12)]
    columns = ("time_us", "flops", "flops_per_s", "category", "intensity", "bytes_per_s")
    struct = pl.Struct({"hbm": pl.Float64})
    frame = pl.DataFrame(
        {name: [getattr(r, name) for r in rows] for name in columns}, schema_overrides={"intensity": struct, "bytes_per_s": struct}
    )
    left, right = points_of(frame, KEY, "hbm"), points_of(rows, KEY, "hbm")
    assert left.x.tolist() == pytest.approx(right.x.tolist(), nan_ok=True)
    assert left.rate.tolist() == pytest.approx(right.rate.tolist(), nan_ok=True)
    assert memory_levels(frame) == memory_levels(rows) == ["hbm"]


def test_without_points_the_axes_stand() -> None:
    grid = draw(PlotSpec(30, 8, View(0, 3, 9, 13), NOTHING, KEY, (), ASCII))
    assert (grid.owner == -1).all()
    assert all(line[4] in "|+" for line in lines_of(grid)[:6])
    assert grid.nearest(10, 3) is None


@pytest.mark.parametrize(("width", "height"), [(0, 0), (1, 1), (10, 3), (15, 20), (80, 4)])
def test_too_small_a_plot_is_blank(width: int, height: int) -> None:
    grid = draw(PlotSpec(width, height, View(0, 3, 9, 13), NOTHING, KEY, (), ASCII))
    assert {c for line in lines_of(grid) for c in line} == {" "}


def test_a_far_zoom_keeps_the_roof_in_its_place() -> None:
    """In a window of a thousandth of a decade around its middle, a slope enters at the lower left and leaves at the upper right."""
    roofs = (RoofLine("memory", "", 12.0, 5.0),)
    grid = draw(PlotSpec(46, 23, View(1.0, 1.001, 13.0, 13.001), NOTHING, KEY, roofs, ASCII))
    slope = np.argwhere(grid.style == MEMORY).tolist()
    assert slope[0] == [0, grid.left + grid.columns - 1]
    assert [grid.rows - 1, grid.left] in slope


def test_threads_do_not_draw_on_one_another() -> None:
    specs = [
        PlotSpec(40 + n, 12, View(0, 3 + n, 9, 13), NOTHING, KEY, (RoofLine("memory", f"roof {n}", 10.0, 2.0),), ASCII) for n in range(6)
    ]
    alone = [lines_of(draw(spec)) for spec in specs]
    with ThreadPoolExecutor(6) as pool:
        assert [lines_of(grid) for grid in pool.map(draw, specs)] == alone
    assert len({tuple(lines) for lines in alone}) == len(specs)


positive = st.one_of(st.floats(1e-300, 1e300), st.sampled_from([0.25, 1.0, 1e12]))
some_rows = st.lists(
    st.builds(lambda i, f, t: row(intensity=i, flops_per_s=f, time_us=t), positive, positive, st.floats(0, 1e9)), max_size=20
)


@settings(max_examples=40, deadline=None)
@given(some_rows, st.sampled_from([Look(), Look("quadrant"), ASCII]), st.integers(16, 90), st.integers(5, 30))
def test_points_outside_of_the_fitted_window_are_trifles_and_a_cell_is_owned_by_one_with_as_much_time(
    rows: list, look: Look, width: int, height: int
) -> None:
    points = points_of(rows, KEY, "hbm")
    grid = draw(PlotSpec(width, height, fit(points, ()), points, KEY, (), look))
    whole = sum(one.time_us for one in rows)
    outside = 0
    for at, one in enumerate(rows):
        x, y = log10(one.intensity["hbm"]), log10(one.flops_per_s)
        if not grid.view.holds(x, y):
            outside += 1
            # What takes as long or longer already holds all but the last 0.2 % of the time.
            heavier = sum(other.time_us for place, other in enumerate(rows) if place != at and other.time_us >= one.time_us)
            assert heavier >= (1 - 0.002) * whole * (1 - 1e-9)
            continue
        column, line = grid.cell(x, y)
        assert grid.left <= column < width
        assert 0 <= line < grid.rows
        owner = int(grid.owner[line, column])
        assert owner == at or rows[owner].time_us >= one.time_us
        back_x, back_y = grid.place(column, line)
        assert abs(back_x - x) <= (grid.view.x1 - grid.view.x0) / (grid.columns - 1)
        assert abs(back_y - y) <= (grid.view.y1 - grid.view.y0) / max(grid.rows - 1, 1)
    assert grid.outside == outside


def test_a_trifle_far_away_does_not_squeeze_the_others() -> None:
    """Two ops hold 999 of 1000 us between 10 and 100 FLOP/byte; one of 1 us lies at 1e-6."""
    rows = [row(intensity=10.0, flops_per_s=1e12, time_us=500), row(intensity=100.0, flops_per_s=1e13, time_us=499)]
    near = fit(points_of(rows, KEY, "hbm"), ())
    assert fit(points_of([*rows, row(intensity=1e-6, flops_per_s=1e6, time_us=1)], KEY, "hbm"), ()) == near


# Roofs


def test_a_memory_is_drawn_only_if_an_op_is_bound_there() -> None:
    roofs = [compute(1e15), memory(3e12), memory(12e12, "l2"), Roof("link", "nvlink", None, 450e9, "B/s", "vendor")]
    labels = [line.label for line in roof_lines(roofs, "bound", frozenset({"hbm"}), frozenset({"bf16"}))]
    assert labels == ["1P bf16", "3TB/s HBM"]
    labels = [line.label for line in roof_lines(roofs, "bound", frozenset({"l2"}), frozenset({"bf16"}))]
    assert labels == ["1P bf16", "12TB/s L2", "3TB/s HBM"]
    labels = [line.label for line in roof_lines(roofs, "all", frozenset(), frozenset())]
    assert labels == ["1P bf16", "12TB/s L2", "3TB/s HBM", "450GB/s nvlink"]
    assert roof_lines(roofs, "none", frozenset({"hbm"}), frozenset()) == []


def test_compute_roofs_are_those_of_types_in_use() -> None:
    roofs = [compute(2e15, "fp8"), compute(1e15), compute(67e12, "fp32"), memory(3e12)]
    lines = roof_lines(roofs, "bound", frozenset(), frozenset({"bf16", "fp32"}))
    assert [line.label for line in lines] == ["1P bf16", "67T fp32", "3TB/s HBM"]
    # fp32's own ridge with the memory drawn: 67e12 / 3e12 = 22.3 FLOP/byte.
    assert 10 ** lines[1].ridge == pytest.approx(22.33, abs=0.01)


def test_a_measured_roof_stands_for_the_vendors_and_says_so() -> None:
    roofs = [compute(1e15), compute(0.8e15, source="measured"), memory(3e12)]
    lines = roof_lines(roofs, "bound", frozenset(), frozenset({"bf16"}))
    assert [line.label for line in lines] == ["800T bf16 measured", "3TB/s HBM vendor"]


def test_the_launch_roof_is_a_time() -> None:
    assert launch_text([Roof("launch", None, None, 4.5e-6, "s", "measured")]) == "launch 4.5 us"
    assert launch_text([compute(1e15)]) == ""


def test_a_label_stands_on_no_point() -> None:
    rows = [row(intensity=10 ** (2.5 + k / 40), flops_per_s=1e15, time_us=1 + k) for k in range(60)]
    points = points_of(rows, KEY, "hbm")
    roofs = tuple(roof_lines([compute(1e15), memory(3e12)], "bound", frozenset({"hbm"}), frozenset({"bf16"})))
    bare = draw(PlotSpec(80, 20, View(-1, 4, 10, 15.5), points, KEY, (), ASCII))
    labelled = draw(PlotSpec(80, 20, View(-1, 4, 10, 15.5), points, KEY, roofs, ASCII))
    owned = bare.owner >= 0
    assert (labelled.chars[owned] == bare.chars[owned]).all()
    assert any("1P bf16" in line for line in lines_of(labelled))
    assert any("3TB/s HBM" in line for line in lines_of(labelled))


def test_a_roof_with_less_flat_part_than_its_name_is_named_all_the_same() -> None:
    """A TPU's int4 roof of 3.67e15 over 1.64e12 B/s: its ridge, log10(3.67e15 / 1.64e12) = 3.35, lies just left of the edge."""
    roofs = tuple(roof_lines([compute(3.67e15, "int4"), memory(1.64e12)], "bound", frozenset({"hbm"}), frozenset({"int4"})))
    view = View(-1.5, 3.7, 10, 15.6)
    labelled = draw(PlotSpec(80, 20, view, points_of([], KEY, "hbm"), KEY, roofs, ASCII))
    flat = labelled.left + labelled.columns - labelled.cell(roofs[0].ridge, 15.0)[0]
    assert flat < len(roofs[0].label)
    assert any(line.rstrip().endswith("3.67P int4") for line in lines_of(labelled))
