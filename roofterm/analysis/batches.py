"""What inference engines write into the annotation of an iteration: phase, requests and tokens.

vLLM and its kin name an iteration `execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(...)`, where
sq, sk, sqsq and sqsk are sums over the requests of query tokens, of tokens attended to, of squared query tokens, and of
their products (definitions.md, Devices). SGLang writes `step[DECODE bs=32 ...]`, ATOM `decode[bs=117/128 tok=117 ...]`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

PREFILL, DECODE, MIXED = "prefill", "decode", "mixed"

BEGINNINGS = r"execute_|step\[|prefill\[|decode\["
"""How the name of an iteration begins, as a regular expression: no other name is one."""

_BEGINNING = re.compile(BEGINNINGS)
_VLLM = re.compile(r"execute_(?:(?P<tokens>\d+)_)?context_(?P<c>\d+)\((?P<cs>[^)]*)\)_generation_(?P<g>\d+)\((?P<gs>[^)]*)\)")
_VLLM_SUMS = re.compile(r"sq(\d+)sk(\d+)sqsq(\d+)sqsk(\d+)")
_VLLM_REQUESTS = re.compile(r"execute_new_(\d+)_cached_(\d+)")
_SGLANG = re.compile(r"step\[(?P<mode>\w+)(?P<facts>(?: \w+=\d+)*)\]")
_ATOM = re.compile(r"(?P<mode>prefill|decode)\[(?P<facts>.*)\]")
_FACT = re.compile(r"(\w+)=(\d+)(?:/(\d+))?")
_CAPTURE = re.compile(r"capture_(\d+)_(\w+)")

_SGLANG_PHASES = {"EXTEND": PREFILL, "DECODE": DECODE, "MIXED": MIXED, "TARGET_VERIFY": DECODE, "DRAFT_EXTEND": DECODE}


class Sums(NamedTuple):
    """Sums over the requests of one kind; None: the annotation does not say."""

    requests: int | None = None
    q: int | None = None
    """query tokens: new ones"""
    k: int | None = None
    """tokens attended to, the new ones included"""
    qq: int | None = None
    qk: int | None = None

    @property
    def causal_pairs(self) -> int | None:
        """Visible (query, key) pairs: qk - (qq - q)/2, for queries are the last tokens of their sequence."""
        if self.requests == 0:
            return 0
        if self.q is None or self.qq is None or self.qk is None:
            return None
        return self.qk - (self.qq - self.q) // 2


class Batch(NamedTuple):
    """One iteration's work."""

    phase: str | None
    prefill: Sums
    decode: Sums
    graph_size: int | None = None
    """size of the graph that it is padded to, in tokens or sequences as the engine counts"""

    @property
    def sequences(self) -> int | None:
        return _added(self.prefill.requests, self.decode.requests)

    @property
    def tokens(self) -> int | None:
        """New tokens of prompts and generated ones."""
        return _added(self.prefill.q, self.decode.q)

    @property
    def context_tokens(self) -> int | None:
        """Tokens attended to, over all sequences: what is read of the KV cache."""
        return _added(self.prefill.k, self.decode.k)

    @property
    def causal_pairs(self) -> int | None:
        return _added(self.prefill.causal_pairs, self.decode.causal_pairs)


NONE = Sums(0, 0, 0, 0, 0)


def parse_batch(name: str) -> Batch | None:
    """What an annotation says of its iteration; None: it names none."""
    if _BEGINNING.match(name) is None:
        return None
    for pattern, read in _READERS:
        found = pattern.fullmatch(name)
        if found is not None:
            return read(found)
    return None


def parse_capture(name: str) -> tuple[int, str] | None:
    """Size and mode (DECODE, PIECEWISE, ...) of an annotation around a graph's capture."""
    found = _CAPTURE.fullmatch(name)
    return (int(found[1]), found[2]) if found is not None else None


def _vllm(found: re.Match[str]) -> Batch:
    prefill, decode = (_vllm_sums(found[one], found[f"{one}s"]) for one in "cg")
    return Batch(_phase_of(prefill, decode), prefill, decode, int(found["tokens"]) if found["tokens"] else None)


def _vllm_sums(requests: str, inside: str) -> Sums:
    if requests == "0":
        return NONE
    sums = _VLLM_SUMS.fullmatch(inside)
    if sums is not None:
        q, k, qq, qk = map(int, sums.groups())
        return Sums(int(requests), q, k, qq, qk)
    return Sums(int(requests), int(inside) if inside.isdigit() else None)


def _vllm_requests(found: re.Match[str]) -> Batch:
    """Requests alone: the cached ones may still be in their prompt, so no token is counted."""
    new, cached = int(found[1]), int(found[2])
    prefill = NONE if new == 0 else Sums(new)
    decode = NONE if cached == 0 else Sums(cached)
    return Batch(_phase_of(prefill, decode), prefill, decode)


def _sglang(found: re.Match[str]) -> Batch | None:
    facts = {key: int(value) for key, value, _ in _FACT.findall(found["facts"])}
    mode, size = found["mode"], facts.get("bs")
    phase = _SGLANG_PHASES.get(mode)
    if phase == PREFILL:
        return Batch(phase, _sglang_sums(facts, "c", size, facts.get("toks")), NONE)
    if phase == DECODE:
        return Batch(phase, NONE, _sglang_sums(facts, "g", size, size if mode == "DECODE" else None), size)
    if phase == MIXED:
        return Batch(phase, _sglang_sums(facts, "c", facts.get("c"), None), _sglang_sums(facts, "g", facts.get("g"), None))
    return Batch(None, Sums(), Sums())


def _sglang_sums(facts: dict[str, int], group: str, requests: int | None, tokens: int | None) -> Sums:
    return Sums(requests, facts.get(f"{group}_sq", tokens), *(facts.get(f"{group}_{key}") for key in ("sk", "sqsq", "sqsk")))


def _atom(found: re.Match[str]) -> Batch:
    facts = {key: (int(value), padded) for key, value, padded in _FACT.findall(found["facts"])}

    def fact(key: str) -> int | None:
        return facts[key][0] if key in facts else None

    sums = Sums(fact("bs"), fact("tok"), fact("sk"), fact("sqsq"), fact("sqsk"))
    if found["mode"] == PREFILL:
        return Batch(PREFILL, sums, NONE)
    padded = facts["bs"][1] if "bs" in facts else ""
    # A decode batch that took some prompts along gives its sums for both together.
    phase = MIXED if fact("p") else DECODE
    return Batch(phase, NONE, sums, int(padded) if padded else fact("bs"))


def _phase_of(prefill: Sums, decode: Sums) -> str | None:
    if prefill.requests and decode.requests:
        return MIXED
    return PREFILL if prefill.requests else DECODE if decode.requests else None


def _added(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


_READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Batch | None]], ...] = (
    (_VLLM, _vllm),
    (_VLLM_REQUESTS, _vllm_requests),
    (_SGLANG, _sglang),
    (_ATOM, _atom),
)
