"""What the rules share: the time that findings speak of, its breakdown, its idle time by cause, its device work.

Everything is computed once, on first use, over the spans of a scope: the steady steps of each device, or, where no step
is marked, from the first to the last device work.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from roofterm.analysis.bounded import Bounded
from roofterm.analysis.categories import Category, short_name
from roofterm.analysis.findings.attention_places import Places, attention_places
from roofterm.analysis.findings.communication import Claims, communication_claims
from roofterm.analysis.findings.critical import critical_work
from roofterm.analysis.findings.host_balance import host_balance
from roofterm.analysis.findings.host_causes import Cause, HostCauses
from roofterm.analysis.findings.idle import host_wait_by_cause
from roofterm.analysis.findings.optimizer_steps import launched_within, optimizer_times
from roofterm.analysis.findings.pieces import pieces_of
from roofterm.analysis.findings.severity import SLOWING_FLAGS
from roofterm.analysis.findings.waits import waits
from roofterm.analysis.gaps import UNRECORDED_PS, find_gaps, main_threads, spans
from roofterm.analysis.intervals import Intervals, both, union
from roofterm.analysis.launch_places import own_code
from roofterm.analysis.scope import ALL, Scope
from roofterm.analysis.steps import US, DeviceLine
from roofterm.results import Finding, HostBalance
from roofterm.text.safe import safe_text
from roofterm.text.units import duration_us
from roofterm_parsers.profile import ROOT, Kind, Profile, TrackKind

if TYPE_CHECKING:
    from roofterm.analysis.study import Study

LEAST_LAUNCHES = 20
FEW_HOLES = 5
LONGEST_WORD = 56
"""Cells: lines of a narrow terminal have room for it."""

Pool = str
"""What a finding claims a part of: idle, compute, exposed_comm, exposed_copy, host (no device worked) or start (before the steady "
"steps)."""


class Evidence:
    """Facts over one scope. Times are totals over all spans (ps); `finding` turns them into means of a span (us)."""

    def __init__(self, study: Study, scope: Scope) -> None:
        self.study = study
        self.scope = scope
        self.profile: Profile = study.profile

    # The time spoken of

    @cached_property
    def spans(self) -> pl.DataFrame:
        """Schema `gaps.SPANS`; without steps cut to the time between a device's first and last work."""
        found = spans(self.study, self.scope)
        if found.height == 0 or found["step"].is_not_null().any():
            return found
        lines = self.lines
        edges = [
            (int(lines[d].start[0]), int(lines[d].busy.end[-1])) if d in lines and lines[d].busy.end.size else None for d in found["device"]
        ]
        rows = found.with_columns(
            start_ps=pl.max_horizontal("start_ps", pl.Series([None if e is None else e[0] for e in edges], dtype=pl.Int64)),
            end_ps=pl.min_horizontal("end_ps", pl.Series([None if e is None else e[1] for e in edges], dtype=pl.Int64)),
        )
        return rows.filter(pl.col("end_ps") > pl.col("start_ps"))

    @cached_property
    def in_steps(self) -> bool:
        """Whether the spans are steps; else each is a whole window."""
        return bool(self.spans["step"].is_not_null().any())

    @property
    def unit(self) -> str:
        """What a span is called."""
        return "step" if self.in_steps else "window"

    @property
    def count(self) -> int:
        """Number of spans: steps, over all devices and ranks."""
        return self.spans.height

    @cached_property
    def whole_ps(self) -> int:
        """Length of all spans together."""
        return int((self.spans["end_ps"] - self.spans["start_ps"]).sum())

    @property
    def known_ps(self) -> int:
        """The same without the time whose work the file lacks: what rules hold their thresholds against."""
        return self.whole_ps - self.unrecorded_ps

    @cached_property
    def covered_spans(self) -> dict[int, Intervals]:
        """The spans of each device (its row; -1 without device), merged."""
        rows = self.spans.with_columns(device=pl.col("device").cast(pl.Int64).fill_null(-1))
        return {int(key[0]): union(group["start_ps"].to_numpy(), group["end_ps"].to_numpy()) for key, group in rows.group_by("device")}

    @property
    def is_xla(self) -> bool:
        """Whether what ran was compiled by XLA: advice then speaks of JAX."""
        return not self.study.is_torch and self.profile.hlo_ops.height > 0

    # The device

    @cached_property
    def lines(self) -> dict[int, DeviceLine]:
        return self.study.device_lines

    @property
    def has_work(self) -> bool:
        return self.study.work.height > 0

    @cached_property
    def breakdown_ps(self) -> dict[str, int]:
        """Sums over the spans of compute, exposed_comm, exposed_copy, idle, comm, copy, host_wait, kernel_gap (`DeviceLine.breakdowns`)."""
        total: dict[str, int] = {}
        device = self.spans["device"].cast(pl.Int64).fill_null(-1).to_numpy()
        start, end = self.spans["start_ps"].to_numpy(), self.spans["end_ps"].to_numpy()
        for row, line in self.lines.items():
            mine = device == row
            if mine.any():
                for name, lengths in line.breakdowns(start[mine], end[mine]).items():
                    total[name] = total.get(name, 0) + int(lengths.sum())
        return total

    @cached_property
    def busy_ps(self) -> int:
        return sum(self.breakdown_ps.get(name, 0) for name in ("compute", "exposed_comm", "exposed_copy"))

    @cached_property
    def gaps(self) -> pl.DataFrame:
        """Schema `gaps.GAPS`, in order of time for each span."""
        return find_gaps(self.study, self.spans, self.lines)

    @cached_property
    def unrecorded_ps(self) -> int:
        """Idle time whose next work had been launched long before: the file lacks the work that ran then."""
        rest = self.gaps["kernel_gap_ps"]
        return int(rest.filter(rest >= UNRECORDED_PS).sum())

    @cached_property
    def causes(self) -> HostCauses:
        return HostCauses(self.study)

    @cached_property
    def main_threads(self) -> dict[int, int]:
        return main_threads(self.study)

    @cached_property
    def host_wait(self) -> dict[Cause, dict[int, Intervals]]:
        """The host wait of the spans by cause and device: every moment of it under one cause only."""
        return host_wait_by_cause(self.study, self.gaps, self.causes, self.main_threads)

    def host_wait_ps(self, *causes: Cause) -> int:
        return sum(intervals.length for cause in causes for intervals in self.host_wait.get(cause, {}).values())

    @cached_property
    def critical(self) -> dict[int, Intervals]:
        """Busy time within the spans that the step waits for, by device (`critical.critical_work`)."""
        found = {}
        for device, windows in self.covered_spans.items():
            if device in self.lines:
                busy = both(self.lines[device].busy, windows)
                gaps, waits = (frame.filter(pl.col("device") == device) for frame in (self.gaps, self.waits))
                # Where work is missing, or waiting is not recorded (XLA), idle time says nothing of what the host is bound by.
                told = self.study.is_torch and not self.lacks_work
                found[device] = critical_work(busy, gaps, waits) if told else busy
        return found

    # Device work

    @cached_property
    def bounded(self) -> Bounded:
        """All device work with costs and bounds, against the roofs of `study.device`."""
        return self.study.bounded(ALL)

    @cached_property
    def pieces(self) -> pl.DataFrame:
        """Device work that runs inside the spans, columns of `pieces.pieces_of`."""
        return pieces_of(self.study, self.bounded.costed.pieces, self.covered_spans, self.critical)

    @cached_property
    def launches(self) -> pl.DataFrame:
        """Calls that launched work of the spans' steps (or of the window): slice, dur_ps, track."""
        launch = self.study.selection(self.scope).work["launch"].drop_nulls().unique().sort()
        slices = self.profile.slices
        return pl.DataFrame({"slice": launch, "dur_ps": slices["dur_ps"][launch], "track": slices["track"][launch]})

    @cached_property
    def replays_graphs(self) -> bool:
        """Whether work of the scope was started by graph launches."""
        names = self.profile.slices["name"][self.launches["slice"]].unique()
        return bool(self.profile.names["text"][names].str.contains("GraphLaunch").any())

    @cached_property
    def by_stream(self) -> pl.DataFrame:
        """Pieces in order of stream and start, with the columns that neighbours on a stream are judged by."""
        columns = (
            "slice",
            "device",
            "kind",
            "track",
            "start_ps",
            "dur_ps",
            "inside_ps",
            "critical_ps",
            "category",
            "name",
            "launch",
            "op",
            "op_name",
        )
        return self.pieces.select(columns).sort("track", "start_ps", maintain_order=True)

    @cached_property
    def attention(self) -> Places:
        """Attention that is made of products and a softmax."""
        return attention_places(self)

    # The host

    @cached_property
    def host_self_ps(self) -> int:
        """Self time of the host's slices in the scope, without calls that wait for the device: synchronising ones and blocking copies."""
        copies = self.waits["slice"].unique().to_numpy()
        copies = copies[self.host_rows[copies] & (self.study.kind[copies] != int(Kind.SYNC))]
        return self.host_self_of(*(kind for kind in Kind if kind != Kind.SYNC)) - int(self.study.self_ps[copies].sum())

    def host_self_of(self, *kinds: Kind) -> int:
        """Self time of the host's slices of some kinds in the scope."""
        mine = self.host_rows & np.isin(self.study.kind, [int(kind) for kind in kinds])
        return int(self.study.self_ps[mine].sum())

    @cached_property
    def host_balance(self) -> HostBalance | None:
        """Whether the job is overhead-bound or compute-bound."""
        return host_balance(self)

    @cached_property
    def raw_totals_us(self) -> tuple[float | None, float | None]:
        """Self CPU time total and Self CUDA time total, of the whole file as the profiler's own table has them."""
        summary = self.study.summary()
        return summary.self_cpu_us, summary.self_device_us

    @cached_property
    def waits(self) -> pl.DataFrame:
        """Calls in which the host waits for a device, schema `waits.WAITS`."""
        return waits(self)

    @cached_property
    def won_by_waits_ps(self) -> int:
        """Idle time that blocking calls cause: it is claimed there and by no other finding about the host."""
        return int(self.waits["won_ps"].sum())

    @cached_property
    def host_rows(self) -> NDArray[np.bool_]:
        """Which slices lie on host threads and start within the scope."""
        study = self.study
        host = (study.profile.tracks["kind"] == int(TrackKind.HOST)).to_numpy()
        mine: NDArray[np.bool_] = host[study.profile.slices["track"].to_numpy()]
        part = study.selection(self.scope).slices
        return mine if part is None else mine & part

    @cached_property
    def slowing_flags(self) -> tuple[str, ...]:
        """Flags of the profiler that were on and lengthen the host's time."""
        return tuple(flag for flag in SLOWING_FLAGS if any(source.metadata.get(flag) for source in self.profile.sources))

    @cached_property
    def thin(self) -> bool:
        """Too few launches in the scope to speak of the host's habits."""
        return self.launches.height < LEAST_LAUNCHES

    @cached_property
    def lacks_work(self) -> bool:
        """Again and again the file lacks the work that ran: what looks like the host's idle time may be that too."""
        rest = self.gaps["kernel_gap_ps"]
        return bool((rest >= UNRECORDED_PS).sum() >= FEW_HOLES and 10 * self.unrecorded_ps >= self.whole_ps)

    def caller(self, slice: int) -> str | None:
        """The line of the user's or a library's Python from which a host slice was called, else the annotation around it."""
        parent, names = self.profile.slices["parent"], self.profile.slices["name"]
        annotation = None
        while (slice := int(parent[slice])) != ROOT:
            text = self.text(names[slice])
            kind = int(self.study.kind[slice])
            if kind == int(Kind.PYTHON) and own_code(pl.Series([text]))[0]:
                return text
            if kind == int(Kind.ANNOTATION):
                annotation = annotation or text
        return annotation

    # Findings

    def finding(
        self,
        title: str,
        stake_ps: int | float | None,
        pool: Pool,
        evidence: dict[str, Any],
        advice: str,
        view: str,
        filter: str = "",
        severity: str = "",
    ) -> Finding:
        """A finding over the spans: `stake_ps` is a total over them, what is shown the mean of a span."""
        share = None if stake_ps is None or self.whole_ps <= 0 else 100.0 * stake_ps / self.whole_ps
        stake = None if stake_ps is None else float(stake_ps) / max(1, self.count) / US
        per = {"claims_on": pool, "per": "step" if self.in_steps else "window"} if stake_ps is not None else {}
        return Finding("", severity, readable(title), stake, share, {**evidence, **per}, readable(advice), {"view": view, "filter": filter})

    def finding_once(
        self, title: str, stake_ps: int, of_ps: int, evidence: dict[str, Any], advice: str, view: str, filter: str = "", severity: str = ""
    ) -> Finding:
        """A finding about what happens once in the profile, within a time of `of_ps`."""
        share = 100.0 * stake_ps / of_ps if of_ps > 0 else None
        facts = {**evidence, "claims_on": "start", "per": "profile"}
        return Finding("", severity, readable(title), stake_ps / US, share, facts, readable(advice), {"view": view, "filter": filter})

    def mean_us(self, total_ps: int | float) -> float:
        """A total over the spans as the mean of a span, us."""
        return float(total_ps) / max(1, self.count) / US

    def pct(self, total_ps: int | float) -> float:
        """A total over the spans as a share of what is known of them."""
        return 100.0 * float(total_ps) / self.known_ps if self.known_ps > 0 else 0.0

    @cached_property
    def communication_claims(self) -> Claims:
        """How exposed communication divides among the findings about it."""
        return communication_claims(self)

    @cached_property
    def optimizer_times(self) -> dict[int, Intervals]:
        """When the host of each source (its row) is in an optimizer's step."""
        return optimizer_times(self.study)

    def in_optimizer(self, pieces: pl.DataFrame) -> NDArray[np.bool_]:
        """Which pieces of device work were launched from an optimizer's step."""
        return launched_within(self.study, pieces, self.optimizer_times)

    def time(self, total_ps: int | float) -> str:
        """A total over the spans as the mean of a span, for people."""
        return duration_us(self.mean_us(total_ps))

    def text(self, name: int | None) -> str:
        """A name as in the file."""
        return "" if name is None else str(self.profile.names["text"][name])

    def short(self, name: int | None) -> str:
        """A name for people: of a kernel its short one."""
        return "" if name is None else short_name(self.text(name))


def readable(text: str) -> str:
    """A sentence made safe for a terminal, in which no name out of the file is a word too long to fold."""
    return " ".join(safe_text(word, LONGEST_WORD) for word in safe_text(text).split(" "))


def of_category(pieces: pl.DataFrame, *categories: Category) -> pl.DataFrame:
    return pieces.filter(pl.col("category").is_in([int(category) for category in categories]))
