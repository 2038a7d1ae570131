"""`roofterm whatif [PATH...]`: the least time of a step for another type, batch, context, split, speculation or device."""

from __future__ import annotations

from textwrap import wrap

import msgspec
import polars as pl

from roofterm.analysis.bounds import LAUNCH_S
from roofterm.analysis.filters import FilterError, parse
from roofterm.analysis.model_config import Storage, load_config, storage
from roofterm.analysis.op_roles import ROLES
from roofterm.analysis.row_filter import row_predicate
from roofterm.analysis.scope import ScopeError
from roofterm.analysis.sweep import parse_sweep, sweep
from roofterm.analysis.whatif import what_if
from roofterm.analysis.whatif_base import DEFAULT_TOKENS, model_bases, profile_base
from roofterm.analysis.whatif_state import Base, Change
from roofterm.analysis.workload import DECODE, Machine, WhatIfError
from roofterm.cli.arguments import Arguments
from roofterm.cli.errors import DONE, UsageError
from roofterm.cli.loading import study_of
from roofterm.cli.output import width, write
from roofterm.cli.report import explain
from roofterm.cli.selecting import roofs_of as roof_choice
from roofterm.cli.selecting import scope_of, time_ps
from roofterm.cli.tabular import folded, ordered
from roofterm.cli.whatif_sweep import give_sweep, machine_roofs
from roofterm.hardware.choice import RoofChoice
from roofterm.hardware.roofs import named_device
from roofterm.report.as_json import encode
from roofterm.report.as_markdown import markdown_table
from roofterm.report.columns import WHATIF_COLUMNS
from roofterm.report.files import csv_bytes
from roofterm.report.plain_table import plain_table
from roofterm.results import DeviceInfo, WhatIf, WhatIfRow, WhatIfState
from roofterm.text.safe import safe_text
from roofterm.text.units import bytes_text, count, duration_us, figures, pct, si

MOST_TEXT = 20
MOST = 100


def run(args: Arguments) -> int:
    change = _change(args, of_profile=bool(args.paths))
    itl_us = _slo(args.slo)
    if args.format == "svg" and not args.sweep:
        raise UsageError("--format svg draws a sweep: add --sweep, such as --sweep batch=1..256")
    try:
        bases, machine = _profile(args, change) if args.paths else _model(args)
        if args.sweep:
            name, values = parse_sweep(args.sweep)
            found = [sweep(base, _of_base(base, bases, change), machine, name, values) for base in bases]
            give_sweep(args, bases, found, machine or bases[0].machine, itl_us)
        else:
            answers = [
                what_if(base, _of_base(base, bases, change), machine, itl_us if base.phase == DECODE or len(bases) == 1 else None)
                for base in bases
            ]
            _give(args, answers, machine or bases[0].machine)
    except (ScopeError, FilterError) as why:
        raise UsageError(explain(why, args.where)) from why
    except WhatIfError as why:
        raise UsageError(str(why)) from why
    return DONE


def _of_base(base: Base, bases: list[Base], change: Change) -> Change:
    """Of prompt and decode together, only decode drafts tokens."""
    alone = base.phase == DECODE or all(one.phase != DECODE for one in bases)
    return change if alone else msgspec.structs.replace(change, drafts=0, accept=1.0)


def _model(args: Arguments) -> tuple[list[Base], None]:
    if not args.model:
        raise UsageError("name a profile, or a model with --model config.json (and a device with --device)")
    if not args.device:
        raise UsageError("a model alone says nothing of where it runs: name a device with --device (roofterm devices lists them)")
    machine = _machine(args, named_device(args.device, roof_choice(args)))
    batch = _number(args.batch, "--batch") if args.batch else None
    # What is swept is given by its values: the base needs some value, and nothing is to be said of it.
    swept = args.sweep.partition("=")[0] if args.sweep else None
    batch = 1.0 if swept == "batch" and batch is None else batch
    prompt = DEFAULT_TOKENS if swept == "prompt" and args.prompt is None else args.prompt
    context = DEFAULT_TOKENS if swept == "context" and args.context is None else args.context
    return model_bases(load_config(args.model), machine, batch, prompt, context), None


def _profile(args: Arguments, change: Change) -> tuple[list[Base], Machine | None]:
    """The profile's own device is where it starts from; --device is where it would run."""
    choice = roof_choice(args)
    study = study_of(args, RoofChoice(roofs=choice.roofs) if choice.device else choice).roofed
    if study.device is None:
        raise UsageError("no device worked in this profile, so there is no step to ask about")
    if not (choice.device or study.device.peaks or study.device.bandwidths):
        raise UsageError(f"no step has a least time without a roof: {'; '.join(study.device.notes)}")
    base = profile_base(study, scope_of(args, "steady"), _machine(args, study.device), change)
    return [base], _machine(args, named_device(choice.device, choice)) if choice.device else None


def _machine(args: Arguments, device: DeviceInfo) -> Machine:
    return Machine(device, LAUNCH_S if args.latency is None else time_ps(args.latency, f"--latency {args.latency}") / 1e12)


def _change(args: Arguments, of_profile: bool) -> Change:
    """What the options ask for. Batch, prompt and context are a model's own; for a profile they are the change."""
    times = None
    if args.batch and args.batch.startswith("x"):
        if not of_profile:
            raise UsageError(f"--batch {args.batch}: times which batch? Without a profile write a number")
        times = _number(args.batch[1:], "--batch")
    drafts, accept = _speculation(args.spec)
    for option, value in (("--tp", args.tp), ("--prompt", args.prompt), ("--context", args.context)):
        if value is not None and value < 1:
            raise UsageError(f"{option} {value}: write a number above 0")
    return Change(
        dtype=args.dtype,
        weights=_weights(args.weights),
        kv_dtype=args.kv_dtype,
        batch=_number(args.batch, "--batch") if of_profile and args.batch and times is None else None,
        batch_times=times,
        prompt=args.prompt if of_profile else None,
        context=args.context if of_profile else None,
        tp=args.tp,
        drafts=drafts,
        accept=accept,
    )


def _weights(text: str | None) -> Storage | None:
    try:
        return None if text is None else storage(text)
    except ValueError as why:
        raise UsageError(f"--weights {text}: {why}") from why


def _speculation(text: str | None) -> tuple[int, float]:
    """Tokens drafted and the share of them that is accepted."""
    if text is None:
        return 0, 1.0
    drafts, _, accept = text.partition(",")
    try:
        found = int(drafts), float(accept or 1.0)
    except ValueError:
        found = 0, 0.0
    if found[0] < 1 or not 0 <= found[1] <= 1:
        raise UsageError(f"--spec {text}: write K,ACCEPT: tokens drafted, and the share of them that is accepted, such as 4,0.7")
    return found


def _number(text: str, option: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not value > 0:
        raise UsageError(f"{option} {text}: write a number above 0")
    return value


def _slo(text: str | None) -> float | None:
    if text is None:
        return None
    name, _, value = text.partition("=")
    if name.strip().lower() != "itl" or not value:
        raise UsageError(f"--slo {text}: write itl=TIME, such as itl=50ms")
    return time_ps(value, f"--slo {text}") / 1e6


def _give(args: Arguments, answers: list[WhatIf], machine: Machine) -> None:
    rows = [row for answer in answers for row in answer.rows]
    frame = pl.DataFrame([msgspec.structs.asdict(row) for row in rows], schema=_schema(WhatIfRow))
    wanted = parse(args.where)
    frame = ordered(frame.filter(row_predicate(wanted, frame.schema)) if wanted else frame, args.sort)
    top = args.top if args.top is not None else MOST_TEXT if args.format == "text" else MOST
    shown = frame.head(top) if top else frame
    if args.format == "json":
        head = {"schema": "roofterm.whatif/1", "device": machine.device.name or machine.name, "roofs": machine_roofs(machine)}
        made = [
            {**msgspec.to_builtins(answer), "rows": shown.filter(pl.col("phase").eq_missing(answer.base.phase)).to_dicts()}
            for answer in answers
        ]
        write(args, encode({**head, "answers": made}))
    elif args.format == "csv":
        write(args, csv_bytes(shown))
    elif args.format == "markdown":
        write(args, markdown_table(shown, WHATIF_COLUMNS))
    else:
        lines: list[str] = []
        for answer in answers:
            mine = shown.filter(pl.col("phase").eq_missing(answer.base.phase))
            columns = [column for column in WHATIF_COLUMNS if not (_is_same(answer) and column.name in _OF_CHANGE)]
            lines += [*_text(answer, machine), "", *plain_table(mine, columns, width())]
            left = frame.filter(pl.col("phase").eq_missing(answer.base.phase)).height - mine.height
            lines += [f"{count(left)} parts more; --top 0 shows all"] if left > 0 else []
            lines += ["", *folded([safe_text(f"held: {'; '.join(answer.held)}")]), ""]
        write(args, lines[:-1])


_OF_CHANGE = ("whatif_us", "whatif_bound_by", "estimate_us")


def _is_same(answer: WhatIf) -> bool:
    """Whether nothing was changed: then one state is shown."""
    return msgspec.structs.replace(answer.whatif, estimate_us=answer.base.estimate_us) == answer.base


def _text(answer: WhatIf, machine: Machine) -> list[str]:
    """Both states side by side, then the batches at which the step changes its nature."""
    now, then = answer.base, answer.whatif
    pairs: list[tuple[str, str, str]] = [
        ("step", _step(now), _step(then)),
        ("types", _types(now), _types(then)),
        ("device", _place(now), _place(then)),
        ("least time", duration_us(now.bound_us), f"{duration_us(then.bound_us)}{_times(now.bound_us, then.bound_us)}"),
        ("  arithmetic", duration_us(now.arithmetic_us), duration_us(then.arithmetic_us)),
        ("  memory", duration_us(now.memory_us), duration_us(then.memory_us)),
    ]
    if now.link_us or then.link_us:
        pairs.append(("  link", duration_us(now.link_us), duration_us(then.link_us)))
    if now.launch_us:
        pairs.append(("  launches", duration_us(now.launch_us), duration_us(then.launch_us)))
    if now.held_us or then.held_us:
        pairs.append(("  held", duration_us(now.held_us), duration_us(then.held_us)))
    if answer.busy_us is not None:
        pairs.append(("estimate", duration_us(now.estimate_us), duration_us(then.estimate_us)))
    if then.held_bytes is not None:
        pairs.append(("in memory", _memory(now), _memory(then)))
    pairs.append(("bound by", str(now.bound_by), str(then.bound_by)))
    pairs.append(("FLOPs / byte", _intensity(now), _intensity(then)))
    moving = [role for role in ROLES if now.bytes_by_role.get(role) or then.bytes_by_role.get(role)]
    pairs += [(f"  {role}", _moved(now, role), _moved(then, role)) for role in moving]
    if _untold(now) or _untold(then):
        pairs.append(("  role unknown", _share(now, _untold(now)), _share(then, _untold(then))))
    if then.tokens_per_s is not None:
        pairs.append(("tokens/s", si(now.tokens_per_s), si(then.tokens_per_s)))
    if then.itl_us is not None:
        pairs.append(("between tokens", duration_us(now.itl_us), duration_us(then.itl_us)))
    if then.ttft_us is not None:
        pairs.append(("first token", duration_us(now.ttft_us), duration_us(then.ttft_us)))
    if _is_same(answer):
        lines = [f"{name:16}{left}" for name, left, _ in pairs]
    else:
        wide = max(len(left) for _, left, _ in pairs)
        lines = [f"{'':16}{'now':{wide}}  what if"] + [f"{name:16}{left:{wide}}  {right}" for name, left, right in pairs]
    if answer.measured_us is not None:
        lines.append(f"{'measured':16}{duration_us(answer.measured_us)} a step, of which {duration_us(answer.busy_us)} of device work")
    if answer.kv_token_bytes:
        lines.append(f"{'KV cache':16}{bytes_text(answer.kv_token_bytes)} a token on each device")
    for limit in answer.limits:
        lines.append(f"{'batch':16}{count(limit.batch) if limit.batch is not None else 'none':>9}  {limit.text}")
    lines.append(f"{'roofs':16}{_roof_text(machine)}")
    return [part for line in lines for part in wrap(safe_text(line), width(), subsequent_indent=" " * 16) or [""]]


def _step(state: WhatIfState) -> str:
    if state.sequences is None:
        return state.phase or "a step"
    each = f"{state.tokens:,.6g} token{'s' if state.tokens != 1 else ''} each"
    context = f", context {state.context:,.6g}" if state.context != state.tokens else ""
    drafts = f", {state.drafts} drafted, each accepted with {state.accept:g}" if state.drafts else ""
    return f"{state.phase or 'training'}, {state.sequences:,.6g} x {each}{context}{drafts}"


def _types(state: WhatIfState) -> str:
    parts = [str(state.dtype or "unknown")]
    parts += [f"weights {state.weights}"] if state.weights and state.weights != state.dtype else []
    parts += [f"KV {state.kv_dtype}"] if state.kv_dtype and state.kv_dtype != state.dtype else []
    return ", ".join(parts)


def _place(state: WhatIfState) -> str:
    return f"{state.tp} x {state.device}" if state.tp > 1 else state.device


def _times(before: float, after: float) -> str:
    if not before > 0 or not after > 0 or abs(before / after - 1) <= 0.0005:
        return ""
    return f" ({figures(before / after)} times as fast)" if after < before else f" ({figures(after / before)} times as long)"


def _memory(state: WhatIfState) -> str:
    return f"{bytes_text(state.held_bytes)}{', which does not fit' if state.fits is False else ''}"


def _intensity(state: WhatIfState) -> str:
    return "--" if state.intensity is None else figures(state.intensity)


def _moved(state: WhatIfState, role: str) -> str:
    return _share(state, sum(state.bytes_by_role.get(role, {}).values()))


def _share(state: WhatIfState, moved: float) -> str:
    return f"{bytes_text(moved)} ({pct(100 * moved / state.bytes if state.bytes else None)})"


def _untold(state: WhatIfState) -> float:
    """Bytes that no role is known of; rounding of sums counts for nothing."""
    left = state.bytes - sum(sum(ways.values()) for ways in state.bytes_by_role.values())
    return left if left > 5e-4 * state.bytes else 0.0


def _roof_text(machine: Machine) -> str:
    """The roofs that matter most, each with where it is from."""
    device = machine.device
    found = [
        f"{si(device.peaks[dtype], 'FLOP/s')} {dtype} ({device.sources.get(dtype, '?')})"
        for dtype in ("bf16", "fp8", "fp32")
        if dtype in device.peaks
    ]
    if "hbm" in device.bandwidths:
        found.append(f"{si(device.bandwidths['hbm'], 'B/s')} HBM ({device.sources.get('hbm', '?')})")
    found += [f"{si(rate, 'B/s')} {link} ({device.sources.get(link, '?')})" for link, rate in device.links.items() if link != "pcie"]
    return ", ".join(found)


_TEXT = ("shapes", "value", "phase", "bound_by", "name", "category", "whatif_bound_by")


def _schema(record: type[msgspec.Struct]) -> dict[str, type[pl.DataType]]:
    return {name: pl.String if name in _TEXT else pl.Boolean if name == "held" else pl.Float64 for name in record.__struct_fields__}
