"""Works out a report of a profile part by part.

    python -m benchmarks.contenders.roofterm_parts PROFILE

Prints one line of JSON: for each part, in the order in which they are asked for, its CPU time in seconds (of all threads). A part
pays for what it is the first to need. The profile is kept, or found again; `whole` is the CPU time of all parts but the opening.
"""

from __future__ import annotations

import json
import sys
import time

began = time.process_time()

from roofterm.analysis.scope import STEADY  # noqa: E402 : imports are a part
from roofterm.analysis.study import Study  # noqa: E402
from roofterm.report.as_json import report_json  # noqa: E402
from roofterm.report.triage import triage  # noqa: E402
from roofterm_parsers.opening import open_profile  # noqa: E402


def main() -> None:
    since = time.process_time()
    spent: dict[str, float] = {"imports": since - began}

    def part(name: str) -> None:
        nonlocal since
        now = time.process_time()
        spent[name] = now - since
        since = now

    study = Study(open_profile(sys.argv[1], cache=True))
    part("opening from the cache")
    _ = study.facts, study.names
    part("names and categories")
    _ = study.work, study.windows, study.device_lines
    part("device work and windows")
    study.bounded()
    part("costs and bounds")
    study.steps()
    part("steps")
    study.summary()
    part("summary")
    for by in ("op", "kernel", "category"):
        study.table(by, STEADY)
        part(f"table by {by}")
    study.roofline(STEADY)
    part("roofline")
    study.findings(STEADY)
    part("findings")
    report = triage(study, STEADY, 100)
    part("the report's rest")
    report_json(report)
    part("JSON")
    spent["whole"] = sum(spent.values()) - spent["imports"] - spent["opening from the cache"]
    print(json.dumps(spent))


if __name__ == "__main__":
    main()
