"""The classes that all terms of a class contain: a node that needs the class needs them, too.

Sets of classes are the bits of whole numbers.  They take the square of the number of classes in
bits: 300 MB for 50,000.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

Members = Mapping[int, Sequence[int]]
"""The nodes of each class that may be taken."""


class NeededClasses:
    """The sets of some nodes; those of a class that has no term are None."""

    def __init__(self, members: Members, below: Sequence[Sequence[int]]) -> None:
        self._members = members
        self._below = below
        self._of: dict[int, int] = {}
        self._find()

    def of(self, name: int) -> int | None:
        """The classes that all terms of a class contain, itself among them."""
        return self._of.get(name)

    def below(self, node: int) -> int | None:
        """The classes that all terms of a node contain besides its own."""
        classes = 0
        for each in self._below[node]:
            own = self._of.get(each)
            if own is None:
                return None
            classes |= own
        return classes

    def of_all(self, names: Sequence[int]) -> int:
        """The classes that terms of some classes contain, all together."""
        classes = 0
        for name in names:
            classes |= self._of.get(name, 0)
        return classes

    def _find(self) -> None:
        """The greatest solution: terms are finite, so nothing is its own reason to be left out."""
        above: dict[int, set[int]] = {}
        for name, nodes in self._members.items():
            for node in nodes:
                for each in self._below[node]:
                    above.setdefault(each, set()).add(name)
        waiting = deque(self._members)
        is_waiting = dict.fromkeys(self._members, True)
        while waiting:
            name = waiting.popleft()
            is_waiting[name] = False
            classes = self._by_nodes(name)
            if classes is not None and classes != self._of.get(name):
                self._of[name] = classes
                for each in above.get(name, ()):
                    if not is_waiting[each]:
                        is_waiting[each] = True
                        waiting.append(each)

    def _by_nodes(self, name: int) -> int | None:
        common: int | None = None
        for node in self._members[name]:
            own = self.below(node)
            if own is not None and not own >> name & 1:
                common = own if common is None else common & own
        return None if common is None else common | 1 << name


def names_in(bits: int) -> Iterator[int]:
    """The members of a set."""
    while bits:
        last = bits & -bits
        yield last.bit_length() - 1
        bits ^= last
