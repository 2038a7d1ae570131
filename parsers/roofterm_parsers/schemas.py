"""The frames of a profile: their columns, with types and units, are said here and nowhere else.

All times are integer picoseconds (`_ps`) from the profile's zero. Row numbers are ids: a slice's id is its row in
`slices`, a track's its row in `tracks`, and so on. Unknown is null, never 0.
"""

from __future__ import annotations

import polars as pl

ROOT = 0xFFFFFFFF
"""`slices.parent` of a slice that lies in no other."""

SLICES = pl.Schema(
    {
        "start_ps": pl.Int64,
        "dur_ps": pl.Int64,
        "track": pl.UInt32,
        "name": pl.UInt32,
        "kind": pl.UInt8,
        "parent": pl.UInt32,  # slice id on the same track, ROOT if none; a slice that sticks out of its parent ends with it
        "depth": pl.UInt16,
        "offset": pl.UInt64,  # byte offset of the event in the uncompressed source; 0 where the format has none
    }
)
"""Everything that has a length; sorted by track, start, longer first, file order. The row number is the slice's id."""

TRACKS = pl.Schema(
    {
        "kind": pl.UInt8,  # TrackKind
        "source": pl.UInt16,  # row of Profile.sources
        "process": pl.String,  # pid as text
        "thread": pl.String,  # tid as text
        "process_name": pl.String,
        "thread_name": pl.String,
        "device": pl.UInt16,  # row of devices; null on the host
        "stream": pl.Int64,
        "sort": pl.Int64,
    }
)

NAMES = pl.Schema({"text": pl.String, "cat": pl.String})
"""Distinct pairs of an event's name and its category as in the file ('' where it has none)."""

OPS = pl.Schema(
    {
        "slice": pl.UInt32,
        "external_id": pl.Int64,
        "sequence": pl.Int64,  # autograd sequence number
        "forward_thread": pl.Int64,  # of a backward op: thread of its forward op
        "signature": pl.UInt32,  # row of signatures; null without recorded shapes
    }
)
"""Operators and annotations with ids, shapes or types."""

SIGNATURES = pl.Schema(
    {
        "dims": pl.String,  # JSON as recorded: "[[2,3],[3,4]]", nested for tensor lists
        "types": pl.String,  # JSON: ["float","c10::BFloat16",""]
        "strides": pl.String,
        "concrete": pl.String,  # JSON of Concrete Inputs
    }
)
"""Distinct input descriptions of ops; a part the file does not hold is null."""

CALLED = pl.Schema({"slice": pl.UInt32, "caller": pl.UInt32})
"""Ops that state from where they were called: rows of callers."""

CALLERS = pl.Schema(
    {
        "stack": pl.String,  # Call stack: frames, the innermost first, with ";" between
        "modules": pl.String,  # Module Hierarchy: of TorchScript, the outermost first, with "." between
    }
)
"""Distinct places in the code that ops state; a part the file does not hold, or leaves empty, is null."""

KERNELS = pl.Schema(
    {
        "slice": pl.UInt32,
        "device": pl.UInt16,
        "stream": pl.Int64,
        "correlation": pl.Int64,
        "external_id": pl.Int64,
        "grid_x": pl.UInt32,
        "grid_y": pl.UInt32,
        "grid_z": pl.UInt32,
        "block_x": pl.UInt32,
        "block_y": pl.UInt32,
        "block_z": pl.UInt32,
        "registers": pl.UInt32,  # per thread
        "shared_bytes": pl.UInt64,  # static and dynamic, per block
        "occupancy_pct": pl.Float32,  # as the file states it
        "blocks_per_unit": pl.Float32,
        "warps_per_unit": pl.Float32,
        "graph": pl.Int64,
        "graph_node": pl.Int64,
    }
)

COPIES = pl.Schema(
    {
        "slice": pl.UInt32,
        "device": pl.UInt16,
        "stream": pl.Int64,
        "correlation": pl.Int64,
        "external_id": pl.Int64,
        "bytes": pl.Int64,
        "peer": pl.Int64,  # the other device of a PtoP copy
    }
)
"""Copies and memsets; direction and pinning stand in the name ("Memcpy HtoD (Pinned -> Device)")."""

RUNTIME = pl.Schema({"slice": pl.UInt32, "correlation": pl.Int64, "external_id": pl.Int64})

LAUNCHES = pl.Schema(
    {
        "slice": pl.UInt32,  # the call
        "kernel": pl.String,
        "grid_x": pl.UInt32,
        "grid_y": pl.UInt32,
        "grid_z": pl.UInt32,
        "block_x": pl.UInt32,
        "block_y": pl.UInt32,
        "block_z": pl.UInt32,
        "shared_bytes": pl.UInt64,
    }
)
"""Calls that say themselves what they launch (ROCm) and of which the file holds no work: captured into a graph, or lost."""

WAITS = pl.Schema(
    {
        "slice": pl.UInt32,
        "device": pl.UInt16,
        "stream": pl.Int64,  # waiting or waited-for stream, null for a whole context
        "correlation": pl.Int64,
        "event_correlation": pl.Int64,  # of the cudaEventRecord that is waited for
        "on_stream": pl.Int64,
    }
)

COLLECTIVES = pl.Schema(
    {
        "slice": pl.UInt32,  # a kernel, or the host op (record_param_comms) that holds the facts
        "collective": pl.String,  # allreduce, _allgather_base, wait, ...
        "group": pl.String,
        "group_description": pl.String,
        "group_size": pl.Int64,
        "dtype": pl.String,
        "in_elements": pl.Int64,
        "out_elements": pl.Int64,
        "ranks": pl.String,
        "sequence": pl.Int64,
    }
)

PYTHON = pl.Schema({"slice": pl.UInt32, "python_id": pl.Int64, "python_parent": pl.Int64, "module_id": pl.Int64})

HLO = pl.Schema(
    {
        "slice": pl.UInt32,
        "op": pl.UInt32,  # row of hlo_ops
    }
)
"""Device events that belong to an HLO instruction."""

HLO_OPS = pl.Schema(
    {
        "program_id": pl.UInt64,
        "program": pl.String,  # module name
        "name": pl.String,  # display name: fusion.12
        "category": pl.String,  # hlo_category
        "text": pl.String,  # the instruction's HLO text
        "framework_op": pl.String,  # tf_op
        "source": pl.String,  # file:line
        "source_stack": pl.String,
        "deduplicated": pl.String,
        "flops": pl.Float64,  # per occurrence, as the compiler counted; null if unknown
        "model_flops": pl.Float64,
        "bytes": pl.Float64,  # per occurrence, all memories
        "hbm_read_bytes": pl.Float64,
        "hbm_write_bytes": pl.Float64,
        "cmem_read_bytes": pl.Float64,
        "cmem_write_bytes": pl.Float64,
        "vmem_read_bytes": pl.Float64,
        "vmem_write_bytes": pl.Float64,
        "flops_from": pl.String,  # trace, hlo, none
    }
)

HLO_FACTS = pl.Schema(
    {
        "op": pl.UInt32,  # row of hlo_ops
        "symbol_id": pl.UInt64,  # the compiler's number of the instruction; 0 and null: XProf's tables leave it out
        "opcode": pl.String,
        "shape": pl.String,  # of the result, with layout; of an op that no HLO is known of, of its inputs as its framework says
        "dtype": pl.String,  # that the arithmetic runs in: bf16, f32, s8, ...
        "custom_call": pl.String,  # target
        "xprof_flops": pl.Float64,  # per occurrence as XProf counts from the same HLO; null: it has no HLO for the op
        "xprof_model_flops": pl.Float64,
        "xprof_bytes": pl.Float64,
        "xprof_hbm_bytes": pl.Float64,
        "xprof_category": pl.String,  # "": an op of the framework alone, whose type is the category
        "on_chip_read_bytes": pl.Float64,  # of a TPU's memories on the chip together, also such as hlo_ops has no column for
        "on_chip_write_bytes": pl.Float64,
        "autotuned": pl.Boolean,
        "operands": pl.String,  # JSON list of names
        "users": pl.String,  # JSON list of names
        "inside": pl.String,  # JSON list of the names of a fusion's instructions; of one that is a fusion itself [name, [...]]
    }
)
"""What an XPlane file knows beyond `hlo_ops`, one row for each of its rows at most."""

HLO_ROLES = pl.Schema(
    {
        "op": pl.UInt32,  # row of hlo_ops
        **{
            f"{role}_{way}": pl.Float64  # bytes per occurrence in main memory
            for role in ("weight", "kv", "activation", "gradient", "optimizer")
            for way in ("read", "write")
        },
        "rows": pl.Float64,  # of a product with weights: [rows, summed] by [summed, columns]
        "summed": pl.Float64,
        "columns": pl.Float64,
    }
)
"""What instructions' bytes are, for those of which the program tells it. `gradient`: of weights."""

HLO_EVENTS = pl.Schema(
    {
        "slice": pl.UInt32,
        "time_scale": pl.Float64,  # time at the nominal clock over time (DVFS)
        "dma_stall_ps": pl.Int64,
        "flops": pl.Float64,  # of this occurrence: custom calls
        "model_flops": pl.Float64,
        "bytes": pl.Float64,
        "step": pl.Int64,  # number of the step that the event itself names (group_id)
    }
)
"""What single device events say of their costs and step, for the few that do."""

DEVICE_CLOCK = pl.Schema({"slice": pl.UInt32, "start_ps": pl.Int64, "dur_ps": pl.Int64})
"""A device event as its own clock saw it, where the file has both: `slices` holds the time aligned with the host."""

LINKS = pl.Schema(
    {
        "work": pl.UInt32,  # slice of a kernel, copy or memset
        "launch": pl.UInt32,  # slice of the runtime call; null: launched before the window, or the file has no call
        "op": pl.UInt32,  # innermost op around or behind the launch; null if none
    }
)
"""One row for each piece of device work, ordered by `work`."""

BACKWARD = pl.Schema({"backward": pl.UInt32, "forward": pl.UInt32})

COUNTERS = pl.Schema({"time_ps": pl.Int64, "source": pl.UInt16, "process": pl.String, "series": pl.String, "value": pl.Float64})

COUNTED = pl.Schema({"slice": pl.UInt32, "counter": pl.String, "value": pl.Float64})
"""Hardware counters of ranges (`cuda_profiler_range`, and kernels of XPlane files), by the profiler's own names."""

MEMORY = pl.Schema(
    {
        "time_ps": pl.Int64,
        "track": pl.UInt32,
        "bytes": pl.Int64,  # negative: a free
        "address": pl.Int64,
        "allocated_bytes": pl.Int64,  # total after the event
        "reserved_bytes": pl.Int64,
        "device_type": pl.Int32,  # torch's: 0 CPU, 1 CUDA or HIP
        "device_id": pl.Int32,
        "out_of_memory": pl.Boolean,
    }
)

ALLOCATIONS = pl.Schema(
    {
        "memory": pl.UInt32,  # row of memory
        "line_ps": pl.Int64,  # from the zero of the thread's own line
        "offset": pl.UInt64,  # where the event lies in the file
        "freed": pl.Boolean,
        "allocator": pl.String,
        "available_bytes": pl.Int64,
        "peak_bytes": pl.Int64,  # the allocator's own, up to here
        "requested_bytes": pl.Int64,
        "fragmentation": pl.Float64,
        "framework_op": pl.String,
        "region": pl.String,
        "dtype": pl.String,
        "shape": pl.String,
    }
)
"""What an XPlane file's allocator says beyond `memory`."""

FLOWS = pl.Schema({"id": pl.String, "cat": pl.String, "phase": pl.UInt8, "time_ps": pl.Int64, "track": pl.UInt32})
"""Arrows: `phase` 0 start, 1 step, 2 end."""

INSTANTS = pl.Schema({"time_ps": pl.Int64, "track": pl.UInt32, "name": pl.UInt32})

DEVICES = pl.Schema(
    {
        "source": pl.UInt16,
        "id": pl.Int64,  # the file's own number
        "name": pl.String,  # as the file says; null if it does not
        "kind": pl.String,  # gpu, tpu, npu, ...
        "worked": pl.Boolean,  # has at least one kernel, copy or memset
        "memory_bytes": pl.Int64,
        "units": pl.Int64,  # SMs, CUs or cores
        "capability": pl.String,  # "9.0"
        "warp_size": pl.Int64,
        "threads_per_unit": pl.Int64,
        "threads_per_block": pl.Int64,
        "registers_per_unit": pl.Int64,
        "shared_bytes_per_unit": pl.Int64,
        "clock_hz": pl.Float64,
        "peak_flops": pl.Float64,  # as the file states it (TPU planes), FLOP/s
        "bandwidths": pl.String,  # JSON {level: bytes/s} as the file states them
        "note": pl.String,
    }
)

STEPS = pl.Schema(
    {
        "source": pl.UInt16,
        "number": pl.Int64,
        "name": pl.String,
        "start_ps": pl.Int64,
        "dur_ps": pl.Int64,  # of the host's annotation, or of the Steps line
        "slice": pl.UInt32,
        "device": pl.UInt16,  # of a Steps line; null: a host annotation
    }
)
"""Distinct step numbers of each source, in order of start."""

FRAMES: dict[str, pl.Schema] = {
    "slices": SLICES,
    "tracks": TRACKS,
    "names": NAMES,
    "ops": OPS,
    "signatures": SIGNATURES,
    "called": CALLED,
    "callers": CALLERS,
    "kernels": KERNELS,
    "copies": COPIES,
    "runtime": RUNTIME,
    "launches": LAUNCHES,
    "waits": WAITS,
    "collectives": COLLECTIVES,
    "python": PYTHON,
    "hlo": HLO,
    "hlo_ops": HLO_OPS,
    "hlo_facts": HLO_FACTS,
    "hlo_roles": HLO_ROLES,
    "hlo_events": HLO_EVENTS,
    "device_clock": DEVICE_CLOCK,
    "links": LINKS,
    "backward": BACKWARD,
    "counters": COUNTERS,
    "counted": COUNTED,
    "memory": MEMORY,
    "allocations": ALLOCATIONS,
    "flows": FLOWS,
    "instants": INSTANTS,
    "devices": DEVICES,
    "steps": STEPS,
}
