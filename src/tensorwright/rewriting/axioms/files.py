"""The axioms that ship with the package.

load_axioms()                     the axioms of taso.rules, then of the other files
set_hash(load_axioms())           eight digits that change when an axiom does
instances(load_axioms())          by name: {"relu-relu": (relu-relu,), ...}
"""

from __future__ import annotations

import hashlib
from functools import cache, lru_cache
from pathlib import Path

from tensorwright.rewriting.axioms.axiom import Axiom, parse_axioms

AXIOM_FILES = ("taso", "full", "functions", "folds", "reshapes")
"""In order: TASO's operators, then the others and their laws with those before."""


@cache
def load_axioms() -> tuple[Axiom, ...]:
    """The axioms of the files of this folder."""
    folder = Path(__file__).parent
    axioms: list[Axiom] = []
    for name in AXIOM_FILES:
        path = folder / f"{name}.rules"
        axioms.extend(parse_axioms(path.read_text(encoding="utf-8"), path.name))
    return tuple(axioms)


@lru_cache(maxsize=16)
def set_hash(axioms: tuple[Axiom, ...]) -> str:
    """Eight hexadecimal digits that change when an axiom does, but not with the order of axioms.

    Kept by the identity of the axioms, which do not change.
    """
    lines = sorted({str(axiom) for axiom in axioms})
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:8]
