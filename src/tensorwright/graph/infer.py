"""Types of one node: look the operator up, complete its attributes, apply its shape rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tensorwright.base import DType, InternalError, ModelError, UnsupportedError
from tensorwright.expr import Index
from tensorwright.graph.graph import Graph, Layout, Node
from tensorwright.graph.nested import NESTING, infer_nested
from tensorwright.ops import Attributes, Operator, TensorType, infer_types, operator, sizes_of


def operator_of(node: Node) -> Operator:
    """The operator of a node."""
    nesting = NESTING.get(node.operator)
    if nesting is not None:
        return nesting
    try:
        return operator(node.operator)
    except UnsupportedError as error:
        raise error.at(node.label, "graph") from None


def typed_node(
    name: str,
    inputs: tuple[str, ...],
    output: str,
    attributes: Attributes,
    types: Mapping[str, TensorType],
    graphs: tuple[Graph, ...] = (),
) -> tuple[Node, tuple[TensorType, ...]]:
    """A node with complete attributes that names its first output, and the types of all its
    outputs.

    Raises:  UnsupportedError for an unknown operator; ModelError that names the node if an input is
             not defined, or inputs or attributes do not fit.
    """
    node = Node(name, inputs, (output,))
    missing = [each for each in inputs if each not in types]
    if missing:
        reason = f"reads {', '.join(missing)}, which nothing before it defines"
        remedy = "declare an input or a constant of that name, or add its node before this one"
        raise ModelError(stage="graph", where=node.label, reason=reason, remedy=remedy)
    arguments = tuple(types[each] for each in inputs)
    try:
        if name in NESTING:
            types_made, complete = infer_nested(name, arguments, attributes, graphs)
        else:
            types_made, complete = infer_types(name, arguments, attributes)
    except (ModelError, UnsupportedError) as error:
        raise error.at(node.label, "graph") from None
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        shown = ", ".join(map(str, arguments))
        raise InternalError(
            stage="graph",
            where=node.label,
            reason=f"the shape rule failed on ({shown}): {type(error).__name__}: {error}",
        ) from error
    return Node(name, inputs, (output,), tuple(sorted(complete.items())), graphs), types_made


def _fail(where: str, reason: str) -> ModelError:
    remedy = "build the graph with GraphBuilder; if that made it, report it with the graph"
    return ModelError(stage="verify", where=where, reason=reason, remedy=remedy)


def _check_types_known(graph: Graph, defined: dict[str, None]) -> None:
    untyped = [name for name in defined if name not in graph.types]
    if untyped:
        raise _fail(f"tensor {untyped[0]}", "it has no type")
    for group in (graph.types, graph.layouts):
        strange = [name for name in group if name not in defined]
        if strange:
            raise _fail(f"tensor {strange[0]}", "it has a type or a layout but no definition")


def _definitions(graph: Graph) -> Iterator[tuple[str, str]]:
    for name in graph.inputs:
        yield name, "graph inputs"
    for name in graph.constants:
        yield name, "graph constants"
    for node in graph.nodes:
        for name in node.outputs:
            yield name, node.label


def _check_node(node: Node, graph: Graph, defined: dict[str, TensorType]) -> None:
    names = [name for name, _ in node.attributes]
    if names != sorted(set(names)):
        raise _fail(node.label, "its attributes are not sorted by name, each once")
    draft, types = typed_node(
        node.operator, node.inputs, node.outputs[0], node.attribute_map, defined, node.graphs
    )
    missing = sorted(draft.attribute_map.keys() - set(names))
    if missing:
        raise _fail(node.label, f"the attribute {', '.join(missing)} is not written out")
    if len(types) != len(node.outputs):
        reason = f"the operator gives {len(types)} outputs, the node names {len(node.outputs)}"
        raise _fail(node.label, reason)
    for name, type_ in zip(node.outputs, types, strict=True):
        if graph.types[name] != type_:
            raise _fail(node.label, f"{name} is {graph.types[name]}, its shape rule says {type_}")
        defined[name] = type_


def _check_layout(name: str, layout: Layout, shape: tuple[Index, ...]) -> None:
    where = f"layout of {name}"
    if layout.order and sorted(layout.order) != list(range(len(shape))):
        raise _fail(where, f"order {layout.order} does not permute {len(shape)} dimensions")
    if layout.block < 1:
        raise _fail(where, f"block {layout.block} is not positive")
    if layout.block > 1:
        if not 0 <= layout.axis < len(shape):
            raise _fail(where, f"axis {layout.axis} is not one of {len(shape)} dimensions")
        if shape[layout.axis] % layout.block != 0:
            raise _fail(where, f"block {layout.block} does not divide {shape[layout.axis]}")


def verify(graph: Graph) -> Graph:
    """Check a graph and return it.

    Requires: every tensor has one definition, before its first use; operators are known and their
              attributes complete; types are those of the shape rules; constants have their types
              and are read-only; layouts fit.
    Raises:   ModelError (UnsupportedError for an unknown operator) that names the node.
    """
    seen: dict[str, None] = {}
    for name, where in _definitions(graph):
        if not name:
            raise _fail(where, "a tensor has an empty name")
        if name in seen:
            raise _fail(where, f"{name} is defined a second time")
        seen[name] = None
    _check_types_known(graph, seen)
    defined = {name: graph.types[name] for name in graph.inputs}
    for name, array in graph.constants.items():
        actual = TensorType(DType.from_numpy(array.dtype), array.shape)
        if actual != graph.types[name]:
            raise _fail(f"constant {name}", f"its type is {graph.types[name]}, it holds {actual}")
        if array.flags.writeable:
            raise InternalError(stage="verify", where=f"constant {name}", reason="it is writeable")
        defined[name] = actual
    for node in graph.nodes:
        for nested in node.graphs:
            verify(nested)
        _check_node(node, graph, defined)
    missing = [name for name in graph.outputs if name not in defined]
    if missing:
        raise _fail(f"output {missing[0]}", "nothing defines it")
    for name, layout in graph.layouts.items():
        _check_layout(name, layout, sizes_of(graph.types[name]))
    return graph
