"""The input of an enumeration: tensors with their shapes, and applications of operators.

    data (2, 4): x1 x2                 inputs of shape (2, 4)
    weights (): s0                     a number that is known when a network is compiled
    prepared: ewsub(?s0, ones())       a term that costs nothing
    try: concat[1]; relu               tried on all pairs of tensors, on all tensors
    try rank 2 4: split0[1]            at every split point of tensors of these ranks
    try of data, with s1 b1 m1 v1: batch_norm      `Application` says what each option means
    deepest: 3                         no graph has more operators

Lines that begin with # are comments; a line that begins with spaces continues the one before.  The
presets themselves are in `presets/`, one family of operators a file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from tensorwright.rewriting.assumptions import fitting
from tensorwright.rewriting.meaning import infer_shapes
from tensorwright.rewriting.operators import IntShape
from tensorwright.rewriting.terms import Apply, Input, Param, Term
from tensorwright.rewriting.text import logical_lines, parse_term

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
    of_data       the first argument is not a weight: weights are prepared once, they need no
    pooling
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
        """A term without cost: the inputs in turn, then the prepared terms."""
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


def parse_preset(name: str, text: str) -> Preset:
    """Read a preset; the module docstring shows how it is written.

    Raises:  ValueError for a line that says nothing of a preset, UsageError for what is not a term.
    """
    inputs: list[GeneratorInput] = []
    applications: list[Application] = []
    prepared: list[Term] = []
    deepest = 4
    for line in logical_lines(text):
        head, _, body = line.partition(":")
        kind, _, about = head.partition(" ")
        match kind:
            case "data" | "weights":
                shape = tuple(int(extent) for extent in re.findall(r"\d+", about))
                inputs += (GeneratorInput(each, shape, kind == "weights") for each in body.split())
            case "try":
                applications += (_parse_application(each, about) for each in body.split(";"))
            case "prepared":
                prepared.append(parse_term(body))
            case "deepest":
                deepest = int(body)
            case _:
                raise ValueError(f"preset {name}: a preset has no line {line!r}")
    return Preset(name, tuple(inputs), tuple(applications), tuple(prepared), deepest)


def _parse_application(text: str, about: str) -> Application:
    term = parse_term(f"{text}()")
    assert isinstance(term, Apply), "a name and brackets are an application"
    application = Application(term.operator, term.params)
    for option in filter(None, about.split(", ")):
        match option.split():
            case ["rank", *ranks]:
                application = replace(application, ranks=tuple(map(int, ranks)))
            case ["with", *names]:
                application = replace(application, operands=tuple(names))
            case ["of", "data"]:
                application = replace(application, of_data=True)
            case ["by", "weights"]:
                application = replace(application, by_weights=True)
            case ["on", "inputs"]:
                application = replace(application, inputs_only=True)
            case _:
                raise ValueError(f"`try` of {text.strip()} has no option {option!r}")
    return application
