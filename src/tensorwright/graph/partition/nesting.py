"""The steps of a node that holds graphs: a branch or a loop, and then the steps of its graphs.

The tensors of a nested graph get names that no other tensor has; its inputs get the names of their
arguments. A result of a nested graph is computed in the memory of the node's result. It is copied
there if it is an input, a constant, or a part of another tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tensorwright.graph.graph import PLAIN, Graph, Layout, Node, free_name
from tensorwright.graph.infer import operator_of
from tensorwright.graph.nested import BRANCH, CONDITION, COUNT, LoopForm, own_inputs
from tensorwright.graph.partition.steps import (
    AliasCall,
    BranchCall,
    CollectCall,
    ConcatInPlace,
    CopyCall,
    LoopCall,
    Partition,
    Step,
    Tensors,
    reads_of_step,
    writes_of_step,
)
from tensorwright.graph.partition.views import concat_offsets, view_offsets
from tensorwright.ops import Array, TensorType


def elide_concats(graph: Graph) -> tuple[ConcatInPlace, ...]:
    """The concats of a graph that are free under its layouts, in order.

    A concat is free if its dimension is the outermost one in memory, its parts begin at aligned
    bytes, and all parts are different.  Each part must be computed by a kernel, or be such a concat
    itself, as in DenseNet.  A part must not be an output of the graph, or a part of another concat.
    """
    producers = graph.producers()
    placed: set[str] = set(graph.outputs)
    wholes: set[str] = set()
    elided: list[ConcatInPlace] = []

    def is_free_to_place(name: str) -> bool:
        if name in placed or name not in producers:
            return False
        node = producers[name]
        if name in wholes:
            return True
        has_kernel = operator_of(node).meaning is not None
        return has_kernel and view_offsets(graph, node) is None

    for node in graph.nodes:
        offsets = concat_offsets(graph, node)
        is_repeated = len(set(node.inputs)) < len(node.inputs)
        if offsets is None or is_repeated or not all(map(is_free_to_place, node.inputs)):
            continue
        placed.update(node.inputs)
        wholes.add(node.outputs[0])
        parts = tuple(zip(node.inputs, offsets, strict=True))
        elided.append(ConcatInPlace(node.outputs[0], parts, node))
    return tuple(elided)


PartitionOf: TypeAlias = Callable[[Graph], Partition]


class Nesting:
    """Puts the steps of nested graphs among those of the graph around them; mutable.

    tensors   of the nested graphs, under their new names
    """

    def __init__(self, graph: Graph, partition_of: PartitionOf) -> None:
        self._taken = set(graph.types)
        self._partition_of = partition_of
        self._types: dict[str, TensorType] = {}
        self._constants: dict[str, Array] = {}
        self._layouts: dict[str, Layout] = {}
        self._held = {  # the constants that graphs share are held once
            _key(array, graph.layouts.get(name, PLAIN)): name
            for name, array in graph.constants.items()
        }

    @property
    def tensors(self) -> Tensors:
        """The tensors of all nested graphs so far."""
        return Tensors(self._types, self._constants, self._layouts)

    def steps(self, node: Node) -> tuple[Step, ...]:
        """The steps of a node."""
        return self._branch(node) if node.operator == BRANCH else self._loop(node)

    def _branch(self, node: Node) -> tuple[Step, ...]:
        condition, *given = node.inputs
        sides: list[list[Step]] = []
        for graph, word in zip(node.graphs, ("then", "else"), strict=True):
            inside = self._placed(graph, f"{node.outputs[0]}.{word}", given, node.outputs)
            sides.append([*inside.steps, *_copies(inside.results, node.outputs, node)])
        then, otherwise = sides
        return (BranchCall(condition, len(then), len(otherwise), node), *then, *otherwise)

    def _loop(self, node: Node) -> tuple[Step, ...]:
        form = LoopForm.of(node)
        (count, begin, *initial), captured = own_inputs(node)
        carried, rows = node.outputs[: form.carried], node.outputs[form.carried :]
        stem = node.outputs[0]
        lasting = form.body.constants.get(form.body.outputs[0])
        counts_only = lasting is not None and lasting.all()  # the condition never changes
        condition = begin if counts_only else self._fresh(f"{stem}.condition", CONDITION)
        iteration = self._fresh(f"{stem}.iteration", COUNT)
        state = (condition, *carried)
        given = (iteration, *state, *captured)
        inside = self._placed(form.body, f"{stem}.body", given, state)
        body = list(inside.steps)
        results = list(inside.results)
        if counts_only:
            results[0] = condition
        copied = [name for name, now in zip(state, results, strict=False) if name != now]
        memory = {iteration, *copied}
        for at, name in enumerate(results):
            if inside.root(name) in memory:  # a later copy may overwrite it
                kept = self._fresh(f"{name}.before", form.body.types[form.body.outputs[at]])
                body.append(CopyCall(kept, name, node))
                results[at] = kept
        for row, name in zip(rows, results[len(state) :], strict=True):
            body.append(CollectCall(row, name, iteration, node))
        body += _copies(results[: len(state)], state, node)
        before = _copies((begin, *initial), state, node)
        call = LoopCall(count, condition, iteration, len(body), form.counted, node)
        return (*before, call, *body)

    def _fresh(self, wish: str, type_: TensorType | None = None) -> str:
        name = free_name(wish, self._taken, sign=".")
        self._taken.add(name)
        if type_ is not None:
            self._types[name] = type_
        return name

    def _placed(
        self, graph: Graph, stem: str, given: Sequence[str], wanted: Sequence[str]
    ) -> _Placed:
        """The steps of a graph.

        given    the arguments for its inputs
        wanted   the tensors in whose memory its results belong; an argument among them is replaced
                 where no step reads it once its result is computed
        """
        parts = self._partition_of(graph)
        names = dict(zip(graph.inputs, given, strict=True))
        arguments = dict(zip(given, graph.inputs, strict=True))
        in_place = _computed(parts)
        for result, name in zip(graph.outputs, wanted, strict=False):
            is_free = name not in arguments or _is_replaced(parts, arguments[name], result)
            if result in in_place and result not in names and is_free:
                names[result] = name
        tensors = parts.tensors
        for name, type_ in tensors.types.items():
            if name in names:
                continue
            array = tensors.constants.get(name)
            layout = tensors.layouts.get(name, PLAIN)
            held = None if array is None else self._held.get(_key(array, layout))
            names[name] = held or self._fresh(f"{stem}.{name}", type_)
            if held is None and array is not None:
                self._held[_key(array, layout)] = names[name]
                self._constants[names[name]] = array
            if held is None and not layout.is_plain:
                self._layouts[names[name]] = layout
        steps = tuple(step.renamed(names) for step in parts.steps)
        return _Placed(steps, tuple(names[name] for name in graph.outputs))


@dataclass(frozen=True, slots=True)
class _Placed:
    """The steps of a nested graph, and the tensors that are its results."""

    steps: tuple[Step, ...]
    results: tuple[str, ...]

    def root(self, name: str) -> str:
        """The tensor in whose memory a tensor lies."""
        sources = {step.output: step.input for step in self.steps if isinstance(step, AliasCall)}
        while name in sources:
            name = sources[name]
        return name


def _key(array: Array, layout: Layout) -> tuple[object, ...]:
    """A key that is equal for constants that are the same memory in the same layout."""
    address = array.__array_interface__["data"][0]
    return address, array.shape, array.strides, array.dtype, layout


def _computed(parts: Partition) -> set[str]:
    """The tensors of a graph that steps can write anywhere: neither views nor parts of others."""
    written: set[str] = set()
    placed: set[str] = set()
    for step in parts.steps:
        if isinstance(step, AliasCall):
            placed.add(step.output)
        else:
            written.update(writes_of_step(step))
        if isinstance(step, ConcatInPlace):
            placed.update(name for name, _ in step.parts)
    return written - placed


def _is_replaced(parts: Partition, before: str, after: str) -> bool:
    """Whether a result may take the memory of an input: all reads of that are before the writes."""
    views = {before}
    last_read, first_write = -1, len(parts.steps)
    for position, step in enumerate(parts.steps):
        if after in writes_of_step(step):
            if isinstance(step, ConcatInPlace):
                return False  # other steps write its parts
            first_write = min(first_write, position)
        if views.intersection(reads_of_step(step)):
            last_read = position
            if isinstance(step, AliasCall):
                views.add(step.output)
    return last_read < first_write and not views.intersection(parts.graph.outputs)


def _copies(sources: Sequence[str], results: Sequence[str], node: Node) -> list[Step]:
    pairs = zip(results, sources, strict=True)
    return [CopyCall(result, source, node) for result, source in pairs if result != source]
