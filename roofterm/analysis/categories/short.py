"""Short names for people: C++ templates, mangled and generated kernel names boiled down to what tells them apart."""

from __future__ import annotations

import re
from functools import lru_cache

WIDTH = 60
"""Longest short name, in characters."""

TAIL = 14
"""What is kept of the end of a name that is longer."""

UNNAMED = "(no name)"


@lru_cache(maxsize=1 << 16)
def short_name(text: str) -> str:
    """A name of at most `WIDTH` characters, never empty.

    `void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::Half>, ...>(...)` becomes
    `vectorized_elementwise add<Half>`.
    """
    return _cut(plain_name(text)) or UNNAMED


def plain_name(text: str) -> str:
    """The short name at whatever length it has; empty for nothing."""
    name = text.strip().removesuffix(".kd").removesuffix(" [clone").strip()
    if name.startswith("_Z"):
        name = _unmangled(name) or name
    elif name.startswith(("Cijk_", "Custom_Cijk_")):
        name = _tensile(name)
    elif _CPP.search(name) and not _NO_CPP.search(name):
        name = _cpp(name)
    elif "_tilesize" in name:
        name = re.sub(r"_(stage\d+|warpsize\w+?|warpgroupsize\w+?|g\d+|align\w+?)(?=_|$)|_execute\w*_kernel\w*$|_kernel__\w+$", "", name)
    return " ".join(name.split())


_CPP = re.compile(r"\w[<(]")
_NO_CPP = re.compile(r"^<|\.py\(|: |^\[")
_TYPE = re.compile(
    r"\b(BFloat16|__nv_bfloat16|__hip_bfloat16|hip_bfloat16|bfloat16_t|Half|__half2?|half_t|float|double|long|int|bool"
    r"|unsigned char|signed char)\b"
)
_TYPE_NAMES = {
    **dict.fromkeys(("__nv_bfloat16", "__hip_bfloat16", "hip_bfloat16", "bfloat16_t"), "BFloat16"),
    **dict.fromkeys(("__half", "__half2", "half_t"), "Half"),
}
_WHAT = (
    re.compile(r"CUDAFunctor(?:On(?:Self|Other))?_(\w+)"),
    re.compile(r"binary_internal::(\w+?)Functor"),
    re.compile(
        r"\b(?:launch_)?(\w+?)(?:_vectorized)?(?:_cuda_kernel|_kernel_cuda|_kernel_impl|_kernel_cuda_impl|CUDAKernelImpl|_gpu_kernel)\s*[<(]"
    ),
    re.compile(r"\blaunch_(\w+?)\("),
    re.compile(r"\b(\w+?)_kernel\((?:at::)?TensorIterator"),
    re.compile(r"\b(sum|prod|mean|norm|max|min|and|or|xor|nansum)_?(?:functor|nan_functor)\b"),
    re.compile(r"\b(\w+?)NanFunctor\b"),
    re.compile(r"\b(\w+?)Ops<"),
    re.compile(r"\b(?!BinaryFunctor|AUnaryFunctor|BUnaryFunctor)(\w+?)Functor\b"),
    re.compile(r"\b_?(\w+?)_gpu\("),
    re.compile(r"\b(\w+?)_kernel\("),
    re.compile(r"\b(\w+)\([^()]*\)::\{lambda"),
)
_NOT_WHAT = {"gpu", "operator", "elementwise", "apply"}
_WRAPPERS = {"Kernel", "Kernel2", "device_kernel", "kentry", "globalKernel", "trampoline_kernel", "kernel", "run_kernel"}
_CARRIED = re.compile(r"Kernel|Gemm|Fmha|Fwd|Bwd|Reduce|scan|sort|Norm")
_CARRIERS = ("elementwise", "reduce_kernel", "multi_tensor_apply", "index_elementwise", "unrolled", "EigenMetaKernel")


def _cpp(name: str) -> str:
    name = re.sub(r"\(anonymous namespace\)::|\(anonymous namespace\)|decltype\(nullptr\)", "", name)
    if name.startswith("std::enable_if<"):
        name = _after_brackets(name[len("std::enable_if") :]).removeprefix("::type").strip() or name
    name = re.sub(r"^(void|static|inline|__global__|auto|bool|int|float)\s+", "", name)
    head, arguments = _split_template(name)
    path = re.sub(r"\s", "", head).split("::")
    base = path[-1] or head
    if base in _WRAPPERS or base.endswith("Kernel2"):
        inner = _inner(arguments)
        if inner:
            return inner
        base = "::".join(path[-2:])
    if not arguments:
        return base
    if any(carrier in base for carrier in _CARRIERS):
        what = _what(arguments)
        return f"{_bare(base)} {what}" if what else f"{_bare(base)}{_types(arguments)}"
    return base + _types(arguments)


def _what(arguments: str) -> str | None:
    """What a carrier kernel computes, with its type: add<Half>."""
    for pattern in _WHAT:
        for found in pattern.finditer(arguments):
            what = str(found.group(1))
            if what not in _NOT_WHAT:
                kind = _types(arguments[found.end(1) :]) or _types(arguments)
                return re.sub(r"^_|_$|_tensor_scalar$|_scalar$", "", what[0].lower() + what[1:]) + kind
    return None


def _inner(arguments: str) -> str | None:
    """The name that a generic launcher carries as its template argument."""
    words = [str(path).split("::")[-1] for path in re.findall(r"[A-Za-z_][\w:]*", arguments)]
    for word in words:
        if re.match(r"cutlass_(\d+_)?|sm\d+_", word) and len(word) > 12:
            return word
    for word in words:
        if _CARRIED.search(word) and word not in _WRAPPERS and not word.endswith(("config", "traits")):
            return word + _types(arguments)
    return None


def _types(arguments: str) -> str:
    found = _TYPE.search(arguments)
    return f"<{_TYPE_NAMES.get(found.group(1), found.group(1))}>" if found else ""


def _bare(base: str) -> str:
    return re.sub(r"_?[kK]ernel", "", base) or base


_BRACKET = re.compile(r"(?<!-)>|<")
"""Brackets of templates: the end of -> is none"""


def _split_template(name: str) -> tuple[str, str]:
    """The name before its template arguments and parameters, and the template arguments.

    Of a class nested in a template the last name counts, and of the arguments the last that are not empty.
    """
    head, arguments, start = "", "", 0
    while True:
        cut = min((at for at in (name.find("<", start), name.find("(", start)) if at > start), default=len(name))
        head = name[start:cut] or head
        if cut >= len(name) or name[cut] == "(":
            return head, arguments
        end = _closing(name, cut)
        if end is None:
            return head, name[cut + 1 :] or arguments
        arguments = name[cut + 1 : end] or arguments
        if not name.startswith("::", end + 1):
            return head, arguments
        start = end + 3


def _closing(name: str, at: int) -> int | None:
    """Where the bracket that opens at a place is closed."""
    depth = 0
    for found in _BRACKET.finditer(name, at):
        depth += 1 if found[0] == "<" else -1
        if depth == 0:
            return found.start()
    return None


def _after_brackets(text: str) -> str:
    depth = 0
    for at, sign in enumerate(text):
        depth += (sign == "<") - (sign == ">")
        if depth == 0:
            return text[at + 1 :]
    return ""


def _tensile(name: str) -> str:
    found = re.match(r"(?:Custom_)?Cijk_(A\w{3})_(B\w{3})_(\w+?)_(?:BH|Bias|MT|HA|GB|AS)", name)
    tile = re.search(r"_MT(\d+x\d+x\d+)", name)
    if not found:
        return name
    return f"Cijk {found.group(3).replace('_', '')} {found.group(1)} {found.group(2)}" + (f" MT{tile.group(1)}" if tile else "")


_LENGTH = re.compile(r"\d+")
_DIGITS = 10
"""No identifier has a length of so many."""


def _unmangled(name: str) -> str | None:
    """Last identifiers of an Itanium-mangled name; a launcher gives way to the class it carries."""
    identifiers: list[str] = []
    at = name.find("N") + 1 if name.startswith("_ZN") else 2
    while len(identifiers) < 12 and (found := _LENGTH.search(name, at)):
        at = found.end() + (int(found[0]) if len(found[0]) < _DIGITS else len(name))
        identifiers.append(name[found.end() : at])
    identifiers = [word for word in identifiers if word and not word.startswith("_GLOBAL__N")]
    if not identifiers:
        return None
    function = next((i for i, word in enumerate(identifiers) if re.search(r"[kK]ernel|kentry", word)), len(identifiers) - 1)
    if identifiers[function] in _WRAPPERS and function + 1 < len(identifiers):
        function += 1
    kind = "<BFloat16>" if re.search(r"DF16b|bfloat16", name) else "<Half>" if re.search(r"DF16_|6__half", name) else ""
    return identifiers[function] + kind


def _cut(name: str) -> str:
    if len(name) <= WIDTH:
        return name
    return name[: WIDTH - TAIL - 2] + ".." + name[-TAIL:]
