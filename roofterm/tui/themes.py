"""Themes: dark, light, high contrast, one for colour-blind eyes, and the terminal's own 16 colours.

`palette` gives the Rich styles of everything that is drawn line by line. In the ansi theme nothing paints a background,
which also saves a third of the bytes; there, and without colours, the cursor is reverse video.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from rich.style import Style
from textual.theme import Theme

from roofterm.tui.capabilities import Colour
from roofterm.tui.options import ThemeName

NAMES: tuple[str, ...] = get_args(ThemeName)

_COLOURS: dict[str, dict[str, str]] = {
    "dark": {
        "text": "#c9d1d9",
        "muted": "#808a96",
        "strong": "#f0f6fc",
        "accent": "#6cb6ff",
        "good": "#57c46d",
        "warn": "#e0a93e",
        "bad": "#ff7b72",
        "rule": "#39424e",
        "bar": "#1b222c",
        "background": "#0e1318",
        "cursor": "#27476b",
        "cursor_text": "#ffffff",
        "blur": "#222b36",
    },
    "light": {
        "text": "#24292f",
        "muted": "#66707b",
        "strong": "#000000",
        "accent": "#0a58b8",
        "good": "#17713a",
        "warn": "#8a5a00",
        "bad": "#b3261e",
        "rule": "#c3cad2",
        "bar": "#e9edf1",
        "background": "#fbfcfd",
        "cursor": "#bcd9f7",
        "cursor_text": "#000000",
        "blur": "#e3e8ee",
    },
    "contrast": {
        "text": "#ffffff",
        "muted": "#c8c8c8",
        "strong": "#ffffff",
        "accent": "#56b4e9",
        "good": "#56b4e9",
        "warn": "#f0e442",
        "bad": "#e69f00",
        "rule": "#9a9a9a",
        "bar": "#303030",
        "background": "#000000",
        "cursor": "#f0e442",
        "cursor_text": "#000000",
        "blur": "#4a4a4a",
    },
    "colorblind": {
        "text": "#d6d6d6",
        "muted": "#949494",
        "strong": "#ffffff",
        "accent": "#56b4e9",
        "good": "#56b4e9",
        "warn": "#f0e442",
        "bad": "#e69f00",
        "rule": "#444444",
        "bar": "#202020",
        "background": "#141414",
        "cursor": "#0f4c81",
        "cursor_text": "#ffffff",
        "blur": "#2b2b2b",
    },
}
"""Contrast and colorblind keep to Okabe and Ito's colours (2008), which stay apart in every common colour blindness."""


@dataclass(frozen=True)
class Palette:
    """Styles by role."""

    text: Style
    muted: Style
    strong: Style
    accent: Style
    good: Style
    warn: Style
    bad: Style
    rule: Style
    header: Style
    cursor: Style
    blur: Style
    """the cursor of a list that has no focus"""
    tab: Style
    tab_on: Style
    key: Style


def palette(theme: str) -> Palette:
    """Styles of a theme, by its name in `NAMES`."""
    return _ansi_palette() if theme == "ansi" else _painted_palette(_COLOURS[theme])


def fitting(colour: Colour, asked: str | None) -> str:
    """The theme to start with: the one asked for, if the terminal has its colours."""
    if colour == "none":
        return "ansi"
    if asked in NAMES:
        return asked
    return "ansi" if colour == "16" else "dark"


def textual_themes() -> list[Theme]:
    """The themes as Textual wants them, for what its own widgets draw."""
    return [*(_theme(name, colours) for name, colours in _COLOURS.items()), _ansi_theme()]


def _painted_palette(c: dict[str, str]) -> Palette:
    def ink(colour: str, bold: bool | None = None) -> Style:
        return Style(color=c[colour], bgcolor=c["background"], bold=bold)

    return Palette(
        text=ink("text"),
        muted=ink("muted"),
        strong=ink("strong", bold=True),
        accent=ink("accent"),
        good=ink("good"),
        warn=ink("warn"),
        bad=ink("bad"),
        rule=ink("rule"),
        header=ink("muted", bold=True),
        cursor=Style(color=c["cursor_text"], bgcolor=c["cursor"]),
        blur=Style(color=c["text"], bgcolor=c["blur"]),
        tab=ink("muted"),
        tab_on=Style(color=c["background"], bgcolor=c["accent"], bold=True),
        key=ink("accent", bold=True),
    )


def _ansi_palette() -> Palette:
    return Palette(
        text=Style(color="default"),
        muted=Style(color="default", dim=True),
        strong=Style(color="default", bold=True),
        accent=Style(color="bright_blue"),
        good=Style(color="green"),
        warn=Style(color="yellow"),
        bad=Style(color="red"),
        rule=Style(color="default", dim=True),
        header=Style(color="default", bold=True, underline=True),
        cursor=Style(color="default", reverse=True),
        blur=Style(color="default", bold=True),
        tab=Style(color="default", dim=True),
        tab_on=Style(color="default", bold=True, reverse=True),
        key=Style(color="default", bold=True),
    )


def _theme(name: str, c: dict[str, str]) -> Theme:
    return Theme(
        name=name,
        primary=c["accent"],
        secondary=c["accent"],
        accent=c["accent"],
        foreground=c["text"],
        background=c["background"],
        surface=c["background"],
        panel=c["bar"],
        success=c["good"],
        warning=c["warn"],
        error=c["bad"],
        dark=name != "light",
        variables={
            "rule": c["rule"],
            "muted": c["muted"],
            "bar": c["bar"],
            "block-cursor-foreground": c["cursor_text"],
            "block-cursor-background": c["cursor"],
            "input-cursor-background": c["accent"],
            "input-cursor-foreground": c["background"],
        },
    )


def _ansi_theme() -> Theme:
    return Theme(
        name="ansi",
        ansi=True,
        primary="ansi_blue",
        secondary="ansi_cyan",
        accent="ansi_blue",
        foreground="ansi_default",
        background="ansi_default",
        surface="ansi_default",
        panel="ansi_default",
        boost="ansi_default",
        success="ansi_green",
        warning="ansi_yellow",
        error="ansi_red",
        variables={
            "rule": "ansi_bright_black",
            "muted": "ansi_default",
            "bar": "ansi_default",
            "ansi-background": "ansi_black",
            "ansi-foreground": "ansi_white",
            "border-blurred": "ansi_bright_black",
            "block-cursor-foreground": "ansi_black",
            "block-cursor-background": "ansi_white",
            "input-cursor-background": "ansi_default",
            "input-cursor-foreground": "ansi_default",
            "input-cursor-text-style": "reverse",
        },
    )
