"""Write graphs as ONNX models. Start with `exporter.py`; the other files are rules, one family
each.
"""

from tensorwright.graph.onnx_export.few_bit_weights import (
    FewBits, quantized_blocks, with_few_bit_weights,
)
from tensorwright.graph.onnx_export.exporter import save_onnx, save_proto, to_onnx
