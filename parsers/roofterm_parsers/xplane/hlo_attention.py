"""FLOPs of fused attention: two products over the visible pairs of query and key (definitions: Work)."""

from __future__ import annotations

BACKWARD_OVER_FORWARD = 2.5
"""Five products instead of two: the scores are computed again (flash attention's backward)."""


def visible_pairs(queries: int, keys: int, *, causal: bool, bottom_right: bool, window: int | None = None) -> int:
    """Pairs that a mask leaves visible.

    A causal mask aligned top left lets query i see the keys 0..i, aligned bottom right the keys 0..i + keys - queries; a
    window keeps of those the last `window` + 1.
    """
    if not causal and window is None:
        return queries * keys
    shift = keys - queries if bottom_right else 0
    pairs = 0
    for query in range(queries):
        last = min(query + shift, keys - 1) if causal else keys - 1
        first = 0 if window is None else max(0, query + shift - window)
        pairs += max(0, last - first + 1)
    return pairs


def attention_flops(pairs: float, qk_width: int, v_width: int) -> float:
    """Forward: 2 per multiply-add of scores and of their product with the values."""
    return 2.0 * pairs * (qk_width + v_width)
