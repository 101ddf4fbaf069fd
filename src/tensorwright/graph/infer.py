"""Types of one node: look the operator up, complete its attributes, apply its shape rule."""

from __future__ import annotations

from collections.abc import Mapping

from tensorwright.base import InternalError, ModelError, UnsupportedError
from tensorwright.graph.graph import Node
from tensorwright.ops import OPERATORS, Attributes, Operator, TensorType


def operator_of(name: str, where: str) -> Operator:
    """The operator of that name.

    Raises:  UnsupportedError if there is none.
    """
    found = OPERATORS.get(name)
    if found is None:
        raise UnsupportedError(
            stage="graph", where=where, reason="there is no such operator", operator=name
        )
    return found


def make_node(
    operator: str, inputs: tuple[str, ...], outputs: tuple[str, ...], attributes: Attributes
) -> Node:
    """A node with its attributes complete and sorted; `outputs` names at least one tensor.

    Raises:  UnsupportedError for an unknown operator, ModelError for an unknown or missing attribute.
    """
    where = f"node {outputs[0]} ({operator})"
    try:
        full = operator_of(operator, where).complete(attributes)
    except ValueError as error:
        raise ModelError(stage="graph", where=where, reason=str(error)) from None
    return Node(operator, inputs, outputs, tuple(sorted(full.items())))


def infer_types(node: Node, types: Mapping[str, TensorType]) -> tuple[TensorType, ...]:
    """The types of all outputs that the operator gives for these inputs.

    Raises:  ModelError naming the node if the inputs are not defined or do not fit.
    """
    missing = [name for name in node.inputs if name not in types]
    if missing:
        reason = f"reads {', '.join(missing)}, which nothing before it defines"
        raise ModelError(stage="graph", where=node.label, reason=reason)
    rule = operator_of(node.operator, node.label).infer
    arguments = tuple(types[name] for name in node.inputs)
    try:
        return rule(arguments, node.attribute_map)
    except ModelError as error:
        raise ModelError(
            stage="graph", where=node.label, reason=error.reason, remedy=error.remedy
        ) from None
    except (ValueError, IndexError, KeyError, TypeError, ZeroDivisionError) as error:
        shown = ", ".join(map(str, arguments))
        raise InternalError(
            stage="graph",
            where=node.label,
            reason=f"the shape rule failed on ({shown}): {type(error).__name__}: {error}",
        ) from error
