"""What compiles: TorchDynamo, AOTAutograd, Inductor, Triton and XLA on the host, told by the names of slices.

The one rule for the steps that compile (`steps.step_windows`) and for the findings about compilation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

COMPILATION = "|".join(
    (
        r"\(dynamo_timed\)$",
        r"^(inductor_compile|fx_codegen_and_compile|entire_frame_compile|backward_compile|code_gen|compile_attempt_\d+|compile_file)$",
        r"torch/_dynamo/convert_frame\.py\(\d+\): (_compile|_?compile_inner|transform)$",
        r"torch/_inductor/compile_fx\.py\(\d+\): (_?compile_fx\w*|fx_codegen_and_compile|codegen_and_compile)$",
        r"torch/_inductor/(graph|codecache|async_compile)\.py\(\d+\): \w*compile\w*$",
        r"torch/_inductor/runtime/triton_heuristics\.py\(\d+\): (benchmark_all_configs|autotune_to_one_config|_?precompile\w*)$",
        r"triton/compiler/compiler\.py\(\d+\): compile$|triton/runtime/(jit|autotuner)\.py\(\d+\): (_do_compile|_bench|do_bench)$",
        r"^backend_compile|^XlaCompile|::CompileAndLoad$|::Compile$|^XLA compil|^jit_compile$|RunBackend\b.*[Cc]ompile",
    )
)
"""Names of slices that compile. Frames that only run what was compiled are none: `compile_fx.py(1767): run` wraps each call."""


def compiles(names: pl.Series) -> pl.Series:
    """Which names of slices tell of compilation, one flag a name."""
    return names.str.contains(COMPILATION)
