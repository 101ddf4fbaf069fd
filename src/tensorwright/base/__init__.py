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
    detect_target,
)

__all__ = [
    "BYTE_LANES",
    "BYTE_TERMS",
    "DUMP_STAGES",
    "HERE",
    "KNOBS",
    "LINE_BYTES",
    "TARGETS",
    "Cache",
    "CpuTarget",
    "DType",
    "Dump",
    "ExpressionError",
    "InputError",
    "InternalError",
    "Kinds",
    "Knob",
    "MachineError",
    "ModelError",
    "OutputError",
    "Printer",
    "RecordError",
    "ScheduleError",
    "Target",
    "TensorwrightError",
    "UnsupportedError",
    "UsageError",
    "UserError",
    "atomic_writer",
    "available_cores",
    "check_fits",
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
    "kinds_of",
    "knobs",
    "make_folder",
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
