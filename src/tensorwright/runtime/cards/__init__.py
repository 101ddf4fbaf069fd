"""Devices that a driver opens: NVIDIA's cards by CUDA, others by OpenCL.

cuda_cards       the card of this machine, and its target
cuda             memory, code, launches and the clock of a card
opencl_devices   the OpenCL devices of this machine, and their targets
opencl           memory, code, launches and the clock of an OpenCL device
launches         copies, launches and timed calls of both
"""
