"""All classes of which a tensor expression consists, for code that writes and reads it as data."""

from __future__ import annotations

from tensorwright.base import DType, Kinds, kinds_of
from tensorwright.expr.functions import Fn
from tensorwright.expr.index.nodes import (
    And,
    Compare,
    Decision,
    Element,
    ExactDiv,
    FloorDiv,
    Max,
    Min,
    Mod,
    Not,
    Or,
    Poly,
    Relation,
    Var,
)
from tensorwright.expr.index.sizes import NamedSize
from tensorwright.expr.tensor import Axis, Combiner, Compute, Placeholder, Reduction
from tensorwright.expr.value import Apply, Cast, Const, FromIndex, Load, Select

EXPRESSION_KINDS: Kinds = kinds_of(
    *(Var, Decision, NamedSize, Poly, ExactDiv, FloorDiv, Mod, Min, Max, Element),
    *(Compare, Relation, And, Or, Not),
    *(Const, Load, FromIndex, Apply, Fn, Select, Cast),
    *(Axis, Combiner, Reduction, Placeholder, Compute, DType),
)
