"""Operator properties as data (`*.rules`), and their reading.

Read `axiom.py` first, then `taso.rules`.
"""

from tensorwright.rewriting.axioms.axiom import (
    Axiom, instances, load_axioms, parse_axioms, set_hash,
)
