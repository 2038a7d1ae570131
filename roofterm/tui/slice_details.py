"""Everything a profile holds about one slice, for people."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from roofterm.analysis.categories import TITLES
from roofterm.analysis.dispatch import launching_op
from roofterm.analysis.slice_table import step_number
from roofterm.text.units import bytes_text, count, duration_us, pct
from roofterm.tui.widgets.detail import Details, Fact
from roofterm_parsers.errors import ProfileError
from roofterm_parsers.profile import WORK_KINDS
from roofterm_parsers.recorded import recorded_event

if TYPE_CHECKING:
    from roofterm.analysis.study import Study

US_PER_PS = 1e-6

IN_FILE = "In the file"

WORK = frozenset(int(kind) for kind in WORK_KINDS)


def slice_details(study: Study, slice_id: int) -> Details:
    """Its length, where it ran, what launched it, and what its side tables say."""
    profile = study.profile
    row = profile.slices.row(slice_id, named=True)
    track = profile.tracks.row(row["track"], named=True)
    facts = [
        Fact("category", TITLES[int(study.category[slice_id])]),
        Fact("length", duration_us(row["dur_ps"] * US_PER_PS)),
        Fact("self", duration_us(int(study.self_ps[slice_id]) * US_PER_PS), "its length less what lies in it on its own track"),
        Fact("start", duration_us(row["start_ps"] * US_PER_PS), "from the profile's zero"),
        Fact("track", _track(track)),
        *_step(study, slice_id),
        *_links(study, slice_id),
        *_kernel(profile.kernels, slice_id),
        *_copy(profile.copies, slice_id),
        *_op(study, slice_id),
        *_instruction(study, slice_id),
        *_collective(profile.collectives, slice_id),
        *_chain(study, slice_id),
        *(Fact("hint", text) for text in study.hints(slice_id)),
    ]
    return Details(_name(study, slice_id), facts)


def recorded_facts(study: Study, slice_id: int, cancelled: Callable[[], bool]) -> list[Fact]:
    """All arguments of the slice's event, read again from its file; why not, where that cannot be. Raises Interrupted."""
    try:
        event = recorded_event(study.profile, slice_id, cancelled)
    except ProfileError as why:
        return [Fact(IN_FILE), Fact("arguments", f"cannot be read again: {why}")]
    arguments = event.get("args")
    if not isinstance(arguments, dict) or not arguments:
        return [Fact(IN_FILE), Fact("arguments", "none")]
    return [Fact(IN_FILE), *(Fact(str(key), _text(value)) for key, value in arguments.items())]


def _text(value: Any) -> str:
    """A value of JSON as it stands in a file; a text without its quotes, "" for one without a character."""
    return value or '""' if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _step(study: Study, slice_id: int) -> list[Fact]:
    number = step_number(study, slice_id) if study.profile.steps.height else None
    about = "of device work the step that launched it, of a host slice the one in which it starts"
    return [] if number is None else [Fact("step", str(number), about)]


def _chain(study: Study, slice_id: int) -> list[Fact]:
    """The way from the host to a piece of device work, outermost first; of a host slice there is none to show."""
    if study.profile.links.height == 0 or int(study.kind[slice_id]) not in WORK:
        return []
    links = study.dispatch_chain(slice_id)
    return [Fact("Dispatch chain"), *(Fact(link.kind, link.name) for link in links)] if len(links) > 1 else []


def _name(study: Study, slice_id: int) -> str:
    profile = study.profile
    return str(profile.names["text"][int(profile.slices["name"][slice_id])])


def _track(track: dict[str, Any]) -> str:
    if track["stream"] is not None:
        return f"device {track['device']}, stream {track['stream']}"
    return " / ".join(text for text in (track["process_name"], track["thread_name"] or f"thread {track['thread']}") if text)


def _row(frame: pl.DataFrame, slice_id: int) -> dict[str, Any] | None:
    """The slice's row of a side table, which is ordered by slice."""
    if frame.height == 0:
        return None
    at = int(frame["slice"].search_sorted(slice_id))
    return frame.row(at, named=True) if at < frame.height and frame["slice"][at] == slice_id else None


def _links(study: Study, slice_id: int) -> list[Fact]:
    links = study.profile.links
    if links.height == 0:
        return []
    at = int(links["work"].search_sorted(slice_id))
    if at >= links.height or links["work"][at] != slice_id:
        return []
    launch, op = links["launch"][at], launching_op(study, slice_id)
    profile = study.profile
    facts = [Fact("launched by", _name(study, op), "the innermost op around the launch")] if op is not None else []
    if launch is not None:
        ends = int(profile.slices["start_ps"][launch]) + int(profile.slices["dur_ps"][launch])
        delay = (int(profile.slices["start_ps"][slice_id]) - ends) * US_PER_PS
        when = f"{duration_us(delay)} before" if delay >= 0 else f"ended {duration_us(-delay)} after it began"
        facts.append(Fact("launch", f"{_name(study, launch)}, {when}", "from the end of the call until it began"))
    else:
        facts.append(Fact("launch", "not in the file", "launched before recording began, or the file holds no runtime calls"))
    return facts


def _kernel(kernels: pl.DataFrame, slice_id: int) -> list[Fact]:
    row = _row(kernels, slice_id)
    if row is None:
        return []
    facts = []
    if row["grid_x"] is not None:
        facts.append(Fact("grid", f"{row['grid_x']} x {row['grid_y']} x {row['grid_z']}", "blocks"))
    if row["block_x"] is not None:
        facts.append(Fact("block", f"{row['block_x']} x {row['block_y']} x {row['block_z']}", "threads of a block"))
    known = (("registers", count), ("shared_bytes", bytes_text), ("occupancy_pct", pct), ("graph", str), ("correlation", str))
    return [
        *facts,
        *(Fact(name.removesuffix("_pct").replace("_bytes", " memory"), show(row[name])) for name, show in known if row[name] is not None),
    ]


def _copy(copies: pl.DataFrame, slice_id: int) -> list[Fact]:
    row = _row(copies, slice_id)
    return [] if row is None or row["bytes"] is None else [Fact("bytes", bytes_text(row["bytes"]))]


def _op(study: Study, slice_id: int) -> list[Fact]:
    row = _row(study.profile.ops, slice_id)
    if row is None:
        return []
    facts = []
    if row["signature"] is not None:
        signature = study.profile.signatures.row(row["signature"], named=True)
        facts = [
            Fact(name, signature[key])
            for name, key in (("shapes", "dims"), ("types", "types"), ("strides", "strides"), ("values", "concrete"))
            if signature[key]
        ]
    if row["sequence"] is not None:
        facts.append(Fact("sequence", str(row["sequence"]), "autograd's number: forward and backward share it"))
    return facts


def _instruction(study: Study, slice_id: int) -> list[Fact]:
    """What the compiled program says of the HLO instruction that the slice is a run of."""
    profile = study.profile
    row = _row(profile.hlo, slice_id)
    if row is None:
        return []
    op = profile.hlo_ops.row(row["op"], named=True)
    known = profile.hlo_facts.filter(pl.col("op") == row["op"]).head(1).to_dicts()
    facts = {**op, **(known[0] if known else {})}
    lists = {name: ", ".join(_names(msgspec.json.decode(facts[name]))) for name in ("operands", "users", "inside") if facts.get(name)}
    return [
        Fact("HLO instruction"),
        *(Fact(label, str({**facts, **lists}[name]), about) for name, label, about in _INSTRUCTION if {**facts, **lists}.get(name)),
    ]


_INSTRUCTION = (
    ("name", "instruction", ""),
    ("program", "program", "module that the compiler made"),
    ("category", "HLO category", ""),
    ("shape", "result", "type and shape, with its layout"),
    ("framework_op", "framework op", "op of the framework that it was compiled from"),
    ("source", "source", ""),
    ("operands", "operands", "instructions whose results it takes"),
    ("users", "users", "instructions that take its result"),
    ("inside", "fused", "instructions that it is made of"),
    ("text", "HLO text", ""),
)


def _names(listed: list[Any]) -> list[str]:
    """Names of instructions; of one that is a fusion itself, `name(...)` with those inside it."""
    return [one if isinstance(one, str) else f"{one[0]}({', '.join(_names(one[1]))})" for one in listed]


def _collective(collectives: pl.DataFrame, slice_id: int) -> list[Fact]:
    row = _row(collectives, slice_id)
    if row is None:
        return []
    known = ("collective", "group", "group_description", "group_size", "dtype", "in_elements", "out_elements")
    return [Fact(name.replace("_", " "), str(row[name])) for name in known if row[name] is not None]
