"""What prepares features: scales, norms, missing numbers, columns, codes of categories."""

from __future__ import annotations

from functools import partial

import numpy as np

from tensorwright.base import DType
from tensorwright.graph.imports.ai_onnx_ml.scores import f32, numbers, rows_of
from tensorwright.graph.imports.call import Call, Operand, Results, Table
from tensorwright.ops import Array, product_of

_ZIPMAP = (
    "write the model without it: convert_sklearn(..., options={'zipmap': False}) or "
    "convert_lightgbm(..., zipmap=False); or cut it off: onnx.utils.extract_model up to its input"
)
_MAPS = "its values are maps, and maps are not tensors"
_TEXT = "text tensors are not supported"
_ENCODE = "encode text before the model, and give the codes as integers"
_REFUSED = (
    ("ZipMap", _MAPS, _ZIPMAP),
    ("DictVectorizer", _MAPS, "give the features as columns of a tensor"),
    ("CastMap", _MAPS, "give the features as columns of a tensor"),
    ("CategoryMapper", _TEXT, _ENCODE),
)


def _refused(reason: str, remedy: str, call: Call) -> Results:
    raise call.unsupported(reason, remedy)


def _scaler(call: Call) -> Results:
    offset, scale = numbers(call, "offset"), numbers(call, "scale")
    x = call.cast(call.operand(0), DType.F32)
    x = call.add("sub", x, offset) if offset.any() else x
    return (call.add("mul", x, scale) if (scale != 1).any() else x,)


def _normalizer(call: Call) -> Results:
    """Rows of a norm of 1; a row of norm 0 stays."""
    x, norm = call.cast(call.operand(0), DType.F32), call.text("norm", "MAX")
    folds = {"MAX": "reduce_max", "L1": "reduce_l1", "L2": "reduce_l2"}
    if norm not in folds:
        raise call.unsupported(f"its norm {norm!r} is none of ONNX")
    size = call.add(folds[norm], x, axes=(call.rank(0) - 1,), keepdims=True)
    is_zero = call.add("equal", size, f32(0))
    return (call.add("div", x, call.add("where", is_zero, f32(1), size)),)


def _imputer(call: Call) -> Results:
    """Missing numbers, which a number stands for or NaN, become those of their columns."""
    x = call.tensor(0)
    dtype = call.dtype_of(x)
    kind = "float" if dtype.is_float else "int64"
    filled = numbers(call, f"imputed_value_{kind}s", dtype)
    missing = call.attributes.get(f"replaced_value_{kind}", 0)
    if isinstance(missing, float) and np.isnan(missing):
        is_missing = call.add("isnan", x)
    else:
        is_missing = call.add("equal", x, np.asarray(missing, dtype.numpy))
    return (call.add("where", is_missing, filled, x),)


def _binarizer(call: Call) -> Results:
    x = call.tensor(0)
    dtype = call.dtype_of(x)
    limit = call.as_array(call.real("threshold", 0.0), dtype)
    return (call.add("cast", call.add("greater", x, limit), to=dtype),)


def _extractor(call: Call) -> Results:
    """Columns of the last dimension; one dimension counts as one row."""
    x = rows_of(call, keep=frozenset((call.dtype_of(0),)))
    at = call.tensor(1)
    if call.dtype_of(at) not in (DType.I32, DType.I64):
        at = call.add("cast", at, to=DType.I64)
    at = call.add("reshape", at, shape=(product_of(call.sizes(1)),))
    return (call.take(x, at, axis=len(call.sizes(x)) - 1),)


def _vectorizer(call: Call) -> Results:
    """Columns of all inputs, as floats."""
    parts: list[Operand] = []
    for tensor in call.tensors():
        first, *rest = (1, *call.sizes(tensor))[-max(2, call.rank(tensor)) :]
        rows = (first, product_of(rest))
        flat = tensor if call.sizes(tensor) == rows else call.add("reshape", tensor, shape=rows)
        parts.append(call.cast(flat, DType.F32))
    return (parts[0] if len(parts) == 1 else call.add("concat", *parts, axis=1),)


def _table(call: Call, role: str) -> Array:
    """The keys or the values of an encoder."""
    if any(call.has(f"{role}_{each}") for each in ("strings", "strings_as_tensor")):
        raise call.unsupported(_TEXT, _ENCODE)
    if call.has(f"{role}_floats"):
        return numbers(call, f"{role}_floats")
    if call.has(f"{role}_int64s"):
        return numbers(call, f"{role}_int64s", DType.I64)
    tensor = numbers(call, f"{role}_tensor") if call.has(f"{role}_tensor") else None
    if tensor is None:
        raise call.unsupported(_TEXT, _ENCODE)
    return tensor


def _encoder(call: Call) -> Results:
    """The value of the key that an element equals, or the default."""
    keys, values = _table(call, "keys"), _table(call, "values")
    default: Array
    if call.has("default_tensor"):
        default = numbers(call, "default_tensor", DType.from_numpy(values.dtype)).reshape(())
    elif values.dtype.kind == "f":
        default = f32(call.real("default_float", -0.0))
    else:
        default = np.asarray(call.integer("default_int64", -1))
    at = _position(call, call.tensor(0), keys)
    table = np.append(values, default).astype(values.dtype)
    return (call.take(table, at),)


def _position(call: Call, x: str, keys: Array) -> str:
    """The number of the key that an element equals; that behind the last where it equals none."""
    dtype = call.dtype_of(x)
    keys = keys.astype(dtype.numpy)
    each = call.add("unsqueeze", x, axes=(len(call.sizes(x)),))
    is_equal = call.add("equal", each, keys)
    if dtype.is_float and np.isnan(keys).any():
        both = call.add("and", call.add("isnan", each), np.isnan(keys))
        is_equal = call.add("or", is_equal, both)
    last = len(keys)
    numbers_of = call.add("where", is_equal, np.arange(last), np.asarray(last))
    return call.add("reduce_min", numbers_of, axes=(len(call.sizes(x)),), keepdims=False)


def _one_hot(call: Call) -> Results:
    """A new dimension with 1 where an element is that category."""
    if call.has("cats_strings"):
        raise call.unsupported(_TEXT, _ENCODE)
    keys = numbers(call, "cats_int64s", DType.I64)
    if not call.flag("zeros", default=True):
        raise call.unsupported("it fails on unknown categories (zeros=0)")
    x = call.cast(call.operand(0), DType.I64)
    each = call.add("unsqueeze", x, axes=(len(call.sizes(x)),))
    return (call.add("cast", call.add("equal", each, keys), to=DType.F32),)


FEATURES: Table = (
    ("Scaler", _scaler),
    ("Normalizer", _normalizer),
    ("Imputer", _imputer),
    ("Binarizer", _binarizer),
    ("ArrayFeatureExtractor", _extractor),
    ("FeatureVectorizer", _vectorizer),
    ("LabelEncoder", _encoder),
    ("OneHotEncoder", _one_hot),
    *((name, partial(_refused, reason, remedy)) for name, reason, remedy in _REFUSED),
)
