"""Sizes of rules: index expressions over the extents of a rule's inputs.

    parse_size("x.1 + x.1")               2*x.1
    Extent("x", 1) + 1 - 1                 x.1: equal polynomials are equal objects
    value_of(2*x.1, {Extent("x", 1): 3})    6

An extent is a symbol of the algebra (`tensorwright.expr`), a positive integer:

    Extent(name, axis)              `x.1`, the extent of input ?x along dimension 1
    Extent(name, -1, variable)      `x._axis`, along the one that a parameter names
    Extent(variable, 0)             `_n`, a parameter variable that is a number
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from tensorwright.expr import Index, Symbol, substitute, symbols_of
from tensorwright.expr import parse_size as read_size

Name = TypeVar("Name", bound=Hashable)


class NeedsItselfError(ValueError):
    """Something is computed from itself; `name` says what."""

    def __init__(self, name: object) -> None:
        super().__init__(f"{name} needs itself")
        self.name = name


def arguments_first(
    roots: Iterable[Name], below: Callable[[Name], Sequence[Name]]
) -> Iterator[Name]:
    """Some things and all that they are computed from, each once and after its arguments.

    below   the arguments of a thing, in order
    Raises:  NeedsItselfError for a loop.
    """
    done: set[Name] = set()
    opened: set[Name] = set()
    stack = [(root, False) for root in reversed(tuple(roots))]
    while stack:
        name, is_ready = stack.pop()
        if name in done:
            continue
        if is_ready:
            done.add(name)
            yield name
            continue
        if name in opened:
            raise NeedsItselfError(name)
        opened.add(name)
        stack.append((name, True))
        stack += [(each, False) for each in reversed(below(name)) if each not in done]


Size: TypeAlias = Index
Shape: TypeAlias = tuple[Size, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Extent(Symbol):
    """The extent of an input along one dimension.

    name       of the input; of a parameter variable, whose number it is, with an underscore
    variable   the parameter variable that says along which dimension; "" where `axis` does
    """

    name: str
    axis: int
    variable: str = ""

    def __str__(self) -> str:
        if self.name.startswith("_"):
            return self.name
        return f"{self.name}.{self.variable or self.axis}"


def atoms_of(size: Size) -> tuple[Extent, ...]:
    """The extents that a size depends on, each once."""
    return tuple(each for each in symbols_of(size) if isinstance(each, Extent))


def value_of(size: Size, extents: Mapping[Extent, Size]) -> Size:
    """The size with extents replaced by sizes; an int where all of them are ints.

    Raises:  KeyError for an extent that is not given; ZeroDivisionError for a divisor that is not
             positive.
    """
    return substitute(size, {extent: extents[extent] for extent in atoms_of(size)})


def resized(size: Size, sizes: Callable[[Extent], Size]) -> Size:
    """The size with each extent replaced by what a function says."""
    return substitute(size, {extent: sizes(extent) for extent in atoms_of(size)})


def parse_size(text: str) -> Size:
    """Read what `str` of a size prints.

    Raises:  ValueError that names the place.
    """
    return read_size(text, _extent)


def _extent(word: str) -> Extent | None:
    if word.startswith("_") and "." not in word:
        return Extent(word, 0)
    name, _, axis = word.partition(".")
    if axis.isdigit():
        return Extent(name, int(axis))
    return Extent(name, -1, axis) if axis.startswith("_") else None
