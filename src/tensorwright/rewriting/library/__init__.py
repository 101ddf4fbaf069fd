"""The rules that ship with the package, and how they are made again.

`shipped.rules` is written by one command (`build.py`): what the presets give, and what is listed by
hand in `schemas.rules`, `constants.rules` and `known.rules` as far as the others do not imply it.
"""

from tensorwright.rewriting.library.build import build_library, stages_of
from tensorwright.rewriting.library.files import (
    LibraryRule,
    head_of,
    library_text,
    listed_rules,
    load_library,
    read_library,
    rule_lines,
    shipped_path,
)
from tensorwright.rewriting.library.own_rules import read_own_rules

__all__ = [
    "LibraryRule",
    "build_library",
    "head_of",
    "library_text",
    "listed_rules",
    "load_library",
    "read_library",
    "read_own_rules",
    "rule_lines",
    "shipped_path",
    "stages_of",
]
