"""Record the JAX sample on a CPU with jax.profiler, with the figures that XProf gives for it.

    pip install "jax[cpu]==0.10.2" xprof==2.24.2
    python record_jax_cpu.py                    # writes the sample beside this script

Eight training steps of a small perceptron, each in a `StepTraceAnnotation`. NAME.expected.json holds XProf's own step times and
the events of its trace viewer by name: figures that any reader of the profile must come to.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from xprof.convert import raw_to_tool_data

NAME = "mlp_jax_cpu"
WIDTHS = (64, 128, 128, 10)
BATCH, STEPS = 32, 8
HERE = Path(__file__).resolve().parent
Parameters = list[tuple[jax.Array, jax.Array]]


def main() -> None:
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")  # file names without this machine's folders
    with tempfile.TemporaryDirectory() as folder:
        record(folder)
        [trace] = Path(folder).rglob("*.xplane.pb")
        shutil.copy(trace, HERE / f"{NAME}.xplane.pb")
        figures = xprof_figures(trace)  # XProf leaves files of its own beside what it reads
    (HERE / f"{NAME}.expected.json").write_text(json.dumps(figures, indent=1) + "\n")


def record(folder: str) -> None:
    """Compile first, then record the steps alone; without Python frames, which would fill the file."""
    parameters = initial()
    batch, labels = next_batch(0)
    compiled = jax.jit(train_step)
    jax.block_until_ready(compiled(parameters, batch, labels))
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with jax.profiler.trace(folder, profiler_options=options):
        for step in range(STEPS):
            with jax.profiler.StepTraceAnnotation("train", step_num=step):
                with jax.profiler.TraceAnnotation("next_batch"):
                    batch, labels = next_batch(step)
                parameters = compiled(parameters, batch, labels)
                jax.block_until_ready(parameters)


def initial() -> Parameters:
    numbers = np.random.default_rng(0)
    return [
        (jnp.asarray(numbers.normal(size=(rows, columns)) * rows**-0.5, jnp.float32), jnp.zeros(columns))
        for rows, columns in pairwise(WIDTHS)
    ]


def next_batch(step: int) -> tuple[jax.Array, jax.Array]:
    numbers = np.random.default_rng(1000 + step)
    return jnp.asarray(numbers.normal(size=(BATCH, WIDTHS[0])), jnp.float32), jnp.asarray(numbers.integers(0, WIDTHS[-1], BATCH))


def train_step(parameters: Parameters, batch: jax.Array, labels: jax.Array) -> Parameters:
    gradients = jax.grad(loss)(parameters, batch, labels)
    updated: Parameters = jax.tree.map(lambda value, gradient: value - 0.01 * gradient, parameters, gradients)
    return updated


def loss(parameters: Parameters, batch: jax.Array, labels: jax.Array) -> jax.Array:
    *hidden, (weights, bias) = parameters
    for inner_weights, inner_bias in hidden:
        batch = jax.nn.relu(batch @ inner_weights + inner_bias)
    scores = jax.nn.log_softmax(batch @ weights + bias)
    return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], axis=1))


def xprof_figures(path: Path) -> dict[str, Any]:
    steps = [
        {column: row[column] for column in ("stepnum", "stepTimeMs", "hostComputeTimeMs", "otherTimeMs")}
        for row in rows(tool(path, "input_pipeline_analyzer"), "stepnum")
    ]
    events: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
    for event in tool(path, "trace_viewer")["traceEvents"]:
        if event.get("ph") == "X":
            events[event["name"]][0] += 1
            events[event["name"]][1] += event["dur"]
    return {"made_by": "xprof 2.24.2", "steps": steps, "events": {name: [count, round(us, 6)] for name, (count, us) in events.items()}}


def tool(path: Path, name: str) -> Any:
    data, _ = raw_to_tool_data.xspace_to_tool_data([str(path)], name, {})
    return json.loads(data)


def rows(tables: list[dict[str, Any]], first: str) -> list[dict[str, Any]]:
    """Rows of the one of the tables that begins with this column."""
    [found] = [table for table in tables if [column["id"] for column in table.get("cols", [])][:1] == [first]]
    ids = [column["id"] for column in found["cols"]]
    return [dict(zip(ids, [(cell or {}).get("v") for cell in row["c"]], strict=True)) for row in found["rows"]]


if __name__ == "__main__":
    main()
