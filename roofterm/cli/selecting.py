"""What the options select: the part of a profile, whose peaks, how much memory. Nothing heavy is imported."""

from __future__ import annotations

from collections.abc import Iterator

from roofterm.analysis.scope import RoofChoice, Scope, ScopeError
from roofterm.analysis.window_text import parse_time, parse_window
from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import UsageError


def scope_of(args: Arguments, step: str) -> Scope:
    """The part of the profile that the options name; `step` is the command's default for --step."""
    return Scope(
        step=args.step or step,
        where=args.where,
        window_ps=_window(args.window),
        rank=args.rank,
        infeed=not args.no_infeed,
    )


def roofs_of(args: Arguments) -> RoofChoice:
    """Whose peaks the options ask for."""
    return RoofChoice(
        device=args.device,
        roofs=args.roofs,
        peaks={name: value * 1e12 for name, value in _pairs(args.peak, "--peak")},
        bandwidths={name: value * 1e9 for name, value in _pairs(args.bandwidth, "--bandwidth")},
    )


def memory_limit(text: str | None) -> int | None:
    """Bytes of "8GiB", "500MB" or a plain number. Raises UsageError."""
    if text is None:
        return None
    units = {"": 1, "b": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
    number = text.rstrip("bBiIkKmMgGtT")
    unit = text[len(number) :].lower()
    unit = unit[:-1] if unit.endswith("b") and unit != "b" else unit
    try:
        size = float(number) * units[unit]
    except (ValueError, KeyError):
        raise UsageError(f"--max-memory {text}: not a size; write for example 8GiB") from None
    return int(size)


def _pairs(values: list[str], flag: str) -> Iterator[tuple[str, float]]:
    for value in values:
        name, _, number = value.partition("=")
        try:
            amount = float(number)
        except ValueError:
            amount = 0.0
        if not name or not amount > 0:
            raise UsageError(f"{flag} {value}: write NAME=NUMBER with a number above 0")
        yield name.strip().lower(), amount


def _window(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    try:
        return parse_window(text)
    except ScopeError as why:
        raise UsageError(f"--window {text}: {why}") from why


def time_ps(text: str, asked: str) -> int:
    """Picoseconds of "10ms", "8us", "0.5s" or plain seconds. `asked`: the option as it was written, for the UsageError."""
    try:
        return parse_time(text)
    except ScopeError as why:
        raise UsageError(f"{asked}: {why}") from why
