"""Textual's driver of a terminal, but `esc` alone is a key as soon as nothing has followed it: Textual looks ten times a second."""

from __future__ import annotations

import os
from codecs import getincrementaldecoder
from select import select

from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

READ_BYTES = 4096
LOOK_SECONDS = 0.1
"""between two looks whether the program ends"""
ESCAPE_SECONDS = 0.02
"""after which what has come of a sequence is taken for the keys themselves; a terminal sends a sequence in one piece"""


class PromptDriver(LinuxDriver):
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
            ready, _, _ = select([self.fileno], [], [], ESCAPE_SECONDS if waits else LOOK_SECONDS)
            if ready:
                data = os.read(self.fileno, READ_BYTES)
                if not data:  # nothing will ever come again, and there is nothing to wait for
                    self.exit_event.wait(LOOK_SECONDS)
                for message in parser.feed(text) if (text := decode(data)) else ():
                    self.process_message(message)
            for message in parser.tick():
                self.process_message(message)
            waits = bool(ready)
