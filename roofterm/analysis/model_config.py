"""A language model's `config.json` (as Hugging Face writes it) as the sizes that its work follows from.

Modelled are decoders of the Llama kind: attention with grouped queries, gated or plain MLP, or a mixture of experts.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec

from roofterm.analysis.costs.signature import ITEM_BYTES
from roofterm_parsers.errors import ProfileError


class Storage(msgspec.Struct, frozen=True):
    """How weights lie in memory: bits an element, and the scales beside them."""

    name: str
    bits: float
    group: int | None = None
    """elements that share a scale; 0: one for each output channel; None: no scales"""
    scale_bytes: int = 2

    def bytes(self, elements: float, channels: float) -> float:
        """Bytes of so many elements in so many output channels, scales included."""
        scales = 0.0 if self.group is None else channels if self.group == 0 else elements / self.group
        return elements * self.bits / 8 + scales * self.scale_bytes

    @property
    def text(self) -> str:
        if self.group is None:
            return self.name
        return f"{self.name}, a scale each {f'{self.group} elements' if self.group else 'output channel'}"


STORAGES: dict[str, Storage] = {
    **{name: Storage(name, 8 * ITEM_BYTES[name]) for name in ("fp32", "fp16", "bf16")},
    "int8": Storage("int8", 8, 0),
    "fp8": Storage("fp8", 8, 0),
    "int4": Storage("int4", 4, 128),
    "mxfp8": Storage("mxfp8", 8, 32, 1),
    "mxfp4": Storage("mxfp4", 4, 32, 1),
    "nvfp4": Storage("nvfp4", 4, 16, 1),
}
"""int8 and fp8 with a scale an output channel, int4 with one each 128 (GPTQ, AWQ), the others by their standards (OCP MX, NVFP4)."""


def storage(text: str) -> Storage:
    """A storage by its name, "int4" or with another group "int4:64". Raises ValueError with what there is."""
    name, colon, group = text.partition(":")
    if name not in STORAGES or (colon and not (group.isdigit() and int(group) > 0)):
        raise ValueError(f"choose {', '.join(STORAGES)}; groups as in int4:64")
    found = STORAGES[name]
    return msgspec.structs.replace(found, group=int(group)) if colon else found


class ModelConfig(msgspec.Struct, frozen=True):
    name: str
    layers: int
    hidden: int
    intermediate: int
    """of the MLP; of a mixture of experts: of one expert"""
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    dtype: str
    """of activations, and of weights that are not quantised"""
    weights: Storage
    tied: bool = False
    """the head is the embedding"""
    gated: bool = True
    """the MLP has a gate: three matrices, not two"""
    experts: int = 0
    chosen: int = 0
    """experts for each token"""
    shared: int = 0
    """intermediate size of what every token passes beside its experts"""
    dense_layers: int = 0
    """layers with a plain MLP before those with experts"""
    dense_intermediate: int = 0
    window: int | None = None
    """keys that a query of the window layers sees, its own among them"""
    window_layers: int = 0

    @property
    def layer_weights(self) -> int:
        """Elements of a layer's attention and MLP (with all experts), without norms."""
        return self.attention_weights + self.mlp_matrices * self.hidden * (self.intermediate * max(self.experts, 1) + self.shared)

    @property
    def attention_weights(self) -> int:
        return self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)

    @property
    def mlp_matrices(self) -> int:
        return 3 if self.gated else 2

    @property
    def head_weights(self) -> int:
        return self.hidden * self.vocabulary

    @property
    def weight_bytes(self) -> float:
        """All weights as they are stored: embedding and head in `dtype`, the layers' matrices in `weights`."""
        dense = self.dense_layers * (self.attention_weights + self.mlp_matrices * self.hidden * self.dense_intermediate)
        matrices = dense + (self.layers - self.dense_layers) * self.layer_weights
        channels = matrices / self.hidden
        tables = self.head_weights * (1 if self.tied else 2) * ITEM_BYTES[self.dtype]
        return self.weights.bytes(matrices, channels) + tables

    def kv_token_bytes(self, dtype: str | None = None) -> float:
        """Bytes of keys and values of one token in all layers: 2 Hkv D bytes each."""
        return self.layers * 2 * self.kv_heads * self.head_dim * ITEM_BYTES[dtype or self.dtype]

    def experts_read(self, tokens: float) -> float:
        """Experts that so many tokens choose among them, if all are equally likely: E (1 - (1 - k/E)^T)."""
        if not self.experts:
            return 1.0
        return self.experts * -math.expm1(tokens * math.log1p(-self.chosen / self.experts)) if self.chosen < self.experts else self.experts


def load_config(path: str) -> ModelConfig:
    """The model of a `config.json`, or of a folder that holds one. Raises ProfileError with what is missing or not modelled."""
    file = Path(path)
    file = file / "config.json" if file.is_dir() else file
    try:
        values = msgspec.json.decode(file.read_bytes())
    except (OSError, msgspec.DecodeError) as why:
        raise ProfileError(f"cannot read the model's configuration {file}: {why}", str(file)) from why
    if not isinstance(values, dict):
        raise ProfileError(f"{file} is no model configuration: it holds no object", str(file))
    return parse_config(values, str(file))


def parse_config(values: dict[str, Any], path: str = "config.json") -> ModelConfig:
    """The model that a configuration describes. Raises ProfileError."""
    inner = values.get("text_config")
    values = {**values, **inner} if isinstance(inner, dict) else values
    for key, what in _NOT_MODELLED.items():
        if values.get(key):
            raise ProfileError(f"{path}: {what} ({key}) is not modelled", path)
    read = _Reader(values, path)
    hidden, heads = read.size("hidden_size", "n_embd", "d_model"), read.size("num_attention_heads", "n_head")
    dtype = _dtype(values.get("torch_dtype") or values.get("dtype"))
    experts = read.optional("num_local_experts", "num_experts", "n_routed_experts") or 0
    gated = str(values.get("model_type")) not in _PLAIN_MLP
    plain = read.optional("intermediate_size", "n_inner", "ffn_dim") or (0 if experts or gated else 4 * hidden)
    intermediate = (read.optional("moe_intermediate_size") or plain) if experts else plain
    if not intermediate:
        raise ProfileError(f"{path} has no intermediate_size", path)
    return ModelConfig(
        name=str(values.get("_name_or_path") or values.get("model_type") or Path(path).parent.name or path),
        layers=read.size("num_hidden_layers", "n_layer"),
        hidden=hidden,
        intermediate=intermediate,
        heads=heads,
        kv_heads=read.optional("num_key_value_heads", "num_kv_heads") or heads,
        head_dim=read.optional("head_dim") or hidden // heads,
        vocabulary=read.size("vocab_size"),
        dtype=dtype,
        weights=_weights(values.get("quantization_config"), dtype, path),
        tied=values.get("tie_word_embeddings") is True,
        gated=gated,
        experts=experts,
        chosen=(read.optional("num_experts_per_tok", "moe_topk") or 1) if experts else 0,
        shared=_shared(read, intermediate) if experts else 0,
        dense_layers=(read.optional("first_k_dense_replace") or 0) if experts else 0,
        dense_intermediate=plain if experts else 0,
        window=read.optional("sliding_window"),
        window_layers=_window_layers(values, read.size("num_hidden_layers", "n_layer")),
    )


class _Reader:
    def __init__(self, values: dict[str, Any], path: str) -> None:
        self._values, self._path = values, path

    def optional(self, *keys: str) -> int | None:
        for key in keys:
            value = self._values.get(key)
            if type(value) is int and value > 0:
                return value
        return None

    def size(self, *keys: str) -> int:
        found = self.optional(*keys)
        if found is None:
            raise ProfileError(f"{self._path} has no {keys[0]}: it is no configuration of a language model that is modelled", self._path)
        return found


_NOT_MODELLED = {
    "kv_lora_rank": "latent attention (MLA)",
    "state_size": "a state-space model",
    "ssm_cfg": "a state-space model",
    "mamba_d_state": "a state-space model",
    "linear_num_value_heads": "linear attention",
    "is_encoder_decoder": "an encoder with a decoder",
}

_PLAIN_MLP = frozenset(("gpt2", "gpt_neox", "gptj", "opt", "bloom", "falcon", "mpt", "phi", "starcoder2"))
"""Models whose MLP has no gate."""


def _shared(read: _Reader, intermediate: int) -> int:
    return read.optional("shared_expert_intermediate_size") or (read.optional("n_shared_experts") or 0) * intermediate


def _window_layers(values: dict[str, Any], layers: int) -> int:
    """Layers that attend to a window: by `layer_types` where it stands, else by what each kind of model does."""
    kinds = values.get("layer_types")
    if not values.get("sliding_window") or values.get("use_sliding_window") is False:
        return 0
    if isinstance(kinds, list):
        return sum(kind == "sliding_attention" for kind in kinds)
    every = values.get("sliding_window_pattern")
    if type(every) is int and every > 0:
        return layers - layers // every
    return (layers + 1) // 2 if values.get("model_type") == "gemma2" else layers


def _dtype(text: Any) -> str:
    names = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "half": "fp16"}
    return names.get(str(text).removeprefix("torch."), "bf16")


def _weights(quantization: Any, dtype: str, path: str) -> Storage:
    """How the matrices are stored, by the configuration's own quantisation."""
    if not isinstance(quantization, dict):
        return STORAGES[dtype]
    method = str(quantization.get("quant_method") or "").lower()
    bits, group = quantization.get("bits") or quantization.get("weight_bits"), quantization.get("group_size")
    if method in ("mxfp4", "fp8", "nvfp4"):
        return STORAGES[method]
    if bits in (4, 8):
        found = STORAGES["int4" if bits == 4 else "int8"]
        return msgspec.structs.replace(found, group=group if type(group) is int and group > 0 else found.group)
    if quantization.get("load_in_4bit"):
        return msgspec.structs.replace(STORAGES["int4"], name="nf4", group=64)
    if quantization.get("load_in_8bit"):
        return STORAGES["int8"]
    raise ProfileError(f"{path}: its quantization_config ({method or 'no quant_method'}) is not understood; say --weights", path)
