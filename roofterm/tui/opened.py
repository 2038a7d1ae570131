"""Opening a profile for the explorer: the slow part, run in the desk's thread while the first frame is on the screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from roofterm.start_up import import_numpy
from roofterm.tui.options import Options
from roofterm.tui.row_book import RowBook

if TYPE_CHECKING:
    from roofterm.analysis.digest import StepDigest
    from roofterm.analysis.study import Study
    from roofterm.results import DeviceInfo, StepRow, Summary
    from roofterm.tui.page import Page
    from roofterm_parsers.opening import Progress

PAGES = {
    "overview": "OverviewPage",
    "roofline": "RooflinePage",
    "ops": "OpsPage",
    "timeline": "TimelinePage",
    "steps": "StepsPage",
    "findings": "FindingsPage",
    "ranks": "RanksPage",
    "memory": "MemoryPage",
    "device": "DevicePage",
    "compare": "ComparePage",
}
"""Class of each screen in the module of its name."""


@dataclass(frozen=True)
class Opened:
    """A profile ready to be shown, with the first figures."""

    study: Study
    options: Options
    title: str
    summary: Summary
    devices: list[DeviceInfo]
    steps: list[StepRow]
    digest: StepDigest
    header: list[str]
    categories: list[str]
    """categories of device work, most time first"""
    step_numbers: list[int]
    numbers_of_rows: list[int | None]
    """number of each step row, where its name ends in one"""
    pages: dict[str, type[Page]] = field(default_factory=dict)
    """the screens that this profile has something for"""
    book: RowBook = field(default_factory=RowBook)
    """what sorting and filtering keep of the tables shown"""
    absent: dict[str, str] = field(default_factory=dict)
    """why it has none, by screen, in one line"""
    figures_key: str | None = None
    """name under which its first figures are kept"""

    @property
    def first_table(self) -> str:
        return first_table_of(self.study)


def open_study(paths: Sequence[str], options: Options, progress: Callable[[Progress], None], cancelled: Callable[[], bool]) -> Opened:
    """Read the files and ask for the first figures. Raises ProfileError; Interrupted if cancelled."""
    import_numpy()
    from roofterm.analysis.clocks import aligned_study
    from roofterm.analysis.study import Study
    from roofterm.captures import open_captures
    from roofterm.tui.kept_figures import key_of
    from roofterm_parsers.opening import open_profile

    key = key_of(paths, options)  # of the files as they are before they are read
    profile = open_profile(list(paths), progress=progress, cancelled=cancelled, cache=options.cache)
    captures = open_captures(profile, options.capture, cache=options.cache, cancelled=cancelled)
    opened = prepare(aligned_study(Study(profile, options.roofs, captures)), options, title_of(paths))
    return replace(opened, figures_key=key)


def prepare(study: Study, options: Options, title: str) -> Opened:
    """What the first screen needs of a study, and the code of the screens, which is heavy to import."""
    from roofterm.analysis.digest import digest
    from roofterm.tui.frames import step_number

    steps = study.steps()
    summary, devices, facts = study.summary(), study.devices(), digest(steps)
    numbers = study.profile.steps["number"].unique().sort().to_list()
    pages = {name: getattr(import_module(f"roofterm.tui.screens.{name}"), cls) for name, cls in PAGES.items()}
    absent = absent_screens(study, steps)
    for name in absent:
        del pages[name]
    return Opened(
        study=study,
        options=options,
        title=title,
        summary=summary,
        devices=devices,
        steps=steps,
        digest=facts,
        header=header_of(devices, facts, summary),
        categories=study.table("category")["name"].to_list(),
        step_numbers=numbers,
        numbers_of_rows=[step_number(row.name) for row in steps],
        pages=pages,
        absent=absent,
    )


def first_table_of(study: Study) -> str:
    """What most of the time is in: kernels, or host ops where no device worked."""
    return "kernel" if study.work.height else "op"


def absent_screens(study: Study, steps: list[StepRow]) -> dict[str, str]:
    """Screens for which the profile holds nothing, each with the reason in one line."""
    absent = {}
    if not steps:
        absent["steps"] = "the profile marks no steps"
    if study.roofed is study and not study.work.height:
        absent["roofline"] = "no device worked in this profile"
    if len(study.profile.sources) < 2:
        absent["ranks"] = "one rank alone; open a folder of ranks, or several files"
    if not study.profile.memory.height:
        compiled = study.profile.hlo_ops.height > 0
        absent["memory"] = (
            "no allocator recorded anything in this profile" if compiled else "none was recorded; profile_memory=True records it"
        )
    return absent


def title_of(paths: Sequence[str]) -> str:
    """The last part of the path, and how many more there are."""
    first = str(paths[0]).rstrip("/")
    name = "standard input" if first == "-" else first.rsplit("/", 1)[-1] or first
    return name if len(paths) == 1 else f"{name} and {len(paths) - 1} more"


def device_title(devices: Sequence[Any]) -> str | None:
    """The devices in few words: name, and how many."""
    if not devices:
        return None
    name = (devices[0].name or devices[0].model or f"unknown {devices[0].kind}").removeprefix("NVIDIA ").removeprefix("AMD ")
    return name if len(devices) == 1 else f"{name} x{len(devices)}"


def header_of(devices: list[DeviceInfo], facts: StepDigest, summary: Summary) -> list[str]:
    """What the line at the top says of the profile."""
    from roofterm.text.units import duration_us, pct

    parts = [device_title(devices)]
    if facts.p50_us is not None:
        parts.append(f"step {duration_us(facts.p50_us)}")
    elif summary.span_us:
        parts.append(duration_us(summary.span_us))
    busy = facts.busy_pct if facts.busy_pct is not None else summary.gpu_busy_pct
    if busy is not None:
        parts.append(f"{pct(busy)} busy")
    return [part for part in parts if part]
