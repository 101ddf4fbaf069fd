"""Folds over axes, normalisations and the softmax family."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from tensorwright.base import DType
from tensorwright.expr import Index
from tensorwright.graph.imports.call import Call, Results, Table, in_single_precision
from tensorwright.graph.imports.counterparts import SOFTMAXES, TRAILING_NORMS, Counterpart
from tensorwright.graph.imports.formula import as_float, as_type, formula
from tensorwright.ops import NARROW, AttributeValue, axis_in, product_of

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


def _reduce(operator: str, axes_are_input_from: int, call: Call) -> Results:
    chosen = operator
    if call.dtype_of(0) is DType.BOOL:
        chosen = _ON_BOOLS.get(operator, operator)
    axes = call.optional_ints(1, "axes", input_from=axes_are_input_from)
    keepdims = call.flag("keepdims", default=True)
    keeps_all = not axes and call.flag("noop_with_empty_axes")
    if keeps_all or call.rank(0) == 0:
        return _without_axes(call, operator)
    return (call.add(chosen, call.tensor(0), axes=axes, keepdims=keepdims),)


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


REDUCTION: Table = (
    *((theirs, partial(_reduce, ours, version)) for theirs, ours, version in REDUCTIONS),
)


_WIDE = (DType.F32, DType.F64)


def _vectors(call: Call, count: int) -> tuple[str, ...]:
    """Inputs 1..count in the element type of the data."""
    dtype = call.dtype_of(0)
    return tuple(call.cast(call.operand(each), dtype) for each in range(1, count + 1))


def _batch_norm(call: Call) -> Results:
    if call.opset < 9 and not call.flag("spatial", default=True):
        raise call.unsupported("spatial=0, statistics per element, is not supported")
    epsilon = call.real("epsilon", 1e-5)
    x = call.tensor(0)
    scale, bias, mean, var = _vectors(call, 4)
    if not call.flag("training_mode"):
        if any(call.wanted[1:]):
            raise call.unsupported("it is in training mode", "export the model for inference")
        return (call.add("batch_norm", x, scale, bias, mean, var, epsilon=epsilon),)
    axes = tuple(axis for axis in range(call.rank(0)) if axis != 1)
    now_mean = call.add("reduce_mean", x, axes=axes, keepdims=False)
    text = """
        distance = x - reduce_mean(x, axes=axes, keepdims=True)
        reduce_mean(distance * distance, axes=axes, keepdims=False)
        """
    now_var = formula(call, text, x=x, axes=axes)
    y = call.add("batch_norm", x, scale, bias, now_mean, now_var, epsilon=epsilon)
    old = call.real("momentum", 0.9)
    moved = [
        formula(call, "before * old + now * new", before=before, now=now, old=old, new=1 - old)
        for before, now in ((mean, now_mean), (var, now_var))
    ]
    return (y, *moved)


def _instance_norm(call: Call) -> Results:
    scale, bias = _vectors(call, 2)
    x = call.tensor(0)
    return (call.add("instance_norm", x, scale, bias, epsilon=call.real("epsilon", 1e-5)),)


def normalized(
    call: Call, operator: str, x: str, vectors: Sequence[str], **attributes: AttributeValue
) -> str:
    """Rows normalised in f32 at least; the result has the type of the first vector, the scale."""
    dtypes = [call.dtype_of(each) for each in (x, *vectors)]
    wide = DType.F64 if DType.F64 in dtypes else DType.F32
    operands = [call.cast(each, wide) for each in (x, *vectors)]
    return call.cast(call.add(operator, *operands, **attributes), dtypes[1])


def _trailing_norm(counterpart: Counterpart, call: Call) -> Results | None:
    """Half precision is computed in f32, and statistics are outputs: the standard's function does
    both. Before operator set 21 scale and bias of groups were per group: it repeats them.
    """
    is_old = call.operator == "GroupNormalization" and call.opset < counterpart.opset
    if call.operator == "RMSNormalization" and call.dtype_of(1) is not call.dtype_of(0):
        axis, epsilon = call.integer("axis", -1), call.real("epsilon", 1e-5)
        x, scale = call.tensors()
        return (normalized(call, "rms_norm", x, (scale,), axis=axis, epsilon=epsilon),)
    if is_old or any(call.wanted[1:]) or call.dtype_of(0) not in _WIDE:
        return None
    return counterpart.convert(call)


def _mean_variance(call: Call) -> Results:
    """As the standard's function, whose constants are of f32, for floats of any type."""
    text = """
        distance = x - reduce_mean(x, axes=axes, keepdims=True)
        distance / (sqrt(reduce_mean(distance * distance, axes=axes, keepdims=True)) + 1e-9)
        """
    return (formula(call, text, x=call.tensor(0), axes=call.integers("axes", (0, 2, 3))),)


def _softmax(operator: str, call: Call) -> Results:
    """Before operator set 13 the dimensions from `axis` on are one row."""
    x, shape = call.tensor(0), call.sizes(0)
    if call.opset >= 13:
        return (call.add(operator, x, axis=call.integer("axis", -1)),)
    rank = len(shape)
    axis = call.integer("axis", 1)
    axis += rank if axis < 0 else 0
    if not 0 <= axis <= rank:
        raise call.unsupported(f"its axis {axis} is none of {rank} dimensions")
    if axis == rank - 1 or math.prod(shape[axis + 1 :]) == 1:
        return (call.add(operator, x, axis=min(axis, rank - 1)),)
    flat = (math.prod(shape[:axis]), math.prod(shape[axis:]))
    rows = call.add("reshape", x, shape=flat)
    return (call.add("reshape", call.add(operator, rows, axis=1), shape=shape),)


NORMALIZATION: Table = (
    ("BatchNormalization", _batch_norm),
    ("InstanceNormalization", _instance_norm),
    *((each.theirs, partial(_trailing_norm, each)) for each in TRAILING_NORMS),
    ("MeanVarianceNormalization", in_single_precision(_mean_variance, NARROW)),
    *((each.theirs, partial(_softmax, each.ours)) for each in SOFTMAXES),
)


# -- ATen


def _data(call: Call) -> str:
    return call.tensor("input" if call.has("input") else "self")


def _aten_vectors(call: Call, x: str, shape: tuple[Index, ...]) -> list[str]:
    """Scale and bias in the element type of the data; by default ones and zeros."""
    dtype = call.dtype_of(x)
    return [
        call.cast(call.tensor(name), dtype) if call.has(name) else call.full(shape, usual, dtype)
        for name, usual in (("weight", 1.0), ("bias", 0.0))
    ]


def _by_channel(
    call: Call, operator: str, statistics: Sequence[str] = (), **more: AttributeValue
) -> Results:
    """Data less a mean, over a deviation, times a scale and plus a bias for each channel."""
    x = _data(call)
    vectors = _aten_vectors(call, x, (call.sizes(x)[1],))
    epsilon = call.real("eps", 1e-5)
    return (call.add(operator, x, *vectors, *statistics, epsilon=epsilon, **more),)


def _layer_norm(call: Call) -> Results:
    x = _data(call)
    shape = call.shape("normalized_shape")
    scale, bias = _aten_vectors(call, x, shape)
    axis, epsilon = call.rank(x) - len(shape), call.real("eps", 1e-5)
    y = call.add("layer_norm", x, scale, bias, axis=axis, epsilon=epsilon)
    if call.operator == "layer_norm":
        return (y,)
    axes = tuple(range(axis, call.rank(x)))
    mean = call.add("reduce_mean", x, axes=axes, keepdims=True)
    distance = call.add("sub", x, mean)
    variance = call.add("reduce_mean", call.add("mul", distance, distance), axes=axes)
    safe = call.add("add", variance, call.full((), epsilon, call.dtype_of(x)))
    return (y, mean, call.add("rsqrt", safe))


def _rms_norm(call: Call) -> Results:
    x = _data(call)
    shape = call.shape("normalized_shape")
    dtype = call.dtype_of(x)
    smallest = {DType.F64: 2.220446049250313e-16}.get(dtype, 1.1920928955078125e-07)
    scale = call.optional("weight") or (call.full(shape, 1.0, dtype),)
    axis = call.rank(x) - len(shape)
    y = call.add("rms_norm", x, *scale, axis=axis, epsilon=call.real("eps", smallest))
    return (y,)


def _aten_batch_norm(call: Call) -> Results:
    x = _data(call)
    if not call.has("running_mean") and call.sizes(x)[0] == 1:
        return _aten_instance_norm(call)
    if call.flag("training") or not call.has("running_mean"):
        raise call.unsupported(
            "it is in training mode, and computes with the statistics of the batch",
            "call eval() on the module",
        )
    statistics = [
        call.cast(call.tensor(each), call.dtype_of(x)) for each in ("running_mean", "running_var")
    ]
    return _by_channel(call, "batch_norm", statistics)


def _group_norm(call: Call) -> Results:
    groups = call.integer("num_groups" if call.has("num_groups") else "group")
    return _by_channel(call, "group_norm", groups=groups)


def _aten_instance_norm(call: Call) -> Results:
    if call.has("running_mean") and not call.flag("use_input_stats", default=True):
        return _aten_batch_norm(call)
    return _by_channel(call, "instance_norm")


def _aten_softmax(operator: str, call: Call) -> Results:
    x = as_float(call, call.cast(call.tensor("self"), call.dtype()))
    return (call.add(operator, x, axis=call.axis(call.rank(x))),)


def _safe_softmax(call: Call) -> Results:
    """A softmax whose rows are 0 where all their elements are minus infinity."""
    x = as_float(call, call.cast(call.tensor("self"), call.dtype()))
    axis = call.axis(call.rank(x))
    text = """
        is_empty = reduce_max(x, axes=axes, keepdims=True) == lowest
        where(is_empty, 0.0, softmax(x, axis=axis))
        """
    return (formula(call, text, x=x, axis=axis, axes=(axis,), lowest=-math.inf),)


# -- reductions


def _axes(call: Call, x: str) -> tuple[int, ...]:
    """The dimensions to fold; all if the call names none."""
    rank = call.rank(x)
    given = call.integers("dim", ()) or tuple(range(rank))
    return tuple(axis_in(axis, max(rank, 1)) for axis in given)


def _reduced(call: Call, operator: str, x: str) -> str:
    if not call.rank(x):
        return x
    return call.add(operator, x, axes=_axes(call, x), keepdims=call.flag("keepdim"))


def _aten_reduce(
    operator: str, call: Call, integers: DType | None = None, *, floats: bool = False
) -> Results:
    """Small integers and bools are summed as i64; with `floats`, integers become floats."""
    x = call.cast(call.tensor("self"), call.dtype())
    if floats:
        x = as_float(call, x)
    elif integers is not None and not call.has("dtype") and not call.dtype_of(x).is_float:
        x = call.cast(x, integers)
    return (_reduced(call, operator, x),)


def _reduce_bools(operator: str, call: Call) -> Results:
    return (_reduced(call, operator, call.cast(call.tensor("self"), DType.BOOL)),)


def _greatest(reduction: str, search: str, both: str, call: Call) -> Results:
    """The greatest of all elements or of two tensors; along a dimension, with positions."""
    x = call.tensor("self")
    if call.has("other"):
        dtype = call.dtype_of(x)
        return (call.add(both, x, as_type(call, call.get("other"), dtype)),)
    if not call.has("dim"):
        return (_reduced(call, reduction, x),)
    axis, keepdims = call.axis(call.rank(x)), call.flag("keepdim")
    if not call.rank(x):
        return (x, call.full((), 0, DType.I64))
    return (
        call.add(reduction, x, axes=(axis,), keepdims=keepdims),
        call.add(search, x, axis=axis, keepdims=keepdims),
    )


def _least_and_greatest(call: Call) -> Results:
    x = call.tensor("self")
    return tuple(_reduced(call, each, x) for each in ("reduce_min", "reduce_max"))


def _search(operator: str, call: Call) -> Results:
    x = call.tensor("self")
    if call.has("dim"):
        axis = call.axis(call.rank(x))
        return (call.add(operator, x, axis=axis, keepdims=call.flag("keepdim")),)
    flat = call.add("reshape", x, shape=(product_of(call.sizes(x)),))
    return (call.add(operator, flat, axis=0, keepdims=False),)


def _variance(call: Call) -> Results:
    """Sum of squared differences from the mean, over the number of elements less `correction`."""
    x = as_float(call, call.tensor("self"))
    axes, keepdims = _axes(call, x), call.flag("keepdim")
    correction = call.real("correction", float(call.flag("unbiased", default=True)))
    if correction != int(correction):
        raise call.unsupported(f"its correction {correction} is not an integer")
    count = product_of(call.sizes(x)[axis] for axis in axes) - int(correction)
    text = """
        distance = x - reduce_mean(x, axes=axes, keepdims=True)
        reduce_sum(distance * distance, axes=axes, keepdims=keepdims)
        """
    total = formula(call, text, x=x, axes=axes, keepdims=keepdims)
    variance = call.add("div", total, call.full((), count, call.dtype_of(x)))
    return (variance, call.add("reduce_mean", x, axes=axes, keepdims=keepdims))


def _deviation(call: Call) -> Results:
    variance, mean = _variance(call)
    return (call.add("sqrt", variance), mean)


def _norm(call: Call) -> Results:
    p = call.real("ord" if call.has("ord") else "p", 2.0)
    if p not in (1, 2):
        raise call.unsupported(f"norms of exponent {p} are not supported")
    x = as_float(call, call.cast(call.tensor("self"), call.dtype()))
    return (_reduced(call, f"reduce_l{int(p)}", x),)


def _weight_norm(call: Call) -> Results:
    """A weight whose norms, over all dimensions but one, are those given; and its own norms."""
    weight, wanted = call.tensor("v"), call.tensor("g")
    rank, kept = call.rank(weight), call.integer("dim", 0)
    axes = tuple(axis for axis in range(rank) if kept == -1 or axis != kept)
    norm = call.add("reduce_l2", weight, axes=axes, keepdims=kept != -1) if axes else weight
    norm = norm if axes else call.add("abs", weight)
    return (call.add("mul", weight, call.add("div", wanted, norm)), norm)


def _running(operator: str, call: Call) -> Results:
    x = call.cast(call.tensor("self"), call.dtype())
    if not call.dtype_of(x).is_float and not call.has("dtype"):
        x = call.cast(x, DType.I64)
    return (call.add(operator, x, axis=call.axis(call.rank(x))),)


ATEN_NORMALIZATION: Table = (
    ("layer_norm native_layer_norm", _layer_norm),
    ("rms_norm _fused_rms_norm", _rms_norm),
    ("batch_norm native_batch_norm _native_batch_norm_legit", _aten_batch_norm),
    ("_native_batch_norm_legit_no_training cudnn_batch_norm", _aten_batch_norm),
    ("group_norm native_group_norm", _group_norm),
    ("instance_norm", _aten_instance_norm),
    *((f"{each.ours} _{each.ours}", partial(_aten_softmax, each.ours)) for each in SOFTMAXES[:2]),
    ("_safe_softmax", _safe_softmax),
    ("mean", partial(_aten_reduce, "reduce_mean", floats=True)),
    ("sum", partial(_aten_reduce, "reduce_sum", integers=DType.I64)),
    ("prod", partial(_aten_reduce, "reduce_prod", integers=DType.I64)),
    ("amax", partial(_aten_reduce, "reduce_max")),
    ("amin", partial(_aten_reduce, "reduce_min")),
    ("logsumexp", partial(_aten_reduce, "reduce_log_sum_exp", floats=True)),
    ("any", partial(_reduce_bools, "reduce_any")),
    ("all", partial(_reduce_bools, "reduce_all")),
    ("max", partial(_greatest, "reduce_max", "argmax", "max")),
    ("min", partial(_greatest, "reduce_min", "argmin", "min")),
    ("aminmax", _least_and_greatest),
    ("argmax", partial(_search, "argmax")),
    ("argmin", partial(_search, "argmin")),
    ("var var_mean", _variance),
    ("std std_mean", _deviation),
    ("norm linalg_vector_norm", _norm),
    ("_weight_norm _weight_norm_interface", _weight_norm),
    ("cumsum", partial(_running, "cumsum")),
    ("cumprod", partial(_running, "cumprod")),
)
