"""Converters, one file for each family of operators; the tables list all that we know.

A name stands for a converter in `ONNX` or `ATEN`; a row of a table may have several names.
"""

from tensorwright.graph.imports.call import Converter, Table
from tensorwright.graph.imports.converters.elementwise import ATEN_ELEMENTWISE, ELEMENTWISE
from tensorwright.graph.imports.converters.fourier import FOURIER
from tensorwright.graph.imports.converters.indexing import ATEN_INDEXING, INDEXING
from tensorwright.graph.imports.converters.movement import ATEN_MOVEMENT, MOVEMENT
from tensorwright.graph.imports.converters.normalization import (
    ATEN_NORMALIZATION, NORMALIZATION, REDUCTION,
)
from tensorwright.graph.imports.converters.parts import ATEN_PARTS, PARTS
from tensorwright.graph.imports.converters.products import ATEN_PRODUCTS, ATTENTION
from tensorwright.graph.imports.converters.quantization import QUANTIZATION, in_codes
from tensorwright.graph.imports.converters.recurrent import (
    ATEN_RECURRENT, DYNAMIC_LSTM, RECURRENT,
)
from tensorwright.graph.imports.converters.resizing import ATEN_RESIZING, RESIZING
from tensorwright.graph.imports.converters.selecting import SELECTING
from tensorwright.graph.imports.converters.values import ATEN_VALUES, SHAPE_VALUES
from tensorwright.graph.imports.converters.windows import ATEN_WINDOWS, CONVOLUTION, POOLING
from tensorwright.graph.imports.counterparts import ALIKE, ATEN_ALIKE


def _by_name(*tables: Table) -> dict[str, Converter]:
    return {name: each for table in tables for names, each in table for name in names.split()}


AT_IMPORT = _by_name(SHAPE_VALUES)
CONVERTERS = _by_name(
    *(ALIKE, ELEMENTWISE, CONVOLUTION, POOLING, NORMALIZATION, REDUCTION, MOVEMENT, PARTS),
    *(INDEXING, SELECTING, FOURIER, ATTENTION, QUANTIZATION, RESIZING, RECURRENT),
)
ATEN = _by_name(
    *(ATEN_ALIKE, ATEN_ELEMENTWISE, ATEN_PRODUCTS, ATEN_NORMALIZATION, ATEN_MOVEMENT, ATEN_PARTS),
    *(ATEN_INDEXING, ATEN_VALUES, ATEN_WINDOWS, ATEN_RESIZING, ATEN_RECURRENT),
)
