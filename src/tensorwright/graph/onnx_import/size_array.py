"""Tensors whose elements are known, but for named sizes: what Shape gives, and what is made of it.

    x: f32(n, 3, 2*m)    Shape(x) = [n, 3, 2*m]    Gather(Shape(x), 2) * 4 = 8*m

Nodes of them are computed while the model is read, as nodes of constants are.  Where such a tensor
is needed when the network runs, nodes make it of the sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import DType, TensorType
from tensorwright.expr import (
    Index,
    NamedSize,
    SymbolicDomain,
    evaluate,
    placeholder,
    substitute,
)
from tensorwright.graph.builder import GraphBuilder
from tensorwright.graph.graph import Graph
from tensorwright.graph.infer import operator_of
from tensorwright.graph.onnx_import.size_terms import Ratio, SizeTerms, Term, index_of
from tensorwright.ops import Array

_DOMAIN = SymbolicDomain(SizeTerms())


@dataclass(frozen=True, slots=True, eq=False)
class SizeArray:
    """A tensor of known elements, at least one of which depends on a size."""

    dtype: DType
    terms: NDArray[np.object_]

    @property
    def type(self) -> TensorType:
        """Its type."""
        return TensorType(self.dtype, self.terms.shape)

    @property
    def indices(self) -> tuple[Index, ...]:
        """The elements, in row-major order.

        Raises:  TypeError for floats.
        """
        return tuple(map(index_of, self.terms.ravel()))

    def narrowed(self, sizes: Mapping[NamedSize, Index]) -> SizeArray:
        """The same with other sizes."""
        terms = self.terms.copy()
        for position, term in np.ndenumerate(terms):
            if isinstance(term, Ratio):
                parts = (substitute(each, sizes) for each in (term.dividend, term.divisor))
                terms[position] = Ratio(*parts)
        return SizeArray(self.dtype, terms)

    def __str__(self) -> str:
        return ", ".join(map(str, self.terms.ravel()))


def known_array(terms: Sequence[Term], shape: tuple[int, ...], dtype: DType) -> Array | SizeArray:
    """Elements in row-major order as an array: one of numbers where no size is in them."""
    if not any(isinstance(each, Ratio) for each in terms):
        return np.array(terms, dtype.numpy).reshape(shape)
    held: NDArray[np.object_] = np.empty(len(terms), object)
    for number, term in enumerate(terms):
        held[number] = term
    return SizeArray(dtype, held.reshape(shape))


def add_size_array(builder: GraphBuilder, array: SizeArray) -> str:
    """A tensor of the graph that has these elements when the network runs."""
    rows = [_add_term(builder, term, array.dtype, array.terms.ndim) for term in array.terms.ravel()]
    if not array.terms.ndim:
        return rows[0]
    joined = rows[0] if len(rows) == 1 else builder.add("concat", *rows, axis=0)
    if array.terms.ndim == 1:
        return joined
    return builder.add("reshape", joined, shape=array.terms.shape)


def _add_term(builder: GraphBuilder, term: Term, dtype: DType, rank: int) -> str:
    shape = (1,) * min(rank, 1)

    def full(value: Index | float) -> str:
        return builder.add("full", shape=shape, value=value, dtype=dtype)

    if not isinstance(term, Ratio):
        return full(term)
    above = full(term.dividend)
    return above if term.divisor == 1 else builder.add("div", above, full(term.divisor))


def evaluate_terms(
    graph: Graph, inputs: Mapping[str, SizeArray]
) -> dict[str, Array | SizeArray] | None:
    """The outputs of a graph of known shapes for elements that depend on sizes; None where no
    tensor expression says what a node is.

    Raises:  UnsupportedError for what the bounds of the sizes do not decide; TypeError for what is
             not computed of sizes.
    """
    values: dict[str, NDArray[Any]] = {
        **{
            name: _DOMAIN.inject(array, graph.types[name].dtype)
            for name, array in graph.constants.items()
        },
        **{name: array.terms for name, array in inputs.items()},
    }
    for node in graph.nodes:
        meaning = operator_of(node).meaning
        if meaning is None:
            return None
        tensors = tuple(
            placeholder(name, graph.types[name].extents, graph.types[name].dtype)
            for name in node.inputs
        )
        given = {tensor: values[name] for tensor, name in zip(tensors, node.inputs, strict=True)}
        results = evaluate(meaning(tensors, node.attribute_map), given, _DOMAIN)
        values.update(zip(node.outputs, results, strict=True))
    folded: dict[str, Array | SizeArray] = {}
    for name in graph.outputs:
        type_ = graph.types[name]
        folded[name] = known_array(tuple(values[name].ravel()), type_.extents, type_.dtype)
    return folded
