"""Opens a profile with roofterm's parsers, as a script or notebook would.

    python -m benchmarks.contenders.roofterm_load PROFILE [--cache]

Prints one line of JSON: load_s (wall time of `open_profile`, imports done before), slices, from_cache. With --cache the
profile is kept, or found again.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module

from roofterm_parsers.opening import open_profile

READERS = ("chrome.reader", "chrome.assembling", "xplane.reader", "merging")
"""and what a reader imports only once it has something to put together"""


def main() -> None:
    for reader in READERS:
        import_module(f"roofterm_parsers.{reader}")
    began = time.perf_counter()
    profile = open_profile(sys.argv[1], cache="--cache" in sys.argv[2:])
    load_s = time.perf_counter() - began
    print(json.dumps({"load_s": load_s, "slices": profile.slices.height, "from_cache": profile.from_cache}))


if __name__ == "__main__":
    main()
