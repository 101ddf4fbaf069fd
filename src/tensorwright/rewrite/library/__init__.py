"""The rules that ship with the package, and how they are made again.

`shipped.rules` is written by one command (`build.py`): what the presets give, and those of
`known.rules`, which is listed by hand, that the others do not imply.
"""

from tensorwright.rewrite.library.build import SOURCES, Built, Source, build_library, stages_of
from tensorwright.rewrite.library.files import (
    LibraryRule,
    known_rules,
    library_text,
    load_library,
    read_library,
    shipped_path,
)

__all__ = [
    "SOURCES",
    "Built",
    "LibraryRule",
    "Source",
    "build_library",
    "known_rules",
    "library_text",
    "load_library",
    "read_library",
    "shipped_path",
    "stages_of",
]
