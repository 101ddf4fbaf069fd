"""The vocabulary of every stage: element types, targets, settings, errors, printing, files.

Read errors.py first, then knobs.py and target.py.
"""

from tensorwright.base import knobs
from tensorwright.base.dtypes import DType
from tensorwright.base.dumps import Dump, collect_dumps, dump, dump_subject, is_dumped
from tensorwright.base.errors import (
    ExpressionError,
    InputError,
    InternalError,
    MachineError,
    ModelError,
    OutputError,
    RecordError,
    ScheduleError,
    TensorwrightError,
    UnsupportedError,
    UsageError,
    UserError,
    did_you_mean,
    line_of,
    naming_faults,
)
from tensorwright.base.file_kinds import (
    EXECUTABLE,
    EXECUTABLE_MAGIC,
    HEAD_BYTES,
    FileKind,
    kind_of_bytes,
    kind_of_file,
)
from tensorwright.base.file_lock import hold_lock, is_same_file
from tensorwright.base.files import atomic_writer, make_folder, output_error, write_atomically
from tensorwright.base.garbage import without_collection
from tensorwright.base.knobs import (
    DUMP_STAGES,
    KNOBS,
    Knob,
    available_cores,
    find_knob,
    override,
)
from tensorwright.base.machine import LINE_BYTES, Cache, read_caches, read_text
from tensorwright.base.memory import check_fits, peak_memory_bytes, physical_memory_bytes
from tensorwright.base.plain_data import Kinds, from_data, kinds_of, to_data
from tensorwright.base.printer import HERE, Printer
from tensorwright.base.sources import source_digest
from tensorwright.base.target import (
    BYTE_LANES,
    BYTE_TERMS,
    TARGETS,
    CpuTarget,
    Target,
    check_runs_here,
    detect_target,
    missing_here,
)
from tensorwright.base.tensors import (
    Array,
    Attributes,
    AttributeValue,
    HostFunction,
    Role,
    TensorType,
)

__all__ = [
    "BYTE_LANES",
    "BYTE_TERMS",
    "DUMP_STAGES",
    "EXECUTABLE",
    "EXECUTABLE_MAGIC",
    "HEAD_BYTES",
    "HERE",
    "KNOBS",
    "LINE_BYTES",
    "TARGETS",
    "Array",
    "AttributeValue",
    "Attributes",
    "Cache",
    "CpuTarget",
    "DType",
    "Dump",
    "ExpressionError",
    "FileKind",
    "HostFunction",
    "InputError",
    "InternalError",
    "Kinds",
    "Knob",
    "MachineError",
    "ModelError",
    "OutputError",
    "Printer",
    "RecordError",
    "Role",
    "ScheduleError",
    "Target",
    "TensorType",
    "TensorwrightError",
    "UnsupportedError",
    "UsageError",
    "UserError",
    "atomic_writer",
    "available_cores",
    "check_fits",
    "check_runs_here",
    "collect_dumps",
    "detect_target",
    "did_you_mean",
    "dump",
    "dump_subject",
    "find_knob",
    "from_data",
    "hold_lock",
    "is_dumped",
    "is_same_file",
    "kind_of_bytes",
    "kind_of_file",
    "kinds_of",
    "knobs",
    "line_of",
    "make_folder",
    "missing_here",
    "naming_faults",
    "output_error",
    "override",
    "peak_memory_bytes",
    "physical_memory_bytes",
    "read_caches",
    "read_text",
    "source_digest",
    "to_data",
    "without_collection",
    "write_atomically",
]
