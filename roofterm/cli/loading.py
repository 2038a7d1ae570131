"""Opens what the user named, with progress on standard error, and stops cleanly when told to."""

from __future__ import annotations

import gc
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING

from roofterm.analysis.host_names import TELLING
from roofterm.analysis.scope import RoofChoice
from roofterm.cli.arguments import Arguments
from roofterm.cli.keeping import Keeping, figures_key, worth_an_outline
from roofterm.cli.selecting import memory_limit, roofs_of
from roofterm.text.safe import safe_text
from roofterm.text.units import bytes_text
from roofterm_parsers.errors import Interrupted
from roofterm_parsers.opening import Progress, open_profile

if TYPE_CHECKING:
    from roofterm.analysis.study import Study
    from roofterm_parsers.chrome.crew import Crew
    from roofterm_parsers.profile import Profile

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def load(args: Arguments) -> Profile:
    """The profile of the command's PATHs.

    Raises ProfileError; Interrupted after Ctrl+C, SIGTERM or SIGHUP.
    """
    stop = args.ahead.stop if args.ahead is not None else Event()
    with _stopping(stop):
        profile = args.ahead.profile() if args.ahead is not None else _opened(args, stop.is_set)
    if stop.is_set():
        raise Interrupted("loading was stopped")  # asked for too late for reading to hear it, while ranks were merged
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
    return profile


def reading_of(args: Arguments) -> Callable[[Callable[[], bool], Crew | None], Profile]:
    """What reads the command's PATHs, given what tells that it is to stop and the processes that decode. Raises UsageError."""
    memory_limit(args.max_memory)
    return lambda cancelled, crew: _opened(args, cancelled, crew)


def _opened(args: Arguments, cancelled: Callable[[], bool], workers: Crew | None = None) -> Profile:
    show = sys.stderr.isatty() and not args.quiet
    line = ProgressLine() if show else None
    try:
        return open_profile(
            args.paths,
            progress=line,
            cancelled=cancelled,
            cache=not args.no_cache,
            max_memory=memory_limit(args.max_memory),
            workers=workers,
            device_alone=args.device_alone or (TELLING if args.of_devices else False),
        )
    finally:
        if line:
            line.clear()


def study_of(args: Arguments, roofs: RoofChoice | None = None, figures: bool = False) -> Study:
    """The study of the command's PATHs, with the capture traces of its graphs; `roofs`: other than the options ask for.

    `figures`: the explorer's first figures will be kept of it, however small it is; else their outline, where it is large.
    Raises as `load` does.
    """
    from roofterm.analysis.clocks import aligned_study
    from roofterm.analysis.model_config import load_config
    from roofterm.analysis.study import Study
    from roofterm.captures import open_captures

    if args.core is not None:
        args.core.leave()  # where a study came before
    key = figures_key(args) if roofs is None and (figures or worth_an_outline(args)) else None
    profile = load(args)
    captures = open_captures(profile, args.capture, cache=not args.no_cache, max_memory=memory_limit(args.max_memory))
    model = load_config(args.model) if args.model else None
    study = aligned_study(Study(profile, roofs or roofs_of(args), captures, model))
    in_part = (args.device_alone or args.of_devices) and any(source.format == "xplane" for source in profile.sources)
    args.keeping = Keeping(key, study) if key is not None and not in_part else None
    if args.core is not None:
        args.core.stay()
    return study


class ProgressLine:
    """One line on standard error: bytes done, rate and time left; drawn at most ten times a second."""

    def __init__(self) -> None:
        self._start = self._drawn = time.monotonic()
        self._shown = False

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._drawn < 0.1 or now - self._start < 0.3:
            return
        self._drawn = now
        rate = progress.bytes_done / max(now - self._start, 1e-9)
        left = (progress.bytes_total - progress.bytes_done) / rate if rate and progress.bytes_total else None
        share = f"{100 * progress.bytes_done / progress.bytes_total:3.0f}%" if progress.bytes_total else ""
        rest = f"  {left:.0f} s left" if left is not None and progress.phase == "reading" else ""
        text = f"{progress.phase} {safe_text(progress.path, 40)}  {share}  {bytes_text(progress.bytes_done)}  {bytes_text(rate)}/s{rest}"
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
        self._shown = True

    def clear(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


@contextmanager
def _stopping(stop: Event) -> Iterator[None]:
    """Have SIGINT, SIGTERM and SIGHUP set an event; a second Ctrl+C stops at once."""

    def ask(number: int, _frame: FrameType | None) -> None:
        if stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, ask) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
