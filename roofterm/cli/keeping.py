"""The explorer's first figures, kept by commands that have read the profile, so that it shows them before it reads it again."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roofterm.cli.arguments import Arguments
from roofterm.cli.selecting import roofs_of

if TYPE_CHECKING:
    from roofterm.analysis.study import Study

LEAST_BYTES = 1 << 20
"""of a file: what is smaller the explorer reads as soon as it would look for its outline"""


@dataclass(frozen=True)
class Keeping:
    """A profile that a command has read, and the name under which the explorer will look for its figures."""

    key: str
    study: Study

    def whole(self) -> None:
        """Keep all that the first screen shows, of a study in which it has been worked out by now."""
        from roofterm.tui.keeping import figures_of
        from roofterm.tui.kept_figures import has_figures, keep_figures

        if not has_figures(self.key):
            keep_figures(self.key, figures_of(self.study))

    def outline(self) -> None:
        """Keep of it what costs little beside reading."""
        from roofterm.tui.kept_figures import has_figures, keep_figures

        if not has_figures(self.key, outline=True):
            from roofterm.tui.keeping import outline_of

            keep_figures(self.key, outline_of(self.study))


def figures_key(args: Arguments) -> str | None:
    """Name of the figures that the explorer would look for, of the files as they are now; None: it would not."""
    if args.no_cache or args.model:
        return None
    from roofterm.tui.kept_figures import key_of
    from roofterm.tui.options import Options

    return key_of(args.paths, Options(roofs=roofs_of(args), capture=args.capture))


def worth_an_outline(args: Arguments) -> bool:
    """Whether a file is large, or there may be several; none is kept of what would be asked for once more over a network."""
    if any(path == "-" or "://" in path for path in args.paths):
        return False
    return len(args.paths) > 1 or any(not os.path.isfile(path) or os.path.getsize(path) >= LEAST_BYTES for path in args.paths)
