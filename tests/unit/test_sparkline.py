from __future__ import annotations

from roofterm.tui.stacked import sparkline
from roofterm.tui.widgets.glyphs import Look

ASCII = Look(glyphs="ascii")


def test_each_value_is_one_of_seven_levels_of_the_largest():
    assert sparkline([0.0, 1.0, 3.5, 7.0], 10, ASCII) == "_.=#"


def test_more_values_than_cells_show_the_last():
    assert sparkline([7.0] + [1.0] * 8 + [7.0], 8, ASCII) == "." * 7 + "#"


def test_a_course_that_would_be_cut_to_a_few_values_is_left_out():
    assert sparkline([1.0] * 6, 5, ASCII) == ""
    assert sparkline([1.0] * 100, 5, ASCII) == ""
    assert sparkline([1.0, 1.0], 2, ASCII) == "##"
