"""Converters, one file for each family; `CONVERTERS` lists all supported ATen operators."""

from tensorwright.graph.aten_import.call import Converter
from tensorwright.graph.aten_import.converters.elementwise import ELEMENTWISE
from tensorwright.graph.aten_import.converters.indexing import INDEXING
from tensorwright.graph.aten_import.converters.linear import LINEAR
from tensorwright.graph.aten_import.converters.movement import MOVEMENT
from tensorwright.graph.aten_import.converters.normalization import NORMALIZATION
from tensorwright.graph.aten_import.converters.windows import WINDOWS
from tensorwright.graph.aten_import.counterparts import ALIKE

CONVERTERS: dict[str, Converter] = dict(
    (*ALIKE, *ELEMENTWISE, *LINEAR, *NORMALIZATION, *MOVEMENT, *INDEXING, *WINDOWS)
)

__all__ = ["CONVERTERS"]
