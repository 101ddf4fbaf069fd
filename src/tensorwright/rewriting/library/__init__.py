"""The rules that ship with the package.

`tensorwright rules generate --shipped` writes `shipped.rules`: the rules of the laboratory's
presets, and those rules of the hand-written `schemas.rules`, `constants.rules` and `known.rules`
that the others do not imply.
"""

from tensorwright.rewriting.library.own_rules import (
    LibraryRule, head_of, library_text, listed_rules, load_library, read_library, read_own_rules,
    rule_lines, shipped_path,
)
