"""Every theme can be read: contrast by WCAG 2.2, on the background and under the cursor."""

from __future__ import annotations

import pytest
from rich.style import Style

from roofterm.tui import themes
from roofterm.tui.category_colours import category_key
from roofterm.tui.legible import LEAST_RATIO, ratio
from roofterm.tui.widgets.lines import under

PAINTED = [name for name in themes.NAMES if name != "ansi"]
INKS = ("text", "muted", "strong", "accent", "good", "warn", "bad", "header", "tab", "key")


def pair(style: Style) -> tuple[str, str]:
    assert style.color is not None
    assert style.bgcolor is not None
    return style.color.name, style.bgcolor.name


def test_the_ratio_is_wcags():
    """Black on white is 21, a colour on itself 1; #767676 on white is the lightest grey that reaches 4.5."""
    assert ratio("#000000", "#ffffff") == pytest.approx(21)
    assert ratio("#123456", "#123456") == 1
    assert ratio("#767676", "#ffffff") > 4.5 > ratio("#777777", "#ffffff")


@pytest.mark.parametrize("theme", PAINTED)
def test_text_of_every_role_is_read_on_the_background(theme):
    palette = themes.palette(theme)
    assert {role: ratio(*pair(getattr(palette, role))) for role in INKS if ratio(*pair(getattr(palette, role))) < 4.5} == {}
    assert ratio(*pair(palette.cursor)) >= 4.5
    assert ratio(*pair(palette.blur)) >= 4.5
    assert ratio(*pair(palette.tab_on)) >= 4.5


@pytest.mark.parametrize("theme", PAINTED)
def test_every_category_is_told_from_the_background(theme):
    _, background = pair(themes.palette(theme).text)
    assert [c for c in set(category_key(theme).colours) if ratio(c, background) < LEAST_RATIO] == []


@pytest.mark.parametrize("theme", PAINTED)
def test_nothing_is_lost_under_the_cursor(theme):
    palette = themes.palette(theme)
    for cursor in (palette.cursor, palette.blur):
        styles = [getattr(palette, role) for role in INKS] + [Style(color=colour) for colour in category_key(theme).colours]
        assert [style for style in styles if ratio(*pair(under(style, cursor))) < LEAST_RATIO] == []


def test_the_high_contrast_theme_has_more_of_it():
    assert ratio(*pair(themes.palette("contrast").text)) == pytest.approx(21)
    assert all(ratio(*pair(getattr(themes.palette("contrast"), role))) >= 7 for role in INKS)
