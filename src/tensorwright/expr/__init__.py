"""Tensor expressions. Read `tensor.py` first, then `value.py` and `index/nodes.py`.

`index/` is the algebra of extents, indices and conditions on them; `evaluation/evaluate.py` gives
expressions a meaning over a number domain (`domain.py`); `building/compute.py` is how they are
written, and refuses those without a meaning.

`from tensorwright.expr import *` gives the words in which a user writes expressions. The other
names, imported `X as X`, are for the stages of the compiler.
"""

from tensorwright.expr.binding import bind_tensors as bind_tensors
from tensorwright.expr.binding import sizes_of_tensors as sizes_of_tensors
from tensorwright.expr.building.compute import (
    all_over,
    any_over,
    argmax_over,
    argmin_over,
    compute,
    max_over,
    min_over,
    placeholder,
    prod_over,
    reduce_axis,
    sum_over,
)
from tensorwright.expr.building.intrinsics import (
    abs_,
    bit_and,
    bit_not,
    bit_or,
    bit_xor,
    ceil,
    clip,
    cos,
    equal,
    erf,
    exp,
    expm1,
    floor,
    floordiv,
    floormod,
    fmod,
    is_inf,
    is_nan,
    log,
    log1p,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    max_of,
    min_of,
    not_equal,
    pow_,
    relu,
    round_,
    rsqrt,
    shift_left,
    shift_right,
    sigmoid,
    sign,
    sin,
    sqrt,
    tan,
    tanh,
    trunc,
)
from tensorwright.expr.canonical import canonical_text as canonical_text
from tensorwright.expr.evaluation.domain import Array as Array
from tensorwright.expr.evaluation.domain import Domain as Domain
from tensorwright.expr.evaluation.evaluate import Prepared as Prepared
from tensorwright.expr.evaluation.evaluate import evaluate
from tensorwright.expr.evaluation.field_domain import FieldDomain as FieldDomain
from tensorwright.expr.evaluation.field_domain import residues as residues
from tensorwright.expr.evaluation.numpy_domain import NUMPY as NUMPY
from tensorwright.expr.evaluation.numpy_domain import TRANSCENDENTAL as TRANSCENDENTAL
from tensorwright.expr.evaluation.points import evaluate_condition as evaluate_condition
from tensorwright.expr.evaluation.points import evaluate_index as evaluate_index
from tensorwright.expr.evaluation.symbolic_domain import SymbolicDomain as SymbolicDomain
from tensorwright.expr.functions import Fn as Fn
from tensorwright.expr.index.arithmetic import Arithmetic as Arithmetic
from tensorwright.expr.index.arithmetic import value_of_node as value_of_node
from tensorwright.expr.index.bounds import interval as interval
from tensorwright.expr.index.bounds import is_nonnegative as is_nonnegative
from tensorwright.expr.index.condition import all_of, any_of, negate
from tensorwright.expr.index.condition import comparisons_of as comparisons_of
from tensorwright.expr.index.condition import condition_sides as condition_sides
from tensorwright.expr.index.condition import conjuncts as conjuncts
from tensorwright.expr.index.condition import gap_of as gap_of
from tensorwright.expr.index.condition import limits_of as limits_of
from tensorwright.expr.index.condition import map_comparisons as map_comparisons
from tensorwright.expr.index.condition import map_condition as map_condition
from tensorwright.expr.index.nodes import And as And
from tensorwright.expr.index.nodes import Compare as Compare
from tensorwright.expr.index.nodes import Condition, Index, ceil_div, maximum, minimum
from tensorwright.expr.index.nodes import Decision as Decision
from tensorwright.expr.index.nodes import Element as Element
from tensorwright.expr.index.nodes import ExactDiv as ExactDiv
from tensorwright.expr.index.nodes import FloorDiv as FloorDiv
from tensorwright.expr.index.nodes import IndexExpr as IndexExpr
from tensorwright.expr.index.nodes import Max as Max
from tensorwright.expr.index.nodes import Min as Min
from tensorwright.expr.index.nodes import Mod as Mod
from tensorwright.expr.index.nodes import Not as Not
from tensorwright.expr.index.nodes import Or as Or
from tensorwright.expr.index.nodes import Poly as Poly
from tensorwright.expr.index.nodes import Relation as Relation
from tensorwright.expr.index.nodes import Symbol as Symbol
from tensorwright.expr.index.nodes import Var as Var
from tensorwright.expr.index.nodes import compare as compare
from tensorwright.expr.index.nodes import divide_terms as divide_terms
from tensorwright.expr.index.nodes import exact_div as exact_div
from tensorwright.expr.index.nodes import floor_div as floor_div
from tensorwright.expr.index.nodes import is_same as is_same
from tensorwright.expr.index.nodes import mod as mod
from tensorwright.expr.index.nodes import of_terms as of_terms
from tensorwright.expr.index.nodes import parts_of as parts_of
from tensorwright.expr.index.nodes import sum_of as sum_of
from tensorwright.expr.index.nodes import terms_of as terms_of
from tensorwright.expr.index.ranges import Bounds as Bounds
from tensorwright.expr.index.ranges import Range as Range
from tensorwright.expr.index.ranges import limited as limited
from tensorwright.expr.index.ranges import narrowed as narrowed
from tensorwright.expr.index.ranges import ranges_in as ranges_in
from tensorwright.expr.index.simplify import simplify as simplify
from tensorwright.expr.index.simplify import simplify_condition as simplify_condition
from tensorwright.expr.index.simplify import without_division as without_division
from tensorwright.expr.index.sizes import NamedSize as NamedSize
from tensorwright.expr.index.sizes import counted_size as counted_size
from tensorwright.expr.index.sizes import named_size
from tensorwright.expr.index.sizes import named_sizes_of as named_sizes_of
from tensorwright.expr.index.sizes import parse_named_size as parse_named_size
from tensorwright.expr.index.sizes import parse_size as parse_size
from tensorwright.expr.index.sizes import room_for as room_for
from tensorwright.expr.index.sizes import solved_size as solved_size
from tensorwright.expr.index.sizes import with_sizes as with_sizes
from tensorwright.expr.index.traversal import atoms_of as atoms_of
from tensorwright.expr.index.traversal import decisions_of as decisions_of
from tensorwright.expr.index.traversal import free_vars as free_vars
from tensorwright.expr.index.traversal import has_element as has_element
from tensorwright.expr.index.traversal import map_elements as map_elements
from tensorwright.expr.index.traversal import replace_parts as replace_parts
from tensorwright.expr.index.traversal import substitute as substitute
from tensorwright.expr.index.traversal import substitute_condition as substitute_condition
from tensorwright.expr.index.traversal import symbols_of as symbols_of
from tensorwright.expr.join import is_joined_shape as is_joined_shape
from tensorwright.expr.join import is_one_position as is_one_position
from tensorwright.expr.join import join_open_axes as join_open_axes
from tensorwright.expr.kinds import EXPRESSION_KINDS as EXPRESSION_KINDS
from tensorwright.expr.tensor import Axis, Compute, Placeholder, Tensor
from tensorwright.expr.tensor import Combiner as Combiner
from tensorwright.expr.tensor import Reduce as Reduce
from tensorwright.expr.tensor import Reduction as Reduction
from tensorwright.expr.tensor import at_position as at_position
from tensorwright.expr.tensor import decompose_arg_reduction as decompose_arg_reduction
from tensorwright.expr.tensor import identity_of as identity_of
from tensorwright.expr.tensor import multiplied_loads as multiplied_loads
from tensorwright.expr.tensor import topological_order as topological_order
from tensorwright.expr.value import Apply as Apply
from tensorwright.expr.value import Cast as Cast
from tensorwright.expr.value import Const as Const
from tensorwright.expr.value import FromIndex as FromIndex
from tensorwright.expr.value import Load as Load
from tensorwright.expr.value import Select as Select
from tensorwright.expr.value import Value, cast, constant, select
from tensorwright.expr.value import ValueExpr as ValueExpr
from tensorwright.expr.value import apply as apply
from tensorwright.expr.value import children as children
from tensorwright.expr.value import factors_of as factors_of
from tensorwright.expr.value import index_tensors_of as index_tensors_of
from tensorwright.expr.value import indices_of as indices_of
from tensorwright.expr.value import loads_of as loads_of
from tensorwright.expr.value import map_loads as map_loads
from tensorwright.expr.value import rebuild as rebuild
from tensorwright.expr.value import substitute_value as substitute_value
from tensorwright.expr.value import values_below as values_below
from tensorwright.expr.value import variables_of as variables_of

__all__ = [
    "Axis",
    "Compute",
    "Condition",
    "Index",
    "Placeholder",
    "Tensor",
    "Value",
    "abs_",
    "all_of",
    "all_over",
    "any_of",
    "any_over",
    "argmax_over",
    "argmin_over",
    "bit_and",
    "bit_not",
    "bit_or",
    "bit_xor",
    "cast",
    "ceil",
    "ceil_div",
    "clip",
    "compute",
    "constant",
    "cos",
    "equal",
    "erf",
    "evaluate",
    "exp",
    "expm1",
    "floor",
    "floordiv",
    "floormod",
    "fmod",
    "is_inf",
    "is_nan",
    "log",
    "log1p",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "max_of",
    "max_over",
    "maximum",
    "min_of",
    "min_over",
    "minimum",
    "named_size",
    "negate",
    "not_equal",
    "placeholder",
    "pow_",
    "prod_over",
    "reduce_axis",
    "relu",
    "round_",
    "rsqrt",
    "select",
    "shift_left",
    "shift_right",
    "sigmoid",
    "sign",
    "sin",
    "sqrt",
    "sum_over",
    "tan",
    "tanh",
    "trunc",
]
