"""The front door: finds the command, turns every fault into a sentence and an exit code."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from contextlib import nullcontext, suppress
from importlib import import_module
from typing import NoReturn

from roofterm import __version__
from roofterm.cli.errors import DONE, INTERRUPTED, UNUSABLE, UsageError


def program() -> NoReturn:
    """The process: `main`, without looking for garbage while there is none. `load` turns the collector on again, and what is left at
    the end goes with the process: to take the interpreter down piece by piece takes longer than reading a small profile."""
    gc.disable()
    # Where whoever started us closed them; they stay open to the end.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    code = main()
    if (left := sys.modules.get("roofterm_parsers.leftovers")) is not None:
        left.clear_up()  # of a thread that is left in the midst of reading
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # whoever read it is gone, or it is closed
            stream.flush()
    os._exit(code)


def main(argv: list[str] | None = None) -> int:
    """Run roofterm with these arguments (without the program's name); gives the exit code of contract.md section 1."""
    argv = sys.argv[1:] if argv is None else argv
    debug = "--debug" in argv
    try:
        if argv and argv[0] in ("--version", "-V"):
            print(f"roofterm {__version__}", flush=True)
            return DONE
        return _run(argv)
    except UsageError as why:
        return _fault(str(why), debug)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone (| head): no fault, but nothing more may be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as why:
        from roofterm_parsers.errors import Interrupted, ProfileError

        if isinstance(why, Interrupted):
            return INTERRUPTED
        if isinstance(why, ProfileError):
            return _fault(str(why), debug)
        if debug:
            raise
        return _fault(f"internal fault: {type(why).__name__}: {why}; run again with --debug for more", debug=False)


def _run(argv: list[str]) -> int:
    from roofterm.cli.arguments import parse

    try:
        arguments = parse(argv)
    except SystemExit as stop:
        return int(stop.code or 0)
    from roofterm.cli.ahead import begin, reads_little
    from roofterm.start_up import import_polars_for_little

    with begin(arguments) or nullcontext() as arguments.ahead:
        if reads_little(arguments) and import_polars_for_little():
            from roofterm.cli.one_core import OneCore

            arguments.core = OneCore()
        try:
            result: int = import_module(f"roofterm.cli.{arguments.module}").run(arguments)
            if arguments.keeping is not None:
                arguments.keeping.outline()
        finally:
            if arguments.core is not None:
                arguments.core.leave()
    return result


def _fault(message: str, debug: bool) -> int:
    """Say in one line what is wrong; the message may hold text out of a file."""
    from roofterm.text.safe import ascii_text, safe_text

    text = safe_text(" ".join(message.split("\n")))
    encoding = (sys.stderr.encoding or "ascii").lower().replace("-", "")
    print(f"roofterm: {text if encoding == 'utf8' else ascii_text(text)}", file=sys.stderr)
    if debug:
        import traceback

        traceback.print_exc()
    return UNUSABLE


if __name__ == "__main__":
    program()
