"""tensorwright: a learning tensor compiler.

    import tensorwright
    executable = tensorwright.compile("model.onnx")
    results = executable.run({"input": array})

The names below are loaded when first used, so that importing the package stays fast.
"""

import importlib
from typing import TYPE_CHECKING

from tensorwright.version import __version__

if TYPE_CHECKING:
    from tensorwright.base import DType as DType
    from tensorwright.base import Target as Target
    from tensorwright.base import TensorwrightError as TensorwrightError
    from tensorwright.base import cpu_target as cpu_target
    from tensorwright.base import override as override
    from tensorwright.drivers.optimize import optimize as optimize
    from tensorwright.drivers.tune import tune as tune

# Public name -> the module that defines it. No file of this folder may bear one of these names:
# importing a submodule binds it in the package, where it would hide the public name. That is why
# the whole pipeline on one screen is pipeline.py, and `compile` is a function in it.
_PUBLIC = {
    "DType": "tensorwright.base",
    "InputError": "tensorwright.base",
    "InternalError": "tensorwright.base",
    "MachineError": "tensorwright.base",
    "ModelError": "tensorwright.base",
    "OutputError": "tensorwright.base",
    "RecordError": "tensorwright.base",
    "ScheduleError": "tensorwright.base",
    "UnsupportedError": "tensorwright.base",
    "UsageError": "tensorwright.base",
    "UserError": "tensorwright.base",
    "ExpressionError": "tensorwright.base",
    "Executable": "tensorwright.runtime",
    "Target": "tensorwright.base",
    "TensorwrightError": "tensorwright.base",
    "compile": "tensorwright.compiling",
    "cpu_target": "tensorwright.base",
    "load": "tensorwright.runtime",
    "optimize": "tensorwright.drivers.optimize",
    "override": "tensorwright.base",
    "profile": "tensorwright.profiling",
    "program": "tensorwright.graph",
    "quantize": "tensorwright.drivers.quantize",
    "rewrite": "tensorwright.drivers.rewrite",
    "tune": "tensorwright.drivers.tune",
}

__all__ = [  # noqa: PLE0604 - computed, so that the table above is the one home
    "__version__",
    *_PUBLIC,
]


def __getattr__(name: str) -> object:
    """Load a public name from its module and keep it (PEP 562)."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
