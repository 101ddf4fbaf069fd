"""What is enumerated, as data: inputs with their shapes, and applications of operators.

    data("x", 2, (2, 4))                      x1, x2: inputs of shape (2, 4)
    Application("concat", (1,))               tried on all pairs of tensors
    Application("split0", (1,))               tried at every split point of each tensor

The presets themselves are in `presets/`, one family of operators a file.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.rewriting.meaning import infer_shapes
from tensorwright.rewriting.operators import IntShape
from tensorwright.rewriting.shapes import fitting
from tensorwright.rewriting.terms import Input, Param, Term
from tensorwright.rewriting.text import parse_term

MAX_ELEMENTS = 512
"""No tensor is larger: TASO's limit."""


@dataclass(frozen=True, slots=True)
class GeneratorInput:
    """An input; those with equal shape and role take each other's place in a rule.

    is_weight  never the data of a convolution, so that kernels are not convolved
    """

    name: str
    shape: IntShape
    is_weight: bool = False


@dataclass(frozen=True, slots=True)
class Application:
    """An operator with parameters that is tried on every argument.

    params        all of them, or all but the place of a split: then every split point is tried
    inputs_only   it is tried on inputs alone, and where it changes their shape
    ranks         of the first argument; empty for all
    operands      inputs that always stand for the arguments after the first, as in batch_norm
    of_data       the first argument is no weight: weights are prepared once, they need no pooling
    by_weights    the second argument is a weight
    """

    operator: str
    params: tuple[Param, ...] = ()
    inputs_only: bool = False
    ranks: tuple[int, ...] = ()
    operands: tuple[str, ...] = ()
    of_data: bool = False
    by_weights: bool = False


@dataclass(frozen=True, slots=True)
class Preset:
    """Inputs and applications of one enumeration.

    prepared  terms over the inputs that cost nothing, because weights are prepared once, when a
              network is compiled: a kernel with its groups merged, the scale of a normalisation
    deepest   most operators of a graph: a family with many kinds of windows is not taken further
    """

    name: str
    inputs: tuple[GeneratorInput, ...]
    applications: tuple[Application, ...]
    prepared: tuple[Term, ...] = ()
    deepest: int = 4

    def leaf(self, number: int) -> Term:
        """What costs nothing: the inputs in turn, then the prepared terms."""
        if number < len(self.inputs):
            return Input(self.inputs[number].name)
        return self.prepared[number - len(self.inputs)]

    @property
    def shapes(self) -> dict[str, IntShape]:
        """The shapes of the inputs."""
        return {each.name: each.shape for each in self.inputs}

    @property
    def leaf_shapes(self) -> tuple[IntShape, ...]:
        """The shapes of inputs and prepared terms."""
        own = tuple(each.shape for each in self.inputs)
        return (*own, *fitting(infer_shapes(self.prepared, self.shapes)))


def data(prefix: str, count: int, shape: IntShape, first: int = 1) -> tuple[GeneratorInput, ...]:
    """Inputs of one shape, prefix1, prefix2, ..., that are data."""
    numbers = range(first, first + count)
    return tuple(GeneratorInput(f"{prefix}{number}", shape) for number in numbers)


def weights(prefix: str, count: int, shape: IntShape, first: int = 1) -> tuple[GeneratorInput, ...]:
    """Inputs of one shape, prefix1, prefix2, ..., that are weights."""
    numbers = range(first, first + count)
    return tuple(GeneratorInput(f"{prefix}{number}", shape, is_weight=True) for number in numbers)


def terms(*lines: str) -> tuple[Term, ...]:
    """Prepared terms from their text."""
    return tuple(map(parse_term, lines))
