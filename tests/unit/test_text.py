from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from roofterm.text.safe import ascii_text, cell_width, fit, safe_text
from roofterm.text.units import bytes_text, count, duration_us, pct, si


def test_escape_codes_become_visible_text() -> None:
    assert safe_text("a\x1b[2Jb\x07") == "a\\x1b[2Jb\\x07"


def test_bidi_overrides_become_visible_and_joiners_vanish() -> None:
    assert safe_text("a\u202eb") == "a\\u202eb"
    assert safe_text("a\u200db\ufe0f") == "ab"


def test_markup_is_left_as_it_is() -> None:
    assert safe_text("[bold]x[/bold]") == "[bold]x[/bold]"


def test_wide_characters_count_two_cells() -> None:
    assert cell_width("行列x") == 5
    assert safe_text("行列積", 4) == "行…"
    assert fit("行", 4) == "行  "


@given(st.text(), st.integers(1, 40))
def test_no_text_gets_a_control_or_format_character_through(text: str, width: int) -> None:
    shown = fit(text, width)
    assert not {unicodedata.category(c) for c in shown} & {"Cc", "Cf", "Cs", "Mn", "Me", "Zl", "Zp"}
    assert cell_width(shown) == width


@given(st.text())
def test_ascii_text_is_ascii(text: str) -> None:
    assert ascii_text(safe_text(text)).isascii()


def test_durations_take_the_unit_that_fits() -> None:
    assert [duration_us(x) for x in (None, 0, 0.0213, 1.024, 412.338, 1289.0, 412338.0, 2.5e6)] == [
        "--", "0 us", "21.30 ns", "1.024 us", "412.3 us", "1.289 ms", "412.3 ms", "2.500 s",
    ]  # fmt: skip


def test_rates_and_sizes() -> None:
    assert si(989.4e12, "FLOP/s") == "989.4 TFLOP/s"
    assert si(3.352e12) == "3.352T"
    assert si(999_999) == "1.000M"
    assert si(None) == "--"
    assert si(0) == "0"
    assert bytes_text(85018279936) == "79.18 GiB"
    assert bytes_text(512) == "512 B"
    assert count(9612) == "9,612"


def test_shares_are_never_clipped() -> None:
    assert [pct(x) for x in (None, 0.0, 0.004, 0.03, 87.44, 107.25, 107800.0)] == [
        "--",
        "0.0%",
        "<0.01%",
        "0.03%",
        "87.4%",
        "107.2%",
        "107800%",
    ]
