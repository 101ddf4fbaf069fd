"""Run networks that tensorwright compiled.

import tensorwright_runtime
executable = tensorwright_runtime.load("model.tw")
results = executable.run({"input": array})
"""

from tensorwright_runtime.base import (
    DType,
    InputError,
    InternalError,
    MachineError,
    ModelError,
    TensorwrightError,
    UnsupportedError,
    UsageError,
    UserError,
    override,
)
from tensorwright_runtime.runtime import Executable, empty, load
from tensorwright_runtime.version import __version__

__all__ = [
    "DType",
    "Executable",
    "InputError",
    "InternalError",
    "MachineError",
    "ModelError",
    "TensorwrightError",
    "UnsupportedError",
    "UsageError",
    "UserError",
    "__version__",
    "empty",
    "load",
    "override",
]
