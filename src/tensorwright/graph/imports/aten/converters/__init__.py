"""Converters, one file for each family; `CONVERTERS` lists all supported ATen operators."""

from tensorwright.graph.imports.promotion import ALIKE
from tensorwright.graph.imports.aten.converters.elementwise import ELEMENTWISE
from tensorwright.graph.imports.aten.converters.indexing import INDEXING
from tensorwright.graph.imports.aten.converters.movement import MOVEMENT
from tensorwright.graph.imports.aten.converters.normalization import NORMALIZATION
from tensorwright.graph.imports.aten.converters.windows import LINEAR, WINDOWS
from tensorwright.graph.imports.call import Converter

CONVERTERS: dict[str, Converter] = dict(
    (*ALIKE, *ELEMENTWISE, *LINEAR, *NORMALIZATION, *MOVEMENT, *INDEXING, *WINDOWS)
)
