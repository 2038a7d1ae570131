"""Roles of a compiled instruction's bytes, for programs small enough to see them: each array is of the shape beside it."""

from __future__ import annotations

import polars as pl
import pytest

from roofterm.analysis.scope import ALL
from roofterm.analysis.study import Study
from roofterm.analysis.whatif import what_if
from roofterm.analysis.whatif_base import profile_base
from roofterm.analysis.whatif_state import Change
from roofterm.analysis.workload import Machine
from roofterm_parsers import open_profile
from roofterm_parsers.xplane.hlo_costs import CostAnalysis
from roofterm_parsers.xplane.hlo_proto import read_module
from roofterm_parsers.xplane.hlo_roles import Roles
from roofterm_parsers.xplane.hlo_rules import OURS
from tests.reference import reference
from tests.xspace import Hlo, dot_dims

ROWS = ("rows", "summed", "columns")


class Told:
    """What the parser says of a made module."""

    def __init__(self, hlo: Hlo) -> None:
        data = hlo.encode()
        self.module = read_module(memoryview(data), 0, len(data))
        self.costs = CostAnalysis(self.module, OURS)
        self.roles = Roles(self.module, self.costs)

    def of(self, name: str) -> dict[str, float]:
        """Bytes by role, without zeros: never more than the instruction moves."""
        found = self.roles.of(self.module.by_name[name])
        moved = {key: value for key, value in found.items() if value and key not in ROWS}
        cost = self.costs.of(self.module.by_name[name])
        assert cost is not None
        assert sum(moved.values()) <= (cost.bytes or 0)
        return moved

    def sizes(self, name: str) -> tuple[float | None, ...]:
        found = self.roles.of(self.module.by_name[name])
        return tuple(found.get(key) for key in ROWS)


def elementwise(hlo: Hlo, name: str, *shapes: str, results: tuple[str, ...]) -> int:
    """A fused computation that adds its parameters up; one result of each shape."""
    made = hlo.computation(name)
    for i, shape in enumerate(shapes):
        hlo.op(f"{name}_p{i}", "parameter", shape, parameter=i)
    last = f"{name}_p0"
    for i in range(1, len(shapes)):
        last = hlo.op(f"{name}_s{i}", "subtract", shapes[0], (last, f"{name}_p{i}"))
    if len(results) > 1:
        hlo.op(f"{name}_r", "tuple", f"({', '.join(results)})", (last,) * len(results))
    return made


X, W, Y = "f32[128,256]", "f32[256,512]", "f32[128,512]"
X_BYTES, W_BYTES, Y_BYTES = 4 * 128 * 256, 4 * 256 * 512, 4 * 128 * 512


def training(adam: bool = False) -> Hlo:
    """y = x w; the gradient of the loss is y made nonlinear; dw = x^T g; w -= dw, by SGD or by Adam with two moments."""
    hlo = Hlo()
    update = elementwise(hlo, "update", *([W] * (4 if adam else 2)), results=(W,) * (3 if adam else 1))
    hlo.computation("main")
    hlo.op("w", "parameter", W, parameter=0)
    hlo.op("x", "parameter", X, parameter=1)
    if adam:
        hlo.op("m", "parameter", W, parameter=2)
        hlo.op("v", "parameter", W, parameter=3)
    hlo.op("y", "dot", Y, ("x", "w"), dot=dot_dims((1,), (0,)))
    hlo.op("g", "tanh", Y, ("y",))
    hlo.op("dw", "dot", W, ("x", "g"), dot=dot_dims((0,), (0,)))
    if not adam:
        hlo.op("new", "fusion", W, ("w", "dw"), (update,), kind="kLoop")
        hlo.op("out", "tuple", f"({W})", ("new",))
        return hlo
    triple = f"({W}, {W}, {W})"
    hlo.op("new", "fusion", triple, ("w", "m", "v", "dw"), (update,), kind="kLoop")
    parts = tuple(hlo.op(f"new{i}", "get-tuple-element", W, ("new",), index=i) for i in range(3))
    hlo.op("out", "tuple", triple, parts)
    return hlo


def test_a_program_that_updates_what_it_multiplies_trains_it() -> None:
    told = Told(training())
    assert told.of("y") == {"weight_read": W_BYTES, "activation_read": X_BYTES, "activation_write": Y_BYTES}
    assert told.sizes("y") == (128, 256, 512)
    assert told.of("g") == {"activation_read": Y_BYTES, "activation_write": Y_BYTES}
    assert told.of("dw") == {"activation_read": X_BYTES + Y_BYTES, "gradient_write": W_BYTES}
    assert told.sizes("dw") == (None, None, None)  # it reads no weight
    assert told.of("new") == {"weight_read": W_BYTES, "weight_write": W_BYTES, "gradient_read": W_BYTES}


def test_what_only_its_update_uses_is_the_optimizers() -> None:
    told = Told(training(adam=True))
    assert told.of("new") == {
        "weight_read": W_BYTES, "weight_write": W_BYTES, "gradient_read": W_BYTES,
        "optimizer_read": 2 * W_BYTES, "optimizer_write": 2 * W_BYTES,
    }  # fmt: skip


def inference(weight_name: str = "", input_name: str = "", x: str = X) -> Hlo:
    hlo = Hlo()
    hlo.computation("main")
    hlo.op("w", "parameter", W, parameter=0, op_name=weight_name)
    hlo.op("x", "parameter", x, parameter=1, op_name=input_name)
    hlo.op("y", "dot", Y if x == X else "f32[4,128,512]", ("x", "w"), dot=dot_dims((1 if x == X else 2,), (0,)))
    return hlo


def test_two_matrices_tell_nothing() -> None:
    assert Told(inference()).of("y") == {}


def test_the_authors_names_tell() -> None:
    told = Told(inference("params['dense']['kernel']", "batch['x']"))
    assert told.of("y") == {"weight_read": W_BYTES, "activation_read": X_BYTES, "activation_write": Y_BYTES}


@pytest.mark.parametrize("name", ["ws[0]", "w", "w1", "params['a']", "state.params['mlp']['kernel']", "weights_o[1]", "model.embedding"])
def test_names_of_weights(name: str) -> None:
    assert Told(inference(name)).of("y")["weight_read"] == W_BYTES


@pytest.mark.parametrize("name", ["p[0][0]", "rows", "window", "y", "cached_results"])
def test_names_that_say_nothing_of_weights(name: str) -> None:
    assert "weight_read" not in Told(inference(name)).of("y")


def test_a_matrix_that_a_batch_shares_is_a_weight() -> None:
    told = Told(inference(x="f32[4,128,256]"))
    assert told.of("y") == {"weight_read": W_BYTES, "activation_read": 4 * X_BYTES, "activation_write": 4 * Y_BYTES}
    assert told.sizes("y") == (4 * 128, 256, 512)


def test_a_matrix_by_which_computed_values_are_multiplied_is_a_weight() -> None:
    hlo = Hlo()
    hlo.computation("main")
    hlo.op("tokens", "parameter", "s32[128]", parameter=0)
    hlo.op("w", "parameter", W, parameter=1)
    hlo.op("bias", "parameter", "f32[512]", parameter=2)
    hlo.op("h", "convert", "f32[128]", ("tokens",))
    hlo.op("x", "broadcast", X, ("h",), dimensions=(0,))
    hlo.op("y", "dot", Y, ("x", "w"), dot=dot_dims((1,), (0,)))
    hlo.op("b", "broadcast", Y, ("bias",), dimensions=(1,))
    hlo.op("z", "add", Y, ("y", "b"))
    told = Told(hlo)
    assert told.of("y") == {"weight_read": W_BYTES, "activation_read": X_BYTES, "activation_write": Y_BYTES}
    assert told.of("b")["weight_read"] == 4 * 512  # beside weights a vector is a bias or a scale
    assert told.of("h") == {"activation_read": 4 * 128, "activation_write": 4 * 128}


def test_a_cache_comes_out_with_a_slice_replaced() -> None:
    """Decode: 2 sequences, 8 heads of 64, 1,024 tokens in the cache; the scores of one query."""
    cache, new, query = "bf16[2,8,1024,64]", "bf16[2,8,1,64]", "bf16[2,8,1,64]"
    hlo = Hlo()
    hlo.computation("main")
    hlo.op("keys", "parameter", cache, parameter=0)
    hlo.op("at", "parameter", "s32[]", parameter=1)
    hlo.op("h", "parameter", query, parameter=2)
    hlo.op("k", "tanh", new, ("h",))
    hlo.op("kept", "dynamic-update-slice", cache, ("keys", "k", "at", "at", "at", "at"))
    hlo.op("scores", "dot", "bf16[2,8,1,1024]", ("k", "kept"), dot=dot_dims((3,), (3,), (0, 1), (0, 1)))
    hlo.op("out", "tuple", f"({cache}, bf16[2,8,1,1024])", ("kept", "scores"))
    told = Told(hlo)
    assert told.of("kept")["kv_write"] == 2 * 2 * 8 * 64  # the slice alone
    assert told.of("scores")["kv_read"] == 2 * 2 * 8 * 1024 * 64


def test_layers_in_a_loop_take_slices_of_their_weights() -> None:
    """Two layers h = tanh(h w[i]) of [128, 256] in a scan over stacked weights [2, 256, 256]."""
    stacked, layer = "f32[2,256,256]", "f32[256,256]"
    carried = f"(s32[], {X}, {stacked})"
    hlo = Hlo()
    body = hlo.computation("body")
    hlo.op("c", "parameter", carried, parameter=0)
    hlo.op("i", "get-tuple-element", "s32[]", ("c",), index=0)
    hlo.op("h", "get-tuple-element", X, ("c",), index=1)
    hlo.op("ws", "get-tuple-element", stacked, ("c",), index=2)
    hlo.op("slice", "dynamic-slice", "f32[1,256,256]", ("ws", "i", "i", "i"))
    hlo.op("w", "reshape", layer, ("slice",))
    hlo.op("hw", "dot", X, ("h", "w"), dot=dot_dims((1,), (0,)))
    hlo.op("h2", "tanh", X, ("hw",))
    hlo.op("next", "tuple", carried, ("i", "h2", "ws"))
    hlo.computation("main")
    hlo.op("weights", "parameter", stacked, parameter=0, op_name="params['layers']['kernel']")
    hlo.op("x", "parameter", X, parameter=1)
    hlo.op("zero", "constant", "s32[]")
    hlo.op("start", "tuple", carried, ("zero", "x", "weights"))
    hlo.op("loop", "while", carried, ("start",), (body,))
    told = Told(hlo)
    assert told.of("hw") == {"weight_read": 4 * 256 * 256, "activation_read": X_BYTES, "activation_write": X_BYTES}
    assert told.sizes("hw") == (128, 256, 256)
    assert told.of("h2") == {"activation_read": X_BYTES, "activation_write": X_BYTES}


def test_a_sum_in_pieces_is_one_product() -> None:
    """[4096, 6144] by [6144, 2048], its sum cut into 4 pieces of 1536 (split K)."""
    hlo = Hlo()
    hlo.computation("main")
    hlo.op("w", "parameter", "bf16[6144,2048]", parameter=0, op_name="params['w']")
    hlo.op("x", "parameter", "bf16[4096,6144]", parameter=1)
    hlo.op("wk", "bitcast", "bf16[4,1536,2048]", ("w",))
    hlo.op("xk", "bitcast", "bf16[4096,4,1536]", ("x",))
    hlo.op("y", "dot", "f32[4,4096,2048]", ("xk", "wk"), dot=dot_dims((2,), (1,), (1,), (0,)))
    assert Told(hlo).sizes("y") == (4096, 6144, 2048)


# Real programs


def test_a_training_step_of_jax() -> None:
    """Three layers 256-512-512-10 with biases in fp32, SGD: every parameter is written once, every matrix has its gradient."""
    profile = open_profile(str(reference("traces/xplane/cpu_jax_mlp_8steps.xplane.pb")), cache=False)
    step = profile.hlo_roles.filter(
        pl.col("op").is_in(profile.hlo_ops.with_row_index("op").filter(program="jit_train_step")["op"].implode())
    )
    matrices, biases = 256 * 512 + 512 * 512 + 512 * 10, 512 + 512 + 10
    assert step["weight_write"].sum() == 4 * (matrices + biases)
    # The last bias' gradient is summed up in two steps: the first leaves pieces of it.
    assert step["gradient_write"].sum() == 4 * (matrices + biases - 10)
    products = step.drop_nulls("rows").sort("summed", "columns").select("rows", "summed", "columns").rows()
    assert products == [(128, 10, 512), (128, 256, 512), (128, 512, 10), (128, 512, 512), (128, 512, 512)]


FUSED = "traces/xplane/gpu_mi355x_jax_te_fused_attn.xplane.pb"


def test_the_output_projections_of_a_jax_attention() -> None:
    """Two layers with a projection [2048, 6144] in bf16, forward and backward, five times: read twice each, a gradient each."""
    moved = Study(open_profile(str(reference(FUSED)), cache=False)).roofline(ALL).program[0].bytes_by_role
    assert moved is not None
    assert moved["weight"] == {"read": 5 * 4 * 2 * 2048 * 6144, "write": 0}
    assert moved["gradient"] == {"read": 0, "write": 5 * 2 * 2 * 2048 * 6144}


def test_a_compiled_program_for_twice_the_batch_and_for_smaller_weights() -> None:
    study = Study(open_profile(str(reference(FUSED)), cache=False))
    assert study.device is not None

    def asked(change: Change) -> tuple[float, float, float]:
        found = what_if(profile_base(study, ALL, Machine(study.device), change), change, bare=True)  # type: ignore[arg-type]
        moved = found.whatif.bytes_by_role
        return found.whatif.flops, moved["weight"]["read"], sum(moved["activation"].values())

    flops, weights, activations = asked(Change())
    twice = asked(Change(batch_times=2))
    assert twice == pytest.approx((2 * flops, weights, 2 * activations))
    narrow = asked(Change(dtype="fp8"))
    assert narrow[:2] == (flops, weights / 2)
