"""A profile of the host alone: a normal job, whose pages show host ops and leave out what needs a device."""

from __future__ import annotations

from pathlib import Path

from roofterm.tui.app import RooftermApp
from tests.tui.harness import press, screen_text

SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "transformer_cpu.pt.trace.json.gz"


async def opened(pilot) -> str:
    """The overview once its table is there."""
    for _ in range(200):
        text = screen_text(pilot)
        if "by self time" in text:
            return text
        await pilot.pause(0.05)
    raise AssertionError(text)


async def test_overview_and_ops_show_host_ops_first():
    app = RooftermApp([str(SAMPLE)])
    async with app.run_test(size=(80, 24)) as pilot:
        text = await opened(pilot)
        # By key_averages() of the same run, aten::mm has the most self CPU time, aten::addmm follows.
        assert text.index("aten::mm") < text.index("aten::addmm")
        assert "2 Roofline" in text
        await press(pilot, "3")
        assert "host op" in screen_text(pilot)
        await press(pilot, "2")
        assert "FLOPs known for" in screen_text(pilot)  # the CPU's ops are its points
