"""What may be taken is the least of what the machine, the cgroups and the shell leave free."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from roofterm_parsers import memory_limit
from roofterm_parsers.memory_limit import UNKNOWN_BYTES, default_limit_bytes, free_bytes

GB = 1 << 30


def machine(proc: Path, free_kb: int = 64 << 20, cgroup: str = "", mounts: str = "") -> None:
    """A /proc that tells of `free_kb` of memory."""
    (proc / "self").mkdir(parents=True)
    (proc / "meminfo").write_text(f"MemTotal: 131923000 kB\nMemFree: 1000 kB\nMemAvailable: {free_kb} kB\n")
    (proc / "self" / "cgroup").write_text(cgroup)
    (proc / "self" / "mountinfo").write_text(mounts)


def group(path: Path, **files: str | int) -> None:
    path.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (path / name.replace("_", ".", 1)).write_text(f"{text}\n")


def v2_mount(place: Path, shown: str = "/") -> str:
    return f"38 31 0:35 {shown} {place} rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"


def v1_mount(place: Path, shown: str = "/") -> str:
    return f"30 25 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n36 31 0:33 {shown} {place} rw,relatime - cgroup cgroup rw,memory\n"


def test_without_limits_the_machine_counts(tmp_path: Path) -> None:
    machine(tmp_path)
    assert free_bytes(tmp_path) == 64 * GB


def test_a_v2_limit_less_what_is_used_and_more_what_is_only_cached(tmp_path: Path) -> None:
    machine(tmp_path / "proc", cgroup="0::/job\n", mounts=v2_mount(tmp_path / "cg"))
    group(tmp_path / "cg" / "job", memory_max=8 * GB, memory_high="max", memory_current=6 * GB, memory_stat=f"anon 1\ninactive_file {GB}")
    assert free_bytes(tmp_path / "proc") == 8 * GB - 6 * GB + GB


def test_the_narrowest_group_around_counts(tmp_path: Path) -> None:
    machine(tmp_path / "proc", cgroup="0::/slice/job/step\n", mounts=v2_mount(tmp_path / "cg"))
    group(tmp_path / "cg" / "slice" / "job" / "step", memory_max="max", memory_current=GB)
    group(tmp_path / "cg" / "slice" / "job", memory_max=4 * GB, memory_current=3 * GB)
    group(tmp_path / "cg" / "slice", memory_max=32 * GB, memory_current=3 * GB)
    assert free_bytes(tmp_path / "proc") == GB


def test_memory_high_throttles_and_so_counts_as_a_limit(tmp_path: Path) -> None:
    machine(tmp_path / "proc", cgroup="0::/\n", mounts=v2_mount(tmp_path / "cg"))
    group(tmp_path / "cg", memory_max="max", memory_high=2 * GB, memory_current=GB)
    assert free_bytes(tmp_path / "proc") == GB


def test_a_v1_limit(tmp_path: Path) -> None:
    machine(tmp_path / "proc", cgroup="5:cpu:/a\n4:memory:/docker/abc\n0::/\n", mounts=v1_mount(tmp_path / "cg"))
    place = tmp_path / "cg" / "docker" / "abc"
    group(place, memory_limit_in_bytes=3 * GB, memory_usage_in_bytes=2 * GB, memory_stat=f"inactive_file 1\ntotal_inactive_file {GB // 2}")
    assert free_bytes(tmp_path / "proc") == GB + GB // 2


def test_no_limit_in_v1_is_a_very_large_number(tmp_path: Path) -> None:
    machine(tmp_path / "proc", cgroup="4:memory:/\n", mounts=v1_mount(tmp_path / "cg"))
    group(tmp_path / "cg", memory_limit_in_bytes=9223372036854771712, memory_usage_in_bytes=5)
    assert free_bytes(tmp_path / "proc") == 64 * GB


def test_in_a_container_the_hosts_path_is_the_root_of_the_mount(tmp_path: Path) -> None:
    """Docker without a cgroup namespace: /proc/self/cgroup tells the host's path, the mount shows only that group."""
    machine(tmp_path / "proc", cgroup="4:memory:/docker/abc\n", mounts=v1_mount(tmp_path / "cg", shown="/docker/abc"))
    group(tmp_path / "cg", memory_limit_in_bytes=2 * GB, memory_usage_in_bytes=GB)
    assert free_bytes(tmp_path / "proc") == GB


def test_a_path_that_leads_out_of_the_container_is_its_root(tmp_path: Path) -> None:
    machine(tmp_path / "proc", cgroup="0::/../../other\n", mounts=v2_mount(tmp_path / "cg"))
    group(tmp_path / "cg", memory_max=2 * GB, memory_current=GB)
    assert free_bytes(tmp_path / "proc") == GB


def test_a_group_over_its_limit_leaves_nothing(tmp_path: Path) -> None:
    machine(tmp_path / "proc", cgroup="0::/\n", mounts=v2_mount(tmp_path / "cg"))
    group(tmp_path / "cg", memory_max=GB, memory_current=2 * GB)
    assert free_bytes(tmp_path / "proc") == 0


def test_the_shells_limit_counts_less_what_is_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(tmp_path)
    (tmp_path / "self" / "statm").write_text("1000 5 5 5 0 5 0\n")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (4 * GB, 8 * GB))
    assert free_bytes(tmp_path) == 4 * GB - 1000 * resource.getpagesize()


def test_where_nothing_is_known_a_modest_size_is_assumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_limit, "_machine_free_bytes", lambda _: None)
    assert free_bytes(tmp_path) == UNKNOWN_BYTES


def test_what_this_process_has_taken_grows_with_what_it_takes() -> None:
    before = memory_limit.taken_bytes()
    held = bytearray(b"x") * (64 << 20)
    assert 60 << 20 < memory_limit.taken_bytes() - before < 90 << 20
    del held


def test_pages_of_files_are_not_this_process_s_own(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "statm").write_text("9000 500 200 5 0 5 0\n")
    assert memory_limit.taken_bytes(tmp_path) == 300 * resource.getpagesize()


def test_the_default_limit_is_sixty_percent_of_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_limit, "free_bytes", lambda: 10 * GB)
    assert default_limit_bytes() == 6 * GB
