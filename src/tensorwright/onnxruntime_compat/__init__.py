"""Sessions as those of ONNX Runtime, for programs that were written for it.

    from tensorwright import onnxruntime_compat as onnxruntime
    session = onnxruntime.InferenceSession("model.onnx")
    (result,) = session.run(None, {"input": array})

Read `session.py` first: a session compiles its model, or takes what was compiled before; it also
opens an executable of `tensorwright compile`. `options.py` has what ONNX Runtime is told about how
it computes (what would change answers or leave a file is done or refused, the rest has no effect),
and the errors that a program may catch. `values.py` has arrays that it binds to a session.
"""

from tensorwright.onnxruntime_compat import capi
from tensorwright.onnxruntime_compat.options import (
    ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions,
)
from tensorwright.onnxruntime_compat.session import (
    InferenceSession, ModelMetadata, disable_telemetry_events, enable_telemetry_events,
    get_all_providers, get_available_providers, get_device, get_version_string, preload_dlls,
    set_default_logger_callback, set_default_logger_severity, set_default_logger_verbosity,
    set_seed,
)
from tensorwright.onnxruntime_compat.values import IOBinding, NodeArg, OrtValue, SessionIOBinding
from tensorwright.version import __version__

__all__ = [
    "ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "IOBinding", "InferenceSession",
    "ModelMetadata", "NodeArg", "OrtValue", "RunOptions", "SessionIOBinding", "SessionOptions",
    "__version__", "capi", "disable_telemetry_events", "enable_telemetry_events",
    "get_all_providers", "get_available_providers", "get_device", "get_version_string",
    "preload_dlls", "set_default_logger_callback", "set_default_logger_severity",
    "set_default_logger_verbosity", "set_seed",
]
