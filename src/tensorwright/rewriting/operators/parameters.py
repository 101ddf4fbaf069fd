"""Parameters of operators: numbers, sizes, dimensions, and words.

AXIS                          a number that names a dimension
number_word(0.01)             f0p01: a number that is not a size is a word; fm1p5 is -1.5
axis_of(2, (3, 4))            IllTyped: there is no dimension 2

Adjacent dimensions that an operator does not tell apart, by which a rule holds at any rank.

Boundary j lies between the dimensions j and j + 1.  A tensor with some boundaries merged is the
tensor reshaped: each run of dimensions at merged boundaries is one.  An operator commutes with
merging at a boundary of its result if it gives the same elements, merged, from merged arguments.
For a boundary of the result:

    ewadd(a, b)           of (2, 3, 4): boundary 1 of both arguments        (2, 12)
    concat[0](a, b)       0 is its axis's: no; 1: of both                    concat[0] of (2, 12)
    transpose[1, 2, 0]    0 is boundary 1 of the argument; 1: dimensions 2 and 0 are not adjacent
                          there, so no                                      transpose[1, 0]
    broadcast[5, 3, 4]    of (1, 3, 4): 1, as both dimensions stay; 0, no: one stays
    matmul(a, b)          of (2, 3, 4, 5), (2, 3, 5, 6): 0, of the batches of both
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from tensorwright.expr import IndexExpr
from tensorwright.ops import AttributeValue
from tensorwright.rewriting.assumptions import IllTyped, Params, Shapes
from tensorwright.rewriting.dims import Shape, Size
from tensorwright.rewriting.terms import Param

Boundaries: TypeAlias = frozenset[int]
IsEqual: TypeAlias = Callable[[Size, Size], bool]
"""Whether two sizes are known to be equal."""
LinkRule: TypeAlias = Callable[[Params, Shapes, int, IsEqual], "tuple[int | None, ...] | None"]
ParamRule: TypeAlias = Callable[[Params, Boundaries, Boundaries], Params]


@dataclass(frozen=True, slots=True)
class Merging:
    """How an operator commutes with merging dimensions.

    links   of a boundary of the result: the boundary of each argument that is merged with it, None
            for an argument that stays as it is; None altogether where the operator tells the
            dimensions apart.  Parameters, shapes of the arguments, the boundary.  Boundaries of an
            argument to which none of the result is linked are told apart as well.
    params  its parameters over merged tensors: by the boundaries of the first argument and of the
            result
    has_extents   whether its parameters are the extents of its result: those of a run multiply
    """

    links: LinkRule
    params: ParamRule
    has_extents: bool = False


def merged_axis(axis: int, joined: Boundaries) -> int:
    """The number of a dimension once boundaries are merged."""
    return axis - sum(boundary < axis for boundary in joined)


def merged_runs(rank: int, joined: Boundaries) -> tuple[tuple[int, ...], ...]:
    """The dimensions that become one, for each dimension of the merged tensor."""
    runs: list[list[int]] = []
    for axis in range(rank):
        if axis - 1 in joined:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    return tuple(map(tuple, runs))


def _same_params(params: Params, first: Boundaries, result: Boundaries) -> Params:
    return params


def _axis_renumbered(params: Params, first: Boundaries, result: Boundaries) -> Params:
    axis = params[0]
    assert isinstance(axis, int), "an axis is a number"
    return (merged_axis(axis, result), *params[1:])


def _runs_multiplied(params: Params, first: Boundaries, result: Boundaries) -> Params:
    sizes = [param for param in params if isinstance(param, int | IndexExpr)]
    runs = merged_runs(len(sizes), result)
    return tuple(_product([sizes[axis] for axis in run]) for run in runs)


def _product(sizes: list[Size]) -> Size:
    total: Size = prod(size for size in sizes if isinstance(size, int))
    for size in sizes:
        if not isinstance(size, int):
            total = total * size
    return total


def _order_renumbered(params: Params, first: Boundaries, result: Boundaries) -> Params:
    perm = [param for param in params if isinstance(param, int)]
    return tuple(merged_axis(perm[run[0]], first) for run in merged_runs(len(perm), result))


def _beside(is_told_apart: Callable[[Params, int, int], bool]) -> LinkRule:
    """The same boundary of all arguments of full rank, but where dimensions are told apart.

    is_told_apart   by the parameters, the rank and the boundary
    """

    def links(
        params: Params, shapes: Shapes, boundary: int, is_equal: IsEqual
    ) -> tuple[int | None, ...] | None:
        rank = len(shapes[0])
        if is_told_apart(params, rank, boundary):
            return None
        return tuple(boundary if len(shape) == rank else None for shape in shapes)

    return links


def _in_order(
    params: Params, shapes: Shapes, boundary: int, is_equal: IsEqual
) -> tuple[int | None, ...] | None:
    """That between the two dimensions in the argument, where they are adjacent, in this order."""
    before, after = params[boundary], params[boundary + 1]
    assert isinstance(before, int), "permutations are numbers"
    return (before,) if after == before + 1 else None


def _stretched_alike(
    params: Params, shapes: Shapes, boundary: int, is_equal: IsEqual
) -> tuple[int | None, ...] | None:
    """The same boundary, where both dimensions stay or both are stretched from 1."""
    kinds: list[str] = []
    for axis in (boundary, boundary + 1):  # each dimension is of one kind, so that runs are of one
        own, wanted = shapes[0][axis], params[axis]
        if isinstance(wanted, int | IndexExpr) and is_equal(own, wanted):
            kinds.append("stays")
        elif is_equal(own, 1):
            kinds.append("stretched")
    return (boundary,) if len(kinds) == 2 and kinds[0] == kinds[1] else None


def _created(params: Params, shapes: Shapes, boundary: int, is_equal: IsEqual) -> tuple[()]:
    """Any boundary: there are no arguments, and all elements are alike."""
    return ()


ALIKE = Merging(_beside(lambda params, rank, boundary: False), _same_params)
BESIDE_AXIS = Merging(
    _beside(lambda params, rank, boundary: params[0] in (boundary, boundary + 1)), _axis_renumbered
)
TRANSPOSED = Merging(_in_order, _order_renumbered)
STRETCHED = Merging(_stretched_alike, _runs_multiplied, has_extents=True)
CREATED = Merging(_created, _runs_multiplied, has_extents=True)
BATCHES = Merging(_beside(lambda params, rank, boundary: boundary + 3 >= rank), _same_params)
"""All but the last two dimensions."""
ROWS = Merging(
    _beside(lambda params, rank, boundary: boundary + 1 >= number(params[0])), _axis_renumbered
)
"""Those before the dimension that the first parameter names."""
CHANNELS = Merging(_beside(lambda params, rank, boundary: boundary <= 1), _same_params)
"""Those behind dimension 1."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter.

    words     the words it may be; empty for a number, or where a form says which words
    form      a regular expression of other words that it may be; samples   some of these
    is_size   whether it may be a size over the inputs' extents, and not only a number
    repeats   whether it takes all parameters that are left
    is_open   whether a proof may leave it open: the shape rule takes any size for a number that is
              at least 1.  A word with a form may always be left open: as a word that begins and
              ends with an underscore
    least     the least number that it may be where it is a size or open
    excluded  the words for which an open one does not stand
    is_beside_shape  whether no shape depends on which of its words it is
    """

    name: str
    words: tuple[str, ...] = ()
    is_size: bool = False
    repeats: bool = False
    form: str = ""
    samples: tuple[str, ...] = ()
    is_open: bool = False
    least: int = 1
    excluded: tuple[str, ...] = ()
    is_beside_shape: bool = False

    @property
    def may_be_size(self) -> bool:
        """Whether its shape rule takes a size for it."""
        return self.is_size or self.is_open

    @property
    def is_axis(self) -> bool:
        """Whether it names a dimension."""
        return self.name == "axis"

    @property
    def is_order(self) -> bool:
        """Whether it is a permutation, with all parameters that are left."""
        return self.repeats and not self.is_size

    @property
    def is_word(self) -> bool:
        """Whether it is a word, not a number."""
        return bool(self.words or self.form)

    def has_form(self, word: str) -> bool:
        """Whether a word has the form of those that it may be."""
        return re.fullmatch(self.form, word) is not None


def is_open_word(word: str) -> bool:
    """Whether a word stands for all that a parameter may be."""
    return word.startswith("_") and word.endswith("_")


_NUMBER = r"f(m?\d+p\d+|m?\d+(p\d+)?em?\d+|m?inf)"


def number_word(value: float) -> str:
    """The word of a number: 0.01 is f0p01, -1.5 is fm1p5, infinity finf."""
    return "f" + repr(float(value)).replace(".", "p").replace("-", "m").replace("+", "")


def number_of_word(word: Param) -> float:
    """The number that a word is.

    Raises:  ValueError for another word.
    """
    text = str(word)
    if not re.fullmatch(_NUMBER, text):
        raise ValueError(f"{text} is not a word of a number")
    return float(text[1:].replace("p", ".").replace("m", "-"))


def attribute_of(param: Param) -> AttributeValue:
    """A parameter that is not a size, as an attribute of an operator of `ops`."""
    if isinstance(param, int):
        return param
    return number_of_word(param) if re.fullmatch(_NUMBER, str(param)) else str(param)


def number_parameter(name: str, *samples: float) -> Parameter:
    """A parameter that is a number, not a size; it is tried at the samples."""
    return Parameter(
        name, form=_NUMBER, samples=tuple(map(number_word, samples)), is_beside_shape=True
    )


AXIS = Parameter("axis")
PLACE = Parameter("at", is_size=True)
SIZES = (Parameter("size", is_size=True, repeats=True),)


def number(param: Param) -> int:
    """A parameter that is a number."""
    if not isinstance(param, int):
        raise IllTyped(f"{param} is not a number")
    return param


def numbers(params: tuple[Param, ...]) -> tuple[int, ...]:
    """Parameters, or extents, that are numbers."""
    return tuple(map(number, params))


def size(param: Param) -> Size:
    """A parameter that is a number or a size."""
    if not isinstance(param, int | IndexExpr):
        raise IllTyped(f"{param} is not a size")
    return param


def axis_of(param: Param, shape: Shape) -> int:
    """A parameter that names a dimension of a shape."""
    axis = number(param)
    if not 0 <= axis < len(shape):
        raise IllTyped(f"there is no dimension {axis}")
    return axis
