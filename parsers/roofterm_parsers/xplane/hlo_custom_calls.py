"""Work of custom calls from their shapes: cuBLAS and cuBLASLt matrix products, cuDNN convolutions and attention, Transformer
Engine's fused attention. Bytes are operands and results once; workspaces are neither.
"""

from __future__ import annotations

import re
from math import prod
from typing import Any

from roofterm_parsers.xplane.hlo_attention import BACKWARD_OVER_FORWARD, attention_flops, visible_pairs
from roofterm_parsers.xplane.hlo_convolution import convolution_flops
from roofterm_parsers.xplane.hlo_costs import Cost
from roofterm_parsers.xplane.hlo_proto import Instruction, Module
from roofterm_parsers.xplane.hlo_shapes import Shape

_FREE = frozenset(
    {
        "AllocateBuffer", "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "LayoutConstraint", "MoveToHost", "MoveToDevice",
        "annotate_device_placement", "PinToDevice", "AssumeGatherIndicesInBound",
    }
)  # fmt: skip
"""Targets that mark something and run nothing."""
_TE_NO_MASK, _TE_CAUSAL, _TE_CAUSAL_BOTTOM_RIGHT = (0, 1), (2, 3), (4, 5)
"""Transformer Engine's NVTE_Mask_Type, without and with padding"""
_ATTRIBUTE = re.compile(r"(\w+) = (-?\d+) : i\d+")


def custom_call_cost(module: Module, one: Instruction, cost: Cost) -> bool:
    """Fill in the cost of a custom call; False if there is no rule for its target, or its shapes do not tell."""
    if one.target in _FREE:
        cost.flops = cost.bytes = 0.0
        cost.read = dict.fromkeys(cost.read, 0.0)
        cost.written = {}
        return True
    if is_matmul(one.target):
        flops = matmul_flops(module, one)
    elif is_convolution(one.target):
        flops = _convolution(module, one)
    elif one.target.startswith("__cudnn$fmha"):
        flops = _cudnn_attention(module, one)
    elif one.target.startswith(("te_fused_attn_forward", "te_fused_attn_backward")):
        flops = _te_attention(one)
    else:
        return False
    if flops is None:
        return False
    cost.flops = flops
    _memory(module, one, cost)
    return True


def is_matmul(target: str) -> bool:
    return target.startswith(("__cublas$gemm", "__cublas$lt$"))


def is_convolution(target: str) -> bool:
    return target.startswith("__cudnn$conv")


def matmul_flops(module: Module, one: Instruction) -> float | None:
    """2 per multiply-add: elements of the result times the contracted length. Null without dimension numbers."""
    numbers = one.config().get("gemm_backend_config", {}).get("dot_dimension_numbers")
    operands = module.operands(one)
    if not isinstance(numbers, dict) or not operands:
        return None
    lhs, result = operands[0].shape, _first(one.shape)
    contracted = _indices(numbers.get("lhs_contracting_dimensions"))
    if not contracted or max(contracted) >= len(lhs.dims):
        return None
    return 2.0 * result.elements * prod(lhs.dims[dim] for dim in contracted)


def _convolution(module: Module, one: Instruction) -> float | None:
    """All three directions have the forward pass's multiply-adds; which operand is what of it differs."""
    operands = [operand.shape for operand in module.operands(one)]
    if len(operands) < 2 or one.conv is None:
        return None
    result = _first(one.shape)
    if one.target.startswith("__cudnn$convBackwardInput"):
        return convolution_flops(one, result, operands[1], operands[0])
    if one.target.startswith("__cudnn$convBackwardFilter"):
        return convolution_flops(one, operands[0], result, operands[1])
    return convolution_flops(one, operands[0], operands[1], result)


def _cudnn_attention(module: Module, one: Instruction) -> float | None:
    """Scores = Q K^T by the first product's dimension numbers; the second product is as large with V's width."""
    config = one.config().get("cudnn_fmha_backend_config", {})
    backward = "Backward" in one.target
    numbers = config.get("bmm1_grad_gemm1_dot_dimension_numbers" if backward else "bmm1_dot_dimension_numbers")
    scores = config.get("intermediate_tensor_shape", {})
    dims = _indices(scores.get("dimensions"))
    operands = [operand.shape for operand in module.operands(one)]
    if len(dims) != 4 or not operands:
        return None
    batch, heads, queries, keys = dims
    width = _contracted(operands[0], numbers) if isinstance(numbers, dict) and not backward else operands[0].dims[-1]
    if width is None:
        return None
    mask = str(config.get("mask_type", "NO_MASK"))
    pairs = visible_pairs(queries, keys, causal="CAUSAL" in mask, bottom_right=False)
    return attention_flops(batch * heads * pairs, width, width) * (BACKWARD_OVER_FORWARD if backward else 1.0)


def _te_attention(one: Instruction) -> float | None:
    attributes = _te_attributes(one)
    try:
        batch, heads = attributes["input_batch"], attributes["attn_heads"]
        queries, keys = attributes["q_max_seqlen"], attributes["kv_max_seqlen"]
        qk, v = attributes.get("qk_head_dim", attributes.get("head_dim")), attributes.get("v_head_dim", attributes.get("head_dim"))
        mask = attributes["mask_type"]
    except KeyError:
        return None
    if qk is None or v is None:
        return None
    left = attributes.get("window_size_left", -1)
    pairs = visible_pairs(
        queries,
        keys,
        causal=mask not in _TE_NO_MASK,
        bottom_right=mask in _TE_CAUSAL_BOTTOM_RIGHT,
        window=left if left >= 0 else None,
    )
    backward = "backward" in one.target
    return attention_flops(batch * heads * pairs, qk, v) * (BACKWARD_OVER_FORWARD if backward else 1.0)


def _te_attributes(one: Instruction) -> dict[str, int]:
    """Attributes of a typed FFI call as MLIR text: `{attn_heads = 16 : i64, ...}`."""
    return {name: int(value) for name, value in _ATTRIBUTE.findall(one.backend_config.decode("utf-8", "replace"))}


def _memory(module: Module, one: Instruction, cost: Cost) -> None:
    """Operands and results once; of a tuple not the last part if it is a byte buffer: the workspace."""
    leaves = one.shape.leaves()
    if one.shape.is_tuple and len(leaves) > 1 and leaves[-1][1].dtype in ("s8", "u8") and len(leaves[-1][1].dims) == 1:
        leaves = leaves[:-1]
    cost.written = {path: float(leaf.bytes) for path, leaf in leaves}
    cost.read = {(i, path): float(leaf.bytes) for i, operand in enumerate(module.operands(one)) for path, leaf in operand.shape.leaves()}
    cost.bytes = sum(cost.read.values()) + sum(cost.written.values())


def _first(shape: Shape) -> Shape:
    return shape.tuple_shapes[0] if shape.is_tuple and shape.tuple_shapes else shape


def _contracted(lhs: Shape, numbers: dict[str, Any]) -> int | None:
    dims = _indices(numbers.get("lhs_contracting_dimensions"))
    return prod(lhs.dims[dim] for dim in dims) if dims and max(dims) < len(lhs.dims) else None


def _indices(values: Any) -> list[int]:
    """Protocol buffers' JSON writes 64-bit integers as text."""
    return [int(value) for value in values] if isinstance(values, list) else []
