"""Small profiles made by hand for tests: times in microseconds, everything else by its own name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from roofterm_parsers.nesting import nest
from roofterm_parsers.profile import FRAMES, Kind, Profile, Source, TrackKind, empty

US = 1_000_000
_WORK = (Kind.KERNEL, Kind.COPY, Kind.MEMSET)
_CATS = {
    Kind.OP: "cpu_op", Kind.ANNOTATION: "user_annotation", Kind.STEP: "user_annotation", Kind.RUNTIME: "cuda_runtime",
    Kind.SYNC: "cuda_runtime", Kind.KERNEL: "kernel", Kind.COPY: "gpu_memcpy", Kind.MEMSET: "gpu_memset", Kind.PYTHON: "python_function",
}  # fmt: skip


@dataclass
class Build:
    """Collects slices and makes a Profile. A method that adds a slice gives a handle for `launch=`, `op=`."""

    format: str = "kineto"
    rank: int | None = None
    device_name: str = "NVIDIA H100 80GB HBM3"
    device_kind: str = "gpu"
    _slices: list[dict[str, Any]] = field(default_factory=list)
    _memory: list[dict[str, Any]] = field(default_factory=list)

    def host(self, name: str, start: float, dur: float, kind: Kind = Kind.OP, thread: int = 1, **facts: Any) -> int:
        """A slice of a host thread; `facts` of an op: external_id, sequence, dims, types, concrete."""
        return self._add(name, start, dur, kind, ("host", thread), facts)

    def step(self, number: int, start: float, dur: float, thread: int = 1) -> int:
        return self._add(f"ProfilerStep#{number}", start, dur, Kind.STEP, ("host", thread), {"number": number})

    def call(self, start: float, dur: float, name: str = "cudaLaunchKernel", thread: int = 1) -> int:
        return self._add(name, start, dur, Kind.RUNTIME, ("host", thread), {})

    def kernel(
        self, name: str, start: float, dur: float, stream: int = 7, device: int = 0, launch: int | None = None, op: int | None = None,
        kind: Kind = Kind.KERNEL, **facts: Any,
    ) -> int:  # fmt: skip
        """Device work; `facts` of a kernel: any column of KERNELS; of a copy: bytes."""
        return self._add(name, start, dur, kind, ("device", device, stream), {"launch": launch, "op": op, **facts})

    def memory(self, time: float, size: int, total: int, device_type: int = 1, thread: int = 1) -> None:
        self._memory.append({"time": time, "bytes": size, "total": total, "device_type": device_type, "thread": thread})

    def profile(self) -> Profile:
        keys = sorted({s["track"] for s in self._slices}, key=str)
        order = sorted(
            range(len(self._slices)),
            key=lambda i: (keys.index(self._slices[i]["track"]), self._slices[i]["start"], -self._slices[i]["dur"], i),
        )
        new = {old: at for at, old in enumerate(order)}
        rows = [self._slices[i] for i in order]
        names = list(dict.fromkeys((r["name"], _CATS.get(r["kind"], "")) for r in rows))
        devices = sorted({k[1] for k in keys if k[0] == "device"})
        frame = pl.DataFrame(
            {
                "start_ps": [r["start"] for r in rows],
                "dur_ps": [r["dur"] for r in rows],
                "track": [keys.index(r["track"]) for r in rows],
                "name": [names.index((r["name"], _CATS.get(r["kind"], ""))) for r in rows],
                "kind": [int(r["kind"]) for r in rows],
                "offset": [0] * len(rows),
            },
            schema={"start_ps": pl.Int64, "dur_ps": pl.Int64, "track": pl.UInt32, "name": pl.UInt32, "kind": pl.UInt8, "offset": pl.UInt64},
        )
        parent, depth = nest(frame["track"].to_numpy(), frame["start_ps"].to_numpy(), frame["dur_ps"].to_numpy())
        frame = frame.with_columns(parent=pl.Series(parent), depth=pl.Series(depth)).select(list(FRAMES["slices"]))
        profile = Profile(sources=[Source(path="made by hand", format=self.format, container="plain", rank=self.rank, events=len(rows))])
        profile.slices = frame
        profile.tracks = _made("tracks", [_track(k, devices) for k in keys])
        profile.names = pl.DataFrame(names, schema=FRAMES["names"], orient="row")
        profile.devices = _made("devices", [self._device(d) for d in devices])
        self._fill(profile, rows, new, devices)
        profile.memory = _made("memory", [self._memory_row(m, keys) for m in self._memory])
        profile.check()
        return profile

    def _fill(self, profile: Profile, rows: list[dict[str, Any]], new: dict[int, int], devices: list[int]) -> None:
        links: list[dict[str, Any]] = []
        kernels: list[dict[str, Any]] = []
        copies: list[dict[str, Any]] = []
        ops: list[dict[str, Any]] = []
        signatures: list[dict[str, Any]] = []
        steps: list[dict[str, Any]] = []
        runtime: list[dict[str, Any]] = []
        for at, row in enumerate(rows):
            facts, kind = dict(row["facts"]), row["kind"]
            if kind in _WORK:
                links.append({"work": at, "launch": _lookup(new, facts.pop("launch")), "op": _lookup(new, facts.pop("op"))})
                place = {"slice": at, "device": devices.index(row["track"][1]), "stream": row["track"][2]}
                (kernels if kind == Kind.KERNEL else copies).append({**place, **facts})
            elif kind == Kind.STEP:
                steps.append(
                    {
                        "source": 0,
                        "number": facts["number"],
                        "name": row["name"],
                        "start_ps": row["start"],
                        "dur_ps": row["dur"],
                        "slice": at,
                    }
                )
            elif kind == Kind.RUNTIME:
                runtime.append({"slice": at})
            elif facts:
                shape = {k: facts.pop(k) for k in ("dims", "types", "strides", "concrete") if k in facts}
                if shape and shape not in signatures:
                    signatures.append(shape)
                ops.append({"slice": at, "signature": signatures.index(shape) if shape else None, **facts})
        for name, made in (
            ("links", links),
            ("kernels", kernels),
            ("copies", copies),
            ("ops", ops),
            ("signatures", signatures),
            ("runtime", runtime),
        ):
            setattr(profile, name, _made(name, made))
        profile.steps = _made("steps", steps).sort("start_ps", maintain_order=True)

    def _device(self, number: int) -> dict[str, Any]:
        size = {"units": 132, "memory_bytes": 85018279936, "capability": "9.0", "warp_size": 32, "threads_per_unit": 2048}
        known = size if self.device_name == "NVIDIA H100 80GB HBM3" else {}
        return {"source": 0, "id": number, "name": self.device_name, "kind": self.device_kind, "worked": True, **known}

    def _memory_row(self, event: dict[str, Any], keys: list[tuple[Any, ...]]) -> dict[str, Any]:
        return {
            "time_ps": _ps(event["time"]), "track": keys.index(("host", event["thread"])), "bytes": event["bytes"],
            "allocated_bytes": event["total"], "device_type": event["device_type"], "device_id": 0, "out_of_memory": False,
        }  # fmt: skip

    def _add(self, name: str, start: float, dur: float, kind: Kind, track: tuple[Any, ...], facts: dict[str, Any]) -> int:
        self._slices.append({"name": name, "start": _ps(start), "dur": _ps(dur), "kind": kind, "track": track, "facts": facts})
        return len(self._slices) - 1


def _ps(us: float) -> int:
    return round(us * US)


def _lookup(new: dict[int, int], handle: int | None) -> int | None:
    return None if handle is None else new[handle]


def _track(key: tuple[Any, ...], devices: list[int]) -> dict[str, Any]:
    if key[0] == "host":
        return {
            "kind": int(TrackKind.HOST),
            "source": 0,
            "process": "100",
            "thread": str(key[1]),
            "process_name": "python",
            "thread_name": f"thread {key[1]}",
        }
    place = {"process": str(key[1]), "thread": str(key[2]), "device": devices.index(key[1]), "stream": key[2]}
    return {"kind": int(TrackKind.DEVICE), "source": 0, "thread_name": f"stream {key[2]}", **place}


def _made(frame: str, rows: list[dict[str, Any]]) -> pl.DataFrame:
    schema = FRAMES[frame]
    if not rows:
        return empty(frame)
    return pl.DataFrame({name: pl.Series(name, [row.get(name) for row in rows], dtype=kind) for name, kind in schema.items()})
