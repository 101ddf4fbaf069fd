"""Every execution of every store of a small program: which elements it loads and stores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from tensorwright.loop import Buffer, LoopProgram, Role, Store, walk
from tensorwright_lab.loop_interpreter import interpret

LINE_BYTES = 64


@dataclass
class Executions:
    """What one statement does to each buffer, in the order of its executions.

    loads, stores   buffer name -> row-major numbers of the elements, with repetitions
    """

    count: int = 0
    loads: dict[str, list[int]] = field(default_factory=dict)
    stores: dict[str, list[int]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)

    def places(self, name: str) -> list[int]:
        """All elements touched, with repetitions."""
        return self.loads.get(name, []) + self.stores.get(name, [])

    def unique_bytes(self, name: str) -> int:
        """Bytes of the different elements touched."""
        return len(set(self.places(name))) * self.sizes[name]

    def unique_lines(self, name: str) -> int:
        """Cache lines touched, if the buffer begins with one."""
        size = self.sizes[name]
        return len({place * size // LINE_BYTES for place in self.places(name)})


def trace_addresses(program: LoopProgram) -> list[Executions]:
    """Run a program and tell its statements apart, in the order of the program.

    A store ends an execution; the statement is the one that stores to that buffer and loads from as
    many places, so that programs must not have two such statements.
    """
    kinds = [(store.buffer.name, len(_loads(store))) for store in _stores(program)]
    assert len(set(kinds)) == len(kinds), "two statements cannot be told apart"
    found = [Executions() for _ in kinds]
    pending: list[tuple[Buffer, int]] = []

    def note(what: str, buffer: Buffer, place: int) -> None:
        if what == "load":
            pending.append((buffer, place))
            return
        one = found[kinds.index((buffer.name, len(pending)))]
        one.count += 1
        for source, where in pending:
            one.loads.setdefault(source.name, []).append(where)
            one.sizes[source.name] = source.dtype.size_bytes
        one.stores.setdefault(buffer.name, []).append(place)
        one.sizes[buffer.name] = buffer.dtype.size_bytes
        pending.clear()

    interpret(program, dict(_arrays(program)), trace=note, check_races=False)
    return found


def _stores(program: LoopProgram) -> list[Store]:
    return [part for part in walk(program.body) if isinstance(part, Store)]


def _loads(store: Store) -> list[object]:
    from_value: list[object] = []
    pending: list[object] = [store.value]
    while pending:
        value = pending.pop()
        if type(value).__name__ == "Load":
            from_value.append(value)
        pending += list(getattr(value, "args", ()))
    return from_value


def _arrays(program: LoopProgram) -> Iterator[tuple[str, np.ndarray[tuple[int, ...], np.dtype]]]:
    for parameter in program.parameters:
        if parameter.role is not Role.OUTPUT:
            shape = parameter.buffer.shape
            if parameter.packing is not None:
                shape = parameter.packing.source_shape
            sizes = tuple(extent for extent in shape if isinstance(extent, int))
            yield parameter.name, np.ones(sizes, parameter.buffer.dtype.numpy)
