"""Terms of a network while it is read: applications that are known to be well-typed."""

from __future__ import annotations

from tensorwright.base import InternalError
from tensorwright.rewriting.dims import Shape
from tensorwright.rewriting.egraph import INPUT, EGraph, Id
from tensorwright.rewriting.networks.network_analysis import TensorData
from tensorwright.rewriting.networks.opaque import CALL, OpaqueOperators
from tensorwright.rewriting.terms import Param


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
