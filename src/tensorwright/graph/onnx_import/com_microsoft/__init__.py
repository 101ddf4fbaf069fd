"""ONNX Runtime's own operators, as its optimizers and quantizers write them, in ours.

They are described in ONNX Runtime's docs/ContribOperators.md; one file per family.
"""

from tensorwright.graph.onnx_import.call import Converter
from tensorwright.graph.onnx_import.com_microsoft.attention import ATTENTION
from tensorwright.graph.onnx_import.com_microsoft.fused import FUSED
from tensorwright.graph.onnx_import.com_microsoft.normalization import NORMALIZATION
from tensorwright.graph.onnx_import.com_microsoft.quantization import QUANTIZATION

DOMAIN = "com.microsoft"
COM_MICROSOFT: dict[str, Converter] = dict((*FUSED, *NORMALIZATION, *ATTENTION, *QUANTIZATION))

__all__ = ["COM_MICROSOFT", "DOMAIN"]
