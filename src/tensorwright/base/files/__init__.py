"""Files: their kinds, locks between processes, and writing whole files or nothing."""

from tensorwright.base.files.atomic import (
    atomic_writer,
    check_replaceable,
    make_folder,
    output_error,
    write_atomically,
)
from tensorwright.base.files.home import make_home, warn_of_cache
from tensorwright.base.files.kinds import (
    EXECUTABLE,
    EXECUTABLE_MAGIC,
    HEAD_BYTES,
    FileKind,
    kind_of_bytes,
    kind_of_file,
)
from tensorwright.base.files.lock import hold_lock, is_same_file

__all__ = [
    "EXECUTABLE",
    "EXECUTABLE_MAGIC",
    "HEAD_BYTES",
    "FileKind",
    "atomic_writer",
    "check_replaceable",
    "hold_lock",
    "is_same_file",
    "kind_of_bytes",
    "kind_of_file",
    "make_folder",
    "make_home",
    "output_error",
    "warn_of_cache",
    "write_atomically",
]
