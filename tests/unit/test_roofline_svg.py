"""The roofline as a picture: where points and roofs lie, and that a name cannot break the file."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from roofterm.report.roofline_svg import BOTTOM, HEIGHT, LEFT, MOST_RADIUS, RIGHT, TOP, WIDTH, roofline_svg
from roofterm.results import Roof, RooflineRow
from tests.unit.roofline_rows import compute, memory, row

SVG = "{http://www.w3.org/2000/svg}"
ROOFS = [compute(1e15), memory(1e12)]
"""ridge at 1,000 FLOP/byte"""


def drawn(rows: list[RooflineRow], roofs: list[Roof] = ROOFS, title: str = "a title", path: bool = False) -> ET.Element:
    return ET.fromstring(roofline_svg(rows, roofs, title, lambda name: "#123456", path))


def place(circle: ET.Element, x: tuple[int, int], y: tuple[int, int]) -> tuple[float, float]:
    """log10 of intensity and rate that a circle stands for, in a window of these decades."""
    cx, cy = float(circle.attrib["cx"]), float(circle.attrib["cy"])
    across, up = (cx - LEFT) / (WIDTH - LEFT - RIGHT), (HEIGHT - BOTTOM - cy) / (HEIGHT - TOP - BOTTOM)
    return x[0] + across * (x[1] - x[0]), y[0] + up * (y[1] - y[0])


def circles(picture: ET.Element) -> list[ET.Element]:
    return [one for one in picture.iter(f"{SVG}circle") if one.find(f"{SVG}title") is not None]


def test_points_lie_at_their_intensity_and_rate_and_their_areas_are_times() -> None:
    rows = [row("long", intensity=10.0, flops_per_s=1e13, time_us=400.0), row("short", intensity=100.0, flops_per_s=1e14, time_us=100.0)]
    long, short = circles(drawn(rows))
    # decades: 1 to 3.3 of intensity (the ridge), 13 to 15.1 of FLOP/s, rounded outward
    assert place(long, (1, 4), (13, 16)) == pytest.approx((1, 13), abs=0.01)
    assert place(short, (1, 4), (13, 16)) == pytest.approx((2, 14), abs=0.01)
    assert (float(long.attrib["r"]), float(short.attrib["r"])) == (MOST_RADIUS, MOST_RADIUS / 2)


def test_roofs_have_their_labels_and_sources() -> None:
    texts = [one.text for one in drawn([row(intensity=10.0, flops_per_s=1e13)]).iter(f"{SVG}text")]
    assert "1.000 PFLOP/s bf16 (vendor)" in texts
    assert "1.000 TB/s HBM (vendor)" in texts


def test_roofs_that_nothing_is_held_against_are_left_out() -> None:
    unused = compute(2e15, "fp8")
    unused.drawn = False
    texts = [one.text or "" for one in drawn([row(intensity=10.0, flops_per_s=1e13)], [*ROOFS, unused]).iter(f"{SVG}text")]
    assert not any("fp8" in text for text in texts)


def test_work_without_flops_stands_at_the_left_edge() -> None:
    picture = drawn([row(intensity=10.0, flops_per_s=1e13), row("copy", category="copy", bytes_per_s=5e11)])
    (rug,) = [one for one in picture.iter(f"{SVG}line") if one.find(f"{SVG}title") is not None]
    assert float(rug.attrib["x1"]) == LEFT


def test_a_name_cannot_break_the_file() -> None:
    name = '<script>alert("x")</script> & \x1b[2J\x00'
    picture = drawn([row(name, intensity=10.0, flops_per_s=1e13)], title=name)
    assert not list(picture.iter(f"{SVG}script"))
    (circle,) = circles(picture)
    title = circle.find(f"{SVG}title")
    assert title is not None
    assert (title.text or "").startswith("<script>alert")
    assert "\x1b" not in (title.text or "")


def test_a_path_joins_its_points_in_their_order_and_names_them() -> None:
    rows = [row(f"batch {n}", category=str(n), intensity=float(n), flops_per_s=n * 1e12) for n in (1, 2, 4)]
    picture = drawn(rows, path=True)
    (line,) = picture.iter(f"{SVG}polyline")
    xs = [float(point.split(",")[0]) for point in line.attrib["points"].split()]
    assert xs == sorted(xs)
    assert [text for text in (one.text for one in picture.iter(f"{SVG}text")) if text in ("1", "2", "4")][-3:] == ["1", "2", "4"]


def test_nothing_at_all_is_a_picture_too() -> None:
    assert circles(drawn([], [])) == []
