"""OpenCL back end: loop programs to OpenCL C, which the driver of the device compiles."""

__all__ = []
