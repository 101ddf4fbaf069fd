"""`library.py` writes a compiled network as a C library, which needs no Python."""

from tensorwright.artifacts.c_library.library import CLibrary, Example, prefix_of, write_c_library
from tensorwright.artifacts.c_library.open_sizes import bounded, example_sizes
