"""Loads a trace with HolisticTraceAnalysis; run by the Python of its own environment.

    python hta_load.py TRACE

Prints one line of JSON: load_s (wall time of `TraceAnalysis(...)`, imports done before), events.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time

from hta.trace_analysis import TraceAnalysis  # type: ignore[import-not-found]


def main() -> None:
    path = os.path.abspath(sys.argv[1])
    logging.disable(logging.WARNING)
    began = time.perf_counter()
    analysis = TraceAnalysis(trace_files={0: os.path.basename(path)}, trace_dir=os.path.dirname(path))
    load_s = time.perf_counter() - began
    print(json.dumps({"load_s": load_s, "events": len(analysis.t.get_trace(0))}))


if __name__ == "__main__":
    main()
