"""Converters, one file per family: the only list of the ONNX operators that we know."""

from tensorwright.graph.onnx_import.call import Converter
from tensorwright.graph.onnx_import.converters.elementwise import (
    ATTENTION, ELEMENTWISE, NORMALIZATION, REDUCTION,
)
from tensorwright.graph.onnx_import.converters.fourier import FOURIER
from tensorwright.graph.onnx_import.converters.indexing import INDEXING, SHAPE_VALUES
from tensorwright.graph.onnx_import.converters.movement import MOVEMENT, SELECTING
from tensorwright.graph.onnx_import.converters.quantization import QUANTIZATION, in_codes
from tensorwright.graph.onnx_import.converters.recurrent import DYNAMIC_LSTM, RECURRENT
from tensorwright.graph.onnx_import.converters.resizing import RESIZING
from tensorwright.graph.onnx_import.converters.windows import CONVOLUTION, POOLING
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
