"""Textual's driver of a terminal, but `esc` alone is a key, and the program's end heard, as soon as it comes: Textual looks ten times
a second."""

from __future__ import annotations

import os
from codecs import getincrementaldecoder
from contextlib import suppress
from select import select
from threading import Event
from typing import Any

from textual._xterm_parser import XTermParser
from textual.app import App
from textual.drivers.linux_driver import LinuxDriver

READ_BYTES = 4096
PATIENCE_SECONDS = 0.1
"""before the next look where nothing will ever be typed again"""
ESCAPE_SECONDS = 0.02
"""after which what has come of a sequence is taken for the keys themselves; a terminal sends a sequence in one piece"""


class WakingEvent(Event):
    """An event that can be selected on."""

    def __init__(self) -> None:
        super().__init__()
        self._told, self._tells = os.pipe()
        os.set_blocking(self._told, False)

    def fileno(self) -> int:
        return self._told

    def set(self) -> None:
        super().set()
        os.write(self._tells, b"\0")

    def clear(self) -> None:
        super().clear()
        with suppress(BlockingIOError):
            os.read(self._told, READ_BYTES)


class PromptDriver(LinuxDriver):
    def __init__(self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self.exit_event = ends = WakingEvent()
        self._ends = ends.fileno()

    def _sigcont_application(self, *_: object) -> None:
        """Draw on the terminal again, unless the program ends: one that goes away sends SIGCONT right after SIGHUP.

        Textual would start the threads of the terminal a second time, and the program would wait for the first ones for ever.
        """
        if self._app._exit:
            return
        if not self._must_signal_resume:  # stopped from outside, so that nothing was given back
            self.suspend_application_mode()
        super()._sigcont_application()

    def run_input_thread(self) -> None:
        """Read what is typed until the program ends."""
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")().decode
        waits = False
        while not self.exit_event.is_set():
            ready, _, _ = select([self.fileno, self._ends], [], [], ESCAPE_SECONDS if waits else None)
            if self.fileno in ready:
                data = os.read(self.fileno, READ_BYTES)
                if not data:  # nothing will ever come again, and there is nothing to wait for
                    self.exit_event.wait(PATIENCE_SECONDS)
                for message in parser.feed(text) if (text := decode(data)) else ():
                    self.process_message(message)
            for message in parser.tick():
                self.process_message(message)
            waits = self.fileno in ready
