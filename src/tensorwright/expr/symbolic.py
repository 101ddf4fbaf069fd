"""Objects that stand for numbers which exist only when a program runs.

Python and NumPy ask such an object questions that it cannot answer: whether it is true (`if`,
`and`, `max`, 0 < i < 5), which number it is (`math.exp`, a list read at an index), what an array of
it would be (`np.maximum`).  Each of these raises an error that says what to write instead.

Inside the body of a `compute`, and only there, `==` and `!=` make conditions as `<` does.
Everywhere else they say whether two expressions are the same, which is what dictionaries ask.

Classes of which two equal instances are one object.

The same expressions are built many times: by each step of a schedule, for each sketch of a space.
Where equal nodes are one object, comparing and hashing them needs no walk, and a node can keep the
values derived from it.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar
from weakref import ref

import numpy as np

from tensorwright.base import ExpressionError

_FIRST_SWEEP = 1 << 12  # nodes; later when twice as many live as after the sweep before
_LOCK = threading.Lock()


class _InternedClass(type):
    """Gives the existing instance for some fields, if there is one.

    The table refers to instances weakly, and drops dead ones from time to time. Any thread may
    build instances.
    """

    __match_args__: tuple[str, ...]
    _nodes: dict[tuple[Any, ...], ref[Any]]
    _sweep_at: int

    def __init__(cls, *arguments: Any) -> None:
        super().__init__(*arguments)
        cls._nodes = {}
        cls._sweep_at = _FIRST_SWEEP

    def __call__(cls, *values: Any, **named: Any) -> Any:
        """The existing instance with these fields, or a new one."""
        if named:
            made = super().__call__(*values, **named)
            values = tuple(getattr(made, field.name) for field in fields(made))
        reference = cls._nodes.get(values)
        node = reference() if reference is not None else None
        return cls._add(values) if node is None else node

    def _add(cls, values: tuple[Any, ...]) -> Any:
        made = super().__call__(*values)
        full = values
        if len(values) < len(cls.__match_args__):  # defaults are left out
            full = tuple(getattr(made, name) for name in cls.__match_args__)
        with _LOCK:
            reference = cls._nodes.get(full)
            node = reference() if reference is not None else None
            if node is not None:  # another thread was faster, or they were given
                cls._nodes[values] = ref(node)
                return node
            cls._nodes[full] = cls._nodes[values] = ref(made)
            if len(cls._nodes) > cls._sweep_at:
                cls._sweep()
        return made

    def _sweep(cls) -> None:
        """Drop dead entries; instances that only those held go with the next sweep."""
        cls._nodes = {key: each for key, each in list(cls._nodes.items()) if each() is not None}
        cls._sweep_at = max(_FIRST_SWEEP, 2 * len(cls._nodes))


class Interned(metaclass=_InternedClass):
    """Base of frozen dataclasses with `slots=True, eq=False`: equal ones are one object."""

    __slots__ = ("__weakref__",)

    def __reduce__(self) -> tuple[type[Interned], tuple[Any, ...]]:
        names: tuple[str, ...] = getattr(type(self), "__match_args__", ())
        return type(self), tuple(getattr(self, name) for name in names)


STAGE = "expression"
_CONTAINERS = (tuple, list, dict, set, frozenset)


class _Bodies(threading.local):
    """How many calls of bodies surround this thread; mutable."""

    depth = 0


_BODIES = _Bodies()


def is_in_body() -> bool:
    """Whether the body of a `compute` is being called."""
    return _BODIES.depth > 0


@contextmanager
def in_body() -> Iterator[None]:
    """While the body of a `compute` is called, `==` makes conditions."""
    _BODIES.depth += 1
    try:
        yield
    finally:
        _BODIES.depth -= 1


def refused(where: object, reason: str, remedy: str = "") -> ExpressionError:
    """The error for an expression that means nothing."""
    return ExpressionError(stage=STAGE, where=text_of(where), reason=reason, remedy=remedy)


def noun_of(operand: object) -> str:
    """The noun for an operand in messages."""
    if isinstance(operand, Symbolic):
        return operand.noun
    if isinstance(operand, np.ndarray):
        return "a NumPy array"
    if isinstance(operand, slice):
        return f"the slice {text_of(operand)}"
    if isinstance(operand, _CONTAINERS):
        return f"a {type(operand).__name__} of {len(operand)}"
    return f"{operand!r}, of type {type(operand).__name__},"


def text_of(operand: object) -> str:
    """How an operand or an index is written; of what holds several, only how many."""
    if operand is Ellipsis:
        return "..."
    if isinstance(operand, slice):
        ends = (operand.start, operand.stop, operand.step)
        texts = ["" if end is None else str(end) for end in ends]
        return ":".join(texts if texts[2] else texts[:2])
    return noun_of(operand) if isinstance(operand, _CONTAINERS) else str(operand)


def remedy_of(operand: object) -> str:
    """The remedy for an operand that is neither a number nor a value."""
    if isinstance(operand, Symbolic):
        return operand.as_value
    if isinstance(operand, np.ndarray):
        return "declare a placeholder, read that, and give the array when it runs"
    if isinstance(operand, _CONTAINERS):
        return "give a number or a value: each tensor has a compute of its own"
    return "give a number or a value"


def as_number(operand: object) -> bool | int | float | None:
    """A number of Python or NumPy as one of Python; None for anything else."""
    if isinstance(operand, np.generic) or (isinstance(operand, np.ndarray) and not operand.ndim):
        operand = operand.item()  # np.float64 is a float, too, but with operators of its own
    return operand if isinstance(operand, (bool, int, float)) else None


def _refusing(sign: str, remedy: str = "") -> Callable[[Any, object], NoReturn]:
    def operation(self: Symbolic, _: object = None) -> NoReturn:
        raise refused(self, f"{self.noun} has no {sign}", remedy or self.as_value)

    return operation


_FOLD = (
    'sum_over(x[i, k], k), or another fold, with k = reduce_axis("k", extent); '
    "x.shape has the extents of a tensor, k.extent is that of an axis"
)


class Symbolic:
    """Base of everything that a tensor expression is written with.

    noun      what it is, for messages
    as_value  how a value is made of it, or which operations it has
    """

    __slots__ = ()

    noun: ClassVar[str] = "this"
    as_value: ClassVar[str] = ""
    instead_of_truth: ClassVar[str] = (
        "select(condition, then, otherwise) for if; all_of, any_of, negate for and, or, not; "
        "max_of, min_of of values and maximum, minimum of indices for max, min"
    )

    __hash__ = object.__hash__

    def __bool__(self) -> NoReturn:
        reason = (
            f"{self.noun} has no truth value before the program runs, so that if, and, or, not, "
            "max, min and chains like 0 < i < 5 mean nothing"
        )
        raise refused(self, reason, self.instead_of_truth)

    def __float__(self) -> NoReturn:
        raise refused(
            self,
            f"{self.noun} is not a number before the program runs, as float and the functions of "
            "math need",
            "the functions of tensorwright.expr: exp, log, sqrt, sin, tanh, floor, pow_, ...; "
            "cast(v, DType.F32) converts",
        )

    __int__ = __complex__ = __float__

    def __index__(self) -> NoReturn:
        raise refused(
            self,
            f"{self.noun} is not a number before the program runs, as range and the places of "
            "lists and arrays need",
            "declare a placeholder for what is read; its numbers are given when it runs",
        )

    def __eq__(self, other: object) -> Any:
        return self.compares("==", other) if is_in_body() and self is not other else self is other

    def __ne__(self, other: object) -> Any:
        is_asked = is_in_body() and self is not other
        return self.compares("!=", other) if is_asked else self is not other

    def compares(self, sign: str, other: object) -> Any:
        """The comparison that == or != of two operands in a body is."""
        raise refused(f"{self} {sign} {other}", f"{self.noun} has no {sign}", self.as_value)

    if not TYPE_CHECKING:  # a type checker must see the operators that there are
        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refusing("arithmetic")
        __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = _refusing("division")
        __mod__ = __rmod__ = _refusing("%")
        __divmod__ = __rdivmod__ = _refusing("divmod")
        __matmul__ = __rmatmul__ = _refusing("@", "sum_over(x[i, k] * y[k, j], k)")
        __iter__ = _refusing("parts that Python can walk", _FOLD)  # else it reads x[0], x[1], ...
        __len__ = _refusing("length that Python can ask for", _FOLD)
        __contains__ = _refusing("parts that Python can look for", "any_over(x[k] == v, k)")
        __pow__ = __rpow__ = _refusing("power")
        __neg__ = __pos__ = __abs__ = __round__ = _refusing("arithmetic")
        __lt__ = __le__ = __gt__ = __ge__ = _refusing("order")
        __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _refusing("&, | and ^")
        __invert__ = _refusing("~")
        __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _refusing("shift")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's numbers as operands work as Python's do; its functions are refused."""
        function = _OPERATORS.get(ufunc.__name__)
        if function is None or method != "__call__" or options:
            raise _no_numpy(self, ufunc.__name__)
        return function(*(_operand(each) for each in inputs))

    def __array_function__(self, function: Any, *_: object) -> NoReturn:
        raise _no_numpy(self, function.__name__)

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise refused(
            self,
            f"{self.noun} is not an array before the program runs, nor a place in one",
            f"declare a placeholder for what is read; {_NUMPY_REMEDY}",
        )


class MissingAttributeError(ExpressionError, AttributeError):
    """Something has no such attribute; `hasattr` asks for an AttributeError."""


def no_attribute(operand: Symbolic, name: str) -> MissingAttributeError:
    """The error for an attribute that arrays may have, and expressions do not."""
    reason = f"{operand.noun} is not an array, and has no attribute {name}"
    remedy = _INSTEAD_OF_ATTRIBUTE.get(name) or _instead_of_function(name)
    return MissingAttributeError(stage=STAGE, where=str(operand), reason=reason, remedy=remedy)


def _refused_attribute(name: str) -> property:
    def refuse(self: Symbolic) -> NoReturn:
        raise no_attribute(self, name)

    return property(refuse)


for _name in set(dir(np.ndarray)) - {"shape", "dtype", "var"}:  # which some of ours have
    if not _name.startswith("_"):
        setattr(Symbolic, _name, _refused_attribute(_name))


_Class = TypeVar("_Class", bound=type[Symbolic])


def equal_by_fields(cls: _Class) -> _Class:
    """Let `==` of a dataclass look at its fields, but make a condition inside a body."""
    same_fields: Callable[[Any, object], Any] = cls.__eq__

    def equal(self: Symbolic, other: object) -> Any:
        return self.compares("==", other) if is_in_body() else same_fields(self, other)

    def not_equal(self: Symbolic, other: object) -> Any:
        if is_in_body():
            return self.compares("!=", other)
        is_same = same_fields(self, other)
        return is_same if is_same is NotImplemented else not is_same

    cls.__eq__, cls.__ne__ = equal, not_equal  # type: ignore[method-assign]
    return cls


_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "left_shift": operator.lshift,
    "right_shift": operator.rshift,
}
"""What NumPy calls where one of its numbers stands left of an operator."""

INSTEAD_OF_NUMPY = {
    "maximum": "max_of",
    "minimum": "min_of",
    "fmax": "max_of",
    "fmin": "min_of",
    "absolute": "abs_",
    "float_power": "pow_",
    "rint": "round_",
    "round": "round_",
    "around": "round_",
    "isnan": "is_nan",
    "isinf": "is_inf",
    "invert": "bit_not",
    "where": "select",
    "sum": "sum_over",
    "prod": "prod_over",
    "max": "max_over",
    "amax": "max_over",
    "min": "min_over",
    "amin": "min_over",
    "any": "any_over",
    "all": "all_over",
    "argmax": "argmax_over",
    "argmin": "argmin_over",
    "dot": "sum_over",
    "matmul": "sum_over",
    "einsum": "sum_over",
    "mean": "sum_over",
}
"""Functions of NumPy that are called otherwise here."""

SAME_AS_NUMPY = frozenset(
    "ceil clip cos exp expm1 floor fmod log log1p logical_and logical_not logical_or logical_xor "
    "sign sin sqrt tan tanh trunc".split()
)
"""Functions that have NumPy's names here."""

_NUMPY_REMEDY = "operators, and functions of tensorwright.expr: exp, max_of, select, sum_over, ..."


_TRANSPOSE = "an order of indices transposes: lambda i, j: x[j, i]"
_RESHAPE = "arithmetic of indices reshapes: lambda i: x[i // 4, i % 4]"

_INSTEAD_OF_ATTRIBUTE = {
    **dict.fromkeys(("T", "mT", "transpose", "swapaxes", "permute"), _TRANSPOSE),
    **dict.fromkeys(("reshape", "ravel", "flatten", "flat", "view", "squeeze"), _RESHAPE),
    **dict.fromkeys(("ndim", "size"), "x.shape has the extents of a tensor"),
    **dict.fromkeys(("astype", "to"), "cast of tensorwright.expr"),
}
"""Attributes of arrays, and what is written in their place."""


def _instead_of_function(name: str) -> str:
    ours = name if name in SAME_AS_NUMPY else INSTEAD_OF_NUMPY.get(name)
    return _NUMPY_REMEDY if ours is None else f"{ours} of tensorwright.expr"


def _no_numpy(operand: Symbolic, name: str) -> ExpressionError:
    reason = f"np.{name} computes arrays, and {operand.noun} is not an array"
    return refused(operand, reason, _instead_of_function(name))


def _operand(operand: Any) -> Any:
    if isinstance(operand, Symbolic):
        return operand
    number = as_number(operand)
    if number is None:
        raise refused(noun_of(operand), "it cannot be part of an expression", remedy_of(operand))
    return number
