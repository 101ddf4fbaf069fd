"""If, Loop and Scan. Read `conversion.py` first."""

from tensorwright.graph.onnx_import.control_flow.bodies import Body, Captured, Inside, Nested
from tensorwright.graph.onnx_import.control_flow.conversion import CONTROL_FLOW
from tensorwright.graph.onnx_import.control_flow.trips import Trips, loop_sizes, size_of_loop

__all__ = [
    "CONTROL_FLOW",
    "Body",
    "Captured",
    "Inside",
    "Nested",
    "Trips",
    "loop_sizes",
    "size_of_loop",
]
