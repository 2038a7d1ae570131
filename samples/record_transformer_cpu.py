"""Record the two CPU samples with torch.profiler, each with the figures that the profiler itself gives for it.

    pip install torch==2.13.0
    python record_transformer_cpu.py            # writes both samples beside this script

`transformer_cpu` is a few training steps with little in the way of the clock; `transformer_cpu_stacks` is one step with
Python stacks on, whose profiler tree has Python frames and negative self times. NAME.expected.json holds `key_averages()`
of the same run: the figures that any reader of the trace must come to.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.data import DataLoader, TensorDataset

VOCABULARY, WIDTH, HEADS, LAYERS = 2048, 256, 4, 2
BATCH, SEQUENCE = 4, 128
HERE = Path(__file__).resolve().parent


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, HEADS, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.mlp_norm = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with record_function("attention"):
            x = x + self.attention(self.attention_norm(x))
        with record_function("mlp"):
            return x + self.mlp(self.mlp_norm(x))


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def main() -> None:
    record("transformer_cpu", steps=4)
    record("transformer_cpu_stacks", steps=1, with_stack=True, with_modules=True)


def record(name: str, steps: int, **flags: bool) -> None:
    """Write NAME.pt.trace.json.gz and NAME.expected.json of `steps` training steps after two of warm-up."""
    torch.manual_seed(0)
    torch.set_num_threads(2)
    model = Transformer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    tokens = torch.randint(VOCABULARY, (BATCH * (steps + 3), SEQUENCE + 1))
    batches = DataLoader(TensorDataset(tokens), batch_size=BATCH)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=steps, repeat=1),
        record_shapes=True,
        profile_memory=True,
        with_flops=True,
        acc_events=True,
        **flags,
    ) as profiler:
        for (batch,) in batches:
            train_step(model, optimizer, batch)
            profiler.step()
    plain = HERE / f"{name}.pt.trace.json"
    profiler.export_chrome_trace(str(plain))
    text = plain.read_bytes().replace(str(plain).encode(), plain.name.encode())
    plain.unlink()
    (HERE / f"{plain.name}.gz").write_bytes(gzip.compress(text, 9, mtime=0))
    (HERE / f"{name}.expected.json").write_text(json.dumps(expected(profiler), indent=1) + "\n")


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, batch: torch.Tensor) -> None:
    optimizer.zero_grad()
    with record_function("forward"):
        logits = model(batch[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
    with record_function("backward"):
        loss.backward()
    optimizer.step()


def expected(profiler: profile) -> dict[str, Any]:
    """What torch.profiler says of its own run; times in microseconds."""
    averages = profiler.key_averages()
    windows = sorted(
        (event for event in profiler.events() or [] if event.name == "ProfilerStep*"), key=lambda event: event.time_range.start
    )
    return {
        "made_by": f"key_averages() of torch {torch.__version__}",
        "step_us": [event.time_range.elapsed_us() for event in windows],
        "self_cpu_us": averages.self_cpu_time_total,
        "rows": [
            {
                "key": row.key,
                "count": row.count,
                "self_cpu_time_total_us": row.self_cpu_time_total,
                "cpu_time_total_us": row.cpu_time_total,
                "flops": row.flops,
                "cpu_memory_usage": row.cpu_memory_usage,
                "self_cpu_memory_usage": row.self_cpu_memory_usage,
            }
            for row in averages
        ],
    }


if __name__ == "__main__":
    main()
