"""The accelerator's paths of the measuring program, on a stand-in: torch's CPU under the name of a CUDA device."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from roofterm.hardware import measure as program
from roofterm.hardware.measure import figures, loops, node
from roofterm.hardware.measure.box import Box
from roofterm.hardware.measure.loops import gemm
from roofterm.hardware.store import MeasuredRoofs

torch = pytest.importorskip("torch")

FREE, TOTAL = 3 << 30, 4 << 30


class Event:
    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        self.at = time.perf_counter()

    def synchronize(self) -> None:
        assert self.at

    def elapsed_time(self, other: Event) -> float:
        return (other.at - self.at) * 1e3


class Graph:
    """Replays nothing, quickly."""

    def replay(self) -> None:
        time.sleep(0.001)


class Stream:
    def wait_stream(self, other: object) -> None:
        assert other is not None

    def synchronize(self) -> None: ...


@contextlib.contextmanager
def _nothing(*_: object, **__: object) -> Iterator[None]:
    yield


def _cuda(count: int = 1, **properties: Any) -> SimpleNamespace:
    known = {"name": "Stand-in", "major": 9, "minor": 0, "multi_processor_count": 4, "total_memory": TOTAL, "L2_cache_size": 4 << 20}
    return SimpleNamespace(
        device_count=lambda: count,
        get_device_properties=lambda _: SimpleNamespace(**{**known, **properties}),
        set_device=lambda _: None,
        is_available=lambda: True,
        synchronize=lambda: None,
        Event=Event,
        CUDAGraph=Graph,
        Stream=Stream,
        current_stream=Stream,
        stream=_nothing,
        graph=_nothing,
        mem_get_info=lambda _=0: (FREE, TOTAL),
        memory_reserved=lambda _: 1 << 20,
        memory_allocated=lambda _: 1 << 20,
    )


class OnCpu:
    """torch whose "cuda:0" is the CPU."""

    def __init__(self, cuda: SimpleNamespace, hip: str | None = None) -> None:
        self.cuda = cuda
        self.version = SimpleNamespace(hip=hip)

    def device(self, name: str) -> SimpleNamespace:
        kind, _, index = name.partition(":")
        return SimpleNamespace(type=kind, index=int(index or 0))

    def __getattr__(self, name: str) -> Any:
        found = getattr(torch, name)
        if name not in ("ones", "zeros", "empty", "randn", "randint"):
            return found

        def make(*size: Any, **options: Any) -> Any:
            return found(*size, **{**options, "device": "cpu"})

        return make


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No vendor's tool, and memory that counts as pinned."""
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor)


def test_everything_is_measured_on_an_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "_torch", lambda: OnCpu(_cuda()))
    said: list[dict[str, Any]] = []
    result = program.measure(None, 3.0, None, said.append)
    assert not [note for note in result["notes"] if "was not measured" in note]
    roofs = MeasuredRoofs(**{**result, "device": result["device"]})
    assert set(roofs.launch_s) == {"spacing", "enqueue", "round_trip", "graph_node"}
    assert {"bf16", "fp16"} <= set(roofs.peaks)
    assert {"hbm", "pcie"} <= {*roofs.bandwidths, *roofs.links}
    assert roofs.threads is None
    assert result["device"] == {
        "name": "Stand-in",
        "kind": "gpu",
        "vendor": "nvidia",
        "index": 0,
        "units": 4,
        "memory_bytes": TOTAL,
        "capability": "9.0",
        "uuid": None,
        "count": 1,
    }
    assert result["details"]["gemm"]["bf16"]["path"] == "bf16"
    stages = {line["progress"]["stage"] for line in said}
    assert {"launch", "bandwidth copy", "caches", "gemm bf16", "pcie h2d_pinned", "bandwidth again"} <= stages


def test_a_dtype_that_the_device_lacks_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    box = Box(OnCpu(_cuda(major=7, minor=5)), "cuda:0")
    monkeypatch.setattr(loops, "_gemm_sizes", lambda *_: {})  # how fast the others are is not the question
    found = gemm(box, time.perf_counter() + 60, lambda *_: None)
    assert "no tf32" in found["tf32"]["error"]
    assert "tf32" not in figures.best_gemms({"gemm": found})


def test_memory_that_others_hold_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    box = Box(OnCpu(_cuda()), None)
    notes, busy = node.neighbours(box)
    assert "1.1 of 4.3 GB were taken" in notes[0]  # (4 - 3) GiB less our 1 MiB
    assert busy == []
    monkeypatch.setattr(node, "smi", lambda _: {"busy_pct": 35.0})
    assert "35 % busy" in node.neighbours(box)[1][0]


SMI = "GPU-1234, 570.133.20, 700.00, 1980, 2619, 3\n"


def test_the_vendors_tool_tells_driver_power_and_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def answer(command: list[str], **_: object) -> SimpleNamespace:
        asked.append(command)
        return SimpleNamespace(stdout=SMI)

    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("subprocess.run", answer)
    facts = node.smi(Box(OnCpu(_cuda(uuid="1234")), "cuda:0"))
    assert facts == {
        "uuid": "GPU-1234",
        "driver": "570.133.20",
        "power_limit_w": 700.0,
        "clocks_mhz": {"sm": 1980.0, "memory": 2619.0},
        "busy_pct": 3.0,
    }
    assert asked[0][-2:] == ["-i", "GPU-1234"]


@pytest.mark.parametrize("text", ["", "GPU-1, 570, [N/A]\n", "No devices were found\n"])
def test_an_odd_answer_of_the_tool_tells_nothing(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("subprocess.run", lambda *_, **__: SimpleNamespace(stdout=text))
    assert node.smi(Box(OnCpu(_cuda()), "cuda:0")) == {}


def test_a_limit_that_is_not_available_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("subprocess.run", lambda *_, **__: SimpleNamespace(stdout="GPU-1, 570, [N/A], 1980, [N/A], [N/A]\n"))
    facts = node.smi(Box(OnCpu(_cuda()), "cuda:0"))
    assert (facts["power_limit_w"], facts["busy_pct"], facts["clocks_mhz"]) == (None, None, {"sm": 1980.0})


def test_mig_and_mps_are_partitions(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    whole = Box(OnCpu(_cuda()), "cuda:0")
    assert node.partition(whole) is None
    assert node.partition(Box(OnCpu(_cuda(name="NVIDIA A100-SXM4-40GB MIG 1g.5gb")), "cuda:0")) == "MIG 1g.5gb"
    (tmp_path / "control").touch()
    assert node.partition(whole) == "MPS"
    monkeypatch.setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "50")
    assert node.partition(whole) == "MPS 50 %"
