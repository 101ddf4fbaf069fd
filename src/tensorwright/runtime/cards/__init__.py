"""Devices that a driver opens: NVIDIA's cards by CUDA, others by OpenCL.

cuda_cards   the card of this machine, and its target
cuda         memory, code, launches and the clock of a card
opencl       the OpenCL devices of this machine; memory, code, launches and the clock of one
launches     copies, launches and timed calls of both
"""
