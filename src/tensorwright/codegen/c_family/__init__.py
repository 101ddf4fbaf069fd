"""Loop programs to text in languages of the C family: one walker, a dialect for each language.

Read `dialect.py` first: what the languages write differently. The walker is `statements.py`,
`values.py`, `operations.py` and `helpers.py`; the functions that a language lacks are in
`helpers.py`. Programs for graphics processors are written by `grid_kernel.py` and
`grid_statements.py`.
"""

from tensorwright.codegen.c_family.dialect import (
    INTEGER_BITS, LANGUAGE_NAMES, LIBRARY_NAMES, Dialect, GridWords, Names, Vectors,
)
from tensorwright.codegen.c_family.grid_kernel import emit_grid
from tensorwright.codegen.c_family.helpers import Helpers
from tensorwright.codegen.c_family.statements import Statements, function_text
from tensorwright.codegen.c_family.values import Piece, Tile
