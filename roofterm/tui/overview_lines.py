"""The lines of the Overview, from results to pieces: whether the profile is whole, on what it ran, and where a step goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roofterm.analysis.digest import StepDigest, steps_counted, whole_breakdown
from roofterm.report.breakdown import mean_breakdown
from roofterm.results import (
    Coverage,
    DeviceInfo,
    Finding,
    HostBalance,
    LaunchPath,
    PhaseTime,
    StepRow,
    Summary,
    WarningInfo,
    XlaOverview,
)
from roofterm.text.safe import safe_text
from roofterm.text.units import UNKNOWN, count, duration_us, pct, si
from roofterm.tui.finding_target import target_of
from roofterm.tui.kept_figures import FLAGS
from roofterm.tui.stacked import legend, phase_bar, phase_legend, sparkline, stacked
from roofterm.tui.themes import Palette
from roofterm.tui.widgets.glyphs import Look, shown
from roofterm.tui.widgets.line_widget import Piece, pieces_width
from roofterm.tui.widgets.lines import Line, Target

if TYPE_CHECKING:
    from roofterm.tui.kept_figures import KeptSource
    from roofterm_parsers.profile import Source, Warning

LABEL = 9
DOUBT = "profile-unusable"
"""id of the finding that the profile lacks something"""
WAITING = ("input-bound", "blocking-syncs")
"""ids of the findings whose evidence shows who waits"""
READINGS = ("overhead-bound", "compute-bound")
"""what the host's time against the device's says, where it says something"""
WARNINGS = Target("warnings")
"""leads to the list of warnings, which is no screen of its own"""
XPROF = Target("xprof")
"""leads to all that XProf's overview says, likewise"""
OPS = Target("ops", by="op")
NOTHING = Line([], rests=False)


@dataclass(frozen=True)
class Facts:
    """Results that the Overview shows."""

    sources: Sequence[Source | KeptSource]
    warnings: Sequence[Warning | WarningInfo]
    mended: int
    """kinds of faults that reading had to mend or skip"""
    summary: Summary
    devices: Sequence[DeviceInfo]
    steps: Sequence[StepRow]
    digest: StepDigest
    coverage: Coverage | None
    findings: Sequence[Finding]
    balance: HostBalance | None = None
    launch_path: LaunchPath | None = None
    phases: Sequence[PhaseTime] = ()
    """of the mean step"""
    against: str = ""
    """what a comparison with a baseline comes to; empty: there is none"""
    outline: bool = False
    """what peaks say of steps and summary is not known yet"""
    xla: XlaOverview | None = None
    """what XProf's overview says; None: of no XPlane profile, or not known yet"""

    @property
    def of_xla(self) -> bool:
        return self.xla is not None or self._is("xplane")

    @property
    def compiled(self) -> bool:
        """Whether XLA's profiler wrote it, which on a TPU tells of no launches."""
        return self.of_xla or self._is("xla_json")

    def _is(self, format: str) -> bool:
        return any(getattr(source, "format", "") == format for source in self.sources)


def short_step(name: str) -> str:
    """A step's name without the profiler's prefix: #12."""
    return safe_text(name.replace("ProfilerStep#", "#"), 18)


class Writer:
    """Writes lines of one width in one palette."""

    def __init__(self, facts: Facts, palette: Palette, look: Look, width: int) -> None:
        self.facts, self.p, self.look, self.width = facts, palette, look, width
        self.dot = " | " if look.ascii else " · "

    def lines(self, low: bool = False) -> list[Line]:
        """All lines above the tables. Where room is short, `low`, the first finding comes before what explains it.

        What a profile of the CPU alone, or of a TPU, has no such figure for says another instead.
        """
        first, *others = self.findings() or [NOTHING]
        if self.facts.devices or self.facts.summary.kernels:
            launches = self.duty() if self.facts.xla is not None and self.facts.xla.hardware == "TPU" else self.launches()
            head = [self.health(), self.device(), self.step(), self.busy(), *self.breakdown()]
            linked = self.facts.launch_path is not None and self.facts.launch_path.launches > 0
            tail = [launches, *(self.waits() if linked or not self.facts.of_xla else []), self.communication()]
        else:
            head = [self.health(), self.device(), self.step(), self.host(), *self.host_phases()]
            tail = [self.communication()]
        if self.facts.of_xla:
            tail.append(self.input())
        if self.facts.against:
            tail.append(self.against())
        lines = [*head, first, *tail, *others] if low else [*head, *tail, first, *others]
        return [line for line in lines if line.pieces]

    def health(self) -> Line:
        """Line 1: whole or not, what is in it, what the profiler recorded."""
        f, s = self.facts, self.facts.summary
        doubt = next((finding for finding in f.findings if finding.id == DOUBT), None)
        state: Piece = ("whole", self.p.good)
        if f.mended:
            state = (f"mended in {count(f.mended)} ways" if f.mended > 1 else "mended", self.p.warn)
        elif doubt is not None:
            state = ("to be read with care", self.p.warn)
        told = s.unlinked_kernels and (s.unlinked_kernels < s.kernels or not self.facts.compiled)
        unlinked = f" ({count(s.unlinked_kernels)} without launch)" if told else ""
        parts = [f"{count(s.slices)} slices", f"{count(s.kernels)} kernels{unlinked}"]
        if s.ranks and s.ranks > 1:
            parts.append(f"{s.ranks} ranks")
        return self._parts("health", state, [*parts, self._flags()], WARNINGS if doubt is None else Target("findings"))

    def device(self) -> Line:
        if not self.facts.devices:
            return self._line("device", [("none: only the host was recorded", self.p.muted)], Target("device"))
        first = self.facts.devices[0]
        name = (
            safe_text(first.name or first.model or f"unknown {first.kind}")
            .removeprefix("NVIDIA ")
            .removeprefix("AMD ")
            .removeprefix("Tesla ")
        )
        many = f"{len(self.facts.devices)}x " if len(self.facts.devices) > 1 else ""
        peaks = []
        if first.peaks:
            dtype = next((d for d in ("bf16", "fp16") if d in first.peaks), max(first.peaks, key=lambda d: first.peaks[d]))
            peaks.append(f"{dtype} {si(first.peaks[dtype], 'FLOP/s')}")
        if first.bandwidths:
            level = "hbm" if "hbm" in first.bandwidths else min(first.bandwidths, key=lambda d: first.bandwidths[d])
            peaks.append(f"{level.upper()} {si(first.bandwidths[level], 'B/s')}")
        whose = f"{first.roofs_from} roofs" if first.roofs_from else "no roofs known for it: --device, --peak"
        title: Piece = (many + name, self.p.strong)
        joined = [f"{whose} {peaks[0]}", *peaks[1:]] if peaks else [whose]
        together = self._parts("device", title, joined, Target("device"))
        return together if len(together.pieces) > 2 else self._parts("device", title, [whose, *peaks], Target("device"))

    def step(self) -> Line:
        d = self.facts.digest
        if d.p50_us is None:
            span = duration_us(self.facts.summary.span_us)
            return self._line(
                "time", [(span, self.p.strong), (self.dot + "no steps are marked in this profile", self.p.muted)], Target("timeline")
            )
        name, counted = short_step(d.slowest or ""), f"{d.counted} of {d.steps} {d.counted_as}"
        spread = [f"p99 {duration_us(d.p99_us)}", f"slowest {name} {duration_us(d.slowest_us)}"]
        parts = [*(spread if d.counted > 1 else [name]), counted]
        line = self._parts("step", (f"p50 {duration_us(d.p50_us)}", self.p.strong), parts, Target("steps"))
        spark = sparkline([row.dur_us for row in self.facts.steps], self.width - pieces_width(line.pieces) - 3, self.look)
        return Line([*line.pieces, ("  " + spark, self.p.accent)], line.target) if spark and d.steps > 1 else line

    def busy(self) -> Line:
        d, s = self.facts.digest, self.facts.summary
        busy = d.busy_pct if d.busy_pct is not None else s.gpu_busy_pct
        compute = d.compute_busy_pct if d.compute_busy_pct is not None else s.compute_busy_pct
        parts = [f"compute {pct(compute)}"]
        if not self.facts.outline:
            parts.append(f"MFU {pct(d.mfu_pct if d.mfu_pct is not None else s.mfu_pct)}")
        coverage = self.facts.coverage
        if coverage is not None and coverage.modelled_pct is not None:
            parts.append(f"roofline covers {pct(coverage.modelled_pct)} of busy time")
        return self._parts("busy", (pct(busy), self.p.strong), parts, Target("timeline"))

    def duty(self) -> Line:
        """Of a TPU: how XProf says that it was used."""
        xla = self.facts.xla
        assert xla is not None
        waits = {"infeed": xla.infeed_us, "outfeed": xla.outfeed_us, "transfers": xla.host_transfer_us}
        spent = [f"{name} {duration_us(us)}" for name, us in waits.items() if us]
        nothing = ["no infeed or outfeed"] if xla.infeed_us is not None else []
        parts = [f"idle {pct(xla.device_idle_pct)}", *(spent or nothing)]
        if xla.mxu_pct is not None:
            parts.append(f"matrix units {pct(xla.mxu_pct)}")
        if xla.device_op_pct is not None:
            parts.append(f"{pct(xla.device_op_pct)} of ops on device")
        return self._parts("xprof", (f"duty cycle {pct(xla.duty_cycle_pct)}", self.p.strong), parts, XPROF)

    def input(self) -> Line:
        """XProf's verdict on the input pipeline."""
        xla = self.facts.xla
        if xla is None:
            return self._line("input", [("adding up ...", self.p.muted)], None)
        pipeline = xla.input_pipeline
        style = {"high": self.p.bad, "moderate": self.p.warn}.get(pipeline.verdict or "", self.p.text if pipeline.verdict else self.p.muted)
        return self._line("input", [(shown(pipeline.statement, self.width - LABEL - 1, self.look), style)], XPROF)

    def breakdown(self) -> list[Line]:
        counted, _ = steps_counted(self.facts.steps)
        shares = mean_breakdown(counted) if counted else whole_breakdown(self.facts.summary)
        if shares is None:
            return [self._line("", [("no device work to break down", self.p.muted)], None)]
        cells = self.width - LABEL - 1
        bar = Line([(" " * LABEL, self.p.muted), *stacked(shares, cells, self.p, self.look)], rests=False)
        return [bar, self._line("", legend(shares, cells, self.p, self.look), Target("steps" if counted else "timeline"))]

    def host(self) -> Line:
        """In the place of the device's business, where only the host was recorded."""
        counted, _ = steps_counted(self.facts.steps)
        whole = sum(row.dur_us for row in counted)
        busy = sum((row.host_busy_pct or 0.0) * row.dur_us for row in counted) / whole if whole else None
        loading = [row.host_us for row in self.facts.phases if row.phase == "dataloader"]
        coverage = self.facts.coverage
        parts = [f"loading input {duration_us(loading[0])} a step" if loading else ""]
        if coverage is not None and coverage.modelled_pct is not None:
            parts.append(f"roofline covers {pct(coverage.modelled_pct)} of it")
        return self._parts("host", (f"busy {pct(busy)}", self.p.strong), parts, Target("ops", by="op"))

    def host_phases(self) -> list[Line]:
        """The mean step by phase, by the host's own time."""
        times = {row.phase: row.host_us for row in self.facts.phases if row.host_us > 0}
        if not times:
            return []
        cells = self.width - LABEL - 1
        bar = Line([(" " * LABEL, self.p.muted), *phase_bar(times, cells, self.p, self.look)], rests=False)
        return [bar, self._line("", phase_legend(times, cells, self.p, self.look), Target("steps" if self.facts.steps else "ops"))]

    def launches(self) -> Line:
        """Line 7: how often the host launches, how short what it launches is, and whether that is what holds the step back."""
        s, d, path = self.facts.summary, self.facts.digest, self.facts.launch_path
        if self.facts.outline:  # the path of the launches is not known yet
            return self._parts("launches", (f"{count(round(d.launches))} a step", self.p.strong), [], OPS) if d.launches else NOTHING
        mean = s.kernel_us / s.kernels if s.kernels else None
        if d.launches is not None:
            first = f"{count(round(d.launches))} a step"
        else:
            first = f"{count(path.launches)} in all" if path is not None and path.launches else UNKNOWN
        parts = [f"mean kernel {duration_us(path.mean_kernel_us if path and path.mean_kernel_us is not None else mean)}"]
        if path is not None and path.short_kernels_pct is not None:
            parts.append(f"{pct(path.short_kernels_pct)} < 10 us")
        if self.facts.balance is not None and self.facts.balance.reading in READINGS:
            parts.append(self.facts.balance.reading)
        if path is not None and path.found_empty_pct is not None:
            parts.append(f"queue found empty {pct(path.found_empty_pct)}")
        if path is not None and path.delay_p50_us is not None:
            parts.append(f"start {duration_us(path.delay_p50_us)} after the call")
        return self._parts("launches", (first, self.p.strong), parts, OPS)

    def waits(self) -> list[Line]:
        """Who waits for whom: the device for input and for launches, the host in calls that wait for the device."""
        b, path = self.facts.balance, self.facts.launch_path
        if b is None:
            return []
        if path is None or not path.launches:
            untold = (self.dot + "no launch is linked to the device's work, so nothing tells", self.p.muted)
            return [self._line("waits", [(UNKNOWN, self.p.strong), untold], Target("timeline"))]
        first = f"for input {duration_us(b.input_wait_us)} ({pct(b.input_wait_pct)})"
        told = f"in syncs {duration_us(b.blocked_us)}"
        parts = [f"for launches {pct(b.dispatch_wait_pct)}", told]
        if b.blocked_us:
            parts.append(f"device busy {pct(100 * b.blocked_busy_us / b.blocked_us)} of that")
        seen = next((f for f in self.facts.findings if f.id in WAITING), None)
        return [self._parts("waits", (first, self.p.strong), parts, target_of(seen, "kernel") if seen else Target("ops", by="op"))]

    def communication(self) -> Line:
        s, d = self.facts.summary, self.facts.digest
        if not s.comm_us:
            return self._line("comm", [("none", self.p.muted)], None)
        mean = f"{duration_us(d.comm_us)} a step" if d.comm_us is not None else f"{duration_us(s.comm_us)}"
        shares = mean_breakdown(steps_counted(self.facts.steps)[0])
        parts = []
        if shares is not None and sum(shares.values()) > 0:
            parts.append(f"exposed {duration_us(shares['exposed_comm'])} ({pct(100 * shares['exposed_comm'] / sum(shares.values()))})")
        else:
            parts.append(f"exposed {duration_us(s.exposed_comm_us)}")
        if s.ranks in (None, 1):
            parts.append("waits for peers included")
        return self._parts("comm", (mean, self.p.strong), parts, Target("ops", by="collective"))

    def against(self) -> Line:
        """With a baseline: what changed."""
        gist = shown(safe_text(self.facts.against), self.width - LABEL - 1, self.look)
        return self._line("compare", [(gist, self.p.text)], Target("compare"))

    def findings(self, most: int = 3) -> list[Line]:
        """Lines 9 to 11: what to fix first, by the time at stake."""
        lines = []
        for at, finding in enumerate(self.facts.findings[:most]):
            style = {"high": self.p.bad, "medium": self.p.warn}.get(finding.severity, self.p.muted)
            stake = f"{duration_us(finding.time_at_stake_us):>9} {pct(finding.share_of_step_pct):>6} "
            target = target_of(finding, "kernel" if self.facts.summary.kernels else "op")
            lines.append(self._line("fix first" if at == 0 else "", [(stake, style), (safe_text(finding.title), self.p.text)], target))
        return lines

    def warnings(self) -> Line:
        """Line 19."""
        found = self.facts.warnings
        if not found:
            return self._line("warnings", [("none", self.p.muted)], WARNINGS)
        more = f"{self.dot}and {len(found) - 1} more" if len(found) > 1 else ""
        room = self.width - LABEL - len(more) - 2
        return self._line("warnings", [(shown(found[0].message, room, self.look), self.p.warn), (more, self.p.muted)], WARNINGS)

    def _line(self, label: str, pieces: Sequence[Piece], target: Target | None) -> Line:
        return Line([(f"{label:<{LABEL}}", self.p.muted), *pieces], target, rests=target is not None)

    def _parts(self, label: str, first: Piece, parts: Sequence[str], target: Target) -> Line:
        """A line of parts apart by dots; what does not fit is left out whole, the last parts first."""
        pieces = [first]
        for part in filter(None, parts):
            piece = (self.dot + part, self.p.text)
            if LABEL + pieces_width(pieces) + pieces_width([piece]) > self.width:
                break
            pieces.append(piece)
        return self._line(label, pieces, target)

    def _flags(self) -> str:
        metadata = self.facts.sources[0].metadata if self.facts.sources else {}
        names = [title for flag, title in FLAGS if metadata.get(flag)]
        return ", ".join(names)
