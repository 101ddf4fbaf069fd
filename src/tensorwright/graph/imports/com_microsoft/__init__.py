"""ONNX Runtime's own operators, as its optimizers and quantizers write them, in ours.

They are described in ONNX Runtime's docs/ContribOperators.md; one file per family.
"""

from tensorwright.graph.imports.call import Converter
from tensorwright.graph.imports.com_microsoft.attention import ATTENTION
from tensorwright.graph.imports.com_microsoft.fused import FUSED, NORMALIZATION
from tensorwright.graph.imports.com_microsoft.quantization import QUANTIZATION

DOMAIN = "com.microsoft"
COM_MICROSOFT: dict[str, Converter] = dict((*FUSED, *NORMALIZATION, *ATTENTION, *QUANTIZATION))
