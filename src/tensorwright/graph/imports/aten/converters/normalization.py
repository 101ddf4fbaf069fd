"""Normalisations, the softmax family and reductions."""

from __future__ import annotations

import math

from tensorwright.base import DType
from tensorwright.expr import Index
from tensorwright.graph.imports.call import Call, Converter, Results, Table
from tensorwright.graph.imports.promotion import as_float, as_type
from tensorwright.ops import axis_in, product_of


def _ones(call: Call, shape: tuple[Index, ...], like: str) -> str:
    return call.full(shape, 1.0, call.dtype_of(like))


def _vectors(call: Call, x: str, names: tuple[str, str], count: tuple[Index, ...]) -> list[str]:
    """Scale and bias in the element type of the data; by default ones and zeros."""
    scale, bias = (call.optional(name) for name in names)
    made = (
        scale[0] if scale else _ones(call, count, x),
        bias[0] if bias else call.full(count, 0.0, call.dtype_of(x)),
    )
    return [call.cast(each, call.dtype_of(x)) for each in made]


def _data(call: Call) -> str:
    return call.tensor("input" if call.has("input") else "self")


def _layer_norm(call: Call) -> Results:
    x = _data(call)
    shape = call.shape("normalized_shape")
    scale, bias = _vectors(call, x, ("weight", "bias"), shape)
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
    scale = call.optional("weight") or (_ones(call, shape, x),)
    axis = call.rank(x) - len(shape)
    y = call.add("rms_norm", x, *scale, axis=axis, epsilon=call.real("eps", smallest))
    return (y,)


def _batch_norm(call: Call) -> Results:
    x = _data(call)
    if not call.has("running_mean") and call.sizes(x)[0] == 1:
        return _instance_norm(call)
    if call.flag("training") or not call.has("running_mean"):
        raise call.unsupported(
            "it is in training mode, and computes with the statistics of the batch",
            "call eval() on the module",
        )
    count = (call.sizes(x)[1],)
    scale, bias = _vectors(call, x, ("weight", "bias"), count)
    statistics = [
        call.cast(call.tensor(each), call.dtype_of(x)) for each in ("running_mean", "running_var")
    ]
    y = call.add("batch_norm", x, scale, bias, *statistics, epsilon=call.real("eps", 1e-5))
    return (y,)


def _group_norm(call: Call) -> Results:
    x = _data(call)
    groups = call.integer("num_groups") if call.has("num_groups") else call.integer("group")
    scale, bias = _vectors(call, x, ("weight", "bias"), (call.sizes(x)[1],))
    y = call.add("group_norm", x, scale, bias, groups=groups, epsilon=call.real("eps", 1e-5))
    return (y,)


def _instance_norm(call: Call) -> Results:
    if call.has("running_mean") and not call.flag("use_input_stats", default=True):
        return _batch_norm(call)
    x = _data(call)
    scale, bias = _vectors(call, x, ("weight", "bias"), (call.sizes(x)[1],))
    y = call.add("instance_norm", x, scale, bias, epsilon=call.real("eps", 1e-5))
    return (y,)


def _softmax(operator: str) -> Converter:
    def convert(call: Call) -> Results:
        x = as_float(call, call.cast(call.tensor("self"), call.dtype()))
        return (call.add(operator, x, axis=call.axis(call.rank(x))),)

    return convert


def _safe_softmax(call: Call) -> Results:
    """A softmax whose rows are 0 where all their elements are minus infinity."""
    x = as_float(call, call.cast(call.tensor("self"), call.dtype()))
    axis, dtype = call.axis(call.rank(x)), call.dtype_of(x)
    best = call.add("reduce_max", x, axes=(axis,), keepdims=True)
    is_empty = call.add("equal", best, call.full((), -math.inf, dtype))
    weights = call.add("softmax", x, axis=axis)
    return (call.add("where", is_empty, call.full((), 0.0, dtype), weights),)


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


def _reduce(operator: str, integers: DType | None = None, *, floats: bool = False) -> Converter:
    def convert(call: Call) -> Results:
        """Small integers and bools are summed as i64; with `floats`, integers become floats."""
        x = call.cast(call.tensor("self"), call.dtype())
        if floats:
            x = as_float(call, x)
        elif integers is not None and not call.has("dtype") and not call.dtype_of(x).is_float:
            x = call.cast(x, integers)
        return (_reduced(call, operator, x),)

    return convert


def _reduce_bools(operator: str) -> Converter:
    def convert(call: Call) -> Results:
        return (_reduced(call, operator, call.cast(call.tensor("self"), DType.BOOL)),)

    return convert


def _greatest(reduction: str, search: str, both: str) -> Converter:
    def convert(call: Call) -> Results:
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

    return convert


def _least_and_greatest(call: Call) -> Results:
    x = call.tensor("self")
    return tuple(_reduced(call, each, x) for each in ("reduce_min", "reduce_max"))


def _search(operator: str) -> Converter:
    def convert(call: Call) -> Results:
        x = call.tensor("self")
        if call.has("dim"):
            axis = call.axis(call.rank(x))
            return (call.add(operator, x, axis=axis, keepdims=call.flag("keepdim")),)
        flat = call.add("reshape", x, shape=(product_of(call.sizes(x)),))
        return (call.add(operator, flat, axis=0, keepdims=False),)

    return convert


def _variance(call: Call) -> Results:
    """Sum of squared differences from the mean, over the number of elements less `correction`."""
    x = as_float(call, call.tensor("self"))
    axes, dtype = _axes(call, x), call.dtype_of(x)
    centre = call.add("reduce_mean", x, axes=axes, keepdims=True)
    distance = call.add("sub", x, centre)
    total = call.add(
        "reduce_sum",
        call.add("mul", distance, distance),
        axes=axes,
        keepdims=call.flag("keepdim"),
    )
    correction = call.real("correction", float(call.flag("unbiased", default=True)))
    if correction != int(correction):
        raise call.unsupported(f"its correction {correction} is not an integer")
    count = product_of(call.sizes(x)[axis] for axis in axes) - int(correction)
    variance = call.add("div", total, call.full((), count, dtype))
    mean = call.add("reduce_mean", x, axes=axes, keepdims=call.flag("keepdim"))
    return (variance, mean)


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


def _running(operator: str) -> Converter:
    def convert(call: Call) -> Results:
        x = call.cast(call.tensor("self"), call.dtype())
        if not call.dtype_of(x).is_float and not call.has("dtype"):
            x = call.cast(x, DType.I64)
        return (call.add(operator, x, axis=call.axis(call.rank(x))),)

    return convert


NORMALIZATION: Table = (
    ("layer_norm", _layer_norm),
    ("native_layer_norm", _layer_norm),
    ("rms_norm", _rms_norm),
    ("_fused_rms_norm", _rms_norm),
    ("batch_norm", _batch_norm),
    ("native_batch_norm", _batch_norm),
    ("_native_batch_norm_legit", _batch_norm),
    ("_native_batch_norm_legit_no_training", _batch_norm),
    ("cudnn_batch_norm", _batch_norm),
    ("group_norm", _group_norm),
    ("native_group_norm", _group_norm),
    ("instance_norm", _instance_norm),
    ("softmax", _softmax("softmax")),
    ("_softmax", _softmax("softmax")),
    ("_safe_softmax", _safe_softmax),
    ("log_softmax", _softmax("log_softmax")),
    ("_log_softmax", _softmax("log_softmax")),
    ("mean", _reduce("reduce_mean", floats=True)),
    ("sum", _reduce("reduce_sum", DType.I64)),
    ("prod", _reduce("reduce_prod", DType.I64)),
    ("amax", _reduce("reduce_max")),
    ("amin", _reduce("reduce_min")),
    ("logsumexp", _reduce("reduce_log_sum_exp", floats=True)),
    ("any", _reduce_bools("reduce_any")),
    ("all", _reduce_bools("reduce_all")),
    ("max", _greatest("reduce_max", "argmax", "max")),
    ("min", _greatest("reduce_min", "argmin", "min")),
    ("aminmax", _least_and_greatest),
    ("argmax", _search("argmax")),
    ("argmin", _search("argmin")),
    ("var", _variance),
    ("var_mean", _variance),
    ("std", _deviation),
    ("std_mean", _deviation),
    ("norm", _norm),
    ("linalg_vector_norm", _norm),
    ("_weight_norm", _weight_norm),
    ("_weight_norm_interface", _weight_norm),
    ("cumsum", _running("cumsum")),
    ("cumprod", _running("cumprod")),
)
