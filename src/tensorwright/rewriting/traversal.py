"""The order in which arguments come before what is computed from them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

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
