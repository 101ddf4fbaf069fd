"""The functions of the value language; `value.py` says what they mean for each type."""

from __future__ import annotations

from enum import Enum

from tensorwright.base import DType


class Fn(Enum):
    """The functions of the value language: (text, number of arguments)."""

    __hash__ = object.__hash__  # a member is one object; Enum hashes its name, each time in Python

    ADD = ("+", 2)
    SUB = ("-", 2)
    MUL = ("*", 2)
    DIV = ("/", 2)
    MOD = ("fmod", 2)
    FLOORMOD = ("floormod", 2)
    MIN = ("min", 2)
    MAX = ("max", 2)
    POW = ("pow", 2)
    ATAN2 = ("atan2", 2)
    NEG = ("neg", 1)
    ABS = ("abs", 1)
    SIGN = ("sign", 1)
    FLOOR = ("floor", 1)
    CEIL = ("ceil", 1)
    ROUND = ("round", 1)  # to nearest, ties to even
    TRUNC = ("trunc", 1)
    SQRT = ("sqrt", 1)
    RSQRT = ("rsqrt", 1)
    EXP = ("exp", 1)
    LOG = ("log", 1)
    LOG1P = ("log1p", 1)
    EXPM1 = ("expm1", 1)
    SIN = ("sin", 1)
    COS = ("cos", 1)
    TAN = ("tan", 1)
    ASIN = ("asin", 1)
    ACOS = ("acos", 1)
    ATAN = ("atan", 1)
    SINH = ("sinh", 1)
    COSH = ("cosh", 1)
    TANH = ("tanh", 1)
    ASINH = ("asinh", 1)
    ACOSH = ("acosh", 1)
    ATANH = ("atanh", 1)
    ERF = ("erf", 1)
    SIGMOID = ("sigmoid", 1)
    ISNAN = ("isnan", 1)
    ISINF = ("isinf", 1)
    LT = ("<", 2)
    LE = ("<=", 2)
    EQ = ("==", 2)
    NE = ("!=", 2)
    AND = ("and", 2)
    OR = ("or", 2)
    XOR = ("xor", 2)
    NOT = ("not", 1)
    BITAND = ("&", 2)
    BITOR = ("|", 2)
    BITXOR = ("^", 2)
    BITNOT = ("~", 1)
    SHL = ("<<", 2)
    SHR = (">>", 2)

    @property
    def text(self) -> str:
        """How the function prints."""
        return self.value[0]

    @property
    def arity(self) -> int:
        """How many arguments it takes."""
        return self.value[1]

    @property
    def gives_bool(self) -> bool:
        """Whether the result is a bool whatever the arguments are."""
        return self in _BOOL_RESULT

    @property
    def is_infix(self) -> bool:
        """Whether it prints between its two arguments."""
        return self in _INFIX

    def takes(self, dtype: DType) -> bool:
        """Whether arguments of a type have the function."""
        if self in _LOGIC:
            return dtype is DType.BOOL
        if self in _BITS:
            return not dtype.is_float
        if self in _SHIFTS:
            return dtype.is_int
        if self in _NUMERIC:
            return dtype is not DType.BOOL
        return dtype.is_float or self in _EVERY_TYPE


_LOGIC = frozenset((Fn.AND, Fn.OR, Fn.XOR, Fn.NOT))
_BITS = frozenset((Fn.BITAND, Fn.BITOR, Fn.BITXOR, Fn.BITNOT))
_SHIFTS = frozenset((Fn.SHL, Fn.SHR))
_NUMERIC = frozenset(
    {Fn.SUB, Fn.DIV, Fn.MOD, Fn.FLOORMOD, Fn.POW, Fn.NEG, Fn.ABS, Fn.SIGN}
    | {Fn.FLOOR, Fn.CEIL, Fn.ROUND, Fn.TRUNC}
)
_EVERY_TYPE = frozenset(
    {Fn.ADD, Fn.MUL, Fn.MIN, Fn.MAX, Fn.LT, Fn.LE, Fn.EQ, Fn.NE, Fn.ISNAN, Fn.ISINF}
)
_BOOL_RESULT = frozenset(
    (Fn.LT, Fn.LE, Fn.EQ, Fn.NE, Fn.AND, Fn.OR, Fn.XOR, Fn.NOT, Fn.ISNAN, Fn.ISINF)
)
_INFIX = frozenset(
    {Fn.ADD, Fn.SUB, Fn.MUL, Fn.DIV, Fn.LT, Fn.LE, Fn.EQ, Fn.NE, Fn.AND, Fn.OR, Fn.XOR}
    | {Fn.BITAND, Fn.BITOR, Fn.BITXOR, Fn.SHL, Fn.SHR}
)
