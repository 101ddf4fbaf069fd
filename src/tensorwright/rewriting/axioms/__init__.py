"""Operator properties as data (`*.rules`), their reading, and their validation.

Read `axiom.py` first, then `taso.rules`.
"""

from tensorwright.rewriting.axioms.axiom import Axiom, instances, parse_axioms
from tensorwright.rewriting.axioms.files import load_axioms, set_hash

__all__ = [
    "Axiom",
    "instances",
    "load_axioms",
    "parse_axioms",
    "set_hash",
]
