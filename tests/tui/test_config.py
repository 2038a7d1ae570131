"""`config.toml`, the explorer's part: what it sets, and what is wrong with it in one sentence with the nearest valid name."""

from __future__ import annotations

import pytest

from roofterm.tui import config
from roofterm.tui.config import Config, Look, load_config
from roofterm_parsers.errors import ProfileError

GOOD = """
[explorer]
theme = "light"
start = "ops"
glyphs = "ascii"
color = "16"
mouse = true
restore = false

[keys]
sort = "ctrl+s"
"next" = "n f3"

[devices.mine]
peaks_tflops = { bf16 = 100 }
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "roofterm").mkdir()
    return tmp_path / "roofterm" / "config.toml"


def test_everything_that_can_be_set_is_read(home):
    home.write_text(GOOD)
    look = Look(theme="light", start="ops", glyphs="ascii", color="16", mouse=True, restore=False)
    assert load_config() == Config(look, {"sort": "ctrl+s", "next": "n f3"})


def test_no_file_and_an_empty_one_mean_the_defaults(home):
    assert load_config() == Config()
    home.write_text("")
    assert load_config() == Config()


def test_the_example_of_the_module_is_valid(home):
    home.write_text(config.__doc__.split("\n\n", 1)[1])
    assert load_config().look.theme == "light"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("theme = 'light'", "there is no `theme`; known are explorer, keys, devices"),
        ("[explorr]", "there is no `explorr`; did you mean `explorer`"),
        ("[explorer]\nthem = 'light'", r"\[explorer\]: there is no `them`; did you mean `theme`"),
        ("[explorer]\ntheme = 'lihgt'", "`theme` cannot be 'lihgt'; did you mean 'light'"),
        ("[explorer]\ntheme = 5", "`theme` cannot be 5; it is one of auto, dark"),
        ("[explorer]\nstart = 'op'", "did you mean 'ops'"),
        ("[explorer]\nmouse = 1", "`mouse` must be true or false, not 1"),
        ("explorer = 1", r"write \[explorer\]"),
        ("[keys]\nsrot = 'x'", r"\[keys\]: no action is called 'srot': did you mean 'sort'"),
        ("[keys]\nsort = 5", "`sort` must be text"),
        ("[keys]\nsort = 'r'", "given to both 'sort' and 'reverse' on Ops"),
        ("[keys", "not valid TOML"),
    ],
)
def test_what_is_wrong_is_one_sentence(home, text, says):
    home.write_text(text)
    with pytest.raises(ProfileError, match=says) as told:
        load_config()
    assert str(home) in str(told.value)
    assert "\n" not in str(told.value)
