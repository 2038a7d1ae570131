"""What every test stands on: folders of its own for cache and settings, a plain environment, and the count of skips."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.reference import REASON

PERSONAL = ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "COLUMNS", "LINES", "ROOFTERM_ASCII", "TEXTUAL_COLOR_SYSTEM", "SSH_CONNECTION")
"""Variables by which a user's own taste would change what a test sees."""


@pytest.fixture(autouse=True, scope="session")
def plain_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the user's cache, settings and state; subprocesses inherit this."""
    with pytest.MonkeyPatch.context() as patch:
        for name in PERSONAL:
            patch.delenv(name, raising=False)
        for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
            patch.setenv(name, str(tmp_path_factory.mktemp(name.lower())))
        patch.setenv("TEXTUAL_ANIMATIONS", "none")
        yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests had no reference data, so that a green run cannot hide it."""
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if REASON in str(report.longrepr)]
    where = os.environ.get("ROOFTERM_REFERENCE", "the default place")
    terminalreporter.write_line(f"{len(skipped)} tests skipped for want of reference data (looked in {where})")


settings.register_profile("roofterm", deadline=None)  # how long an example takes is no test's business
settings.load_profile("roofterm")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes in a test's name are long, and those of a gzip hold the time it was made: the argument's name and number will do."""
    return argname if isinstance(val, bytes) else None
