"""FLOPs of a convolution: 2 per multiply-add at every place where kernel and input really meet (padding meets nothing)."""

from __future__ import annotations

from math import prod

import numpy as np

from roofterm_parsers.xplane.hlo_proto import Instruction, WindowDim
from roofterm_parsers.xplane.hlo_shapes import Shape


def convolution_flops(one: Instruction, lhs: Shape, rhs: Shape, result: Shape) -> float:
    """FLOPs of a convolution by its dimension numbers and window; `lhs` is the input, `rhs` the kernel."""
    dims = one.conv
    if dims is None:
        return 0.0
    met = prod(
        _meetings(window, lhs.dims[i], rhs.dims[k], result.dims[o])
        for window, i, k, o in zip(one.window, dims.input_spatial, dims.kernel_spatial, dims.output_spatial, strict=False)
    )
    multiply_adds = (
        (lhs.dims[dims.input_feature] // one.feature_groups)
        * result.dims[dims.output_feature]
        * (lhs.dims[dims.input_batch] // one.batch_groups)
        * met
    )
    return 2.0 * multiply_adds


def _meetings(window: WindowDim, inputs: int, kernel: int, outputs: int) -> int:
    """Pairs of a kernel and an output index of one dimension that fall on an input element."""
    stride, dilation, base = max(window.stride, 1), max(window.window_dilation, 1), max(window.base_dilation, 1)
    at = np.arange(outputs)[:, None] * stride - window.padding_low + np.arange(kernel)[None, :] * dilation
    return int(np.count_nonzero((at >= 0) & (at % base == 0) & (at // base < inputs)))
