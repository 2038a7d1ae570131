"""Makes XProf's roofline of an .xplane.pb; run by the Python of its own environment.

    python xprof_roofline.py FILE.xplane.pb

Prints one line of JSON: load_s (wall time of the conversion, imports done before), rows. XProf keeps what it made
beside its input: give it a copy that it has not seen.
"""

from __future__ import annotations

import json
import sys
import time

from xprof.convert import raw_to_tool_data


def main() -> None:
    began = time.perf_counter()
    data, _ = raw_to_tool_data.xspace_to_tool_data([sys.argv[1]], "roofline_model", {})
    load_s = time.perf_counter() - began
    tables = json.loads(data)
    table = tables[0] if isinstance(tables, list) else tables
    print(json.dumps({"load_s": load_s, "rows": len(table["rows"])}))


if __name__ == "__main__":
    main()
