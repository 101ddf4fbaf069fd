"""Compute a node while the model is read, where its inputs are known, if that is little work."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from tensorwright.base import UnsupportedError
from tensorwright.graph.builder import GraphBuilder
from tensorwright.graph.interpret import interpret
from tensorwright.graph.onnx_import.call import Call, Converter, Operand, Results
from tensorwright.graph.onnx_import.size_array import SizeArray, evaluate_terms
from tensorwright.graph.onnx_import.value_inputs import DECIDING

_LIMIT = 1 << 16  # elements; larger constants are folded by `simplify`
_SIZES_LIMIT = 1 << 12  # elements that are computed one by one


def fold(call: Call, converter: Converter) -> Results | None:
    """The values of a node, None where it stays: inputs are not known, or it is much work.

    Codes of weights stay, since products may be of them.
    """
    if call.operator == "DequantizeLinear" and call.rank(0) > 1:
        return None
    if call.operator == "CastLike":  # of its second input it reads the type alone
        like: Operand = np.zeros(0, call.type_at(1).dtype.numpy)
        call = replace(call, operands=(call.operand(0), like))
    operands = [operand for operand in call.operands if operand is not None]
    if any(isinstance(operand, str) for operand in operands):
        return None
    if any(isinstance(operand, SizeArray) for operand in operands):
        return _fold_sizes(call, converter)
    if sum(operand.size for operand in operands if isinstance(operand, np.ndarray)) > _LIMIT:
        return None
    scratch = GraphBuilder("folding")
    results = converter(replace(call, builder=scratch))
    if results is None:
        return None
    graph = scratch.finish([name for name in results if isinstance(name, str)])
    if sum(prod(each.extents) for each in graph.types.values()) > 4 * _LIMIT:
        return None
    computed = interpret(graph, {})
    return tuple(computed[name] if isinstance(name, str) else name for name in results)


def _fold_sizes(call: Call, converter: Converter) -> Results | None:
    """As `fold`, where elements depend on sizes: what these do not decide is left to nodes."""
    scratch = GraphBuilder("folding")
    inputs: dict[str, SizeArray] = {}
    operands = list(call.operands)
    for at, operand in enumerate(call.operands):
        if isinstance(operand, SizeArray) and at not in DECIDING.get(call.operator, ()):
            name = scratch.input(f"in{at}", operand.terms.shape, operand.dtype)
            inputs[name], operands[at] = operand, name
    try:
        results = converter(replace(call, builder=scratch, operands=tuple(operands)))
        if results is None:
            return None
        graph = scratch.finish([name for name in results if isinstance(name, str)])
        if any(each.is_open for each in graph.types.values()):
            return None
        if sum(prod(each.extents) for each in graph.types.values()) > _SIZES_LIMIT:
            return None
        computed = evaluate_terms(graph, inputs)
    except (UnsupportedError, TypeError):
        return None
    if computed is None:
        return None
    return tuple(computed[name] if isinstance(name, str) else name for name in results)
