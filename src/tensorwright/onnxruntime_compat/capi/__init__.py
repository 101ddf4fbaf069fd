"""Where ONNX Runtime has its errors: `capi.onnxruntime_pybind11_state.InvalidArgument`."""

from tensorwright.onnxruntime_compat.capi import onnxruntime_pybind11_state

__all__ = [
    "onnxruntime_pybind11_state",
]
