"""The vocabulary of every stage: element types, targets, settings, errors, printing, files.

Read errors.py first, then knobs.py and targets/.
"""

from tensorwright.base import knobs
from tensorwright.base.cpu_targets import (
    CPU_TARGETS, LEAST_MATRIX_ROWS, MOST_PACKED_ROWS, SHORT_PRODUCTS, ByKind, CpuTarget,
    ShortProduct, Speeds, TargetKind, TargetProtocol, detect_target, multiplies_tiles, of_kind,
    short_product,
)
from tensorwright.base.errors import (
    ERROR_KINDS, Advice, ExpressionError, InputError, InternalError, MachineError, ModelError,
    OutputError, RecordError, ScheduleError, TensorwrightError, UnsupportedError, UsageError,
    UserError, did_you_mean, line_of, naming_faults, sizes_advice, unknown_name,
)
from tensorwright.base.files import (
    EXECUTABLE, EXECUTABLE_MAGIC, GGUF, HEAD_BYTES, Kinds, atomic_writer, check_replaceable,
    from_data, hold_home_lock, kind_of_bytes, kind_of_file, kinds_of, make_folder,
    make_home, now_utc, output_error, to_data, warn_of_cache, write_atomically,
)
from tensorwright.base.gpu_targets import (
    GPU_TARGETS, ON_PROCESSOR, ON_THREADS, TARGETS, GpuApi, GpuTarget, Grid, Launch, Target,
    Threads, check_runs_here, cpu_target, missing_here, parse_target,
)
from tensorwright.base.knobs import (
    DUMP_STAGES, KNOBS, Knob, find_knob, option, options_of, override, takes_options,
)
from tensorwright.base.machines import (
    ASSUMED, LINE_BYTES, AssumedMachine, Cache, available_cores, cpu_quota, read_arm_flags,
    read_caches, read_flags, read_text,
)
from tensorwright.base.printing import (
    HERE, Dump, Printer, collect_dumps, dump, dump_subject, is_dumped, timed_stage,
)
from tensorwright.base.size_text import (
    Amount, Formula, SizeBounds, SizeOperations, amount_at, batch_sizes, number_in,
    product_of_amounts, read_size, sizes_text, usual_numbers, whole_numbers,
)
from tensorwright.base.sources import (
    EXTENSIONS, LABORATORY, SUITE_LOADERS, LaboratoryPart, digest_of_bytes, digest_of_file,
    has_laboratory, on_all_cores, package_digest, require_laboratory, source_digest,
)
from tensorwright.base.tensors import (
    ALIGNMENT, HUGE_PAGE_BYTES, Array, AttributeValue, Attributes, DType, HostFunction, Maker,
    OpenSize, Role, Shape, TensorType, UndecidedError, check_fits, empty, empty_bytes,
    keep_freed_memory, physical_memory_bytes, without_collection,
)
