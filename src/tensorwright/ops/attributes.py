"""Read attributes with their types, and say what is wrong with an application of an operator.

A rule raises `fault(reason, remedy)`; `infer_types` adds the operator and the node.
"""

from __future__ import annotations

from typing import Any

from tensorwright.base import Attributes, DType, ModelError, TensorType
from tensorwright.expr import Index, IndexExpr
from tensorwright.ops.named_sizes import are_equal, shape_text, sizes_of
from tensorwright.ops.operator import Attribute

FLOATS = frozenset(dtype for dtype in DType if dtype.is_float)
INTS = frozenset(dtype for dtype in DType if dtype.is_int)
NUMBERS = FLOATS | INTS
SIGNED = frozenset(dtype for dtype in NUMBERS if dtype.is_signed)
BOOLS = frozenset({DType.BOOL})
NARROW = frozenset({DType.F16, DType.BF16})
ANY_DTYPE = frozenset(DType)
POSITIONS = frozenset({DType.I32, DType.I64})

_DTYPE_SETS = {
    FLOATS: "a float",
    INTS: "an integer",
    NUMBERS: "a number",
    SIGNED: "a signed number",
    BOOLS: "bool",
    POSITIONS: "i32 or i64",
}


def fault(reason: str, remedy: str = "") -> ModelError:
    """The error that a rule raises; `infer_types` adds the operator and the node."""
    return ModelError(stage="operators", where="", reason=reason, remedy=remedy)


def require_dtype(name: str, given: TensorType, allowed: frozenset[DType]) -> None:
    """Refuse an input whose element type is not among `allowed`."""
    if given.dtype not in allowed:
        wanted = _DTYPE_SETS.get(allowed) or " or ".join(sorted(map(str, allowed)))
        raise fault(f"input {name} has elements of type {given.dtype}, not {wanted}")


def require_same_dtype(names: tuple[str, ...], given: tuple[TensorType, ...]) -> None:
    """Refuse inputs whose element types differ."""
    if len({each.dtype for each in given}) > 1:
        dtypes = ", ".join(f"{n} is {t.dtype}" for n, t in zip(names, given, strict=True))
        raise fault(f"the inputs differ in element type: {dtypes}", "cast them to one type")


def require_rank(name: str, given: TensorType, least: int, most: int | None = None) -> None:
    """Refuse an input with too few or too many dimensions."""
    rank = len(given.shape)
    if rank < least or (most is not None and rank > most):
        if most is None:
            wanted = f"at least {least}"
        elif least == most:
            wanted = f"{least}"
        else:
            wanted = f"{least} to {most}"
        raise fault(f"input {name} has {rank} dimensions {given.shape}, not {wanted}")


def require_shape(name: str, given: TensorType, wanted: tuple[Index, ...]) -> None:
    """Refuse an input of another shape."""
    own = sizes_of(given)
    if not are_equal(own, wanted):
        raise fault(f"input {name} has shape {shape_text(own)}, not {shape_text(wanted)}")


def int_of(attributes: Attributes, name: str) -> int:
    """An integer attribute."""
    value = attributes[name]
    if isinstance(value, bool) or not isinstance(value, int):
        raise fault(f"attribute {name} must be an integer, not {value!r}")
    return value


def size_in(attributes: Attributes, name: str) -> Index:
    """An attribute that is an integer, or a named size."""
    value = attributes[name]
    return value if isinstance(value, IndexExpr) else int_of(attributes, name)


def float_of(attributes: Attributes, name: str) -> float:
    """A number attribute."""
    value = attributes[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise fault(f"attribute {name} must be a number, not {value!r}")
    return value


def scalar_of(attributes: Attributes, name: str) -> float | int | bool:
    """A number or bool attribute: the value of an element."""
    value = attributes[name]
    return value if isinstance(value, bool) else float_of(attributes, name)


def bool_of(attributes: Attributes, name: str) -> bool:
    """A bool attribute; 0 and 1 are taken too."""
    value = attributes[name]
    if not isinstance(value, bool) and value not in (0, 1):
        raise fault(f"attribute {name} must be true or false, not {value!r}")
    return bool(value)


def text_of(attributes: Attributes, name: str, allowed: tuple[str, ...] = ()) -> str:
    """A text attribute, one of `allowed` where that is given."""
    value = attributes[name]
    if not isinstance(value, str):
        raise fault(f"attribute {name} must be a text, not {value!r}")
    if allowed and value not in allowed:
        raise fault(f"attribute {name} is {value!r}", "one of " + ", ".join(allowed))
    return value


def dtype_of(attributes: Attributes, name: str) -> DType:
    """An element type attribute."""
    value = attributes[name]
    if not isinstance(value, DType):
        raise fault(f"attribute {name} must be an element type, not {value!r}")
    return value


def ints_of(attributes: Attributes, name: str) -> tuple[int, ...]:
    """An attribute that is a tuple of integers."""
    return tuple(int(item) for item in _numbers_of(attributes, name, int, "integers"))


def sizes_in(attributes: Attributes, name: str) -> tuple[Index, ...]:
    """An attribute that is a tuple of integers, or of named sizes."""
    value = _numbers_of(attributes, name, (int, IndexExpr), "integers")
    return tuple(item if isinstance(item, IndexExpr) else int(item) for item in value)


def floats_of(attributes: Attributes, name: str) -> tuple[float, ...]:
    """An attribute that is a tuple of numbers."""
    return tuple(float(item) for item in _numbers_of(attributes, name, (int, float), "numbers"))


def _numbers_of(
    attributes: Attributes, name: str, kind: type[int] | tuple[type, ...], what: str
) -> tuple[Any, ...]:
    value = attributes[name]
    if not isinstance(value, tuple) or not all(isinstance(item, kind) for item in value):
        if isinstance(value, tuple) and any(isinstance(item, IndexExpr) for item in value):
            remedy = "give a number for each named size"
            given = f"({', '.join(map(str, value))})"
            raise fault(f"attribute {name} must be a tuple of {what}, not {given}", remedy)
        raise fault(f"attribute {name} must be a tuple of {what}, not {value!r}")
    return value


def per_axis(attributes: Attributes, name: str, count: int, default: int) -> tuple[int, ...]:
    """One integer per axis; an empty tuple stands for the default everywhere."""
    values = ints_of(attributes, name) or (default,) * count
    if len(values) != count:
        raise fault(f"attribute {name} {values} has {len(values)} values, not {count}")
    return values


AXIS = Attribute("axis", -1, "the dimension; negative counts from the last")
EPSILON = Attribute("epsilon", 1e-5, "is added to the variance")
KEEPDIMS = Attribute("keepdims", default=True, doc="keep the reduced dimensions with extent 1")
SORTED = Attribute("sorted", default=True, doc="in order of the values")
