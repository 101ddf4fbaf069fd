"""Classes of which two equal instances are one object.

The same expressions are built many times: by each step of a schedule, for each sketch of a space.
Where equal nodes are one object, comparing and hashing them needs no walk, and a node can keep the
values derived from it.
"""

from __future__ import annotations

import threading
from dataclasses import fields
from typing import Any
from weakref import ref

_FIRST_SWEEP = 1 << 12  # nodes; later when twice as many live as after the sweep before
_LOCK = threading.Lock()


class _InternedClass(type):
    """Gives the existing instance for some fields, if there is one.

    The table refers to instances weakly, and drops dead ones from time to time. Any thread may
    build instances.
    """

    __match_args__: tuple[str, ...]
    _nodes: dict[tuple[Any, ...], ref[Any]]
    _sweep_at: int

    def __init__(cls, *arguments: Any) -> None:
        super().__init__(*arguments)
        cls._nodes = {}
        cls._sweep_at = _FIRST_SWEEP

    def __call__(cls, *values: Any, **named: Any) -> Any:
        """The existing instance with these fields, or a new one."""
        if named:
            made = super().__call__(*values, **named)
            values = tuple(getattr(made, field.name) for field in fields(made))
        reference = cls._nodes.get(values)
        node = reference() if reference is not None else None
        return cls._add(values) if node is None else node

    def _add(cls, values: tuple[Any, ...]) -> Any:
        made = super().__call__(*values)
        full = values
        if len(values) < len(cls.__match_args__):  # defaults are left out
            full = tuple(getattr(made, name) for name in cls.__match_args__)
        with _LOCK:
            reference = cls._nodes.get(full)
            node = reference() if reference is not None else None
            if node is not None:  # another thread was faster, or they were given
                cls._nodes[values] = ref(node)
                return node
            cls._nodes[full] = cls._nodes[values] = ref(made)
            if len(cls._nodes) > cls._sweep_at:
                cls._sweep()
        return made

    def _sweep(cls) -> None:
        """Drop dead entries; instances that only those held go with the next sweep."""
        cls._nodes = {key: each for key, each in list(cls._nodes.items()) if each() is not None}
        cls._sweep_at = max(_FIRST_SWEEP, 2 * len(cls._nodes))


class Interned(metaclass=_InternedClass):
    """Base of frozen dataclasses with `slots=True, eq=False`: equal ones are one object."""

    __slots__ = ("__weakref__",)

    def __reduce__(self) -> tuple[type[Interned], tuple[Any, ...]]:
        names: tuple[str, ...] = getattr(type(self), "__match_args__", ())
        return type(self), tuple(getattr(self, name) for name in names)
