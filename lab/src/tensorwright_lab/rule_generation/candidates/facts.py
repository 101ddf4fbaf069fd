"""The facts of an enumeration about applications, as arrays that a file can hold.

    facts = facts_of(enumeration, forms)     columns of classes and of equalities
    restored(facts.arrays())                 the same, in another process

Processes that share files with the client read them: pruning looks at all applications, so they
cannot travel with each unit.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tensorwright.rewriting.operators import IntShape
from tensorwright_lab.rule_generation.enumerate.checkpoint import Arrays
from tensorwright_lab.rule_generation.enumerate.classes import Applied, Ints, Places
from tensorwright_lab.rule_generation.enumerate.enumerate import Enumeration
from tensorwright_lab.rule_generation.operator_facts import facts_of_operator


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Applications: operators with their parameters, and the classes of the arguments."""

    code: Ints
    cut: Ints
    a: Ints
    b: Ints

    def at(self, row: int) -> Applied:
        """The application in a row."""
        code, cut = self.code.item(row), self.cut.item(row)
        return code, cut, self.a.item(row), self.b.item(row)


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """Classes and equalities; both are rows of columns.

    terms, kind, cost    of each class: its term, what it is, its operators
    equal, of, level     of each equality: the application, its class, where it was found
    form                 of each equality: which one it is up to renaming, see `DistinctEqualities`
    shapes               of each kind           commutes   of each code, whether operands may turn
    inputs               how many classes are inputs of the preset
    depth                levels of the enumeration
    """

    terms: Columns
    kind: Ints
    cost: NDArray[np.int8]
    equal: Columns
    of: Places
    level: NDArray[np.int8]
    form: Places
    shapes: tuple[IntShape, ...]
    commutes: tuple[bool, ...]
    inputs: int
    depth: int

    def arrays(self) -> Arrays:
        """All as arrays by name."""
        about = [self.shapes, self.commutes, self.inputs, self.depth]
        arrays: Arrays = {name: getattr(self, name) for name in _OWN}
        for name in ("terms", "equal"):
            columns = getattr(self, name)
            arrays |= {f"{name}_{each}": getattr(columns, each) for each in _COLUMNS}
        return arrays | {"about": np.frombuffer(json.dumps(about).encode(), np.uint8)}


_OWN = ("kind", "cost", "of", "level", "form")
_COLUMNS = ("code", "cut", "a", "b")


def facts_of(enumeration: Enumeration, forms: Places) -> Facts:
    """The facts of an enumeration; `forms` as `DistinctEqualities.which`."""
    terms, equal = (
        Columns(*(getattr(source, name) for name in _COLUMNS))
        for source in (enumeration.table, enumeration.equal.batch)
    )
    operators = (each.operator for each in enumeration.preset.applications)
    return Facts(
        terms,
        enumeration.table.kind,
        enumeration.table.cost,
        equal,
        enumeration.equal.of,
        enumeration.levels,
        forms,
        tuple(kind.shape for kind in enumeration.table.kinds),
        tuple(facts_of_operator(name).is_commutative for name in operators),
        len(enumeration.preset.inputs),
        len(enumeration.applications),
    )


def restored(arrays: Arrays) -> Facts:
    """The inverse of `Facts.arrays`."""
    shapes, commutes, inputs, depth = json.loads(arrays["about"].tobytes())
    terms, equal = (
        Columns(*(arrays[f"{name}_{each}"] for each in _COLUMNS)) for name in ("terms", "equal")
    )
    kind, cost, of, level, form = (arrays[name] for name in _OWN)
    about = (tuple(map(tuple, shapes)), tuple(commutes), inputs, depth)
    return Facts(terms, kind, cost, equal, of, level, form, *about)
