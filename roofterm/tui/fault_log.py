"""Where the last internal fault is written down, for whoever reports it."""

from __future__ import annotations

import platform
import traceback
from pathlib import Path

from roofterm import __version__
from roofterm.tui.state_files import MOST_BYTES, write_text

FILE = "fault.log"


def write_fault(fault: BaseException) -> Path | None:
    """The file that holds the traceback, in place of an earlier one's; None where it could not be written."""
    head = f"roofterm {__version__}, Python {platform.python_version()}, {platform.platform()}\n\n"
    text = head + "".join(traceback.format_exception(fault))
    try:
        return write_text(FILE, text.encode(errors="backslashreplace")[-MOST_BYTES:])
    except OSError:
        return None
