"""A compiled network as a C library that needs no Python: `library.py` writes it."""

from tensorwright.build.c_library.library import CLibrary, write_c_library

__all__ = ["CLibrary", "write_c_library"]
