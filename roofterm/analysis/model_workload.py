"""The work of one step of a language model, by hand formulas from its configuration: decode or prefill, on one of n devices.

Counted as serving engines run it: projections of q, k and v in one product, gate and up in one, residual sums inside the
norms, the head for the tokens that are sampled from. Sources: Kaplan 2020 (2 FLOPs a weight and token), Pope 2022 (memory
of decode), Megatron-LM (two all-reduces a layer), FlashAttention (products of visible pairs only).
"""

from __future__ import annotations

import msgspec

from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.costs.signature import ITEM_BYTES
from roofterm.analysis.model_config import ModelConfig, Storage
from roofterm.analysis.workload import DECODE, DEQUANTISE_FLOPS, Part, Shape, WhatIfError, all_reduce_wire

ALL_REDUCES = 2
"""all-reduces of a layer under tensor parallelism, forward only (Megatron-LM): behind attention and behind the MLP"""


def model_parts(model: ModelConfig, shape: Shape, devices: int = 1, kv_dtype: str | None = None) -> list[Part]:
    """The parts of a step of this shape, on one of `devices` that split every layer among them (tensor parallelism).

    Raises WhatIfError where heads do not divide among the devices.
    """
    if model.heads % devices:
        raise WhatIfError(f"{model.heads} heads cannot be split among {devices} devices: --tp must divide them")
    made = _Maker(model, shape, devices, kv_dtype or model.dtype)
    return [part for part in (*made.layers(), *made.ends(), *made.communication()) if part.calls]


class _Maker:
    """Parts of one model, shape and split."""

    def __init__(self, model: ModelConfig, shape: Shape, devices: int, kv_dtype: str) -> None:
        self.model, self.shape, self.devices = model, shape, devices
        self.item = ITEM_BYTES[model.dtype]
        self.kv_item = ITEM_BYTES[kv_dtype]
        self.rows = shape.rows
        # Sampled from is each sequence's last token; drafts are checked at every token.
        self.sampled = shape.rows if shape.phase == DECODE else shape.sequences
        self.heads = model.heads / devices
        # Fewer key heads than devices: each device keeps a whole one.
        self.kv_heads = max(model.kv_heads / devices, 1.0)

    def layers(self) -> list[Part]:
        model, rows, item = self.model, self.rows, self.item
        width, keys = self.heads * model.head_dim, 2 * self.kv_heads * model.head_dim
        parts = [
            self._product("attention q k v", model.layers, rows, model.hidden, width + keys),
            self._attention(width, keys),
            self._product("attention output", model.layers, rows, width, model.hidden),
            self._plain("rope", Category.ROPE, model.layers, rows * (width + keys / 2), rows * (width + keys / 2), flops=3),
            Part(
                "cache write", Category.KV_CACHE, model.layers, kv_write=model.layers * rows * keys * self.kv_item,
                activation_read=model.layers * rows * keys * item,
            ),
            self._plain("norms", Category.NORM, 2 * model.layers, 2 * rows * model.hidden, 2 * rows * model.hidden, flops=3),
        ]  # fmt: skip
        return parts + self._mlps()

    def _mlps(self) -> list[Part]:
        model = self.model
        plain = model.dense_layers if model.experts else model.layers
        width = model.dense_intermediate if model.experts else model.intermediate
        parts = self._mlp("mlp", plain, self.rows, width, 1.0) if plain else []
        if model.experts:
            mixed = model.layers - model.dense_layers
            parts.append(self._product("router", mixed, self.rows, model.hidden, model.experts, kept=True))
            parts += self._mlp("expert", mixed, self.rows * model.chosen, model.intermediate, model.experts_read(self.rows))
            if model.shared:
                parts += self._mlp("shared expert", mixed, self.rows, model.shared, 1.0)
        return parts

    def _mlp(self, name: str, layers: int, rows: float, width: int, copies: float) -> list[Part]:
        """`copies`: how many sets of weights the rows are spread over."""
        inner, hidden = width / self.devices, self.model.hidden
        first = "gate and up" if self.model.gated else "up"
        return [
            self._product(f"{name} {first}", layers, rows, hidden, (self.model.mlp_matrices - 1) * inner, copies),
            self._plain(
                f"{name} activation", Category.ELEMENTWISE, layers, (self.model.mlp_matrices - 1) * rows * inner, rows * inner, flops=6
            ),
            self._product(f"{name} down", layers, rows, inner, hidden, copies),
        ]

    def ends(self) -> list[Part]:
        """Embedding and head."""
        model, item = self.model, self.item
        looked_up = self.rows * model.hidden * item
        embedding = Part(
            "embedding", Category.EMBEDDING, 1, dtype=model.dtype, weights=looked_up / item, weight_bytes=looked_up, kept=True,
            activation_read=8 * self.rows, activation_write=looked_up,
        )  # fmt: skip
        head = self._product("head", 1, self.sampled, model.hidden, model.vocabulary / self.devices, kept=True)
        return [embedding, head]

    def communication(self) -> list[Part]:
        if self.devices == 1:
            return []
        calls = ALL_REDUCES * self.model.layers
        message = self.rows * self.model.hidden * self.item
        logits = self.sampled * self.model.vocabulary * self.item
        gathered = (self.devices - 1) / self.devices * logits
        return [
            Part(
                "all-reduce", Category.COMMUNICATION, calls, wire_bytes=calls * all_reduce_wire(message, self.devices),
                activation_read=calls * message, activation_write=calls * message,
            ),
            Part(
                "all-gather of logits", Category.COMMUNICATION, 1, wire_bytes=gathered, activation_read=logits / self.devices,
                activation_write=logits,
            ),
        ]  # fmt: skip

    def _product(self, name: str, calls: int, rows: float, k: float, n: float, copies: float = 1.0, *, kept: bool = False) -> Part:
        """`calls` products [rows, k] by weights [k, n], one device's share; with copies, the rows are spread over so many weights."""
        model, item = self.model, self.item
        stored = Storage(model.dtype, 8 * item) if kept else model.weights
        weights, channels = calls * copies * k * n, calls * copies * n
        return Part(
            name,
            Category.GEMM,
            calls,
            dtype=model.dtype,
            tensor_core=True,
            flops=2 * calls * rows * k * n,
            weights=weights,
            channels=channels,
            weight_bytes=stored.bytes(weights, channels),
            weight_type=stored.name,
            product=True,
            kept=kept,
            activation_read=calls * rows * k * item,
            activation_write=calls * rows * n * item,
            dequantised=0.0 if stored.name == model.dtype else DEQUANTISE_FLOPS * weights,
        )

    def _attention(self, width: float, keys: float) -> Part:
        """Keys and values come from the cache in decode; in prefill those of the same tokens do not."""
        model, shape = self.model, self.shape
        new = 0.0 if shape.phase == DECODE else shape.queries
        whole = model.layers - model.window_layers
        # With a window the first query sees the window before it, and each further one a key more.
        seen = shape.context if model.window is None else min(shape.context, model.window + shape.queries - 1)
        cached = whole * (shape.context - new) + model.window_layers * (seen - min(new, seen))
        return Part(
            "attention",
            Category.ATTENTION,
            model.layers,
            dtype=model.dtype,
            tensor_core=True,
            flops=4 * width * (whole * shape.pairs + model.window_layers * shape.visible(model.window)),
            kv_read=shape.sequences * cached * keys * self.kv_item,
            activation_read=model.layers * self.item * (self.rows * width + shape.sequences * new * keys),
            activation_write=model.layers * self.item * self.rows * width,
        )

    def _plain(self, name: str, category: Category, calls: int, read: float, written: float, flops: float) -> Part:
        """Work on so many elements a call, with `flops` for each that is written."""
        return Part(
            name, category, calls, dtype=self.model.dtype, tensor_core=False, flops=calls * flops * written,
            activation_read=calls * read * self.item, activation_write=calls * written * self.item,
        )  # fmt: skip


def cache_bytes(model: ModelConfig, devices: int, kv_dtype: str | None = None) -> float:
    """Bytes of the KV cache that one token takes on one device."""
    heads = max(model.kv_heads / devices, 1.0)
    return model.layers * 2 * heads * model.head_dim * ITEM_BYTES[kv_dtype or model.dtype]


def weights_on(model: ModelConfig, devices: int, storage: Storage | None = None) -> float:
    """Bytes of the weights on one of the devices, embedding and head included."""
    return (msgspec.structs.replace(model, weights=storage) if storage is not None else model).weight_bytes / devices
