"""FLOPs against torch's own counter, for the ops that it has: one run under both, shapes as the profiler records them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from roofterm.analysis.costs import cost
from roofterm.analysis.costs.attention import FORMS
from roofterm.analysis.costs.convolution import BACKWARD, FORWARD
from roofterm.analysis.costs.normalization import NORMS

torch = pytest.importorskip("torch")
pytest.importorskip("torch.utils.flop_counter")


def counted(run: Callable[[], Any]) -> dict[str, int]:
    """FLOPs by op as torch.utils.flop_counter has them."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        run()
    return {str(op).replace(".default", ""): flops for op, flops in counter.get_flop_counts()["Global"].items()}


def ours(name: str, dims: list[Any], concrete: list[Any] | None = None) -> float | None:
    types = ["float" if shape else "Scalar" for shape in dims]
    found = cost(name, json.dumps(dims), json.dumps(types), concrete=json.dumps(concrete) if concrete else None)
    return None if found is None else found.flops


def test_products() -> None:
    a, b = torch.randn(33, 17), torch.randn(17, 29)
    batch = torch.randn(5, 33, 17), torch.randn(5, 17, 29)
    assert counted(lambda: a @ b) == {"aten.mm": ours("aten::mm", [[33, 17], [17, 29]])}
    bias = torch.randn(29)
    addmm = ours("aten::addmm", [[29], [33, 17], [17, 29], [], []], ["", "", "", "1", "1"])
    assert counted(lambda: torch.addmm(bias, a, b)) == {"aten.addmm": addmm}
    assert counted(lambda: torch.bmm(*batch)) == {"aten.bmm": ours("aten::bmm", [[5, 33, 17], [5, 17, 29]])}
    added = torch.randn(5, 33, 29)
    baddbmm = ours("aten::baddbmm", [[5, 33, 29], [5, 33, 17], [5, 17, 29], [], []], ["", "", "", "1", "1"])
    assert counted(lambda: torch.baddbmm(added, *batch)) == {"aten.baddbmm": baddbmm}


@pytest.mark.parametrize(("stride", "padding", "dilation", "groups"), [(1, 0, 1, 1), (2, 1, 1, 1), (1, 2, 2, 4), (3, 1, 1, 2)])
def test_convolution_and_its_backward(stride: int, padding: int, dilation: int, groups: int) -> None:
    x = torch.randn(2, 8, 20, 22, requires_grad=True)
    weight = torch.randn(12, 8 // groups, 3, 3, requires_grad=True)
    settings = [f"[{value}, {value}]" for value in (stride, padding, dilation)]

    def run() -> None:
        torch.nn.functional.conv2d(x, weight, None, stride, padding, dilation, groups).sum().backward()

    out = list(torch.nn.functional.conv2d(x, weight, None, stride, padding, dilation, groups).shape)
    shapes = [list(x.shape), list(weight.shape)]
    forward = ours("aten::convolution", [*shapes, *[[]] * 7], ["", "", "", *settings, "False", "[0, 0]", str(groups)])
    concrete = ["", "", "", "", *settings, "False", "[0, 0]", str(groups), "[True, True, False]"]
    backward = ours("aten::convolution_backward", [out, *shapes, *[[]] * 8], concrete)
    got = counted(run)
    assert got["aten.convolution"] == forward
    assert backward == 2 * (forward or 0)
    if groups == 1:  # torch's counter leaves groups out of the weight's gradient
        assert got["aten.convolution_backward"] == backward


def test_transposed_convolution() -> None:
    x, weight = torch.randn(2, 6, 8, 9), torch.randn(6, 3, 4, 4)
    concrete = ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "True", "[0, 0]", "1"]
    flops = ours("aten::convolution", [[2, 6, 8, 9], [6, 3, 4, 4], *[[]] * 7], concrete)
    assert counted(lambda: torch.nn.functional.conv_transpose2d(x, weight, stride=2, padding=1)) == {"aten.convolution": flops}


def test_attention_without_a_mask() -> None:
    from torch.utils.flop_counter import sdpa_backward_flop_count, sdpa_flop_count

    q, k = (2, 8, 64, 32), (2, 8, 96, 32)
    dims: list[Any] = [list(q), list(k), list(k), [], [], [], []]
    concrete = ["", "", "", "0.", "False", "False", ""]
    assert ours("aten::_scaled_dot_product_flash_attention", dims, concrete) == sdpa_flop_count(q, k, k)
    backward: list[Any] = [list(q), list(q), list(k), list(k), list(q), [2, 8, 64], *[[]] * 9]
    values = ["", "", "", "", "", "", "", "", "64", "96", "0.", "False", "", "", ""]
    assert ours("aten::_scaled_dot_product_flash_attention_backward", backward, values) == sdpa_backward_flop_count(q, q, k, k)


def arguments(name: str) -> list[str] | None:
    """Names of an aten op's arguments, in order; None for ops that this torch does not have."""
    library, _, op = name.partition("::")
    packet = getattr(getattr(torch.ops, library), op, None)
    return None if packet is None else [one.name for one in getattr(packet, packet.overloads()[0])._schema.arguments]


def named(name: str, **slots: int | bool | None) -> dict[str, str | None]:
    """What torch calls the argument in each slot; slots that an op does not have are left out."""
    known = arguments(name)
    assert known is not None
    places = {key: slot for key, slot in slots.items() if slot is not None and not isinstance(slot, bool) and slot >= 0}
    return {key: known[slot] if slot < len(known) else None for key, slot in places.items()}


def of_this_torch(names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith("aten::") and arguments(name) is not None]


@pytest.mark.parametrize("name", of_this_torch(FORMS))
def test_attention_finds_its_arguments(name: str) -> None:
    form = FORMS[name]
    lengths = form.lengths or (None,) * 4
    windows = form.window or (None, None)
    found = named(
        name, q=form.q, k=form.q + 1, v=form.q + 2, causal=form.causal, out=form.out, bias=form.bias, mask=form.mask_type,
        cumulative_q=lengths[0], cumulative_k=lengths[1], longest_q=lengths[2], longest_k=lengths[3], left=windows[0], right=windows[1],
    )  # fmt: skip
    usual = {
        "q": ("query",), "k": ("key",), "v": ("value",), "causal": ("is_causal",), "out": ("out",), "mask": ("custom_mask_type",),
        "bias": ("attn_mask", "attn_bias", "bias"), "cumulative_q": ("cum_seq_q", "cu_seqlens_q"),
        "cumulative_k": ("cum_seq_k", "cu_seqlens_k"), "longest_q": ("max_q", "max_seqlen_q"), "longest_k": ("max_k", "max_seqlen_k"),
        "left": ("window_size_left",), "right": ("window_size_right",),
    }  # fmt: skip
    assert {key: value for key, value in found.items() if value not in usual[key]} == {}


@pytest.mark.parametrize("name", of_this_torch(FORWARD))
def test_convolutions_find_their_arguments(name: str) -> None:
    found = named(name, **FORWARD[name]._asdict())
    assert all(key == value for key, value in found.items()), found


@pytest.mark.parametrize("name", of_this_torch(BACKWARD))
def test_backwards_of_convolutions_find_their_arguments(name: str) -> None:
    found = named(name, **BACKWARD[name]._asdict())
    assert found == {"grad": "grad_output", "x": "input", "weight": "weight", "transposed": "transposed", "mask": "output_mask"}


@pytest.mark.parametrize("name", of_this_torch(NORMS))
def test_norms_find_their_arguments(name: str) -> None:
    norm = NORMS[name]
    found = named(name, x=norm.x, weight=norm.weight, bias=norm.bias, grad=norm.grad)
    usual = {"x": ("input",), "weight": ("weight",), "bias": ("bias",), "grad": ("grad_out", "grad_output")}
    assert {key: value for key, value in found.items() if value not in usual[key]} == {}
