"""The data of a network's tensors in an e-graph: shape, element type, whether it is constant.

    ?x of f32(1, 8, 14, 14);  ?w of f32(16, 8, 3, 3), a constant
    conv2d[1, 1, same, none](?x, ?w)     f32(1, 16, 14, 14)
    relu(?w)                             f32(16, 8, 3, 3), constant: computed once, when compiled

Extents are numbers or named sizes.  A fact about sizes holds for all of their values, so a rule is
applied only where it holds for each of them.  A term over sizes exists only if operators of
networks can compute it for all sizes.

Operators of a network that no rule covers, as operators of terms.

    word = kinds.word("softmax", (("axis", -1),))     "softmax-0"
    call[softmax-0, 0](?x)                             the first output of that operator at ?x

Equal operators with equal attributes have one word, so that equal calls of equal terms are equal.

    call[one_hot-1, 0](?i)        a row for each position, of zeros and a one

is a row selector: its product with a matrix on the right reads rows of that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from tensorwright import expr, ops
from tensorwright.base import DType, InternalError, TensorwrightError
from tensorwright.graph import typical_shape
from tensorwright.rewriting.assumptions import IllTyped
from tensorwright.rewriting.dims import Extent, Shape, Size
from tensorwright.rewriting.egraph import INPUT, Analysis, Applies, EGraph, Id, Scope, Value, listed
from tensorwright.rewriting.operators import IntShape, Step, follow, operator_named
from tensorwright.rewriting.prove import concrete_rule, longest_list, most_dimensions, reduced_at
from tensorwright.rewriting.terms import AtLeast, Divides, Equal, Fact, Param, Rule

CALL = "call"
"""The operator of terms that stands for one of a network; its parameters: a word, an output."""

ROW_SELECTOR, ROW_READER = "one_hot", "gather"
"""The operator that computes a row selector, of the values 0 and 1; the one that reads rows."""

AttributePairs = tuple[tuple[str, ops.AttributeValue], ...]


class OpaqueOperators:
    """The operators of one network that are called, each with its attributes, by their words."""

    def __init__(self) -> None:
        self._words: dict[tuple[str, str], str] = {}
        self._kinds: dict[str, tuple[str, AttributePairs]] = {}
        self._depths: dict[str, int] = {}  # of row selectors

    def word(self, operator: str, attributes: AttributePairs) -> str:
        """The word of an operator with its attributes."""
        key = (operator, repr(attributes))
        word = self._words.setdefault(key, f"{operator}-{len(self._kinds)}")
        self._kinds[word] = (operator, attributes)
        return word

    def row_selector(self, depth: int) -> str:
        """The word of a row selector for matrices with `depth` rows."""
        for word, own_depth in self._depths.items():
            if own_depth == depth:
                return word
        word = f"{ROW_SELECTOR}-{len(self._kinds)}"
        self._kinds[word] = (ROW_SELECTOR, (("depth", depth), ("axis", -1)))
        self._depths[word] = depth
        return word

    def is_row_selector(self, word: str) -> bool:
        """Whether it is one of `row_selector`."""
        return word in self._depths

    def kind(self, word: str) -> tuple[str, AttributePairs]:
        """The operator and the attributes of a word."""
        return self._kinds[word]

    def infer(
        self, word: str, given: tuple[ops.TensorType, ...]
    ) -> tuple[ops.TensorType, ...] | None:
        """The types of the outputs; None where the operator cannot be applied to these."""
        depth = self._depths.get(word)
        if depth is not None:  # positions are right that could read rows of a matrix
            rows = _inferred(
                ROW_READER, (ops.TensorType(DType.F32, (depth, 1)), *given), {"axis": 0}
            )
            return rows and (ops.TensorType(DType.F32, (*rows[0].shape[:-1], depth)),)
        operator, attributes = self._kinds[word]
        return _inferred(operator, given, dict(attributes))


def _inferred(
    operator: str, types: tuple[ops.TensorType, ...], attributes: ops.Attributes
) -> tuple[ops.TensorType, ...] | None:
    """The types of the outputs; None where the operator cannot be applied to these."""
    try:
        return ops.infer_types(operator, types, attributes)[0]
    except TensorwrightError:
        return None


MOST_DIMENSIONS = 8
"""Rules do not cover tensors with more elements."""


@dataclass(frozen=True, slots=True)
class TensorData:
    """A tensor of a network.

    shape         numbers, or named sizes
    is_constant   its value is known when the network is compiled: its extents are numbers
    selects_rows  its rows have zeros and a one at most: their product with a matrix are rows of it
    """

    shape: Shape
    dtype: DType = DType.F32
    is_constant: bool = False
    selects_rows: bool = False

    @property
    def type(self) -> ops.TensorType:
        """Its shape and its element type."""
        return ops.TensorType(self.dtype, self.shape)

    @property
    def extents(self) -> IntShape:
        """The shape, for typical values of named sizes."""
        return typical_shape(self.type)

    @property
    def elements(self) -> int:
        """How many elements it has."""
        return prod(self.extents)

    @property
    def bytes(self) -> int:
        """The bytes of its elements."""
        return self.elements * self.dtype.size_bytes


@dataclass(frozen=True, slots=True)
class TypedOperator:
    """An operator with parameters at arguments of some types."""

    operator: str
    params: tuple[Param, ...]
    args: tuple[TensorData, ...]
    result: TensorData


def has_rules(data: TensorData) -> bool:
    """Whether rules cover such a tensor."""
    if data.dtype is not DType.F32 or len(data.shape) > MOST_DIMENSIONS:
        return False
    return all(ops.is_certain(extent >= 1) for extent in data.shape)


class NetworkAnalysis(Analysis[TensorData]):
    """The data of terms over the inputs and constants of a network.

    Rules hold for numbers in f32.  They are proved for few dimensions, and applied to more where
    it follows from that (`prove/ranks.py`).
    """

    def __init__(self, inputs: Mapping[str, TensorData], opaque: OpaqueOperators) -> None:
        self._inputs = dict(inputs)
        self._opaque = opaque

    def make(
        self, operator: str, params: tuple[Param, ...], args: tuple[TensorData, ...]
    ) -> TensorData | None:
        """The tensor of an application; None where there is none."""
        if operator == INPUT:
            return self._inputs.get(str(params[0]))
        is_constant = all(arg.is_constant for arg in args)
        if operator == CALL:
            word, output = str(params[0]), params[1]
            assert isinstance(output, int), "an output is a number"
            types = self._opaque.infer(word, tuple(arg.type for arg in args))
            if types is None or output >= len(types):
                return None
            type_ = types[output]
            selects_rows = self._opaque.is_row_selector(word)
            is_known = is_constant and not type_.is_open
            return TensorData(ops.sizes_of(type_), type_.dtype, is_known, selects_rows)
        shape = self._shape(operator, params, args)
        if shape is None:
            return None
        selects_rows = (
            operator == "reshape" and args[0].selects_rows and shape[-1:] == args[0].shape[-1:]
        )
        is_open = not all(isinstance(extent, int) for extent in shape)
        made = TensorData(shape, DType.F32, is_constant and not is_open, selects_rows)
        return made if all(map(has_rules, (*args, made))) else None

    def _shape(
        self, operator: str, params: tuple[Param, ...], args: tuple[TensorData, ...]
    ) -> Shape | None:
        """The shape of an application that fits for all values of the sizes; None for another."""
        shape = self.fitting_shape(operator, params, tuple(arg.shape for arg in args))
        if shape is None:
            return None
        is_open = any(arg.type.is_open for arg in args) or ops.TensorType(DType.F32, shape).is_open
        return shape if not is_open or _is_written(operator, params, args, shape) else None

    def merge(self, kept: TensorData, lost: TensorData) -> TensorData:
        """Either: they are equal; what equals a constant is one."""
        return replace(
            kept,
            is_constant=kept.is_constant or lost.is_constant,
            selects_rows=kept.selects_rows or lost.selects_rows,
        )

    def may_merge(self, left: TensorData, right: TensorData) -> bool:
        """Whether they have one shape and one element type."""
        if left.dtype is not right.dtype or len(left.shape) != len(right.shape):
            return False
        pairs = zip(left.shape, right.shape, strict=True)
        return all(_is_certainly_equal(one, other) for one, other in pairs)

    def admits(self, rule: Rule, scope: Scope[TensorData]) -> Applies:
        """Whether the rule at these shapes follows from one of few dimensions."""
        few = rule_of_few(rule, scope)
        return few if isinstance(few, Applies) else Applies.YES

    def shape_of(self, data: TensorData) -> Shape:
        """The shape of a tensor."""
        return data.shape

    def normal(self, size: Size) -> Size:
        """A size, simplified."""
        return expr.simplify(size, {})

    def entails(self, fact: Fact) -> bool:
        """Whether a fact is true for all values of the sizes."""
        match fact:
            case Equal(left, right):
                return _is_certainly_equal(left, right)
            case AtLeast(left, right):
                return _is_certain(expr.compare(expr.Relation.LE, right, left))
            case Divides(divisor, number):
                is_divisor = _is_certain(expr.compare(expr.Relation.LE, 1, divisor))
                return is_divisor and _is_certainly_equal(number % divisor, 0)


def network_attributes(step: Step) -> ops.Attributes:
    """The attributes of a step: rules are evaluated in f64, networks are in f32."""
    return {
        key: DType.F32 if value is DType.F64 else value for key, value in step.attributes.items()
    }


def _is_certainly_equal(left: Size, right: Size) -> bool:
    return left == right or _is_certain(expr.compare(expr.Relation.EQ, left, right))


@lru_cache(maxsize=1 << 14)
def _is_certain(condition: expr.Condition) -> bool:
    """As `is_certain`; the same few questions are asked at many places of a network."""
    return ops.is_certain(condition)


def _is_written(
    operator: str, params: tuple[Param, ...], args: tuple[TensorData, ...], shape: Shape
) -> bool:
    """Whether operators of networks compute an application, with that shape as the result."""

    def applied(step: Step, types: tuple[ops.TensorType, ...]) -> ops.TensorType:
        return ops.infer_types(step.operator, types, network_attributes(step))[0][0]

    try:
        steps = operator_named(operator).meaning(params, tuple(arg.shape for arg in args))
        (made,) = follow(steps, tuple(arg.type for arg in args), applied)
    except (IllTyped, TensorwrightError):
        return False
    pairs = zip(ops.sizes_of(made), shape, strict=True)
    return all(_is_certainly_equal(one, other) for one, other in pairs)


def is_of_few(rule: Rule, values: Mapping[str, Value], shapes: Mapping[str, Shape]) -> bool:
    """Whether no tensor of an application has more dimensions than those for which it is proved."""
    lists = tuple((name, each) for name, each in values.items() if isinstance(each, tuple))
    ranks = (len(shape) for shape in shapes.values())
    return max(_longest_list(rule, lists), *ranks, 0) <= most_dimensions(rule)


@lru_cache(maxsize=1 << 12)
def _longest_list(rule: Rule, lists: tuple[tuple[str, tuple[Param, ...]], ...]) -> int:
    return longest_list(concrete_rule(rule, dict(lists)) if lists else rule)


def rule_of_few(rule: Rule, scope: Scope[TensorData]) -> Rule | Applies:
    """The rule that holds for few dimensions just where this application does, itself if it is one
    of few; NO or UNKNOWN where there is none.

    relu(concat[3](?x, ?y)) == ...  at (2, 3, 4, 5, 6), (2, 3, 4, 7, 6)
    follows from                    relu(concat[1](?x, ?y)) == ... at (24, 5, 6), (24, 7, 6)
    """
    shapes = {name: data.shape for name, data in scope.data.items()}
    if is_of_few(rule, scope.values, shapes):
        return rule
    return _rule_of_few(rule, tuple(sorted(scope.values.items())), tuple(sorted(shapes.items())))


@lru_cache(maxsize=1 << 12)
def _rule_of_few(
    rule: Rule, values: tuple[tuple[str, Value], ...], shapes: tuple[tuple[str, Shape], ...]
) -> Rule | Applies:
    try:
        given = {name: tuple(map(_in_extents, listed(value))) for name, value in values}
        opened = {name: tuple(map(_extent_in_extents, shape)) for name, shape in shapes}
    except IllTyped:
        return Applies.UNKNOWN
    return reduced_at(concrete_rule(rule, given), opened)


def _in_extents(param: Param) -> Param:
    """A parameter in the language of rules: named sizes are extents that are left open."""
    return _extent_in_extents(param) if isinstance(param, expr.IndexExpr) else param


def _extent_in_extents(size: Size) -> Size:
    """As `_in_extents`, of a size; one that is not a polynomial of sizes is left open as a whole.

    Raises:  IllTyped where it may be 0: extents in rules are positive.
    """
    atoms = {atom for monomial, _ in expr.terms_of(size) for atom in monomial}
    if all(isinstance(atom, expr.NamedSize) and atom.least >= 1 for atom in atoms):
        return expr.substitute(size, {atom: Extent(f"_{atom}:size_", 0) for atom in atoms})
    if not _is_certain(expr.compare(expr.Relation.LE, 1, size)):
        raise IllTyped(f"{size} may be 0")
    return Extent(f"_{size}:size_", 0)


class NoTermError(InternalError):
    """The counterpart of an operator of a network is ill-typed in the language of rules."""


class TermBuilder:
    """Adds terms to the e-graph of a network."""

    def __init__(self, terms: EGraph[TensorData], opaque: OpaqueOperators) -> None:
        self.terms = terms
        self.opaque = opaque

    def input(self, name: str) -> Id:
        """An input or a constant of the network."""
        return self._put(INPUT, (name,), ())

    def apply(self, operator: str, params: tuple[Param, ...], *args: Id) -> Id:
        """An application of an operator of rules.

        Raises:  NoTermError where there is no such term.
        """
        return self._put(operator, params, args)

    def call(self, word: str, output: int, args: tuple[Id, ...]) -> Id:
        """An output of an operator that no rule covers."""
        return self._put(CALL, (word, output), args)

    def shape(self, name: Id) -> Shape:
        """The shape of a term."""
        return self.terms.data(name).shape

    def reshaped(self, name: Id, shape: Shape) -> Id:
        """A term in another shape; itself if it has that."""
        return name if self.shape(name) == shape else self.apply("reshape", shape, name)

    def stretched(self, name: Id, shape: Shape) -> Id:
        """A term as NumPy broadcasts it to a shape."""
        own = self.shape(name)
        name = self.reshaped(name, (1,) * (len(shape) - len(own)) + own)
        return name if self.shape(name) == shape else self.apply("broadcast", shape, name)

    def number(self, name: Id) -> Id | None:
        """A constant of one element as a number of rank 0; None for another term."""
        data = self.terms.data(name)
        is_number = data.is_constant and data.elements == 1
        return self.reshaped(name, ()) if is_number else None

    def _put(self, operator: str, params: tuple[Param, ...], args: tuple[Id, ...]) -> Id:
        term = self.terms.put(self.terms.head(operator, params), args)
        if term is None:
            shapes = ", ".join(str(self.shape(arg)) for arg in args)
            raise NoTermError(
                stage="rewrite",
                where=f"term {operator}{list(params)}",
                reason=f"it cannot be applied to {shapes}",
            )
        return term
