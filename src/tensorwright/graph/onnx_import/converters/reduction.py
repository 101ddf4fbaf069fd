"""Folds over axes."""

from __future__ import annotations

from tensorwright.base import DType
from tensorwright.graph.onnx_import.call import Call, Converter, Results, Table

REDUCTIONS = (
    ("ReduceSum", "reduce_sum", 13),
    ("ReduceMean", "reduce_mean", 18),
    ("ReduceProd", "reduce_prod", 18),
    ("ReduceMax", "reduce_max", 18),
    ("ReduceMin", "reduce_min", 18),
    ("ReduceL1", "reduce_l1", 18),
    ("ReduceL2", "reduce_l2", 18),
    ("ReduceSumSquare", "reduce_sum_square", 18),
    ("ReduceLogSum", "reduce_log_sum", 18),
    ("ReduceLogSumExp", "reduce_log_sum_exp", 18),
)
_ON_BOOLS = {"reduce_max": "reduce_any", "reduce_min": "reduce_all"}


def _reduce(operator: str, axes_are_input_from: int) -> Converter:
    def convert(call: Call) -> Results:
        chosen = operator
        if call.type_at(0).dtype is DType.BOOL:
            chosen = _ON_BOOLS.get(operator, operator)
        axes = call.optional_ints(1, "axes", input_from=axes_are_input_from)
        keepdims = call.flag("keepdims", default=True)
        keeps_all = not axes and call.flag("noop_with_empty_axes", default=False)
        if keeps_all or call.rank(0) == 0:
            return _without_axes(call, operator)
        return (call.add(chosen, call.tensor(0), axes=axes, keepdims=keepdims),)

    return convert


def _without_axes(call: Call, operator: str) -> Results:
    """Nothing is folded; what is done to each element stays."""
    x = call.tensor(0)
    match operator:
        case "reduce_l1" | "reduce_l2":
            return (call.add("abs", x),)
        case "reduce_sum_square":
            return (call.add("mul", x, x),)
        case "reduce_log_sum":
            return (call.add("log", x),)
        case _:
            return (call.operand(0),)


REDUCTION: Table = (*((theirs, _reduce(ours, version)) for theirs, ours, version in REDUCTIONS),)
