"""Tensor expressions. Read `tensor.py` first, then `value.py` and `index/nodes.py`.

`index/` is the algebra of extents, indices and conditions on them; `evaluation/evaluate.py` gives
expressions a meaning over a number domain (`domain.py`); `building.py` is how they are
written, and refuses those without a meaning.

`from tensorwright.expr import *` gives the words in which a user writes expressions. The other
names, imported `X as X`, are for the stages of the compiler.
"""

from tensorwright.expr.binding import (
    bind_tensors, extents_of_tensors, indices_of_tensors, is_joined_shape, is_one_position,
    join_open_axes, map_indices, sizes_of_tensors,
)
from tensorwright.expr.building import (
    abs_, all_over, any_over, argmax_over, argmin_over, bit_and, bit_not, bit_or, bit_xor, ceil,
    clip, compute, cos, equal, erf, exp, expm1, floor, floordiv, floormod, fmod, is_inf, is_nan,
    log, log1p, logical_and, logical_not, logical_or, logical_xor, max_of, max_over, min_of,
    min_over, not_equal, placeholder, pow_, prod_over, reduce_axis, relu, round_, rsqrt, shift_left,
    shift_right, sigmoid, sign, sin, sqrt, sum_over, tan, tanh, trunc,
)
from tensorwright.expr.canonical import EXPRESSION_KINDS, canonical_text
from tensorwright.expr.evaluation.contraction import evaluate_condition, evaluate_index
from tensorwright.expr.evaluation.domain import (
    NUMPY, TRANSCENDENTAL, Array, Domain, SymbolicDomain, folded_last,
)
from tensorwright.expr.evaluation.evaluate import Prepared, evaluate
from tensorwright.expr.functions import Fn
from tensorwright.expr.index.bounds import interval, is_nonnegative
from tensorwright.expr.index.nodes import (
    And, Compare, Condition, Decision, Element, ExactDiv, FloorDiv, Index, IndexExpr, Max, Min, Mod,
    Not, Or, Poly, Relation, Symbol, Var, ceil_div, compare, divide_terms, exact_div, floor_div,
    is_same, maximum, minimum, mod, of_terms, parts_of, sum_of, terms_of,
)
from tensorwright.expr.index.ranges import Bounds, Range, limited, narrowed, ranges_in
from tensorwright.expr.index.simplify import simplify, simplify_condition, without_division
from tensorwright.expr.index.sizes import (
    NamedSize, counted_size, named_size, named_sizes_of, parse_named_size, parse_size, room_for,
    solved_size, with_sizes,
)
from tensorwright.expr.index.traversal import (
    Arithmetic, all_of, any_of, atoms_of, comparisons_of, condition_sides, conjuncts, decisions_of,
    free_vars, gap_of, has_element, limits_of, map_comparisons, map_condition, map_elements, negate,
    replace_parts, substitute, substitute_condition, symbols_of, value_of_node,
)
from tensorwright.expr.tensor import (
    Axis, Combiner, Compute, Placeholder, Reduce, Reduction, Tensor, at_position,
    decompose_arg_reduction, identity_of, multiplied_loads, topological_order,
)
from tensorwright.expr.value import (
    Apply, Cast, Const, FromIndex, Load, Select, Value, ValueExpr, apply, cast, children, constant,
    factors_of, index_tensors_of, indices_of, loads_of, map_loads, rebuild, select,
    substitute_value, values_below, variables_of,
)

__all__ = [
    "Axis", "Compute", "Condition", "Index", "Placeholder", "Tensor", "Value", "abs_", "all_of",
    "all_over", "any_of", "any_over", "argmax_over", "argmin_over", "bit_and", "bit_not", "bit_or",
    "bit_xor", "cast", "ceil", "ceil_div", "clip", "compute", "constant", "cos", "equal", "erf",
    "evaluate", "exp", "expm1", "floor", "floordiv", "floormod", "fmod", "is_inf", "is_nan", "log",
    "log1p", "logical_and", "logical_not", "logical_or", "logical_xor", "max_of", "max_over",
    "maximum", "min_of", "min_over", "minimum", "named_size", "negate", "not_equal", "placeholder",
    "pow_", "prod_over", "reduce_axis", "relu", "round_", "rsqrt", "select", "shift_left",
    "shift_right", "sigmoid", "sign", "sin", "sqrt", "sum_over", "tan", "tanh", "trunc",
]
