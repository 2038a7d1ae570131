"""Category and type of HLO instructions, by the compiler's own category and text (XLA: `hlo_category`, xla_op_utils.h)."""

from __future__ import annotations

import re

from roofterm.analysis.categories.kinds import Category

_C = Category

_BY_NAME: dict[str, Category] = {
    "loop fusion": _C.FUSED_ELEMENTWISE,
    "input fusion": _C.FUSED_REDUCTION,
    "non-fusion elementwise": _C.ELEMENTWISE,
    "broadcast": _C.FILL,
    "iota": _C.FILL,
    "reduce": _C.REDUCTION,
    "reduce-window": _C.POOLING,
    "select-and-scatter": _C.POOLING,
    "pad": _C.LAYOUT,
    "reverse": _C.LAYOUT,
    "reshape": _C.LAYOUT,
    "transpose": _C.LAYOUT,
    "data formatting": _C.LAYOUT,
    "concatenate": _C.COPY,
    "slice": _C.COPY,
    "dynamic-slice": _C.COPY,
    "dynamic-update-slice": _C.COPY,
    "gather": _C.EMBEDDING,
    "scatter": _C.EMBEDDING,
    "gather fusion": _C.EMBEDDING,
    "scatter fusion": _C.EMBEDDING,
    "sort": _C.SORT,
    "rng": _C.RNG,
    "rng-bit-generator": _C.RNG,
    "copy": _C.COPY,
    "copy-start": _C.COPY,
    "copy-done": _C.COPY,
    "infeed": _C.HOST_IO,
    "outfeed": _C.HOST_IO,
    "host send": _C.HOST_IO,
    "host recv": _C.HOST_IO,
    "host send-done": _C.HOST_IO,
    "host recv-done": _C.HOST_IO,
    "call": _C.CONTROL,
    "while": _C.CONTROL,
    "conditional": _C.CONTROL,
    "megacore fusion": _C.CONTROL,
    "async-start": _C.CONTROL,
    "async-update": _C.CONTROL,
    "async-done": _C.CONTROL,
    "after-all": _C.CONTROL,
}
_COMMUNICATION = re.compile(r"^(all-|reduce-scatter|collective-|ragged-all|send|recv)|all-reduce|all-gather|all-to-all|reduce-scatter")
_DOT = re.compile(r"\bdot\(|dot_general|einsum|matmul|\bgemm\b|_gemm", re.IGNORECASE)
_ATTENTION = re.compile(r"attention|fmha|flash|_attn", re.IGNORECASE)
_CONV = re.compile(r"conv", re.IGNORECASE)

CONTAINERS = frozenset({"call", "while", "conditional", "megacore fusion"})
"""Categories whose ops hold others: their costs repeat their children's, so sums leave them out (XProf, MayHaveInnerOps)."""

INFEED = re.compile(r"infeed|outfeed|^host (send|recv)")

_TYPES = {
    "bf16": "bf16",
    "f16": "fp16",
    "f32": "fp32",
    "f64": "fp64",
    "s8": "int8",
    "u8": "int8",
    "s4": "int4",
    "u4": "int4",
    "s16": "int16",
    "u16": "int16",
    "s32": "int32",
    "u32": "int32",
    "s64": "int64",
    "u64": "int64",
    "pred": "bool",
    "c64": "complex64",
    "c128": "complex128",
    "tf32": "tf32",
}


def hlo_category_of(hlo_category: str | None, name: str | None, text: str | None, framework_op: str | None) -> Category | None:
    """Category of an instruction; None where neither its category nor its text tells (a custom call of unknown target)."""
    kind = (hlo_category or "").strip().lower()
    if not kind:
        return _framework_category(framework_op)
    words = f"{name or ''} {framework_op or ''} {text or ''}"
    if _COMMUNICATION.search(kind) or (kind.startswith("async-") and _COMMUNICATION.search(name or "")):
        return _C.COMMUNICATION
    if kind in ("convolution", "convolution fusion", "output fusion", "convolution base-dilated", "convolution window-dilated"):
        return _C.GEMM if _DOT.search(words) or not _CONV.search(f"{name or ''} {framework_op or ''}") else _C.CONV
    if kind in ("loop fusion", "input fusion") and "transpose" in (name or ""):
        return _C.LAYOUT
    if kind == "loop fusion" and "reduce" in (name or ""):
        return _C.FUSED_REDUCTION
    if kind.startswith("custom-call") or kind == "custom call":
        if _ATTENTION.search(words):
            return _C.ATTENTION
        if _DOT.search(words):
            return _C.GEMM
        return _C.CONV if _CONV.search(words) else None
    return _BY_NAME.get(kind)


_FRAMEWORK_OPS: dict[str, Category] = {
    **dict.fromkeys(("matmul", "batchmatmul", "batchmatmulv2", "batchmatmulv3", "einsum", "_fusedmatmul"), _C.GEMM),
    **dict.fromkeys(("conv2d", "conv3d", "_fusedconv2d", "depthwiseconv2dnative"), _C.CONV),
    **dict.fromkeys(("softmax", "logsoftmax"), _C.SOFTMAX),
}


def _framework_category(framework_op: str | None) -> Category | None:
    """Category of an op that no compiler saw, by its framework's type ("scope/op:MatMul"); None: its kernels' names tell."""
    return _FRAMEWORK_OPS.get((framework_op or "").rpartition(":")[2].strip().lower())


def hlo_dtype(dtype: str | None, text: str | None) -> str | None:
    """roofterm's name of an instruction's type: the stated one, else that of its result in the HLO text."""
    if dtype is None and text:
        found = re.search(r"=\s*\(?\s*([a-z]+\d*\w*)\[", text)
        dtype = found.group(1) if found else None
    if dtype is None:
        return None
    return "fp8" if dtype.startswith("f8") else "fp4" if dtype.startswith("f4") else _TYPES.get(dtype)
