"""A step as a list of parts, and the least time that each takes on a device: what every what-if is asked of.

A part is one kind of op, all its calls in the step together, on one device. Its least time is the longest of what its
arithmetic, its bytes, and its messages need (bounds.py); the step's is their sum, for parts run one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from roofterm.analysis.bounds import LAUNCH_S, compute_peak, level_rates
from roofterm.analysis.categories.kinds import TENSOR_CATEGORIES, Category
from roofterm.analysis.costs.attention import BOTTOM_RIGHT, visible_pairs
from roofterm.analysis.costs.signature import ITEM_BYTES
from roofterm.analysis.host_work import CPU
from roofterm.analysis.model_config import Storage
from roofterm.results import DeviceInfo

DEQUANTISE_FLOPS = 2
"""For each weight that is stored in another type than the arithmetic's: a conversion and a multiplication by its scale."""

PREFILL, DECODE = "prefill", "decode"

MOST_DRAFTS = 32
"""A sequence with more new tokens than this in a step takes a prompt in."""


class WhatIfError(ValueError):
    """A what-if that cannot be answered; the message says why and what would help."""


class Shape(msgspec.Struct, frozen=True):
    """What a step works on: so many sequences with so many new tokens each, and the tokens that each attends to."""

    sequences: float
    queries: float
    context: float
    """tokens attended to by a sequence's last query, the new ones included"""

    @property
    def rows(self) -> float:
        """New tokens of all sequences: the rows of every product with weights."""
        return self.sequences * self.queries

    @property
    def phase(self) -> str:
        """Decode: a few new tokens (one, or drafts) behind many; a prompt, or a piece of one: prefill."""
        return DECODE if self.context > self.queries and self.queries <= MOST_DRAFTS else PREFILL

    @property
    def pairs(self) -> float:
        """Visible (query, key) pairs of all sequences: the queries are the last tokens (definitions.md)."""
        return self.visible(None)

    def visible(self, window: int | None) -> float:
        """The same where each query sees no more than `window` keys, its own among them."""
        queries, context = self.queries, self.context
        if window is None or window >= context:
            return self.sequences * (queries * context - queries * (queries - 1) / 2)
        return self.sequences * visible_pairs(round(queries), round(context), True, BOTTOM_RIGHT, (window - 1, 0))


class Part(msgspec.Struct, frozen=True):
    """One kind of op; amounts are of all its calls in the step together."""

    name: str
    category: Category
    calls: float
    dtype: str | None = None
    """type of the arithmetic"""
    tensor_core: bool | None = None
    flops: float = 0.0
    weights: float = 0.0
    """weight elements read"""
    channels: float = 0.0
    """output channels of these weights"""
    weight_bytes: float = 0.0
    weight_type: str | None = None
    """type that the weights are stored in"""
    product: bool = False
    """with a matrix of weights, or the gradient of such a one; not of activations with one another"""
    kept: bool = False
    """quantisation leaves its weights alone, as formats do with embedding and head"""
    kv_read: float = 0.0
    """bytes"""
    kv_write: float = 0.0
    activation_read: float = 0.0
    activation_write: float = 0.0
    weight_write: float = 0.0
    """bytes of weights that an optimizer or a cast writes"""
    gradient_read: float = 0.0
    """of gradients of weights"""
    gradient_write: float = 0.0
    optimizer_read: float = 0.0
    """of an optimizer's state"""
    optimizer_write: float = 0.0
    other_bytes: float = 0.0
    """bytes whose role is not known"""
    wire_bytes: float = 0.0
    """what a device sends over its link"""
    dequantised: float = 0.0
    """FLOPs of turning weights into the type of the arithmetic"""
    bound_s: float | None = None
    """a bound that is kept as it is: of work that cannot be computed anew"""
    time_us: float | None = None
    """measured"""
    unmodelled: bool = False
    """neither FLOPs nor bytes are known: its measured time is held"""
    rescaled: bool = True
    """follows the shape of the step"""
    shapes: str | None = None
    """recorded inputs, JSON"""

    @property
    def hbm_bytes(self) -> float:
        moved = self.weight_bytes + self.kv_read + self.kv_write + self.activation_read + self.activation_write
        return moved + self.state_bytes + self.other_bytes

    @property
    def state_bytes(self) -> float:
        """What training moves of weights beside reading them: updates, gradients, an optimizer's state. No batch changes it."""
        return self.weight_write + self.gradient_read + self.gradient_write + self.optimizer_read + self.optimizer_write


class Least(msgspec.Struct, frozen=True):
    """What a part needs at least, in seconds, of each resource."""

    compute_s: float
    hbm_s: float
    link_s: float
    bound_s: float
    bound_by: str | None


class Machine(msgspec.Struct, frozen=True):
    """Where the step runs."""

    device: DeviceInfo
    collective_s: float = LAUNCH_S
    """least time of a collective, whatever its size"""

    @property
    def name(self) -> str:
        return self.device.model or self.device.name or ("the CPU" if self.device.kind == CPU else "the device")


def least(part: Part, machine: Machine) -> Least:
    """The least time of a part on a machine. Raises WhatIfError where the device has no figure for it."""
    if part.unmodelled:
        held = (part.time_us or 0.0) / 1e6
        return Least(0.0, 0.0, 0.0, held, None)
    if part.bound_s is not None:
        return Least(part.bound_s, 0.0, 0.0, part.bound_s, None)
    peak = _peak(part, machine) if part.flops else None
    compute_s = part.flops / peak if peak else 0.0
    vector_s = part.dequantised / _vector_peak(machine) if part.dequantised else 0.0
    hbm_s = part.hbm_bytes / _bandwidth(machine, "hbm") if part.hbm_bytes else 0.0
    link_s = part.calls * machine.collective_s + part.wire_bytes / _bandwidth(machine, "link") if part.wire_bytes else 0.0
    compute_s = max(compute_s, vector_s)
    needs = {"compute": compute_s, "hbm": hbm_s, "link": link_s}
    bound_by = max(needs, key=lambda resource: needs[resource])
    return Least(compute_s, hbm_s, link_s, needs[bound_by], bound_by if needs[bound_by] > 0 else None)


def in_arithmetic(part: Part, dtype: str, base: str | None = None) -> Part:
    """A part with its arithmetic in another type. Below 16 bits only products with weights change, and of their bytes only
    what they read: results and everything between stay, as the formats are used (OCP FP8). Operands of unknown role shrink too.
    An optimizer's step keeps its types, as in mixed precision.
    """
    if part.unmodelled or part.dtype is None or part.dtype not in _FLOATS or part.category == Category.OPTIMIZER:
        return part
    stored, was = ITEM_BYTES["fp32" if dtype == "tf32" else dtype], ITEM_BYTES["fp32" if part.dtype == "tf32" else part.dtype]
    ratio = stored / was
    narrow = stored < ITEM_BYTES["bf16"]
    if narrow and (part.kept or not part.product):
        return part
    changed = msgspec.structs.replace(
        part,
        dtype=dtype,
        tensor_core=None if part.category in TENSOR_CATEGORIES and dtype != "fp32" else part.tensor_core,
        activation_read=part.activation_read * ratio,
        activation_write=part.activation_write * (1.0 if narrow else ratio),
        weight_write=part.weight_write * (1.0 if narrow else ratio),
        gradient_read=part.gradient_read * (1.0 if narrow else ratio),
        gradient_write=part.gradient_write * (1.0 if narrow else ratio),
        other_bytes=part.other_bytes * ratio,
        wire_bytes=part.wire_bytes * (1.0 if narrow else ratio),
    )
    if not part.weights:
        return changed
    return msgspec.structs.replace(changed, weight_bytes=part.weights * stored, weight_type=dtype, dequantised=0.0)


_FLOATS = frozenset(("fp32", "tf32", "fp16", "bf16", "fp8", "fp4"))


def with_weights(part: Part, storage: Storage) -> Part:
    """A part with its weights stored so; where that is not the type of its arithmetic they are turned into it, which counts."""
    if not part.weights or part.kept:
        return part
    dequantised = 0.0 if storage.name == part.dtype else DEQUANTISE_FLOPS * part.weights
    return msgspec.structs.replace(
        part, weight_bytes=storage.bytes(part.weights, part.channels), weight_type=storage.name, dequantised=dequantised
    )


def with_kv(part: Part, ratio: float) -> Part:
    """A part with its cache in elements of another size."""
    return msgspec.structs.replace(part, kv_read=part.kv_read * ratio, kv_write=part.kv_write * ratio)


def total(parts: Sequence[Part], name: str) -> float:
    """The sum of a field over parts."""
    return sum(float(getattr(part, name) or 0.0) for part in parts)


def all_reduce_wire(message_bytes: float, devices: int) -> float:
    """Bytes that each device sends in a ring all-reduce: 2 (n - 1) / n of the message (nccl-tests)."""
    return 2 * (devices - 1) / devices * message_bytes


def _peak(part: Part, machine: Machine) -> float | None:
    """The peak of a part's arithmetic. Without one, products cannot be answered for; other work is bound by its bytes alone."""
    found = compute_peak(machine.device, part.dtype, part.tensor_core, int(part.category))
    if found is None and (part.category not in TENSOR_CATEGORIES or part.dtype is None):
        return None
    if found is None:
        raise WhatIfError(f"{machine.name} has no known peak for {part.dtype} ({part.name}); give --peak {part.dtype}=TFLOPS")
    return found[1]


def _vector_peak(machine: Machine) -> float:
    peak = machine.device.peaks.get("fp32")
    if peak is None:
        raise WhatIfError(f"{machine.name} has no known fp32 peak, in which weights are turned into another type; give --peak fp32=TFLOPS")
    return peak


def _bandwidth(machine: Machine, level: str) -> float:
    found = level_rates(machine.device).get(level)
    if found is None:
        missing = "link between devices" if level == "link" else "memory bandwidth"
        option = "nvlink" if level == "link" else "hbm"
        raise WhatIfError(f"{machine.name} has no known {missing}; give --bandwidth {option}=GBPS")
    return found[1]
