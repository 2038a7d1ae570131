"""Write a large Kineto trace: the synthetic sample's steps, one after the other, with times and ids carried on.

    python -m benchmarks.make_trace SIZE_MB OUT.json.gz [--plain OUT.json]

About 310 bytes an event, printed as Kineto prints it. The same bytes each time.
"""

from __future__ import annotations

import argparse
import gzip
import re
from collections.abc import Iterator
from pathlib import Path

SAMPLE = Path(__file__).resolve().parents[1] / "samples" / "transformer_h100_synthetic.pt.trace.json.gz"

TOKEN = re.compile(
    r'(?P<ts>(?<="ts": )\d+\.\d{3})'
    r'|(?P<external>(?<="External id": )\d+)'
    r'|(?P<correlation>(?<="correlation": )\d+|(?<="ph": "[sf]", "id": )\d+)'
    r'|(?P<sequence>(?<="Sequence number": )\d+)'
    r"|(?P<step>(?<=ProfilerStep#)\d+)"
)
"""What differs from one repetition to the next."""


def blocks(size_bytes: int) -> Iterator[bytes]:
    """Pieces of a trace of at least `size_bytes`: head, repetitions of the sample's events, tail."""
    text = gzip.decompress(SAMPLE.read_bytes()).decode()
    start = text.index('"traceEvents": [') + len('"traceEvents": [')
    first = text.index("  {", start)
    last = text.rindex("\n  }\n") + len("\n  }")
    head, body, tail = text[:first], text[first:last], text[last:]
    literals, kinds, values = _tokens(body)
    spans = {kind: max(v for k, v in zip(kinds, values, strict=True) if k == kind) for kind in set(kinds)}
    lowest = {kind: min(v for k, v in zip(kinds, values, strict=True) if k == kind) for kind in set(kinds)}
    stride = {kind: spans[kind] - lowest[kind] + 1 for kind in spans}
    yield head.encode()
    written, repetition = len(head), 0
    while written < size_bytes:
        piece = _repeated(literals, kinds, values, stride, repetition)
        yield piece if repetition == 0 else b",\n" + piece
        written += len(piece)
        repetition += 1
    yield tail.encode()


def _tokens(body: str) -> tuple[list[str], list[str], list[int]]:
    """The text between the tokens, and each token's kind and value (times in whole nanoseconds)."""
    literals, kinds, values, at = [], [], [], 0
    for found in TOKEN.finditer(body):
        kind = str(found.lastgroup)
        literals.append(body[at : found.start()])
        kinds.append(kind)
        values.append(int(found[0].replace(".", "")))
        at = found.end()
    return [*literals, body[at:]], kinds, values


def _repeated(literals: list[str], kinds: list[str], values: list[int], stride: dict[str, int], repetition: int) -> bytes:
    parts = []
    for literal, kind, value in zip(literals, kinds, values, strict=False):
        moved = value + stride[kind] * repetition
        parts.append(literal)
        parts.append(f"{moved // 1000}.{moved % 1000:03}" if kind == "ts" else str(moved))
    parts.append(literals[-1])
    return "".join(parts).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("megabytes", type=float)
    parser.add_argument("out", type=Path)
    parser.add_argument("--plain", type=Path, help="write it uncompressed too")
    args = parser.parse_args()
    plain = args.plain.open("wb") if args.plain else None
    with args.out.open("wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=3, mtime=0) as packed:
        for block in blocks(int(args.megabytes * 1e6)):
            packed.write(block)
            if plain:
                plain.write(block)
    if plain:
        plain.close()


if __name__ == "__main__":
    main()
