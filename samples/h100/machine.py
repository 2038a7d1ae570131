"""A rank at work: host threads that call, streams that run what was launched in order, an allocator that keeps count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from h100.kernels import Kernel
from h100.tensors import BF16, Input, Tensor, described

COMPUTE_STREAM, COLLECTIVE_STREAM = 7, 20
RUNTIME_IDS = {
    "cudaLaunchKernel": 211,
    "cudaLaunchKernelExC": 430,
    "cuLaunchKernelEx": 652,
    "cudaMemcpyAsync": 41,
    "cudaMemsetAsync": 51,
    "cudaStreamSynchronize": 131,
    "cudaDeviceSynchronize": 165,
    "cudaEventRecord": 135,
    "cudaStreamWaitEvent": 147,
}
"""CUPTI's number of each call (`cbid`)"""


@dataclass(slots=True)
class Host:
    """Something that a host thread did, in nanoseconds."""

    cat: str
    name: str
    thread: int
    start: int
    end: int
    args: dict[str, Any]
    external: int
    sequence: int | None = None
    correlation: int | None = None


@dataclass(slots=True)
class Work:
    """A kernel, copy or memset on a stream, in nanoseconds."""

    cat: str
    name: str
    stream: int
    start: int
    end: int
    args: dict[str, Any]
    correlation: int
    launch: Host | None
    """None: launched before the window"""
    ops: tuple[Host, ...] = ()
    """ops open at the launch, outermost first"""
    annotations: tuple[Host, ...] = ()
    flops: int = 0
    role: str = "other"


@dataclass(slots=True)
class Memory:
    time: int
    thread: int
    bytes: int
    address: int
    allocated: int
    reserved: int
    index: int


@dataclass(slots=True)
class Rank:
    number: int
    rng: Random
    now: int
    """the host's clock, ns"""
    main_thread: int
    autograd_thread: int
    recording: bool = False
    slow: float = 1.0
    """length of compute kernels against the usual"""
    thread: int = 0
    sequence: int = 21000
    host: list[Host] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)
    memory: list[Memory] = field(default_factory=list)
    windows: list[Host] = field(default_factory=list)
    """host steps"""
    first: int = 0
    last: int = 0
    """the recorded window"""
    forward: dict[int, Host] = field(default_factory=dict)
    """last forward op by sequence number"""
    arrows: list[tuple[Host, Host]] = field(default_factory=list)
    allocated: int = 0
    reserved: int = 0
    ends: dict[int, int] = field(default_factory=lambda: {COMPUTE_STREAM: 0, COLLECTIVE_STREAM: 0})
    """when each stream is through with what it was given"""
    open_ops: list[Host] = field(default_factory=list)
    open_annotations: list[Host] = field(default_factory=list)
    free_blocks: dict[int, list[int]] = field(default_factory=dict)
    next_address: int = 0x7F2A_0000_0000
    external: int = 0
    correlation: int = 0
    events: int = 0

    def __post_init__(self) -> None:
        self.thread = self.main_thread
        self.external, self.correlation = 4 * 1024, 310_000 + 1000 * self.number

    def begin(self) -> None:
        """Start recording; what is still on the streams was launched before the window."""
        self.first, self.recording = self.now, True
        self.work = [work for work in self.work if work.start >= self.first]
        self.think(150, 250)

    def finish(self) -> None:
        """Stop recording, once the device has done all that it was given."""
        self.synchronize("cudaDeviceSynchronize")
        self.think(30, 60)
        self.last, self.recording = self.now, False

    # The host

    def think(self, low_us: float, high_us: float) -> None:
        """Let the host's clock run."""
        self.now += int(1000 * (low_us + (high_us - low_us) * self.rng.random()))

    @contextmanager
    def op(self, name: str, *inputs: Input, grad: bool = False, args: dict[str, Any] | None = None) -> Iterator[Host]:
        """An operator; `grad` gives it a node of the autograd graph, and so a sequence number."""
        event = self._begin("cpu_op", name, {**described(inputs), **(args or {})} if inputs else dict(args or {}))
        if grad:
            event.sequence = self.sequence
            event.args = {"Sequence number": self.sequence, "Fwd thread id": 0, **event.args}
            self.forward[self.sequence] = event
            self.sequence += 1
        self.open_ops.append(event)
        yield event
        self.open_ops.pop()
        self.think(0.4, 0.9)
        event.end = self.now

    @contextmanager
    def node(self, name: str, forward: Host | None) -> Iterator[None]:
        """A node of the backward pass: autograd's own frame around the node's."""
        args = {"Sequence number": forward.sequence, "Fwd thread id": 1} if forward else {}
        with self.op(f"autograd::engine::evaluate_function: {name}", args=args) as outer:
            if forward and self.recording:
                self.arrows.append((forward, outer))
            with self.op(name, args=args):
                yield

    @contextmanager
    def annotation(self, name: str) -> Iterator[Host]:
        event = self._begin("user_annotation", name, {})
        self.open_annotations.append(event)
        yield event
        self.open_annotations.pop()
        self.think(0.5, 1.5)
        event.end = self.now

    def _begin(self, cat: str, name: str, args: dict[str, Any]) -> Host:
        self.think(0.3, 0.8)
        self.external += 1
        self.events += 1
        event = Host(cat, name, self.thread, self.now, self.now, args, self.external)
        if self.recording:
            self.host.append(event)
        self.think(0.8, 1.8)
        return event

    def call(self, name: str, low_us: float, high_us: float, until: int = 0) -> Host:
        """A call into the runtime, that lasts until `until` where that is later."""
        self.think(0.3, 0.8)
        self.correlation += 1
        cat = "cuda_driver" if name.startswith("cu") and not name.startswith("cuda") else "cuda_runtime"
        args = {"cbid": RUNTIME_IDS[name], "correlation": self.correlation}
        inner = self.open_ops[-1].external if self.open_ops else 0
        event = Host(cat, name, self.thread, self.now, self.now, args, inner, correlation=self.correlation)
        self.think(low_us, high_us)
        self.now = max(self.now, until)
        event.end = self.now
        if self.recording:
            self.host.append(event)
        return event

    def synchronize(self, name: str) -> None:
        """Wait until the device has done all that it was given."""
        self.call(name, 4.0, 7.0, until=max(self.ends.values()) + 2500)

    # The device

    def launch(self, kernel: Kernel, stream: int = COMPUTE_STREAM) -> Work:
        """Launch a kernel: it starts when its stream is free, and not before the launch has reached the card."""
        call = self.call("cuLaunchKernelEx" if kernel.by_driver else "cudaLaunchKernel", 2.6, 4.4)
        start = self.earliest(call, stream)
        busy = stream == COMPUTE_STREAM and start < self.ends[COLLECTIVE_STREAM]
        dur = int(kernel.dur_ns * self.slow * (1.05 if busy else 1.0))
        return self.run("kernel", kernel.name, stream, start, dur, call, kernel=kernel)

    def earliest(self, call: Host, stream: int) -> int:
        gap = 700 + int(500 * self.rng.random())
        reach = 4800 + int(1600 * self.rng.random())
        return max(self.ends[stream] + gap, call.start + reach)

    def run(
        self,
        cat: str,
        name: str,
        stream: int,
        start: int,
        dur: int,
        call: Host,
        args: dict[str, Any] | None = None,
        kernel: Kernel | None = None,
    ) -> Work:
        """Put work on a stream at a known time."""
        work = Work(
            cat, name, stream, start, start + dur, args or {}, self.correlation, call, tuple(self.open_ops), tuple(self.open_annotations)
        )
        if kernel:
            work.args = {
                "registers": kernel.registers,
                "shared": kernel.shared_bytes,
                "grid": kernel.grid,
                "block": kernel.block,
                **work.args,
            }
            work.flops, work.role = kernel.flops, kernel.role
        if not self.recording:
            work.launch, work.ops, work.annotations = None, (), ()
        self.work.append(work)
        self.ends[stream] = start + dur
        return work

    def copy(self, direction: str, size: int, gb_per_s: float) -> Work:
        """`Memcpy` of `size` bytes; direction as in "HtoD (Pinned -> Device)"."""
        call = self.call("cudaMemcpyAsync", 4.0, 9.0)
        dur = 1300 + int(size / gb_per_s)
        return self.run(
            "gpu_memcpy", f"Memcpy {direction}", COMPUTE_STREAM, self.earliest(call, COMPUTE_STREAM), dur, call, {"bytes": size}
        )

    def clear(self, size: int) -> Work:
        """`Memset` of `size` bytes."""
        call = self.call("cudaMemsetAsync", 2.4, 4.0)
        dur = 1100 + int(size / 2900)
        return self.run("gpu_memset", "Memset (Device)", COMPUTE_STREAM, self.earliest(call, COMPUTE_STREAM), dur, call, {"bytes": size})

    def wait_for(self, waiting: int, other: int) -> None:
        """Let one stream wait for what the other has been given."""
        self.call("cudaEventRecord", 0.7, 1.3)
        self.call("cudaStreamWaitEvent", 0.6, 1.1)
        self.ends[waiting] = max(self.ends[waiting], self.ends[other])

    # Memory

    def new(self, shape: Sequence[int], dtype: str = BF16) -> Tensor:
        """Memory from the allocator; free it with `free`."""
        tensor = Tensor(tuple(shape), dtype)
        size = -(-tensor.bytes // 512) * 512
        blocks = self.free_blocks.setdefault(size, [])
        if blocks:
            address = blocks.pop()
        else:
            address = self.next_address
            self.next_address += size
        self._account(size, address)
        return Tensor(tensor.shape, dtype, None, address)

    def free(self, *tensors: Tensor) -> None:
        for tensor in tensors:
            if tensor.address is None:
                raise ValueError(f"a view of {tensor.shape} was freed")
            size = -(-tensor.bytes // 512) * 512
            self.free_blocks[size].append(tensor.address)
            self._account(-size, tensor.address)

    def _account(self, size: int, address: int) -> None:
        self.allocated += size
        self.reserved = max(self.reserved, -(-self.allocated // (2 << 20)) * (2 << 20))
        if self.recording:
            self.events += 1
            self.memory.append(Memory(self.now, self.thread, size, address, self.allocated, self.reserved, self.events))
