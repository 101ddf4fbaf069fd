"""The cases of `tensorwright bench models`: models, and the numbers for open sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tensorwright.base import TensorwrightError
from tensorwright.cli.arguments.models import read_graph
from tensorwright.cli.arguments.options import refuse_given, split
from tensorwright.compile_options import Shapes, Sizes
from tensorwright.graph import Graph, SizePoint, SizesAt, counted_sizes, points_of

NUMBERS = SizePoint(())
"""The only point of a model whose shapes are numbers; its text is empty."""


@dataclass(frozen=True, slots=True)
class Case:
    """A model, and the points at which it is compared: `(NUMBERS,)` if its shapes are numbers."""

    model: str
    points: tuple[SizePoint, ...]


def read_cases(
    models: Sequence[str], shapes: Shapes | None, sizes: Sizes | None, at: SizesAt | None
) -> tuple[Case, ...]:
    """The points of each model: those that `at` names, or a few that the bounds suggest.

    A model that cannot be imported has one row, which says so, as long as another one can.
    Raises:  UsageError as `points_of`, and where no model has open sizes for `at`; the error of the
             first model where none can be imported.
    """
    cases: list[Case] = []
    failures: list[TensorwrightError] = []
    for model in models:
        if split(model)[0] and not sizes:
            cases.append(Case(model, (NUMBERS,)))
            continue
        try:
            graph = read_graph(model, shapes, sizes=sizes, is_open=True)
        except TensorwrightError as error:
            failures.append(error)
            cases.append(Case(model, (NUMBERS,)))
        else:
            cases.append(Case(model, _points(graph, at)))
    if failures and len(failures) == len(cases):
        raise failures[0]
    if all(case.points == (NUMBERS,) for case in cases):
        refuse_given(("at",), because="all shapes are numbers")
    return tuple(cases)


def _points(graph: Graph, at: SizesAt | None) -> tuple[SizePoint, ...]:
    """Numbers for all sizes of the inputs; a size that a node decides is left to the node."""
    if not graph.sizes:
        return (NUMBERS,)
    decided = counted_sizes(graph)
    points = points_of(graph.sizes, at, decided, graph.input_types.values())
    given = (tuple(pair for pair in point.numbers if pair[0] not in decided) for point in points)
    return tuple(map(SizePoint, dict.fromkeys(given)))
