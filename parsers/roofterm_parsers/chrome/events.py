"""The parts of a trace event that roofterm keeps, as types for msgspec: everything has a default, nothing else is decoded.

Fields stand in the order in which writers put them, since the decoder looks first at the place behind the last key it met.
"""

from __future__ import annotations

from msgspec import Raw, Struct, field

NO_TEXT = Raw(b"")
NULL = -(1 << 63)
"""An integer that the file does not hold."""


class Args(Struct, gc=False, frozen=True):
    """Arguments of Kineto's events (and of any other Chrome trace that uses the same words)."""

    external: int = field(default=NULL, name="External id")
    concrete: Raw = field(default=NO_TEXT, name="Concrete Inputs")
    types: Raw = field(default=NO_TEXT, name="Input type")
    strides: Raw = field(default=NO_TEXT, name="Input Strides")
    dims: Raw = field(default=NO_TEXT, name="Input Dims")
    forward_thread: int = field(default=NULL, name="Fwd thread id")
    sequence: int = field(default=NULL, name="Sequence number")
    call_stack: Raw = field(default=NO_TEXT, name="Call stack")
    module_hierarchy: Raw = field(default=NO_TEXT, name="Module Hierarchy")
    kernel: Raw = NO_TEXT
    correlation: int = NULL
    python_parent: int | None = field(default=NULL, name="Python parent id")
    python: int = field(default=NULL, name="Python id")
    module: int = field(default=NULL, name="Python module id")
    device: int = NULL
    stream: int | str = NULL
    registers: int = field(default=NULL, name="registers per thread")
    shared: int = field(default=NULL, name="shared memory")
    blocks_per_unit: float | None = field(default=None, name="blocks per SM")
    warps_per_unit: float | None = field(default=None, name="warps per SM")
    grid: Raw = NO_TEXT
    block: Raw = NO_TEXT
    occupancy: float | None = field(default=None, name="est. achieved occupancy %")
    bytes: int | str = NULL
    graph: int = field(default=NULL, name="graph id")
    graph_node: int = field(default=NULL, name="graph node id")
    size: int | str = NULL
    total_reserved: int = field(default=NULL, name="Total Reserved")
    total_allocated: int = field(default=NULL, name="Total Allocated")
    memory_bytes: int = field(default=NULL, name="Bytes")
    address: int = field(default=NULL, name="Addr")
    device_id: int = field(default=NULL, name="Device Id")
    device_type: int = field(default=NULL, name="Device Type")
    wait_on_stream: int = NULL
    wait_on_record: int = field(default=NULL, name="wait_on_cuda_event_record_corr_id")
    collective: Raw = field(default=NO_TEXT, name="Collective name")
    in_elements: Raw = field(default=NO_TEXT, name="In msg nelems")
    out_elements: Raw = field(default=NO_TEXT, name="Out msg nelems")
    group_size: Raw = field(default=NO_TEXT, name="Group size")
    dtype: Raw = NO_TEXT
    process_group: Raw = field(default=NO_TEXT, name="Process Group Name")
    process_group_description: Raw = field(default=NO_TEXT, name="Process Group Description")
    ranks: Raw = field(default=NO_TEXT, name="Process Group Ranks")
    collective_sequence: Raw = field(default=NO_TEXT, name="Seq")
    sycl_queue: int | str = field(default=NULL, name="sycl queue")
    old_external: int = field(default=NULL, name="external id")
    old_dims: Raw = field(default=NO_TEXT, name="Input dims")
    old_occupancy: float | None = field(default=None, name="theoretical occupancy %")
    to_device: int = field(default=NULL, name="toDevice")
    in_device: int = field(default=NULL, name="inDevice")


NO_ARGS = Args()


class Event(Struct, gc=False):
    """An event of Kineto's or of any other writer."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str = ""
    tid: int | str = ""
    ts: Raw = NO_TEXT
    dur: Raw = NO_TEXT
    args: Args = NO_ARGS
    id: int | str = ""


class XlaArgs(Struct, gc=False, frozen=True):
    """Arguments in a trace that was made from an XPlane: all values are texts."""

    bytes_accessed: Raw = NO_TEXT
    correlation: Raw = field(default=NO_TEXT, name="correlation_id")
    deduplicated: Raw = field(default=NO_TEXT, name="deduplicated_name")
    device: Raw = field(default=NO_TEXT, name="device_id")
    category: Raw = field(default=NO_TEXT, name="hlo_category")
    module: Raw = field(default=NO_TEXT, name="hlo_module")
    op: Raw = field(default=NO_TEXT, name="hlo_op")
    kernel: Raw = field(default=NO_TEXT, name="kernel_details")
    text: Raw = field(default=NO_TEXT, name="long_name")
    copy: Raw = field(default=NO_TEXT, name="memcpy_details")
    model_flops: Raw = NO_TEXT
    name: Raw = NO_TEXT
    source: Raw = NO_TEXT
    source_stack: Raw = NO_TEXT
    step: Raw = field(default=NO_TEXT, name="step_num")
    framework_op: Raw = field(default=NO_TEXT, name="tf_op")
    eager: Raw = field(default=NO_TEXT, name="is_eager")
    group: Raw = field(default=NO_TEXT, name="group_id")
    annotation: Raw = NO_TEXT
    level: Raw = field(default=NO_TEXT, name="level 0")
    util: Raw = field(default=NO_TEXT, name="% util")
    occupancy: Raw = field(default=NO_TEXT, name="theoretical_occupancy_pct")
    clock_offset: Raw = field(default=NO_TEXT, name="device_offset_ps")
    clock_duration: Raw = field(default=NO_TEXT, name="device_duration_ps")


NO_XLA_ARGS = XlaArgs()


class XlaEvent(Struct, gc=False):
    """An event of a trace that was made from an XPlane (jax.profiler, xprof)."""

    ph: str = ""
    pid: int | str = ""
    tid: int | str = ""
    ts: Raw = NO_TEXT
    dur: Raw = NO_TEXT
    name: str = ""
    args: XlaArgs = NO_XLA_ARGS
    cat: str = ""
    id: int | str = ""


class WholeEvent(Struct, gc=False):
    """An event with all of its arguments, for the few (counters, metadata, collectives) whose keys are not known before."""

    ph: str = ""
    name: str = ""
    pid: int | str = ""
    tid: int | str = ""
    args: Raw = NO_TEXT


HLO_FIELDS = (
    "module",
    "op",
    "text",
    "category",
    "framework_op",
    "name",
    "level",
    "annotation",
    "source",
    "source_stack",
    "deduplicated",
    "model_flops",
    "bytes_accessed",
)
"""Fields of XlaArgs that say what an instruction is: events that agree in all of them are occurrences of one row of hlo_ops."""

SIGNATURE_FIELDS = ("dims", "types", "strides", "concrete")
COLLECTIVE_FIELDS = (
    "collective",
    "process_group",
    "process_group_description",
    "group_size",
    "dtype",
    "in_elements",
    "out_elements",
    "ranks",
    "collective_sequence",
)

AnyEvent = Event | XlaEvent
