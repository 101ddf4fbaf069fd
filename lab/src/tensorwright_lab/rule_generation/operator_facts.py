"""What the generator knows of an operator beside its record.

facts_of_operator("relu").structure         POINTWISE: for fingerprints
facts_of_operator("ewadd").is_commutative   one order of the operands is tried
size_guess("split0", "at")                  SPLIT: where a rule of all sizes probably splits
systematic_name(rule)                       relu-transpose-to-transpose-relu

An operator without facts is evaluated as it is, and its result counts as not put together.

The split points of a result are the positions, in each dimension in rising order, at which the
generator splits it: where tensors were put together.

    concat[0](a, b), a (2, 3), b (4, 3)         ((2,), ())     split in rows before row 2
    relu of it                                  ((2,), ())     element-wise operators keep them
    matmul(concat[0](a, b), w)                  ((2,), ())     rows of the left argument
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TypeAlias

from tensorwright.rewriting.assumptions import Params, Shapes
from tensorwright.rewriting.dims import Size
from tensorwright.rewriting.operators import FUNCTIONS, PAIRS, operator_named, size
from tensorwright.rewriting.operators.parameters import number
from tensorwright.rewriting.terms import Apply, Rule, Term, applications, canonical_rule
from tensorwright.rewriting.text import rule_text

SplitPoints: TypeAlias = tuple[tuple[Size, ...], ...]
Points: TypeAlias = tuple[SplitPoints, ...]
SplitPointRule: TypeAlias = Callable[[Params, Shapes, Points, int], SplitPoints]
"""The split points of a result from parameters, shapes and split points of the arguments, and the
rank of the result."""


def no_split_points(rank: int) -> SplitPoints:
    """Those of a tensor that was not put together."""
    return ((),) * rank


def _none(params: Params, shapes: Shapes, points: Points, rank: int) -> SplitPoints:
    """The result counts as not put together."""
    return no_split_points(rank)


def first_points(params: Params, shapes: Shapes, points: Points, rank: int) -> SplitPoints:
    """The result has those of the first argument."""
    return points[0]


def _common(params: Params, shapes: Shapes, points: Points, rank: int) -> SplitPoints:
    """The result has those that all arguments have."""
    first, *others = points
    return tuple(
        tuple(point for point in places if all(point in other[axis] for other in others))
        for axis, places in enumerate(first)
    )


def _of_product(params: Params, shapes: Shapes, points: Points, rank: int) -> SplitPoints:
    """The rows of the left argument, the columns of the right one."""
    return (*points[0][:-1], points[1][-1])


def _transposed(params: Params, shapes: Shapes, points: Points, rank: int) -> SplitPoints:
    """Each dimension takes its own along."""
    return tuple(points[0][number(param)] for param in params)


def _joined(params: Params, shapes: Shapes, points: Points, rank: int) -> SplitPoints:
    """Along the axis those of both and their boundary; along others those that both have."""
    axis = number(params[0])
    middle = shapes[0][axis]
    joined = (*points[0][axis], middle, *(middle + point for point in points[1][axis]))
    common = _common(params, shapes, points, rank)
    return (*common[:axis], joined, *common[axis + 1 :])


def _before(params: Params, shapes: Shapes, points: Points, rank: int) -> SplitPoints:
    """Those before the index."""
    axis, at = number(params[0]), size(params[1])
    own = points[0][axis]
    kept = own[: own.index(at)] if at in own else own
    return (*points[0][:axis], kept, *points[0][axis + 1 :])


def _after(params: Params, shapes: Shapes, points: Points, rank: int) -> SplitPoints:
    """Those after the index, counted from there."""
    axis, at = number(params[0]), size(params[1])
    own = points[0][axis]
    kept = tuple(point - at for point in own[own.index(at) + 1 :]) if at in own else ()
    return (*points[0][:axis], kept, *points[0][axis + 1 :])


def _of_images(params: Params, shapes: Shapes, points: Points, rank: int) -> SplitPoints:
    """Images and channels of the argument; planes are not split."""
    return (*points[0][:2], *((),) * (rank - 2))


def _of_convolution(params: Params, shapes: Shapes, points: Points, rank: int) -> SplitPoints:
    """The images of the data, the output channels of the kernel."""
    return (points[0][0], points[1][0], *((),) * (rank - 2))


class StructureKind(Enum):
    """How a result depends on the arguments, for fingerprints.

    Planes are the rows and columns of (n, c, h, w).
    """

    CONSTANT = "constant"  # there are no arguments
    GATHER = "gather"  # sums of elements, one of each argument at most, negated or not
    LINEAR = "linear"
    BILINEAR = "bilinear"  # sums of products of an element of each argument
    QUOTIENT = "quotient"  # the same with the inverse of the second argument
    CONVOLUTION = "convolution"  # bilinear, alike for each image and each output channel
    POINTWISE = "pointwise"  # a function of one element
    PLANE_SUM = "plane sum"  # linear, alike on each plane
    PLANE_MAXIMUM = "plane maximum"  # the greatest of some elements, alike on each plane
    AFFINE = "affine"  # the first argument scaled and shifted by the others
    MAXIMUM = "maximum"  # the greatest of some elements
    ANY = "any"  # no structure is used


@dataclass(frozen=True, slots=True)
class OperatorFacts:
    """What the generator makes use of.

    structure           how its values are computed in the field, see `fingerprint/structure.py`
    split_points        where the result may be split
    is_commutative      whether op(a, b) = op(b, a)
    contains_arguments  whether the channels of the result are those of its arguments, in turn
    word                its name in names of rules; "" for its own
    """

    structure: StructureKind = StructureKind.ANY
    split_points: SplitPointRule = _none
    is_commutative: bool = False
    contains_arguments: bool = False
    word: str = ""


_COMMUTATIVE = frozenset({"ewadd", "ewmul", "ewmax", "ewmin", "equal"})
_OF_PAIRS = {
    "ewadd": StructureKind.GATHER,
    "ewsub": StructureKind.GATHER,
    "ewmul": StructureKind.BILINEAR,
    "ewdiv": StructureKind.QUOTIENT,
}
FACTS: dict[str, OperatorFacts] = {
    **{
        name: OperatorFacts(_OF_PAIRS.get(name, StructureKind.ANY), _common, name in _COMMUTATIVE)
        for name in PAIRS
    },
    **{each.name: OperatorFacts(StructureKind.POINTWISE, first_points) for each in FUNCTIONS},
    **{
        name: OperatorFacts(StructureKind.GATHER)
        for name in ("reshape", "broadcast", "slice", "pad", "reverse", "strided")
    },
    **{
        name: OperatorFacts(StructureKind.CONSTANT)
        for name in ("ones", "eye", "identity_kernel", "pool_kernel")
    },
    "select": OperatorFacts(split_points=_common),
    "scalar_mul": OperatorFacts(StructureKind.BILINEAR, first_points, word="scale"),
    "matmul": OperatorFacts(StructureKind.BILINEAR, _of_product),
    "transpose": OperatorFacts(StructureKind.GATHER, _transposed),
    "concat": OperatorFacts(StructureKind.GATHER, _joined, contains_arguments=True),
    "split0": OperatorFacts(StructureKind.GATHER, _before),
    "split1": OperatorFacts(StructureKind.GATHER, _after),
    "conv2d": OperatorFacts(StructureKind.CONVOLUTION, _of_convolution, word="conv"),
    "conv3d": OperatorFacts(StructureKind.CONVOLUTION, _of_convolution),
    "enlarge": OperatorFacts(StructureKind.GATHER, _of_images, contains_arguments=True),
    "max_pool": OperatorFacts(StructureKind.PLANE_MAXIMUM, _of_images),
    "avg_pool": OperatorFacts(StructureKind.PLANE_SUM, _of_images),
    "max_pool3d": OperatorFacts(StructureKind.MAXIMUM, _of_images),
    "avg_pool3d": OperatorFacts(StructureKind.LINEAR, _of_images),
    "reduce_sum": OperatorFacts(StructureKind.LINEAR),
    "reduce_mean": OperatorFacts(StructureKind.LINEAR),
    "reduce_max": OperatorFacts(StructureKind.MAXIMUM),
    "batch_norm": OperatorFacts(StructureKind.AFFINE),
}
"""By the name of the operator; others have none."""


def facts_of_operator(name: str) -> OperatorFacts:
    """The facts of an operator."""
    return FACTS.get(name, OperatorFacts())


class SizeGuess(Enum):
    """The likely expression of a size in a rule, where only its value at some shapes is known."""

    EXTENT = "extent"  # an extent of an input, a sum of two
    NUMBER = "number"  # that number, whatever the shapes
    PRODUCT = "product"  # an extent, a product of some
    STRETCHED = "stretched"  # the extent of the argument's dimension, if that is not stretched
    SPLIT = "split"  # a position along the axis: where parts meet, or the middle
    BOUND = "bound"  # a position along the axis: where parts meet, or that number


_GUESSES = MappingProxyType(
    {
        "n": SizeGuess.EXTENT,
        "size": SizeGuess.PRODUCT,
        "at": SizeGuess.SPLIT,
        "start": SizeGuess.BOUND,
        "stop": SizeGuess.BOUND,
    }
)


def size_guess(operator: str, parameter: str) -> SizeGuess:
    """What a parameter that may be a size is likely to be."""
    if operator == "broadcast":
        return SizeGuess.STRETCHED
    return _GUESSES.get(parameter, SizeGuess.NUMBER)


def word_of(name: str) -> str:
    """The name of an operator in names of rules; both halves of a split have one."""
    own = operator_named(name).output_of or name.replace("_", "-")
    return facts_of_operator(name).word or own


def systematic_name(rule: Rule) -> str:
    """A name that tells what the rule does, the operators of both sides; others may have it, too.

    relu(transpose[1, 0](?x)) == transpose[1, 0](relu(?x))      relu-transpose-to-transpose-relu
    """
    return f"{_words(rule.left)}-to-{_words(rule.right)}"


def sides_key(rule: Rule) -> str:
    """A text that rules share if they differ in condition, direction and names of inputs alone."""
    reverse = Rule(rule.right, rule.left)
    texts = (rule_text(canonical_rule(each)) for each in (Rule(rule.left, rule.right), reverse))
    return min(texts)


def _words(side: Sequence[Term]) -> str:
    """The operators from the roots down, each application once, both halves of a split as one."""
    words: list[str] = []
    seen: set[object] = set()

    def visit(term: Term) -> None:
        if not isinstance(term, Apply):
            return
        word = word_of(term.operator)
        key = (word, term.params, term.args)
        if key in seen:
            return
        seen.add(key)
        words.append(word)
        for arg in term.args:
            visit(arg)

    for root in side:
        visit(root)
    return "-".join(words) or ("input" if len(side) == 1 else "inputs")


def operator_count(*roots: Term) -> int:
    """How many operators a graph has: shared terms once, the outputs of one operator once."""
    return len(
        {
            (operator_named(each.operator).output_of or each.operator, each.params, each.args)
            for each in applications(*roots)
        }
    )
