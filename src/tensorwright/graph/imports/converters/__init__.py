"""Converters, one file per family: the only list of the ONNX operators that we know."""

from tensorwright.graph.imports.call import Converter
from tensorwright.graph.imports.converters.elementwise import (
    ATTENTION, ELEMENTWISE, NORMALIZATION, REDUCTION,
)
from tensorwright.graph.imports.converters.fourier import FOURIER
from tensorwright.graph.imports.converters.indexing import INDEXING, SHAPE_VALUES
from tensorwright.graph.imports.converters.movement import MOVEMENT, SELECTING
from tensorwright.graph.imports.converters.quantization import QUANTIZATION, in_codes
from tensorwright.graph.imports.converters.recurrent import DYNAMIC_LSTM, RECURRENT
from tensorwright.graph.imports.converters.resizing import RESIZING
from tensorwright.graph.imports.converters.windows import CONVOLUTION, POOLING
from tensorwright.graph.imports.counterparts import ALIKE

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
