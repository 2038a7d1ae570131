"""What the user's `config.toml` says of the explorer: `[explorer]`, how it looks and where it begins, and `[keys]`.

[explorer]
theme = "light"          # auto, dark, light, contrast, colorblind, ansi
start = "ops"            # the screen to begin with, where nothing is brought back
glyphs = "auto"          # auto, braille, quadrant, ascii
color = "auto"           # auto, none, 16, 256, truecolor
mouse = false
restore = true           # bring back where a profile was left

[keys]                   # action id = "keys, apart by blanks"; the palette shows the ids
sort = "ctrl+s"
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Literal, get_args

import msgspec

from roofterm.config_file import config_path, known_keys, read_tables
from roofterm.tui import keymap
from roofterm.tui.capabilities import Colour, GlyphSet
from roofterm.tui.options import ThemeName
from roofterm_parsers.errors import ProfileError

Auto = Literal["auto"]


class Look(msgspec.Struct, frozen=True):
    """The table `[explorer]`; `auto` is what fits the terminal."""

    theme: Auto | ThemeName = "auto"
    start: str = keymap.SCREENS[0][0]
    glyphs: Auto | GlyphSet = "auto"
    color: Auto | Colour = "auto"
    mouse: bool = False
    restore: bool = True


CHOICES: dict[str, tuple[str, ...]] = {
    "theme": ("auto", *get_args(ThemeName)),
    "start": tuple(name for name, _, _ in keymap.SCREENS if name != "compare"),
    "glyphs": ("auto", *get_args(GlyphSet)),
    "color": ("auto", *get_args(Colour)),
}


class Config(msgspec.Struct, frozen=True):
    look: Look = Look()
    keys: dict[str, str] = {}
    """keys by action id, as `keymap.check` has found them good"""


def load_config(path: Path | None = None) -> Config:
    """The user's wishes; defaults without a file. Raises ProfileError that names the place and the nearest valid key."""
    path = path or config_path()
    tables = read_tables(path)
    return Config(_look(tables.get("explorer", {}), str(path)), _keys(tables.get("keys", {}), str(path)))


def _look(table: dict[str, object], path: str) -> Look:
    where = f"{path}, [explorer]"
    known_keys(table, Look.__struct_fields__, where, path)
    for name, value in table.items():
        choices = CHOICES.get(name)
        if choices is not None and value not in choices:
            near = get_close_matches(str(value).casefold(), choices, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"it is one of {', '.join(choices)}"
            raise ProfileError(f"{where}: `{name}` cannot be {value!r}; {hint}", path)
        if choices is None and not isinstance(value, bool):
            raise ProfileError(f"{where}: `{name}` must be true or false, not {value!r}", path)
    return msgspec.convert(table, Look)


def _keys(table: dict[str, object], path: str) -> dict[str, str]:
    where = f"{path}, [keys]"
    keys: dict[str, str] = {}
    for name, value in table.items():
        if not isinstance(value, str):
            raise ProfileError(f'{where}: `{name}` must be text: write {name} = "k", several keys apart by blanks', path)
        keys[name] = value
    try:
        keymap.check(keys)
    except keymap.KeymapError as fault:
        raise ProfileError(f"{where}: {fault}", path) from fault
    return keys
