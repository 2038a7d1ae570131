"""A profile, or some of its slices, as Chrome trace JSON: for Perfetto, and for roofterm itself.

Kineto's dialect for what PyTorch and other writers of Chrome traces recorded, the trace viewer's for what comes from XPlanes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from roofterm.report.trace_arguments import KinetoArguments
from roofterm.report.xla_arguments import XlaArguments
from roofterm_parsers.profile import Profile

AT_ONCE = 50_000
"""Slices whose arguments are gathered at a time."""

XLA_FORMATS = ("xplane", "xla_json")
_PHASES = ("s", "t", "f")
_encode = msgspec.json.encode


def trace_json(profile: Profile, chosen: NDArray[np.bool_], *, whole: bool) -> Iterator[bytes]:
    """The document, piece by piece. `whole`: with what has no length (arrows, counters, memory events), all of it."""
    xla = profile.sources[0].format in XLA_FORMATS
    writer = _Writer(profile, xla)
    yield _head(profile, xla)
    first = True
    for lines in writer.events(chosen, whole):
        if lines:
            yield (b"\n" if first else b",\n") + b",\n".join(lines)
            first = False
    yield b"\n]}\n"


def _head(profile: Profile, xla: bool) -> bytes:
    """Everything before the events: the file's own facts, devices and time base."""
    source = profile.sources[0]
    facts = {key: value for key, value in source.metadata.items() if key not in ("traceEvents", "traceName", "baseTimeNanoseconds")}
    if xla:
        facts = {"displayTimeUnit": "ns", **facts, "metadata": {"highres-ticks": True}}
    elif source.format == "kineto":
        facts = {"schemaVersion": 1, "deviceProperties": [*_properties(profile)], **facts}
        if profile.zero_unix_ns is not None:
            facts["baseTimeNanoseconds"] = profile.zero_unix_ns
        if source.rank is not None and len(profile.sources) == 1:
            stated = facts.get("distributedInfo")
            facts["distributedInfo"] = {"rank": source.rank} | (stated if isinstance(stated, dict) else {})
    body = _encode(facts)[1:-1]
    return b"{" + (body + b"," if body else b"") + b'"traceEvents":['


def _properties(profile: Profile) -> Iterator[dict[str, Any]]:
    """Kineto's `deviceProperties`, of the devices of which anything is known."""
    words = {
        "name": "name",
        "totalGlobalMem": "memory_bytes",
        "maxThreadsPerBlock": "threads_per_block",
        "maxThreadsPerMultiprocessor": "threads_per_unit",
        "regsPerMultiprocessor": "registers_per_unit",
        "warpSize": "warp_size",
        "sharedMemPerMultiprocessor": "shared_bytes_per_unit",
        "numSms": "units",
    }
    for device in profile.devices.unique("id", keep="first", maintain_order=True).iter_rows(named=True):
        known = {word: device[column] for word, column in words.items() if device[column] is not None}
        if device["capability"] is not None:
            major, _, minor = device["capability"].partition(".")
            known |= {"computeMajor": int(major), "computeMinor": int(minor or 0)}
        if device["kind"] == "npu":
            known["runtimeMajorVersion"] = 0
        if known:
            yield {"id": device["id"], **known}


class _Writer:
    """Events of a profile as lines of JSON."""

    def __init__(self, profile: Profile, xla: bool) -> None:
        self.profile = profile
        self._xla = xla
        several = len(profile.sources) > 1
        marks = [
            f"[{'rank' if s.rank is not None else 'file'} {row if s.rank is None else s.rank}] " for row, s in enumerate(profile.sources)
        ]
        self._mark = marks if several else [""] * len(profile.sources)
        places = profile.tracks.select("source", "process", "thread").rows()
        self._process = [_id(self._mark[source] + process) for source, process, _ in places]
        if xla:
            # The viewer numbers its processes and names them by their planes; a text before a number would be taken for a rank.
            numbers = {process: b"%d" % (number + 1) for number, process in enumerate(dict.fromkeys(self._process))}
            self._process = [process if process.isdigit() else numbers[process] for process in self._process]
        self._place = [b'"pid":' + pid + b',"tid":' + _id(thread) for pid, (_, _, thread) in zip(self._process, places, strict=True)]
        self._name = [
            b'"name":' + _encode(text) + (b',"cat":' + _encode(cat) if cat else b"")
            for text, cat in profile.names.select("text", "cat").rows()
        ]
        self._time = _times_of(profile)

    def events(self, chosen: NDArray[np.bool_], whole: bool) -> Iterator[list[bytes]]:
        yield list(self._metadata())
        yield from self._slices(chosen, XlaArguments(self.profile) if self._xla else KinetoArguments(self.profile))
        if whole:
            yield list(self._memory())
            yield list(self._instants())
            yield list(self._counters())
            yield from self._arrows()

    def _metadata(self) -> Iterator[bytes]:
        seen: set[bytes] = set()
        for row, track in enumerate(self.profile.tracks.iter_rows(named=True)):
            mark = self._mark[track["source"]]
            # A device and the host may have one number: the device's name is the label of their process.
            word = ("labels", "process_labels") if track["device"] is not None and not self._xla else ("name", "process_name")
            key = self._process[row] + word[0].encode()
            if track["process_name"] and key not in seen:
                seen.add(key)
                name = _encode({word[0]: mark + track["process_name"]})
                yield b'{"ph":"M","name":"' + word[1].encode() + b'","pid":' + self._process[row] + b',"tid":0,"args":' + name + b"}"
            if track["thread_name"]:
                yield b'{"ph":"M","name":"thread_name",' + self._place[row] + b',"args":' + _encode({"name": track["thread_name"]}) + b"}"

    def _slices(self, chosen: NDArray[np.bool_], arguments: KinetoArguments | XlaArguments) -> Iterator[list[bytes]]:
        slices = self.profile.slices
        for first in range(0, slices.height, AT_ONCE):
            taken = np.flatnonzero(chosen[first : first + AT_ONCE]) + first
            if taken.size == 0:
                continue
            rows = slices[taken].select("track", "name", "start_ps", "dur_ps").rows()
            found = arguments.of(first, first + AT_ONCE)
            lines = []
            for number, (track, name, start, dur) in zip(taken.tolist(), rows, strict=True):
                args = found.get(number)
                line = (
                    b'{"ph":"X",'
                    + self._name[name]
                    + b","
                    + self._place[track]
                    + b',"ts":'
                    + self._time(start)
                    + b',"dur":'
                    + self._time(dur)
                )
                lines.append(line + (b',"args":' + _encode(args) + b"}" if args else b"}"))
            yield lines

    def _memory(self) -> Iterator[bytes]:
        words = {
            "Total Reserved": "reserved_bytes",
            "Total Allocated": "allocated_bytes",
            "Bytes": "bytes",
            "Addr": "address",
            "Device Id": "device_id",
            "Device Type": "device_type",
        }
        for row in self.profile.memory.iter_rows(named=True):
            name = b"[OutOfMemory]" if row["out_of_memory"] else b"[memory]"
            args = _encode({word: row[column] for word, column in words.items() if row[column] is not None})
            line = b'{"ph":"i","s":"t","cat":"cpu_instant_event","name":"' + name + b'",' + self._place[row["track"]]
            yield line + b',"ts":' + self._time(row["time_ps"]) + b',"args":' + args + b"}"

    def _instants(self) -> Iterator[bytes]:
        for time, track, name in self.profile.instants.select("time_ps", "track", "name").iter_rows():
            yield b'{"ph":"i","s":"t",' + self._name[name] + b"," + self._place[track] + b',"ts":' + self._time(time) + b"}"

    def _counters(self) -> Iterator[bytes]:
        for time, source, process, series, value in self.profile.counters.select(
            "time_ps", "source", "process", "series", "value"
        ).iter_rows():
            pid = _id(self._mark[source] + (process or ""))
            line = b'{"ph":"C","name":' + _encode(series) + b',"pid":' + pid + b',"tid":0,"ts":' + self._time(time)
            yield line + b',"args":' + _encode({"value": value}) + b"}"

    def _arrows(self) -> Iterator[list[bytes]]:
        flows = self.profile.flows.select("id", "cat", "phase", "time_ps", "track")
        for part in flows.iter_slices(AT_ONCE):
            yield [
                b'{"ph":"' + _PHASES[phase].encode() + b'","id":' + _id(number) + b',"cat":' + _encode(cat) + b',"name":' + _encode(cat)
                + b"," + self._place[track] + b',"ts":' + self._time(time) + (b',"bp":"e"}' if phase else b"}")
                for number, cat, phase, time, track in part.iter_rows()
            ]  # fmt: skip


def _id(text: str) -> bytes:
    """A process, thread or arrow by its id: a number where it is one, as the file had it."""
    plain = text.removeprefix("-")
    number = plain.isascii() and plain.isdecimal() and len(plain) < 20 and str(int(text)) == text and int(plain) < 1 << 63
    return text.encode() if number else _encode(text)


def _times_of(profile: Profile) -> Any:
    """How times (ps) are written, in microseconds: with as many decimals as any of them needs."""
    times = [profile.slices["start_ps"], profile.slices["dur_ps"]]
    times += [frame["time_ps"] for frame in (profile.memory, profile.instants, profile.counters, profile.flows)]
    if all((series % 1_000_000 == 0).all() for series in times):
        return lambda ps: str(ps // 1_000_000).encode()
    unit, digits = (1000, 3) if all((series % 1000 == 0).all() for series in times) else (1, 6)

    def written(ps: int) -> bytes:
        whole, rest = divmod(abs(ps), 1_000_000)
        return f"{'-' if ps < 0 else ''}{whole}.{rest // unit:0{digits}d}".encode()

    return written
