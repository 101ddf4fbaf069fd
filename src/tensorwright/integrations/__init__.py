"""Doors for other programs into the compiler. Each is a module that its user names.

`onnx_backend.py`: the interface that the onnx package asks of a backend.
`pytorch/`: exported programs, and the backend of torch.compile.
"""
