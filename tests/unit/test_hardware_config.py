"""Devices in config.toml: strict, with the nearest valid key in the error."""

from __future__ import annotations

from pathlib import Path

import pytest

from roofterm.config_file import config_path
from roofterm.hardware.config_devices import load_user_devices, match_user_device, parse_user_devices
from roofterm_parsers.errors import ProfileError

GOOD = """
[keys]
quit = "x"

[devices.my-accelerator]
names = ["ARTEMIS"]
units = 64
memory_bytes = 68719476736
peaks_tflops = { bf16 = 177.0, int8 = 354 }
bandwidths_gbps = { hbm = 204.8 }
links_gbps = { pcie = 63 }
note = "from the team's own sheet"
"""


def test_figures_are_given_in_tflops_and_gbps() -> None:
    devices = parse_user_devices(GOOD)
    device = devices["my-accelerator"]
    assert device.peaks() == {"bf16": 177e12, "int8": 354e12}
    assert device.bandwidths() == {"hbm": 204.8e9}
    assert device.links() == {"pcie": 63e9}


def test_no_devices_are_no_error() -> None:
    assert parse_user_devices("") == {}
    assert load_user_devices(Path("/nowhere/config.toml")) == {}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[devices.x]\npeak_tflops = { bf16 = 1 }", "no `peak_tflops`; did you mean `peaks_tflops`"),
        ("[devices.x]\npeaks_tflops = { bfloat16 = 1 }", "no `bfloat16`; did you mean `bf16`"),
        ("[devices.x]\nbandwidths_gbps = { HBM = 1 }", "no `HBM`; did you mean `hbm`"),
        ("[devices.x]\nlinks_gbps = { nvlin = 1 }", "did you mean `nvlink`"),
        ("[devices.x]\nqqqqqq = 1", "known are names"),
        ("[devices.x]\npeaks_tflops = { bf16 = -1 }", "above 0"),
        ("[devices.x]\npeaks_tflops = { bf16 = 'fast' }", "above 0"),
        ("[devices.x]\npeaks_tflops = { bf16 = inf }", "above 0"),
        ("[devices.x]\npeaks_tflops = { bf16 = true }", "above 0"),
        ("[devices.x]\npeaks_tflops = 5", "peaks_tflops"),
        ("[devices.x]\nnames = 'ARTEMIS'", "names"),
        ("[devices.x]\nunits = 'many'", "units"),
        ("[devices]\nx = 5", "must be a table"),
        ("devices = 5", "must hold tables"),
        ("[devices.x", "not valid TOML"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text: str, says: str) -> None:
    with pytest.raises(ProfileError) as error:
        parse_user_devices(text, "/home/me/config.toml")
    assert says in str(error.value)
    assert "/home/me/config.toml" in str(error.value)


def test_a_device_is_matched_by_key_name_or_model() -> None:
    devices = parse_user_devices(GOOD + "\n[devices.l4]\npeaks_tflops = { bf16 = 100 }")

    def found(name: str | None, model: str | None) -> str | None:
        match = match_user_device(devices, name, model)
        return match[0] if match else None

    assert found("artemis", None) == "my-accelerator"
    assert found("My-Accelerator", None) == "my-accelerator"
    assert found("NVIDIA L4", "l4") == "l4"
    assert found("NVIDIA L40", "l40") is None
    assert found(None, None) is None


def test_the_file_lies_in_the_configuration_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert config_path() == tmp_path / "roofterm" / "config.toml"
    (tmp_path / "roofterm").mkdir()
    (tmp_path / "roofterm" / "config.toml").write_text(GOOD)
    assert list(load_user_devices()) == ["my-accelerator"]
    (tmp_path / "roofterm" / "config.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ProfileError, match="cannot read"):
        load_user_devices()
