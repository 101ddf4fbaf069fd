"""Converters, one file per family: the only list of the ONNX operators that we know."""

from tensorwright.graph.onnx_import.call import Converter
from tensorwright.graph.onnx_import.converters.attention import ATTENTION
from tensorwright.graph.onnx_import.converters.convolution import CONVOLUTION
from tensorwright.graph.onnx_import.converters.elementwise import ELEMENTWISE
from tensorwright.graph.onnx_import.converters.fourier import FOURIER
from tensorwright.graph.onnx_import.converters.indexing import INDEXING
from tensorwright.graph.onnx_import.converters.movement import MOVEMENT
from tensorwright.graph.onnx_import.converters.normalization import NORMALIZATION
from tensorwright.graph.onnx_import.converters.pooling import POOLING
from tensorwright.graph.onnx_import.converters.quantization import QUANTIZATION, in_codes
from tensorwright.graph.onnx_import.converters.recurrent import DYNAMIC_LSTM, RECURRENT
from tensorwright.graph.onnx_import.converters.reduction import REDUCTION
from tensorwright.graph.onnx_import.converters.resizing import RESIZING
from tensorwright.graph.onnx_import.converters.selecting import SELECTING
from tensorwright.graph.onnx_import.converters.shape_values import SHAPE_VALUES
from tensorwright.graph.onnx_import.counterparts import ALIKE

AT_IMPORT: dict[str, Converter] = dict(SHAPE_VALUES)
CONVERTERS: dict[str, Converter] = dict(
    (
        *ALIKE,
        *ELEMENTWISE,
        *CONVOLUTION,
        *POOLING,
        *NORMALIZATION,
        *REDUCTION,
        *MOVEMENT,
        *INDEXING,
        *SELECTING,
        *FOURIER,
        *ATTENTION,
        *QUANTIZATION,
        *RESIZING,
        *RECURRENT,
    )
)

__all__ = ["AT_IMPORT", "CONVERTERS", "DYNAMIC_LSTM", "in_codes"]
