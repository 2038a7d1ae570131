"""roofterm's explorer over a profile made in memory.

python -m benchmarks.contenders.large_explorer SLICES KERNEL_NAMES
"""

from __future__ import annotations

import sys

from benchmarks.large_profile import large_profile
from roofterm.analysis.study import Study
from roofterm.tui.app import RooftermApp
from roofterm.tui.capabilities import probe
from roofterm.tui.opened import prepare
from roofterm.tui.options import Options

TITLE = "large.pt.trace.json"


def main() -> None:
    slices, kernel_names = map(int, sys.argv[1:3])
    options = Options()
    opened = prepare(Study(large_profile(slices, kernel_names)), options, TITLE)
    RooftermApp([TITLE], options, probe(), opened).run(mouse=False)


if __name__ == "__main__":
    main()
