"""OpenCL back end: loop programs to OpenCL C, which the driver of the device compiles."""

from tensorwright.codegen.opencl.dialect import OPENCL

__all__ = ["OPENCL"]
