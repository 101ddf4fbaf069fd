"""Types of one node: look the operator up, complete its attributes, apply its shape rule."""

from __future__ import annotations

from collections.abc import Mapping

from tensorwright.base import InternalError, ModelError, UnsupportedError
from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.nested import NESTING, infer_nested
from tensorwright.ops import Attributes, Operator, TensorType, infer_types, operator


def operator_of(node: Node) -> Operator:
    """The operator of a node.

    Raises:  UnsupportedError if there is none of that name.
    """
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
