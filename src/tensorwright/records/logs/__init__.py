"""The logs of other tuners. Read `log.py` first, then the file of each format."""

from tensorwright.records.logs.ansor import parse_ansor
from tensorwright.records.logs.autotvm import (
    Argument,
    AutoTvmLine,
    LoggedEntity,
    LoggedTensor,
    format_autotvm,
    parse_autotvm,
)
from tensorwright.records.logs.fields import Result
from tensorwright.records.logs.log import (
    LogFormat,
    LogLine,
    format_of,
    read_log,
    write_autotvm,
)

__all__ = [
    "Argument",
    "AutoTvmLine",
    "LogFormat",
    "LogLine",
    "LoggedEntity",
    "LoggedTensor",
    "Result",
    "format_autotvm",
    "format_of",
    "parse_ansor",
    "parse_autotvm",
    "read_log",
    "write_autotvm",
]
