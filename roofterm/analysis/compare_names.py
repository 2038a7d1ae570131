"""Names of two profiles made alike: what tuning, line numbers and addresses change from build to build does not keep rows apart."""

from __future__ import annotations

import re
from functools import lru_cache

from roofterm.analysis.categories.short import plain_name

_TUNING = re.compile(
    r"(?:(?<=[_ ])|^)"
    r"(?:(?:MT|tile|tilesize|stages?_?|align|ldg|splitK|warps?|w)?\d+(?:x\d+)+|(?:stages?|align|ldg|tile|warps)_?\d+t?)"
    r"(?=[_ <]|$)"
)
"""Tile sizes and stages (128x64, tilesize128x128x64, MT256x128x64, 32x3, stages_32x5) and how operands are loaded (ldg8, align4)."""

_NUMBERED = re.compile(r"^(triton_\w+?)(?:_\d+)+$")
"""Inductor numbers its kernels in the order of their graph, and names what they fuse; XLA's numbers are all that its names tell."""

_ADDRESS = re.compile(r" (?:object )?at 0x[0-9a-fA-F]+")
_LINE = re.compile(r"(?<=\.py)\(\d+\)")
_LOADER = re.compile(r"^(enumerate\(Data(?:Loader|Pipe)\))#\w+(?=\.)")
_RUNTIME = re.compile(r"^(?:cuda|hip)(?=[A-Z])")
_RUNTIME_SUFFIX = re.compile(r"(?:ExC|_v\d+|_ptsz|_spt)$")


@lru_cache(maxsize=1 << 16)
def kernel_key(name: str) -> str:
    """A kernel's name without what tuning chooses: template numbers, tile sizes, stages, the number of a generated kernel.

    `ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn` becomes `ampere_bf16_s16816gemm_bf16_f2f_tn`.
    """
    plain = plain_name(name)
    numbered = _NUMBERED.match(plain)
    if numbered:
        return numbered.group(1)
    key = _TUNING.sub("", plain)
    return re.sub(r"_{2,}", "_", key).strip("_ ") or plain


@lru_cache(maxsize=1 << 16)
def host_key(name: str) -> str:
    """A host op's name without line numbers, addresses, the loader's class and the vendor of the runtime.

    `torch/nn/modules/module.py(1743): _call_impl` becomes `torch/nn/modules/module.py: _call_impl`, `hipMemcpyAsync` and
    `cudaMemcpyAsync` become `Runtime MemcpyAsync`.
    """
    key = _LINE.sub("", _ADDRESS.sub("", name))
    key = _LOADER.sub(r"\1", key)
    if _RUNTIME.match(key):
        return "Runtime " + _RUNTIME_SUFFIX.sub("", _RUNTIME.sub("", key))
    return key
