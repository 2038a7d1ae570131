"""Commands and options as data; argparse only turns them into values.

argparse, not a library with decorators, because start-up is budgeted: importing click costs 21 ms,
cyclopts 42 ms, argparse 6 ms (time.process_time around the import, best of 5, Python 3.11).
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from roofterm.cli.errors import UsageError

if TYPE_CHECKING:
    from roofterm.cli.ahead import Reading
    from roofterm.cli.keeping import Keeping
    from roofterm.cli.one_core import OneCore

FORMATS = ("text", "json", "csv", "markdown")


@dataclass(frozen=True)
class Option:
    flags: tuple[str, ...]
    help: str
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Command:
    name: str
    module: str
    """module of roofterm.cli whose `run(args)` does it and gives the exit code"""
    help: str
    options: tuple[Option, ...] = ()
    paths: str | int | None = "+"
    """how many PATHs: argparse's nargs; None: no PATH"""
    noun: str = "PATH"
    """what its positional arguments are"""


def _flag(*flags: str, help: str) -> Option:
    return Option(flags, help, {"action": "store_true"})


def _value(*flags: str, help: str, **settings: Any) -> Option:
    return Option(flags, help, settings)


def _rows(text: str) -> int:
    """A number of rows, 0 or more."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of rows; 0 shows all")
    return int(text)


PICTURES = (*FORMATS, "svg")

OUTPUT = (
    _value("--format", help="text (default), json, csv or markdown", choices=FORMATS, default="text"),
    _value("-o", "--output", help="write to FILE, whole or not at all", metavar="FILE"),
)

TABLE = (
    *OUTPUT,
    _value("--top", help="rows of a table (20 in text, 100 in JSON and CSV, 1,000 for roofline; 0: all)", type=_rows, metavar="N"),
    _value("--sort", help="sort by a column; add :asc or :desc", metavar="COLUMN"),
)

READING = (
    *TABLE,
    _value("--where", help="filter: words, FIELD:VALUE, FIELD>VALUE, /regex/, !term", default="", metavar="EXPR"),
    _value("--step", help="steady, all, N or A-B", metavar="STEPS"),
    _value("--window", help="from the start, in seconds or with a unit: 10ms..25ms", metavar="A..B"),
    _value("--rank", help="one rank only", type=int, metavar="N"),
    _value("--device", help="whose peaks to use, by name", metavar="NAME"),
    _value("--roofs", help="which roofs to prefer", choices=("measured", "vendor", "trace")),
    _value("--peak", help="a compute roof in TFLOP/s, such as bf16=989", action="append", default=[], metavar="DTYPE=TFLOPS"),
    _value("--bandwidth", help="a memory roof in GB/s, such as hbm=3350", action="append", default=[], metavar="LEVEL=GBPS"),
    _value("--capture", help="trace of the graphs' capture, or a folder of them (default: capture_traces/ beside PATH)", metavar="PATH"),
    _value("--model", help="config.json of the language model that ran, for what its decode reads", metavar="FILE"),
    _flag("--no-infeed", help="leave infeed and outfeed out"),
)

LOOKS = (
    _flag("--ascii", help="draw with ASCII only"),
    _flag("--no-color", help="no colours (NO_COLOR does the same)"),
)

LOADING = (
    _flag("--no-cache", help="neither read nor write the cache of parsed profiles"),
    _value("--max-memory", help="memory that loading may take, such as 8GiB", metavar="SIZE"),
)

_DEBUG = _flag("--debug", help="show the traceback of a fault")

VOICE = (
    _flag("-q", "--quiet", help="no progress, no warnings on standard error"),
    _flag("--verbose", help="say more on standard error"),
    _DEBUG,
)

ANY = (*READING, *LOOKS, *LOADING, *VOICE)

EXPORTED = (
    "kernel", "launch", "op", "framework", "category", "module", "hlo", "collective", "gap", "iteration", "counter", "steps", "ranks",
    "roofline", "roofline-program", "roofline-phase", "roofline-category", "roofline-module", "roofline-kernel",
    "memory-pool", "memory-block", "memory-op", "memory-step", "memory-pressure",
    "xprof-hlo-stats", "xprof-kernel-stats", "xprof-framework-op-stats", "xprof-input-steps", "xprof-input-ops",
)  # fmt: skip
"""Tables of `report.result_tables`, which is heavier to import."""

COMMANDS = (
    Command("report", "report", "the triage report: health, device, steps, breakdown, top kernels and ops, roofline coverage", ANY),
    Command(
        "ops",
        "ops",
        "one table: kernels, ops, categories, modules, HLO instructions, collectives, gaps, iterations or XProf's op profile",
        (
            _value(
                "--by",
                help="kernel (default), launch (kernels by how they are launched), op, framework (framework ops on device and host), "
                "category, module, hlo, collective, gap, iteration, counter, or op_profile: XProf's tree",
                choices=(
                    "kernel",
                    "launch",
                    "op",
                    "framework",
                    "category",
                    "module",
                    "hlo",
                    "collective",
                    "gap",
                    "iteration",
                    "counter",
                    "op_profile",
                ),
                default="kernel",
            ),
            _value(
                "--group",
                help="split the rows of ops by input shape, Python stack or module; those of op_profile by program (default), category "
                "or provenance",
                choices=("shape", "stack", "module", "program", "category", "provenance"),
            ),
            *ANY,
        ),
    ),
    Command("steps", "steps", "one row a step: its time and where it went", ANY),
    Command("ranks", "ranks", "one row a rank or host: who is late, and who waits", ANY),
    Command(
        "compare",
        "compare",
        "what changed from BASE to NEW, by step, category, kernel and op",
        (
            _value(
                "--fail-on",
                help="end with 3 if this holds: step_us>5% (more than 5 % above BASE), busy_pct<90 (NEW alone)",
                action="append",
                default=[],
                metavar="CONDITION",
            ),
            *ANY,
        ),
        paths=2,
    ),
    Command(
        "export",
        "export",
        "all slices, or --where of them, to FILE: .parquet, .arrow, .csv, .json or .trace.json.gz; or a --table",
        (
            _value("--table", help="a table instead of slices: " + ", ".join(EXPORTED), choices=EXPORTED, metavar="NAME"),
            _flag("--redact", help="leave out paths, URLs, host and user names"),
            *(option for option in ANY if option.flags[0] not in ("--format", "--top", "--sort")),
        ),
    ),
    Command(
        "roofline",
        "roofline",
        "how near the program, its ops or its kernels come to the hardware's limits",
        (
            _value(
                "--level",
                help="program, phase, category, module, op (default) or kernel",
                choices=("program", "phase", "category", "module", "op", "kernel"),
                default="op",
            ),
            _value(
                "--label", help="name of a PATH: with one for each, they are profiles of their own on one roof", action="append", default=[]
            ),
            _value("--xprof", help="XProf's roofline tool as this version has it (2.24.2 or 2.23.1), in JSON", metavar="VERSION"),
            _value("--format", help="text (default), json, csv, markdown, or svg: the plot as a picture", choices=PICTURES, default="text"),
            *(option for option in ANY if option.flags[0] != "--format"),
        ),
    ),
    Command(
        "whatif",
        "whatif",
        "the least time of a step for another type, batch, context, split, speculation or device",
        (
            _value("--dtype", help="type of the arithmetic", choices=("fp32", "tf32", "fp16", "bf16", "fp8", "fp4")),
            _value("--weights", help="how weights are stored: int8, fp8, int4, int4:64, mxfp4, ...; scales are read too", metavar="FORMAT"),
            _value("--kv-dtype", help="type of the KV cache", choices=("fp32", "fp16", "bf16", "fp8", "int8", "fp4", "int4")),
            _value("--batch", help="sequences of a step; xN: N times as many", metavar="N"),
            _value("--prompt", help="tokens of each prompt (prefill)", type=int, metavar="TOKENS"),
            _value("--context", help="tokens that each sequence attends to (decode)", type=int, metavar="TOKENS"),
            _value("--tp", help="devices that every layer is split among", type=int, metavar="N"),
            _value("--spec", help="tokens drafted in a step, and the share of them that is accepted, such as 4,0.7", metavar="K,ACCEPT"),
            _value("--slo", help="longest time between tokens, such as itl=50ms: the largest batch that keeps it", metavar="itl=TIME"),
            _value("--latency", help="least time of a collective, such as 8us (default: that of a launch, 2us)", metavar="TIME"),
            _value("--sweep", help="a row of values: batch=1..256 (doubling), context=1k,4k, prompt=, tp=, spec=", metavar="NAME=VALUES"),
            _value("--format", help="text (default), json, csv, markdown, or svg: a sweep as a picture", choices=PICTURES, default="text"),
            *(option for option in ANY if option.flags[0] != "--format"),
        ),
        paths="*",
    ),
    Command(
        "measure",
        "measure",
        "measure this machine's roofs with torch, and keep them for later rooflines",
        (
            _value("--python", help="the interpreter that has torch (default: ours, else the first that has it)", metavar="PATH"),
            _value("--budget", help="seconds to take, about (25)", type=float, default=25.0, metavar="SECONDS"),
            _value("--device", help="torch's name of the device, such as cuda:1 (default: the first accelerator)", metavar="NAME"),
            _flag("--force", help="keep noisy figures too"),
            *OUTPUT,
            *LOOKS,
            *VOICE,
        ),
        paths=None,
    ),
    Command("devices", "devices", "the hardware table; what a name resolves to, and why", (*TABLE, *LOOKS, *VOICE), paths="*", noun="NAME"),
    Command("cache", "cache", "info or clear: the cache of parsed profiles", (_DEBUG,), paths="*", noun="WHAT"),
    Command("explain", "explain", "what a figure means, and its source", (_DEBUG,), paths="*", noun="NAME"),
)

THEMES = ("dark", "light", "contrast", "colorblind", "ansi")

OPEN = Command(
    "open",
    "open",
    "open the explorer",
    (
        *ANY,
        _flag("--mouse", help="let the explorer use the mouse"),
        _value("--theme", help="colours of the explorer: dark, light, contrast, colorblind, ansi", choices=THEMES),
        _flag("--no-state", help="neither bring back where the profile was left nor keep where it is left now"),
    ),
)
"""What `roofterm PATH...` does without a command's name."""


class Arguments(argparse.Namespace):
    """The values of a command's options, by name."""

    command: Command
    paths: list[str]
    ahead: Reading | None = None
    """the profile, where it is being read already"""
    core: OneCore | None = None
    """where the command works on what it has read, if that is little"""
    keeping: Keeping | None = None
    """what was read, where the explorer's first figures are to be kept of it"""

    @property
    def module(self) -> str:
        """The module of roofterm.cli that answers."""
        alone = getattr(self, "xprof", None) and not self.label
        return "xprof_table" if alone else self.command.module

    @property
    def device_alone(self) -> bool:
        """Whether the answer needs a TPU's devices without the host (`open_profile`), as the tables that XProf has too."""
        return self.module == "xprof_table" or getattr(self, "by", None) == "op_profile"

    @property
    def of_devices(self) -> bool:
        """Whether the answer speaks of devices, so that it needs a TPU's host only for what that tells of their work.

        A window counts from the file's first event, which may be the host's.
        """
        return self.module == "roofline" and not (self.window or self.capture or self.model)


def parse(argv: list[str]) -> Arguments:
    """The command and its values. Raises UsageError with a sentence, or SystemExit(0) after help was printed."""
    named = next((c for c in COMMANDS if argv and argv[0] == c.name), None)
    if named is None and (not argv or argv[0] in ("-h", "--help")):
        print(overview())
        raise SystemExit(0)
    command = named or OPEN
    values = _parser(command).parse_args(argv[1:] if named else argv, namespace=Arguments())
    values.command = command
    return values


def overview() -> str:
    """The text of `roofterm --help`."""
    width = max(len(c.name) for c in COMMANDS) + 2
    lines = [
        "roofterm PATH...            open a profile in the explorer (without a terminal: print the report)",
        "roofterm COMMAND PATH...    answer one question",
        "",
        "PATH is a file, a folder, a quoted glob or - for standard input.",
        "",
        *(f"  {c.name:{width}}{c.help}" for c in COMMANDS),
        "",
        "roofterm COMMAND --help lists a command's options. roofterm --version prints the version.",
    ]
    return "\n".join(lines)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


class _Help(argparse.HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=100)


def _parser(command: Command) -> argparse.ArgumentParser:
    name = "roofterm" if command is OPEN else f"roofterm {command.name}"
    parser = _Parser(prog=name, description=command.help, allow_abbrev=False, formatter_class=_Help)
    if command.paths is not None:
        what = "a file, a folder, a quoted glob, or - for standard input" if command.noun == "PATH" else ""
        parser.add_argument("paths", nargs=command.paths, metavar=command.noun, help=what)
    for option in command.options:
        parser.add_argument(*option.flags, help=option.help.replace("%", "%%"), **option.settings)
    return parser
