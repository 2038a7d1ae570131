"""What a device is taken for: by name, by slice, by units, memory and capability, and never by a piece of another's name."""

from __future__ import annotations

import pytest

from roofterm.hardware.lookup import Facts, Match, find, resolve
from roofterm.hardware.table import Device, vendor_bandwidths


def _entry(match: Match) -> Device:
    assert match.entry is not None
    return match.entry


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("NVIDIA L4", "l4"),
        ("NVIDIA L40", "l40"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA H20", "h20"),
        ("NVIDIA H200", "h200-sxm"),
        ("NVIDIA H200 NVL", "h200-nvl"),
        ("NVIDIA GH200 480GB", "gh200-96gb"),
        ("NVIDIA A10", "a10"),
        ("NVIDIA A10G", "a10g"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb"),
        ("NVIDIA B200", "b200-sxm"),
        ("NVIDIA GB200", "gb200"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("NVIDIA GeForce RTX 4090 D", "rtx-4090d"),
        ("TPU v5", "tpu-v5p"),
        ("TPU v5 lite", "tpu-v5e"),
        ("TPU7x", "tpu-v7x"),
        ("TPU v7x", "tpu-v7x"),
        ("AMD Instinct MI250X", "mi250x-gcd"),
        ("GeForce RTX 3090", "rtx-3090"),  # drivers before 2020 leave NVIDIA out
        ("nvidia h100 pcie", "h100-pcie"),
    ],
)
def test_names_that_contain_each_other_are_told_apart(name: str, model: str) -> None:
    assert resolve(Facts(name=name)).model == model


@pytest.mark.parametrize(
    "name", ["NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA T400", "NVIDIA A1000", "NVIDIA RTX A5500", "L", "NVIDIA", "x" * 9999]
)
def test_a_device_that_is_not_in_the_table_stays_unknown(name: str) -> None:
    match = resolve(Facts(name=name, units=80, memory_bytes=25_300_000_000, capability="8.6"))
    assert match.model is None
    assert "roofterm measure" in match.notes[-1]


def test_a_mig_slice_has_its_share_of_units_and_memory_slices() -> None:
    match = resolve(Facts(name="NVIDIA A100-SXM4-40GB MIG 1g.5gb", units=14, memory_bytes=5_100_273_664, capability="8.0"))
    assert match.model == "a100-sxm4-40gb"
    assert match.scale.compute == 14 / 108
    assert match.scale.memory == 1 / 8
    assert match.scale.links == 0
    assert match.derived
    assert "MIG" in match.notes[0]


@pytest.mark.parametrize(
    ("suffix", "eighths"),
    # NVIDIA MIG User Guide, profiles of A100-40GB, A100-80GB, H200 (141 GB) and A30 (24 GB in quarters)
    [
        ("A100-SXM4-40GB MIG 2g.10gb", 2),
        ("A100-SXM4-40GB MIG 3g.20gb", 4),
        ("A100-SXM4-40GB MIG 7g.40gb", 8),
        ("A100-SXM4-80GB MIG 1g.10gb", 1),
        ("A100-SXM4-80GB MIG 1g.20gb", 2),
        ("H200 MIG 1g.18gb", 1),
        ("H200 MIG 3g.71gb", 4),
        ("A30 MIG 1g.6gb", 2),
        ("A100-SXM4-40GB MIG 1g.5gb+me", 1),
    ],
)
def test_memory_slices_of_mig_profiles(suffix: str, eighths: int) -> None:
    assert resolve(Facts(name=f"NVIDIA {suffix}")).scale.memory == eighths / 8


@pytest.mark.parametrize(
    ("name", "share"),
    # nvidia-smi mig -lgip, column SM
    [
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 14 / 108),
        ("NVIDIA A100-SXM4-40GB MIG 7g.40gb", 98 / 108),
        ("NVIDIA A100 80GB PCIe MIG 3g.40gb", 42 / 108),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 16 / 132),
        ("NVIDIA H100 80GB HBM3 MIG 1g.20gb", 26 / 132),
        ("NVIDIA H100 80GB HBM3 MIG 3g.40gb", 60 / 132),
        ("NVIDIA H200 MIG 1g.18gb", 16 / 132),
        ("NVIDIA A30 MIG 2g.12gb", 28 / 56),
        ("NVIDIA B200 MIG 2g.45gb", 2 / 7),  # only the guide's share is known
    ],
)
def test_a_mig_slice_whose_units_nobody_tells_has_those_of_its_profile(name: str, share: float) -> None:
    match = resolve(Facts(name=name))
    assert match.scale.compute == pytest.approx(share)
    assert ("upper bound" in match.notes[0]) is (match.model == "b200-sxm")


def test_a_partition_of_an_mi300x_is_scaled_by_compute_units() -> None:
    shared = resolve(Facts(name="AMD Instinct MI300X", units=38, memory_bytes=206_141_652_992, capability="9.4", warp_size=64))
    assert (shared.model, shared.scale.compute, shared.scale.memory) == ("mi300x", 1 / 8, 1.0)
    assert shared.scale.partition == "CPX partition"
    assert "upper bound" in shared.notes[0]
    # NPS4: each partition sees a quarter of the memory
    own = resolve(Facts(name="AMD Instinct MI300X", units=38, memory_bytes=206_141_652_992 // 4, capability="9.4", warp_size=64))
    assert own.scale.memory == 1 / 4
    assert resolve(Facts(name="AMD Instinct MI300X", units=152)).scale.partition == "DPX partition"


def test_a_virtual_function_with_all_units_is_the_whole_device() -> None:
    match = resolve(Facts(name="AMD Instinct MI300X VF", units=304, memory_bytes=205_571_227_648, capability="9.4", warp_size=64))
    assert (match.model, match.scale.compute, match.derived) == ("mi300x", 1.0, False)


def test_fewer_units_than_the_table_scale_the_peaks_and_ask_for_a_measurement() -> None:
    match = resolve(Facts(name="NVIDIA H100 80GB HBM3", units=66, memory_bytes=85_018_279_936, capability="9.0"))
    assert match.scale.compute == 0.5
    assert match.scale.partition == "fewer units"
    assert "roofterm measure" in match.notes[0]


def test_other_memory_than_the_tables_leaves_its_bandwidth_unknown() -> None:
    match = resolve(Facts(name="NVIDIA H20-3e", units=78, memory_bytes=150_000_000_000, capability="9.0"))
    assert match.model == "h20"
    assert "hbm" not in vendor_bandwidths(_entry(match))
    assert _entry(match).peak_flops_dense["bf16"] == 148e12
    # the 32 GB part is listed beside the 16 GB one
    v100 = resolve(Facts(name="Tesla V100-PCIE-32GB", units=80, memory_bytes=34_079_637_504, capability="7.0"))
    assert "hbm" in vendor_bandwidths(_entry(v100))


def test_ecc_takes_part_of_gddr_memory_and_is_no_other_variant() -> None:
    match = resolve(Facts(name="Tesla T4", units=40, memory_bytes=15_843_721_216, capability="7.5"))
    assert (match.model, match.derived) == ("t4", False)


def test_a_name_against_its_capability_is_not_trusted() -> None:
    match = resolve(Facts(name="NVIDIA H100 80GB HBM3", units=128, memory_bytes=25_000_000_000, capability="8.9"))
    assert match.model is None
    assert "not trusted" in match.notes[0]


def test_a_nameless_device_is_taken_by_units_memory_and_capability() -> None:
    match = resolve(Facts(name="", units=304, memory_bytes=206_141_652_992, capability="9.4", warp_size=64))
    assert (match.model, match.derived) == ("mi300x", True)
    assert resolve(Facts(name="AMD GPU - gfx942", units=304, memory_bytes=270_000_000_000)).model == "mi325x"
    assert resolve(Facts(name="", units=304, memory_bytes=206_141_652_992)).model is None  # without capability: no guess


def test_candidates_with_the_same_peaks_are_used_where_they_agree() -> None:
    match = resolve(Facts(name="AMD Radeon Graphics", units=104, memory_bytes=68_702_699_520, capability="9.0", warp_size=64))
    assert match.candidates == ["mi210", "mi250-gcd"]
    # 181 and 181.05 TFLOP/s, rounded differently by the sources: the lower one
    assert _entry(match).peak_flops_dense["bf16"] == 181e12
    assert _entry(match).interconnect == {}


def test_candidates_that_differ_in_a_figure_leave_it_out() -> None:
    # H100 and H800 SXM: fp64 33.5 against 1 TFLOP/s, NVLink 450 against 200 GB/s
    match = resolve(Facts(name="NVIDIA Graphics Device", units=132, memory_bytes=85_018_279_936, capability="9.0", warp_size=32))
    assert match.candidates == ["h100-sxm5-80gb", "h800-sxm"]
    assert _entry(match).peak_flops_dense["bf16"] == 989.4e12
    assert "fp64" not in _entry(match).peak_flops_dense


def test_candidates_with_different_peaks_give_no_roof() -> None:
    # V100 SXM2 (125 TFLOP/s) and PCIe (112) have the same units and memory; only a clock tells
    facts = Facts(name=None, units=80, memory_bytes=16_945_512_448, capability="7.0")
    match = resolve(facts)
    assert match.entry is None
    assert {"v100-sxm2-16gb", "v100-pcie"} <= set(match.candidates)
    assert resolve(Facts(None, 80, 16_945_512_448, "7.0", clock_hz=1.38e9)).model == "v100-pcie"


def test_a_short_name_is_settled_by_units() -> None:
    assert resolve(Facts(name="NVIDIA H100", units=114, memory_bytes=85_018_279_936, capability="9.0")).model == "h100-pcie"
    assert resolve(Facts(name="NVIDIA H100", units=132, memory_bytes=85_018_279_936, capability="9.0")).model == "h100-sxm5-80gb"
    assert resolve(Facts(name="NVIDIA H100")).model == "h100-sxm5-80gb"


def test_a_tpu_device_is_one_core_of_its_chip() -> None:
    match = resolve(Facts(name="TPU v5", kind="tpu"))
    assert (match.scale.compute, match.scale.memory, match.scale.partition) == (0.5, 0.5, None)
    assert "459 TFLOP/s" in match.notes[0]
    assert resolve(Facts(name="TPU v6 Lite", kind="tpu")).scale.compute == 1.0


@pytest.mark.parametrize(("units", "compute", "memory"), [(None, 1.0, 1.0), (1024, 1.0, 1.0), (512, 0.5, 0.5), (448, 56 / 128, 0.5)])
def test_a_stack_of_an_intel_max(units: int | None, compute: float, memory: float) -> None:
    """torch counts execution units, eight to a Xe core; 448 are a stack of Aurora's part."""
    scale = resolve(Facts(name="Intel(R) Data Center GPU Max 1550", units=units)).scale
    assert (scale.compute, scale.memory) == (compute, memory)


def test_what_a_person_means() -> None:
    def found(name: str) -> str | list[str]:
        answer = find(name)
        return answer.id if isinstance(answer, Device) else answer

    assert found("H100-SXM5-80GB") == "h100-sxm5-80gb"
    assert found("h100") == "h100-sxm5-80gb"
    assert found("v6e") == "tpu-v6e"
    assert found("mi250x") == "mi250x-gcd"
    assert found("NVIDIA A100-SXM4-40GB MIG 1g.5gb") == "a100-sxm4-40gb"
    assert found("a100") == ["a100-sxm4-40gb", "a100-sxm4-80gb", "a100-pcie-40gb", "a100-pcie-80gb"]
    assert found("nonsense") == []
    assert found("") == []
