"""Devices that a driver opens: NVIDIA's cards by CUDA, others by OpenCL.

cuda_cards       which card there is, and what it is as a target
cuda             memory, code, launches and a clock on it
opencl_devices   which devices there are, and what one is as a target
opencl           memory, code, launches and a clock on one
launches         what both check before a copy and a launch
"""
