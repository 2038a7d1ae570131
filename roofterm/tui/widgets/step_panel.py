"""One step in full: where its time goes as a bar, and what each phase takes of the device and of the host."""

from __future__ import annotations

from collections.abc import Sequence

from textual.strip import Strip

from roofterm.report.breakdown import PARTS, part_of
from roofterm.results import PhaseTime, StepRow
from roofterm.text.units import UNKNOWN, count, duration_us, pct
from roofterm.tui.stacked import legend, phase_bar, phase_legend, stacked
from roofterm.tui.themes import Palette
from roofterm.tui.widgets.glyphs import Look
from roofterm.tui.widgets.line_widget import LineWidget, Piece

NAME = 14
FIGURES = (("device", 10), ("% step", 7), ("alone", 10), ("host", 10), ("pieces", 7))
"""Titles and cells of a phase's figures."""
OF_THE_HOST = (("host", 10), ("% host", 7))
"""Where no device worked."""


class StepPanel(LineWidget):
    """Its lines follow the cursor of the table of steps; only cells that change are drawn anew."""

    DEFAULT_CSS = "StepPanel { height: 1fr; }"

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self._row: StepRow | None = None
        self._phases: Sequence[PhaseTime] = ()
        self._lines: list[list[Piece]] | None = None

    def show(self, row: StepRow | None, phases: Sequence[PhaseTime]) -> None:
        """A step with its phases; None: there is none to show."""
        if row is self._row:
            return
        before = {y: self.render_line(y) for y in range(self.size.height)}
        self._row, self._phases, self._lines = row, phases, None
        self.refresh_changes(before)

    def restyle(self) -> None:
        self._lines = None
        self.refresh()

    def on_resize(self) -> None:
        self._lines = None
        self.refresh()

    def render_line(self, y: int) -> Strip:
        if self._lines is None:
            width = max(self.size.width - 2, 20)
            self._lines = step_lines(self._row, self._phases, width, self.palette, self.look) if self._row else []
        return self.strip([(" ", self.palette.text), *self._lines[y]]) if y < len(self._lines) else self.blank()


def step_lines(row: StepRow, phases: Sequence[PhaseTime], width: int, palette: Palette, look: Look) -> list[list[Piece]]:
    """The bar with its legend, then a line a phase, and one for the time in which the device did nothing."""
    if row.compute_us is None:
        times = {phase.phase: phase.host_us for phase in phases if phase.host_us > 0}
        lines = [phase_bar(times, width, palette, look), phase_legend(times, width, palette, look)] if times else []
    else:
        shares = {key: part_of(row, key) for key, _, _ in PARTS}
        lines = [stacked(shares, width, palette, look), legend(shares, width, palette, look)]
    if not phases:
        return lines
    worked = row.compute_us is not None
    titles = FIGURES if worked else OF_THE_HOST
    lines += [[], [(f"{'phase':<{NAME}}" + "".join(f"{title:>{cells}}" for title, cells in titles), palette.muted)]]
    for phase in phases:
        host = duration_us(phase.host_us)
        if worked:
            device, alone, pieces = duration_us(phase.device_us), duration_us(phase.exposed_us), count(round(phase.pieces))
            lines.append(_line(phase.phase, (device, _share(phase.device_us, row.dur_us), alone, host, pieces), palette))
        else:
            lines.append(_line(phase.phase, (host, _share(phase.host_us, sum(one.host_us for one in phases))), palette))
    if row.idle_us is not None:
        lines.append(_line("no device work", (duration_us(row.idle_us), _share(row.idle_us, row.dur_us)), palette))
    return lines


def _share(us: float, of_us: float) -> str:
    return pct(100 * us / of_us) if of_us else UNKNOWN


def _line(name: str, figures: Sequence[str], palette: Palette) -> list[Piece]:
    told = "".join(f"{text:>{cells}}" for text, (_, cells) in zip(figures, FIGURES, strict=False))
    return [(f"{name:<{NAME}}", palette.text), (told, palette.text)]
