"""KV cache that attention reads, told by an engine's annotation: tokens by the iteration, bytes of a token by the cache's writes."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from roofterm.analysis.cache_traffic import BY_ANNOTATION, LATENT, CacheLayout, cache_layout
from roofterm.analysis.categories.kinds import Category
from roofterm.analysis.scope import ALL
from roofterm.analysis.study import Study
from roofterm_parsers.profile import Kind
from tests.build import Build

BF16, FP8, INT = "c10::BFloat16", "c10::Float8_e4m3fn", "long int"

ITERATION = "execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk12345sqsq37sqsk12345)"
"""The annotation of definitions.md: 9 prompts and 37 sequences in generation, 8,192 new tokens."""
CONTEXT = 8430 + 12345
PAIRS = (7671310 - (7475785 - 8155) // 2) + (12345 - (37 - 37) // 2)

HEADS, KEY_HEADS, D = 32, 8, 128
TOKEN = 2 * KEY_HEADS * D * 2
"""bytes of keys and values of a token in one layer, bf16: 4,096"""


class Engine:
    """An iteration of vLLM: what each layer writes into its cache, and its attention."""

    def __init__(self, name: str = ITERATION) -> None:
        self.build = Build()
        self.build.host(name, 0, 900, kind=Kind.ANNOTATION)
        self.at = 10.0

    def call(self, name: str, kernel: str, dims: list[Any], types: list[str]) -> None:
        op = self.build.host(name, self.at, 8, dims=json.dumps(dims), types=json.dumps(types))
        self.build.kernel(kernel, self.at + 1000, 8, launch=self.build.call(self.at + 1, 2), op=op)
        self.at += 10

    def write(self, cache: str = BF16) -> None:
        new = [8192, KEY_HEADS, D]
        dims = [new, new, [900, 16, KEY_HEADS, D], [900, 16, KEY_HEADS, D], [8192], [], []]
        self.call("_C_cache_ops::reshape_and_cache_flash", "reshape_and_cache_flash_kernel", dims, [BF16, BF16, cache, cache, INT, "", ""])

    def attend(self, heads: int = HEADS, width: int = D) -> None:
        dims = [[8192, heads, width], [8192, KEY_HEADS, width], [8192, KEY_HEADS, width], [8192, heads, width]]
        self.call("vllm::unified_attention_with_output", "unified_attention_kernel", dims, [BF16] * 4)

    def attention(self) -> pl.DataFrame:
        items = Study(self.build.profile()).bounded(ALL).items
        return items.filter(pl.col("category") == int(Category.ATTENTION))


def test_every_layer_reads_what_the_iteration_attends_to() -> None:
    made = Engine()
    for _ in range(2):
        made.write()
        made.attend()
    layers = made.attention()
    assert PAIRS == 3_937_495 + 12_345  # definitions.md
    assert layers["kv_read"].to_list() == [CONTEXT * TOKEN] * 2
    assert layers["flops"].to_list() == [4 * HEADS * D * PAIRS] * 2
    # and the queries, the new keys and values, and the results beside
    assert layers["hbm_bytes"].to_list() == [CONTEXT * TOKEN + 2 * 8192 * (2 * HEADS + 2 * KEY_HEADS) * D] * 2
    assert layers["estimate"].to_list() == [BY_ANNOTATION] * 2


def test_a_cache_in_eight_bits_is_half_as_much() -> None:
    made = Engine()
    made.write(cache=FP8)
    made.attend()
    assert made.attention()["kv_read"].to_list() == [CONTEXT * TOKEN / 2]


def test_attention_that_is_not_one_a_layer_stays_unknown() -> None:
    """Two writes and one attention: which part of the context it reads nobody tells."""
    made = Engine()
    made.write()
    made.write()
    made.attend()
    layers = made.attention()
    assert layers["flops"].to_list() == [None]
    assert layers["kv_read"].to_list() == [None]


def test_without_an_annotation_nothing_tells_the_lengths() -> None:
    made = Engine("iteration 5")
    made.write()
    made.attend()
    assert made.attention()["flops"].to_list() == [None]


def test_queries_of_another_width_have_bytes_but_no_products() -> None:
    made = Engine()
    made.write()
    made.attend(width=64)
    layers = made.attention()
    assert layers["kv_read"].to_list() == [CONTEXT * TOKEN]
    assert layers["flops"].to_list() == [None]


# What one token takes in one layer


def layout_of(name: str, dims: list[Any], types: list[str]) -> CacheLayout | None:
    build = Build()
    build.host(name, 0, 8, dims=json.dumps(dims), types=json.dumps(types))
    return cache_layout(build.profile())


def test_the_layout_by_new_keys_where_no_write_is_recorded() -> None:
    dims = [[100, 32, 64], [100, 8, 64], [100, 8, 64], [100, 32, 64]]
    assert layout_of("vllm::unified_attention_with_output", dims, [BF16] * 4) == CacheLayout(2 * 8 * 64 * 2, 64, "bf16")


def test_a_latent_cache_holds_one_compressed_key() -> None:
    dims = [[100, 512], [100, 64], [900, 64, 576], [100], [], []]
    made = layout_of("_C_cache_ops::concat_and_cache_mla", dims, [BF16, BF16, FP8, INT, "", ""])
    assert made == CacheLayout(576, LATENT, "fp8")


@pytest.mark.parametrize(
    ("dims", "types"),
    [
        ([[100, 8, 64], [100, 8, 64], [], [], [100], [], []], [BF16, BF16, "", "", INT, "", ""]),  # no cache
        ([[100, 8, 64], [100, 8, 64], [9, 16, 8, 64], [9, 16, 8, 64], [0], [], []], [BF16, BF16, BF16, BF16, INT, "", ""]),  # no tokens
        ([[7, 3], [7, 3], [9, 16, 8, 64], [9, 16, 8, 64], [4], [], []], [BF16, BF16, BF16, BF16, INT, "", ""]),  # no whole number a token
    ],
)
def test_a_write_that_does_not_fit_tells_nothing(dims: list[Any], types: list[str]) -> None:
    assert layout_of("_C_cache_ops::reshape_and_cache_flash", dims, types) is None


def test_the_layout_that_most_calls_tell_counts() -> None:
    build = Build()
    for at, width in enumerate((128, 128, 64)):
        new = [10, 8, width]
        dims = [new, new, [9, 16, 8, width], [9, 16, 8, width], [10], [], []]
        types = json.dumps([BF16, BF16, BF16, BF16, INT, "", ""])
        build.host("_C_cache_ops::reshape_and_cache_flash", 10 * at, 8, dims=json.dumps(dims), types=types)
    assert cache_layout(build.profile()) == CacheLayout(2 * 8 * 128 * 2, 128, "bf16")
