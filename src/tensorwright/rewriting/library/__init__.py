"""The rules that ship with the package.

`tensorwright rules generate --shipped` writes `shipped.rules`: what the presets of the laboratory
give, and what is listed by hand in `schemas.rules`, `constants.rules` and `known.rules` as far as
the others do not imply it.
"""

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
    "head_of",
    "library_text",
    "listed_rules",
    "load_library",
    "read_library",
    "read_own_rules",
    "rule_lines",
    "shipped_path",
]
