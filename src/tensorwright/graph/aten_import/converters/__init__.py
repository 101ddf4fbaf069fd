"""Converters, one file for each family; `CONVERTERS` lists all supported ATen operators."""

from tensorwright.graph.aten_import.call import ALIKE
from tensorwright.graph.aten_import.converters.elementwise import ELEMENTWISE
from tensorwright.graph.aten_import.converters.indexing import INDEXING
from tensorwright.graph.aten_import.converters.movement import MOVEMENT
from tensorwright.graph.aten_import.converters.normalization import NORMALIZATION
from tensorwright.graph.aten_import.converters.windows import LINEAR, WINDOWS
from tensorwright.graph.onnx_import.call import Converter

CONVERTERS: dict[str, Converter] = dict(
    (*ALIKE, *ELEMENTWISE, *LINEAR, *NORMALIZATION, *MOVEMENT, *INDEXING, *WINDOWS)
)
