"""Whatever the bytes, reading returns a profile that follows its schema, or raises ProfileError."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roofterm_parsers.chrome.reader import read
from roofterm_parsers.errors import ProfileError
from roofterm_parsers.nesting import self_times
from roofterm_parsers.profile import ROOT, Profile, Source

thorough = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Dribble(io.BytesIO):
    """Gives a few bytes at a time, as a pipe does."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(size, 7) if size is not None and size >= 0 else 7)


def survives(data: bytes) -> Profile | None:
    """Read the bytes; check what a profile promises if there is one."""
    try:
        profile = read(io.BytesIO(data), Source(path="fuzz", format="", container="plain"), lambda _: None)
    except ProfileError:
        return None
    profile.check()
    slices = profile.slices
    assert (slices["dur_ps"] >= 0).all()
    assert slices.is_empty() or slices["start_ps"].min() == 0
    assert (slices["track"] < profile.tracks.height).all()
    assert (slices["name"] < profile.names.height).all()
    parent = slices["parent"].to_numpy()
    assert np.all((parent == ROOT) | (parent < np.arange(slices.height)))
    own = self_times(parent, slices["start_ps"].to_numpy(), slices["dur_ps"].to_numpy())
    assert own.size == 0 or own.min() >= 0
    for frame in (profile.kernels, profile.copies, profile.ops, profile.runtime, profile.python):
        assert frame["slice"].is_sorted()
    assert all(warning.count > 0 and warning.message for warning in profile.warnings)
    return profile


TOKENS = [
    *"{}[],:",
    '"',
    "\\",
    "\n",
    " ",
    "\x00",
    "\ufeff",
    '{"ph":"X","name":"a","pid":1,"tid":1,"ts":5,"dur":3,"args":{"External id":1}}',
    '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":8,"dur":3,"args":{"correlation":1,"grid":[1,2,3]}}',
    '{"ph":"B","name":"b","pid":1,"tid":1,"ts":1}',
    '{"ph":"E","pid":1,"tid":1,"ts":9}',
    '{"ph":"M","name":"process_name","pid":1,"args":{"name":"/device:GPU:0"}}',
    '{"ph":"C","name":"c","ts":1,"args":{"v":"x","w":1e400}}',
    '"traceEvents":[',
    '{"traceEvents":[',
    '{"deviceProperties":[{"id":1}],"traceEvents":[',
    '"ph":"X"',
    '"ts":',
    "1e999",
    "NaN",
    "-5",
    "null",
    "99999999999999999999999",
]
soup = st.lists(st.sampled_from(TOKENS), max_size=30).map(lambda parts: "".join(parts).encode())

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 70), 1 << 70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=12),
    st.sampled_from(["0x10", "stream 7", "[TP00] 3", "1e5", " 7 ", "", "9" * 25]),
)
values = st.one_of(scalars, st.lists(scalars, max_size=4), st.dictionaries(st.text(max_size=5), scalars, max_size=3))
argument_keys = st.sampled_from(
    """External id,correlation,device,stream,grid,block,bytes,Python id,Python parent id,Input Dims,Input type,Sequence number,
    Fwd thread id,Bytes,Total Allocated,Device Type,Collective name,blocks per SM,est. achieved occupancy %,shared memory,graph id,
    wait_on_stream,external id,correlation_id,hlo_op,long_name,step_num,kernel_details,memcpy_details,% util,name,sort_index""".replace(
        "\n    ", ""
    ).split(",")
)
event_dicts = st.fixed_dictionaries(
    {
        "ph": st.one_of(st.sampled_from(list("XXXXBEiCMsftbn?")), values),
        "name": st.one_of(st.sampled_from(["a", "ProfilerStep#3", "[memory]", "process_name", "thread_name", "cudaLaunchKernel"]), values),
        "ts": st.one_of(st.integers(0, 10**16), st.floats(0, 1e16), values),
        "dur": st.one_of(st.integers(0, 10**6), values),
        "pid": st.one_of(st.integers(0, 3), values),
        "tid": st.one_of(st.integers(0, 3), values),
    },
    optional={
        "cat": st.one_of(
            st.sampled_from(
                ["cpu_op", "kernel", "gpu_memcpy", "cuda_runtime", "cuda_sync", "python_function", "ac2g", "mtia_ccp_events", "Trace"]
            ),
            values,
        ),
        "id": values,
        "args": st.one_of(values, st.dictionaries(argument_keys, values, max_size=6)),
    },
)
tops = st.dictionaries(
    st.sampled_from(
        ["deviceProperties", "distributedInfo", "baseTimeNanoseconds", "displayTimeUnit", "metadata", "host_name", "with_stack"]
    ),
    values,
    max_size=4,
)


@thorough
@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    survives(data)


@thorough
@given(soup)
def test_pieces_of_traces_in_any_order(data: bytes) -> None:
    survives(data)


@thorough
@given(st.lists(event_dicts, max_size=12), tops, st.booleans())
def test_events_of_any_types(events: list[dict[str, Any]], top: dict[str, Any], as_list: bool) -> None:
    trace: Any = events if as_list else {**top, "traceEvents": events}
    survives(json.dumps(trace).encode())


@thorough
@given(st.lists(event_dicts, min_size=1, max_size=6), st.data())
def test_events_of_any_types_with_damage(events: list[dict[str, Any]], data: st.DataObject) -> None:
    text = bytearray(json.dumps({"traceEvents": events}).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    survives(bytes(text))


@given(st.lists(event_dicts, max_size=6))
def test_a_stream_that_gives_little_at_a_time_reads_the_same(events: list[dict[str, Any]]) -> None:
    text = json.dumps(events).encode()
    whole = survives(text)
    try:
        dribbled = read(Dribble(text), Source(path="fuzz", format="", container="plain"), lambda _: None)
    except ProfileError:
        assert whole is None
        return
    assert whole is not None
    for name, frame in whole.frames().items():
        assert frame.equals(dribbled.frames()[name]), name
