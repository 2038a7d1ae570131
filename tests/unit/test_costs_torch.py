"""FLOPs against torch's own counter, for the ops that it has: one run under both, shapes as the profiler records them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from roofterm.analysis.costs import cost

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
