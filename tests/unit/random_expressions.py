"""Random tensor expressions as a person writes them, and what NumPy makes of the same text.

An expression is Python text.  Ours executes it with `tensorwright.expr`; the reference executes the
same text with arrays for the indices and NumPy's functions for ours, so the two share nothing but
the text.  Every second expression has one mistake: it is refused, or equals NumPy all the same.
"""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tests.unit.expression_mistakes import BODIES, STATEMENTS
from tests.unit.expressions_in_numpy import NUMPY_NAMES, in_numpy

import tensorwright
from tensorwright import expr
from tensorwright.base import DType, InternalError, TensorwrightError

FLOATS = (DType.F32, DType.F64)
INTS = (DType.I8, DType.I16, DType.I32, DType.I64, DType.U8, DType.U32)
LETTERS = "ijkl"


@dataclass
class Case:
    """Statements, and the inputs that they read; `is_wrong`: one mistake is in it."""

    seed: int
    lines: list[str] = field(default_factory=list)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    is_wrong: bool = False

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


@dataclass
class Read:
    """A tensor that can be read: its extents and type; `is_plain`: small multiples of 1/2."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    is_plain: bool


class Writer:
    """Draws one expression."""

    def __init__(self, seed: int) -> None:
        self.case = Case(seed)
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.tensors: list[Read] = []
        self.extents: dict[str, int] = {}  # of the axes that the body may use

    # statements

    def write(self, *, is_wrong: bool) -> Case:
        for number in range(self.random.choice((0, 0, 1, 2))):
            self.stage(f"t{number}")
        self.case.is_wrong = is_wrong
        self.stage("y")
        return self.case

    def stage(self, name: str) -> None:
        draw = self.random
        shape = tuple(draw.choice((1, 2, 3, 5, 8, 9)) for _ in range(draw.choice((1, 1, 2, 2, 3))))
        own = LETTERS[: len(shape)]
        self.extents = dict(zip(own, shape, strict=True))
        folded = [f"{name}_{letter}" for letter in "pq"[: draw.choice((0, 0, 1, 1, 2))]]
        for axis in folded:
            extent = draw.choice((1, 2, 3, 4))
            self.line(f'{axis} = reduce_axis("{axis}", {extent})')
            self.extents[axis] = extent
        dtype = draw.choice((*FLOATS, *FLOATS, *INTS, DType.BOOL))
        body, dtype, is_plain = self.folded(dtype, folded) if folded else self.body(dtype)
        if self.case.is_wrong:
            self.mistake(shape, own, body, dtype)
            return
        self.line(f'{name} = compute("{name}", {shape}, lambda {", ".join(own)}: {body})')
        self.tensors.append(Read(name, shape, dtype, is_plain))

    def line(self, text: str) -> None:
        self.case.lines.append(text)

    def mistake(self, shape: tuple[int, ...], own: str, body: str, dtype: DType) -> None:
        """The last statement with one mistake in it."""
        axes = ", ".join(own)
        draw = self.random
        if draw.random() < 0.15:
            self.line(draw.choice(STATEMENTS).format(shape=shape, axes=axes, body=body))
            return
        if "_over(" in body.split("(")[0] + "(" or draw.random() < 0.3:
            self.extents = dict(zip(own, shape, strict=True))
            body = self.load(dtype, is_plain=True)
        extra = self.placeholder(shape, dtype)
        other = self.placeholder(
            (3,), draw.choice([t for t in (DType.F32, DType.I32) if t is not dtype])
        )
        names = {"v": body, "x": f"{extra.name}[{axes}]", "t": extra.name, "o": f"{other.name}[0]"}
        names |= {"i": own[0], "n": str(shape[0]), "rest": "".join(f", {each}" for each in own[1:])}
        names |= {"T": f"DType.{dtype.name}"}
        self.line('p, q = reduce_axis("p", 2), reduce_axis("q", 3)')
        self.line(
            f'y = compute("y", {shape}, lambda {axes}: {draw.choice(BODIES).format(**names)})'
        )

    def body(self, dtype: DType) -> tuple[str, DType, bool]:
        is_plain = self.random.random() < 0.5
        return self.value(dtype, 3, is_plain), dtype, is_plain

    def folded(self, dtype: DType, axes: list[str]) -> tuple[str, DType, bool]:
        is_bool = dtype is DType.BOOL
        folds = ("any_over", "all_over") if is_bool else ("sum_over", "max_over", "min_over")
        if len(axes) == 1 and not is_bool and self.random.random() < 0.2:
            folds = ("argmax_over", "argmin_over")
        fold = self.random.choice(folds)
        is_plain = fold.startswith("arg") or is_bool
        value = self.value(dtype, 2, is_plain)
        for axis in axes:  # every axis is used
            extra = self.load(dtype, is_plain, axis)
            value = f"({value} {'|' if is_bool else '+'} {extra})"
        kind = DType.I64 if fold.startswith("arg") else dtype
        return f"{fold}({value}, {', '.join(axes)})", kind, False

    # indices

    def index(self, depth: int = 2, name: str = "") -> str:
        draw = self.random
        if name:
            return name
        if depth == 0 or draw.random() < 0.3:
            return str(draw.randrange(4)) if draw.random() < 0.15 else draw.choice([*self.extents])
        form = draw.choice(INDICES).replace("1", str(draw.randrange(1, 5)))
        return re.sub(r"\ba\b", lambda _: self.index(depth - 1), form)

    def points(self, index: str) -> np.ndarray:
        """An index at all points of the axes."""
        names = list(self.extents)
        grid = np.ogrid[tuple(slice(self.extents[name]) for name in names)]
        found = eval(index, dict(NUMPY_NAMES), dict(zip(names, grid, strict=True)))
        return np.asarray(found)

    def condition(self, depth: int = 1) -> str:
        draw = self.random
        if depth and draw.random() < 0.4:
            form = draw.choice(("all_of({}, {})", "any_of({}, {})", "negate({})"))
            return re.sub("{}", lambda _: self.condition(0), form)
        sign = draw.choice(("<", "<=", ">", ">=", "==", "!="))
        return f"{self.index(1)} {sign} {self.index(1)}"

    def load(self, dtype: DType, is_plain: bool, name: str = "") -> str:
        """A read that stays inside: by its extent, by a condition, by a clamp, or by data."""
        draw = self.random
        indices = [self.index(2, name)]
        indices += [self.index() for _ in range(0 if name else draw.choice((0, 0, 1)))]
        known = [
            t
            for t in self.tensors
            if t.dtype is dtype and len(t.shape) == len(indices) and t.is_plain >= is_plain
        ]
        if known and not name and draw.random() < 0.6:
            tensor = draw.choice(known)
        else:
            places = [self.points(index) for index in indices]
            shape = tuple(
                max(1, int(place.max()) + 1 - draw.choice((0, 0, 0, 2))) for place in places
            )
            tensor = self.placeholder(shape, dtype)
        inside, guards = [], []
        for index, extent in zip(indices, tensor.shape, strict=True):
            place = self.points(index)
            if place.min() >= 0 and place.max() < extent:
                inside.append(index)
            elif name or draw.random() < 0.5:
                guards += [f"{index} >= 0", f"{index} < {extent}"]
                inside.append(index)
            else:
                inside.append(
                    draw.choice(
                        (f"({index}) % {extent}", f"maximum(minimum({index}, {extent - 1}), 0)")
                    )
                )
        if not name and draw.random() < 0.1:
            inside[0] = self.by_data(tensor.shape[0])
        read = f"{tensor.name}[{', '.join(inside)}]"
        other = self.constant(dtype)
        return f"select(all_of({', '.join(guards)}), {read}, {other})" if guards else read

    def by_data(self, extent: int) -> str:
        """An element of a tensor of integers as an index, some outside."""
        at = self.index(1)
        count = max(1, int(self.points(at).max()) + 1)
        at = at if self.points(at).min() >= 0 else "0"
        name = f"x{len(self.case.arrays)}"
        numbers = self.numbers.integers(-extent - 2, extent + 3, (count,))
        self.declare(name, numbers.astype(np.int32), DType.I32)
        return f"{name}[{at}]"

    def placeholder(self, shape: tuple[int, ...], dtype: DType) -> Read:
        name = f"x{len(self.case.arrays)}"
        if dtype is DType.BOOL:
            array = self.numbers.integers(0, 2, shape)
        elif dtype.is_float:
            array = self.numbers.integers(-8, 9, shape) / 2
        else:
            array = self.numbers.integers(0 if not dtype.is_signed else -9, 10, shape)
        self.declare(name, array.astype(dtype.numpy), dtype)
        self.tensors.append(Read(name, shape, dtype, is_plain=True))
        return self.tensors[-1]

    def declare(self, name: str, array: np.ndarray, dtype: DType) -> None:
        self.case.arrays[name] = array
        self.case.lines.insert(
            0, f'{name} = placeholder("{name}", {array.shape}, DType.{dtype.name})'
        )

    # values

    def constant(self, dtype: DType) -> str:
        if dtype is DType.BOOL:
            return self.random.choice(("True", "False"))
        number = self.random.randrange(0, 5)
        return f"{number / 2}" if dtype.is_float else f"{number}"

    def value(self, dtype: DType, depth: int, is_plain: bool) -> str:
        """A value of a type; `is_plain`: exact, so that rounding it is, too."""
        draw = self.random
        if depth == 0 or draw.random() < 0.1:
            is_index = dtype.is_float and draw.random() < 0.1
            index = f"cast({self.index()}, DType.{dtype.name})"
            return index if is_index else self.load(dtype, is_plain)
        forms = LOGIC if dtype is DType.BOOL else FLOATING if dtype.is_float else INTEGRAL
        if dtype.is_float and not is_plain:
            forms = (*forms, *ROUNDED)
        other = draw.choice((DType.F32, DType.I32, DType.U8))  # of what is compared
        parts = {
            "a": lambda: self.value(dtype, depth - 1, is_plain),
            "b": lambda: self.constant(dtype) if draw.random() < 0.3 else parts["a"](),
            "x": lambda: self.load(dtype, is_plain=True),
            "i": lambda: self.value(DType.I32, depth - 1, is_plain=True),
            "w": lambda: self.value(draw.choice(INTS), depth - 1, is_plain=True),
            "l": lambda: self.value(DType.BOOL, depth - 1, is_plain=True),
            "c": self.condition,
            "o": lambda: self.value(other, depth - 1, is_plain=True),
            "k": lambda: self.constant(other) if draw.random() < 0.4 else parts["o"](),
            "s": lambda: draw.choice(("<", "<=", ">", ">=", "==", "!=")),
            "T": lambda: f"DType.{dtype.name}",
            "N": lambda: f"np.{dtype.numpy}",
        }
        return re.sub(r"{(\w)}", lambda found: parts[found[1]](), draw.choice((*forms, *CHOICES)))


INDICES = (
    "(a + a)",
    "(a * 1 + a)",
    "(a - a)",
    "(1 - a)",
    "(-a)",
    "(+a)",
    "(a // 1)",
    "(a % 1)",
    "abs(a)",
    "(a ** 2)",
    "minimum(a, a)",
    "maximum(a, 1)",
    "(np.int64(1) + a)",
    "(1 * a)",
    "mod(a, 1)",
)
CHOICES = ("select({c}, {a}, {a})", "select({l}, {a}, {b})")
LOGIC = (
    "logical_and({a}, {a})",
    "logical_xor({a}, {a})",
    "logical_not({a})",
    "({a} & {a})",
    "({a} | {a})",
    "({a} ^ {a})",
    "(~{a})",
    "({a} + {a})",
    "({o} {s} {k})",
    "({o} {s} {k})",
    "equal({o}, {k})",
    "cast({c}, DType.BOOL)",
    "({o} {s} {k})",
    "max_of({a}, {a})",
)
FLOATING = (
    "({a} + {b})",
    "({a} - {b})",
    "({a} * 0.5 + {b})",
    "(-{a})",
    "(+{a})",
    "abs({a})",
    "max_of({a}, {b})",
    "min_of({a}, {b})",
    "relu({a})",
    "(1.0 - {a})",
    "clip({a}, -2.0, 1.5)",
    "({N}(2) * {a})",
    "cast({i} % 7, {T})",
    "({x} // (abs({x}) + 0.5))",
    "(2.5 % (abs({x}) + 1.0))",
    "({x} % (abs({x}) + 0.5))",
    "({x} // (-abs({x}) - 0.5))",
    "(2.5 // (abs({x}) + 1.0))",
    "({x} // 1.5)",
    "({x} % 1.5)",
    "round({x})",
    "floor({x})",
    "math.ceil({x})",
    "math.trunc({x})",
    "({x} ** 2)",
    "divmod({x}, 1.5)[1]",
    "sign({x})",
    "fmod({x}, 1.5)",
    "math.floor({x})",
)
ROUNDED = (
    "({a} / (abs({a}) + 1.0))",
    "({a} / 3.0)",
    "(1.0 / (1.0 + abs({a})))",
    "tanh({a})",
    "exp(clip({a}, -3.0, 3.0))",
    "sqrt(abs({a}))",
    "(2.0 ** clip({a}, -3.0, 3.0))",
    "sigmoid({a})",
    "(abs({x}) ** 1.5)",
)
INTEGRAL = (
    "({a} + {b})",
    "({a} - {b})",
    "({a} * {b})",
    "(-{a})",
    "abs({a})",
    "({a} // {b})",
    "({a} % {b})",
    "(7 // {a})",
    "(7 % {a})",
    "({a} & {b})",
    "({a} | {b})",
    "({a} ^ {b})",
    "(~{a})",
    "({a} << 3)",
    "({a} >> 2)",
    "max_of({a}, {b})",
    "min_of({a}, {b})",
    "({a} ** 2)",
    "round({a})",
    "({N}(3) * {a})",
    "divmod({a}, 3)[0]",
    "cast({l}, {T})",
    "cast({w}, {T})",
)
OUR_NAMES: dict[str, Any] = {
    **vars(expr),
    "np": np,
    "DType": DType,
    "math": math,
}


def case_of(seed: int) -> Case:
    """The expression of a seed; every odd one has a mistake."""
    return Writer(seed).write(is_wrong=bool(seed % 2))


def fault_of(seed: int) -> tuple[str, str]:
    """("right" | "refused" | "wrong", what is wrong) of the expression of a seed."""
    case = case_of(seed)
    names = dict(OUR_NAMES)
    try:
        exec(case.text, names)
        executable = tensorwright.compile(names["y"], threads=1)
    except (TypeError, TensorwrightError) as error:
        is_fair = case.is_wrong and not isinstance(error, InternalError)
        return ("refused" if is_fair else "wrong"), f"{type(error).__name__}: {error}\n{case.text}"
    given = {
        each.name: case.arrays.get(each.name, np.ones(each.shape, each.dtype.numpy))
        for each in executable.inputs
    }
    found = executable.run(given)["y"]
    case.arrays = {**given, **case.arrays}
    expected = in_numpy(case.text, case.arrays)
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return (
            "wrong",
            f"{found.dtype} {found.shape}, not {expected.dtype} {expected.shape}\n{case.text}",
        )
    if not np.allclose(found, expected, rtol=2e-5, atol=2e-5, equal_nan=True):
        return "wrong", f"{found.ravel()[:8]}, not {expected.ravel()[:8]}\n{case.text}"
    return "right", ""
