"""CUDA back end: loop programs to CUDA C, and by NVRTC to machine code; no card is needed."""

from tensorwright.codegen.cuda.dialect import CUDA
from tensorwright.codegen.cuda.nvrtc import find_nvrtc

__all__ = ["CUDA", "find_nvrtc"]
