"""If, Loop and Scan. Read `conversion.py` first."""

from tensorwright.graph.onnx_import.control_flow.bodies import Body, Captured, Inside, Nested
from tensorwright.graph.onnx_import.control_flow.conversion import CONTROL_FLOW

__all__ = ["CONTROL_FLOW", "Body", "Captured", "Inside", "Nested"]
