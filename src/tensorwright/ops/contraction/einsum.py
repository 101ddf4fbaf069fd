"""Einstein summation.

| operators | inputs | attributes |
|---|---|---|
| einsum | one or more | equation: "bij,bjk->bik", "ii->i", "...ij->...ji"; output may be implied |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

from tensorwright.base import Attributes, TensorType
from tensorwright.expr import (
    Axis,
    Compute,
    Index,
    Load,
    Reduce,
    Tensor,
    Value,
    Var,
    compute,
    is_same,
    sum_over,
)
from tensorwright.ops.attributes import (
    NUMBERS,
    fault,
    require_dtype,
    require_same_dtype,
    text_of,
)
from tensorwright.ops.named_sizes import is_equal, shape_text, sizes_of
from tensorwright.ops.operator import Attribute, Fold, Pattern, tensor_operator

Shape = tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class Summation:
    """A parsed equation: the label of every dimension, ellipses replaced by labels e0, e1, ..."""

    terms: tuple[tuple[str, ...], ...]
    result: tuple[str, ...]
    extents: dict[str, Index]

    @property
    def folded(self) -> tuple[str, ...]:
        """The labels that are summed over, in order of appearance."""
        seen = dict.fromkeys(label for term in self.terms for label in term)
        return tuple(label for label in seen if label not in self.result)


def parse_equation(equation: str, shapes: tuple[Shape, ...]) -> Summation:
    """Read an equation for operands of these shapes.

    Raises:  ModelError for wrong syntax, a wrong number of terms or dimensions, extents that
             differ.
    """
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    written = left.split(",")
    if len(written) != len(shapes):
        raise fault(f"equation {equation!r} has {len(written)} terms for {len(shapes)} inputs")
    pairs = list(zip(written, shapes, strict=True))
    hidden = max((len(shape) - _letters(term) for term, shape in pairs if "." in term), default=0)
    extents: dict[str, Index] = {}
    terms = tuple(tuple(_labels(term, shape, hidden, equation)) for term, shape in pairs)
    for labels, shape in zip(terms, shapes, strict=True):
        for label, extent in zip(labels, shape, strict=True):
            former = extents.setdefault(label, extent)
            if 1 not in (former, extent) and not is_equal(former, extent):
                raise fault(f"equation {equation!r}: {label} is {former} and {extent}")
            extents[label] = extent if former == 1 else former
    if arrow:
        result = tuple(_expanded(right, hidden, hidden, equation))
    else:
        flat = [label for labels in terms for label in labels]
        shown = sorted(label for label in set(flat) if flat.count(label) == 1 and len(label) == 1)
        result = (*(f"e{n}" for n in range(hidden)), *shown)
    unknown = [label for label in result if label not in extents]
    if unknown or len(set(result)) < len(result):
        raise fault(f"equation {equation!r}: the output is not made of distinct input labels")
    return Summation(terms, result, extents)


def _letters(term: str) -> int:
    return len(term.replace("...", ""))


def _labels(term: str, shape: Shape, hidden: int, equation: str) -> Iterator[str]:
    own = len(shape) - _letters(term)
    if own < 0 or (own > 0 and "..." not in term):
        raise fault(f"equation {equation!r}: {term!r} does not fit shape {shape_text(shape)}")
    return _expanded(term, own, hidden, equation)


def _expanded(term: str, own: int, hidden: int, equation: str) -> Iterator[str]:
    before, dots, after = term.partition("...")
    letters = before + after
    if letters and not (letters.isalpha() and letters.isascii()):
        raise fault(f"equation {equation!r}: {term!r} is not made of letters and one ellipsis")
    yield from before
    if dots:
        yield from (f"e{n}" for n in range(hidden - own, hidden))
    yield from after


def _parsed(shapes: tuple[Shape, ...], attributes: Attributes) -> Summation:
    return parse_equation(text_of(attributes, "equation"), shapes)


def _infer(types: tuple[TensorType, ...], attributes: Attributes) -> tuple[TensorType, ...]:
    names = tuple(map(str, range(len(types))))
    for name, each in zip(names, types, strict=True):
        require_dtype(name, each, NUMBERS)
    require_same_dtype(names, types)
    parsed = _parsed(tuple(map(sizes_of, types)), attributes)
    shape = tuple(parsed.extents[label] for label in parsed.result)
    return (TensorType(types[0].dtype, shape),)


def _meaning(tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
    parsed = _parsed(tuple(tensor.shape for tensor in tensors), attributes)
    folded = {label: Axis(Var(label), parsed.extents[label]) for label in parsed.folded}

    def body(*outer: Index) -> Value | Reduce:
        at: dict[str, Index] = dict(zip(parsed.result, outer, strict=True))
        at.update((label, axis.var) for label, axis in folded.items())
        factors: list[Value] = []
        for tensor, labels in zip(tensors, parsed.terms, strict=True):
            own = zip(labels, tensor.shape, strict=True)
            places = (
                0 if is_same(n, 1) and not is_same(parsed.extents[label], 1) else at[label]
                for label, n in own
            )
            factors.append(Load(tensor, tuple(places)))
        product = reduce(lambda a, b: a * b, factors)
        return sum_over(product, *folded.values()) if folded else product

    shape = tuple(parsed.extents[label] for label in parsed.result)
    return (compute("einsum", shape, body, parsed.result),)


EINSUM_OPERATORS = (
    tensor_operator(
        "einsum",
        "sum of products of elements over the labels that the output does not have",
        ("*tensors",),
        (Attribute("equation", None, "the labels of all dimensions, as in NumPy"),),
        _infer,
        _meaning,
        Pattern.ANCHOR,
        fold=Fold.PRODUCT,
    ),
)
