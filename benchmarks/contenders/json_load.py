"""Reads a trace with `json.load`: what any script has to pay before it sees the first event.

    python json_load.py TRACE.json

Prints one line of JSON: load_s, events.
"""

from __future__ import annotations

import json
import sys
import time


def main() -> None:
    began = time.perf_counter()
    with open(sys.argv[1], "rb") as file:
        trace = json.load(file)
    load_s = time.perf_counter() - began
    print(json.dumps({"load_s": load_s, "events": len(trace["traceEvents"])}))


if __name__ == "__main__":
    main()
