"""The functions of the value language in C, on elements and on vectors.

Semantics are those of `tensorwright.expr`: integers wrap, a shift by the width or more gives 0 (or
the sign), an integer divided by 0 gives 0, MIN and MAX propagate NaN. A function without a
vector operator is done lane by lane; compilers put such lanes together again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tensorwright.base import DType
from tensorwright.codegen.backend import without_meaning
from tensorwright.codegen.c_family.dialect import Val, held, mask_dtype, unsigned_dtype
from tensorwright.codegen.c_family.helpers import Helpers
from tensorwright.expr import Fn

_ARITHMETIC = {Fn.ADD: "+", Fn.SUB: "-", Fn.MUL: "*"}
_BITWISE = {Fn.BITAND: "&", Fn.BITOR: "|", Fn.BITXOR: "^"}
_RELATIONS = {Fn.LT: "<", Fn.LE: "<=", Fn.EQ: "==", Fn.NE: "!="}
_ON_BOOLS = {
    **dict.fromkeys((Fn.ADD, Fn.MAX, Fn.OR, Fn.BITOR), "|"),
    **dict.fromkeys((Fn.MUL, Fn.MIN, Fn.AND, Fn.BITAND), "&"),
    **dict.fromkeys((Fn.SUB, Fn.XOR, Fn.BITXOR, Fn.NE), "^"),
}
_UNCHANGED = (Fn.ABS, Fn.SIGN, Fn.FLOOR, Fn.CEIL, Fn.ROUND, Fn.TRUNC)
_ROUNDING = (Fn.FLOOR, Fn.CEIL, Fn.ROUND, Fn.TRUNC)


class Operations:
    """Writes operations; `bind` gives a value that is written more than once a name."""

    def __init__(self, helpers: Helpers, bind: Callable[[Val], Val]) -> None:
        self.helpers = helpers
        self.dialect = helpers.dialect
        self.bind = bind

    def apply(self, fn: Fn, args: tuple[Val, ...]) -> Val:
        """Apply a function; scalars are spread over the lanes of the others."""
        dtype = args[0].dtype
        lanes = max(arg.lanes for arg in args)
        result = DType.BOOL if fn in _RELATIONS or fn in (Fn.ISNAN, Fn.ISINF) else dtype
        if lanes > 1:
            vector = self._on_vectors(fn, args, lanes)
            if vector is not None:
                return self.rounded(Val(vector, result, lanes))
            return self.by_lane(lambda *parts: self.apply(fn, parts), result, args)
        texts = tuple(arg.text for arg in args)
        if dtype is DType.BOOL:
            return Val(self._on_bools(fn, *texts), result)
        if dtype.is_float:
            return self.rounded(Val(self._on_floats(fn, dtype, *texts), result))
        return Val(self._on_ints(fn, dtype, *texts), result)

    def _on_bools(self, fn: Fn, *args: str) -> str:
        if fn in _ON_BOOLS:
            return f"({args[0]} {_ON_BOOLS[fn]} {args[1]})"
        if fn in _RELATIONS:
            return f"({args[0]} {_RELATIONS[fn]} {args[1]})"
        if fn in (Fn.NOT, Fn.BITNOT):
            return f"(!{args[0]})"
        if fn in _UNCHANGED:
            return args[0]
        raise without_meaning(fn, DType.BOOL)

    def _on_floats(self, fn: Fn, dtype: DType, *args: str) -> str:
        operator = _ARITHMETIC.get(fn) or _RELATIONS.get(fn) or ("/" if fn is Fn.DIV else None)
        if operator is not None:
            return f"({args[0]} {operator} {args[1]})"
        if fn is Fn.NEG:
            return f"(-{args[0]})"
        if fn is Fn.ISNAN:
            return f"(isnan({args[0]}) != 0)"
        return self._called(fn, dtype, *args)

    def _on_ints(self, fn: Fn, dtype: DType, *args: str) -> str:
        kind = self.dialect.element(dtype)
        wide = self.dialect.element(DType.U64 if dtype.size_bytes == 8 else DType.U32)
        if fn in _ARITHMETIC:
            return f"({kind})(({wide}){args[0]} {_ARITHMETIC[fn]} ({wide}){args[1]})"
        if fn in _BITWISE:
            return f"({kind})({args[0]} {_BITWISE[fn]} {args[1]})"
        if fn in _RELATIONS:
            return f"({args[0]} {_RELATIONS[fn]} {args[1]})"
        if fn is Fn.NEG:
            return f"({kind})(0 - ({wide}){args[0]})"
        if fn is Fn.BITNOT:
            return f"({kind})~{args[0]}"
        if fn in (Fn.ISNAN, Fn.ISINF):
            return "0"
        return args[0] if fn in _ROUNDING else self._called(fn, dtype, *args)

    def _called(self, fn: Fn, dtype: DType, *args: str) -> str:
        name = self.helpers.function(fn, dtype)
        if name is None:
            raise without_meaning(fn, dtype)
        return f"{name}({', '.join(args)})"

    def _on_vectors(self, fn: Fn, args: tuple[Val, ...], lanes: int) -> str | None:
        """A C expression of whole vectors; None if there is none."""
        dtype, vectors = args[0].dtype, self.dialect.vectors
        is_arithmetic = dtype.is_float and (fn in _ARITHMETIC or fn in (Fn.DIV, Fn.NEG))
        if not vectors.has_operators and not (vectors.has_arithmetic and is_arithmetic):
            return None
        if dtype is DType.BOOL:
            if fn in _ON_BOOLS:
                a, b = (self.spread(arg, lanes).text for arg in args)
                return f"({a} {_ON_BOOLS[fn]} {b})"
            return None
        if fn in _RELATIONS:
            return self._as_bools(self.mask(fn, args, lanes), lanes)
        if not dtype.is_float:
            operator = _ARITHMETIC.get(fn) or _BITWISE.get(fn)
            if operator is None:
                return None
            kind = self.helpers.vector(dtype, lanes)
            wrapping = self.helpers.vector(unsigned_dtype(dtype), lanes)
            a, b = (self.spread(arg, lanes).text for arg in args)
            return f"({kind})(({wrapping}){a} {operator} ({wrapping}){b})"
        operator = _ARITHMETIC.get(fn) or ("/" if fn is Fn.DIV else None)
        if operator is not None:
            return f"({args[0].text} {operator} {args[1].text})"
        if fn is Fn.NEG:
            return f"(-{args[0].text})"
        if fn in (Fn.MIN, Fn.MAX):
            return self._extreme(fn, args, lanes)
        return None

    def _extreme(self, fn: Fn, args: tuple[Val, ...], lanes: int) -> str:
        a, b = (self.spread(arg, lanes) for arg in args)
        if a.is_simple and not b.is_simple:
            b = self.bind(b)
        a, b = self.bind(a), self.bind(b)
        better = f"({a.text} {'<' if fn is Fn.MIN else '>'} {b.text})"
        return self.chosen(f"({better} | ({a.text} != {a.text}))", a, b).text

    def mask(self, fn: Fn, args: tuple[Val, ...], lanes: int) -> str:
        """A comparison of vectors: 0 or -1 in each lane."""
        a, b = (self.spread(arg, lanes) for arg in args)
        return f"({a.text} {_RELATIONS[fn]} {b.text})"

    def _as_bools(self, mask: str, lanes: int) -> str:
        """0 and 1 from the 0 and -1 of a comparison."""
        small, bools = self.helpers.vector(DType.I8, lanes), self.helpers.vector(DType.U8, lanes)
        return f"(({bools})__builtin_convertvector({mask}, {small}) & 1)"

    def choose(self, condition: Val, then: Val, otherwise: Val) -> Val:
        """`then` where a bool is true, both computed."""
        lanes = max(condition.lanes, then.lanes, otherwise.lanes)
        if lanes == 1:
            text = f"({condition.text} ? {then.text} : {otherwise.text})"
            return Val(text, then.dtype)
        if not self.dialect.vectors.has_operators:
            return self.by_lane(self.choose, then.dtype, (condition, then, otherwise))
        then, otherwise = self.spread(then, lanes), self.spread(otherwise, lanes)
        if condition.lanes == 1:
            text = f"({condition.text} ? {then.text} : {otherwise.text})"
            return Val(text, then.dtype, lanes)
        ints = self.helpers.vector(mask_dtype(then.dtype), lanes)
        mask = f"(__builtin_convertvector({condition.text}, {ints}) != 0)"
        return self.chosen(mask, then, otherwise)

    def chosen(self, mask: str, then: Val, otherwise: Val) -> Val:
        """Join two vectors by a mask of 0 and -1 as wide as they are."""
        lanes = then.lanes
        ints = self.helpers.vector(mask_dtype(then.dtype), lanes)
        kind = self.helpers.vector(then.dtype, lanes)
        held_mask = self.bind(Val(f"({ints}){mask}", mask_dtype(then.dtype), lanes)).text
        text = (
            f"(({kind})((({ints}){then.text} & {held_mask}) | "
            f"(({ints}){otherwise.text} & ~{held_mask})))"
        )
        return Val(text, then.dtype, lanes)

    def spread(self, value: Val, lanes: int) -> Val:
        """The value in every lane."""
        if value.lanes == lanes:
            return value
        value = self.bind(value)
        return self.vector_of([value.text] * lanes, value.dtype)

    def vector_of(self, parts: Sequence[str], dtype: DType) -> Val:
        """A vector from its lanes."""
        kind = self.helpers.vector(dtype, len(parts))
        return Val(self.dialect.vectors.of_lanes(kind, parts), dtype, len(parts))

    def lane_of(self, value: Val, lane: int) -> Val:
        """One lane of a vector that has a name; a value of one lane is in all of them."""
        if value.lanes == 1:
            return value
        return Val(self.dialect.vectors.lane_of(value.text, lane), value.dtype)

    def by_lane(self, function: Callable[..., Val], dtype: DType, args: tuple[Val, ...]) -> Val:
        """A function of elements on each lane of vectors."""
        lanes = max(arg.lanes for arg in args)
        self.helpers.vector(dtype, lanes)
        args = tuple(self.bind(arg) for arg in args)
        parts = [function(*(self.lane_of(arg, lane) for arg in args)) for lane in range(lanes)]
        return self.vector_of([part.text for part in parts], dtype)

    def rounded(self, value: Val) -> Val:
        """Round an f32 that stands for a narrower float; other types are as they are."""
        if value.dtype not in (DType.F16, DType.BF16):
            return value
        if value.lanes > 1:
            return self.by_lane(self.rounded, value.dtype, (value,))
        return Val(self.load(self.store(value.text, value.dtype), value.dtype), value.dtype)

    def load(self, text: str, dtype: DType) -> str:
        """From the form in memory to the form in which values are computed."""
        if dtype is DType.BOOL:
            return f"({text} != 0)"
        if dtype in (DType.F16, DType.BF16):
            return f"{self.helpers.conversion(f'from_{dtype}')}({text})"
        return text

    def store(self, text: str, dtype: DType) -> str:
        """From the form in which values are computed to the form in memory."""
        if dtype in (DType.F16, DType.BF16):
            return f"{self.helpers.conversion(f'to_{dtype}')}({text})"
        return text

    def convert(self, value: Val, dtype: DType) -> Val:
        """A value in another type; floats beyond an integer's range give its nearest end."""
        source = value.dtype
        if source is dtype:
            return value
        if held(source) is held(dtype):
            return self.rounded(Val(value.text, dtype, value.lanes))
        if value.lanes > 1:
            is_hard = dtype is DType.BOOL or (source.is_float and not dtype.is_float)
            if is_hard or not self.dialect.vectors.has_operators or held(dtype) is not dtype:
                return self.by_lane(lambda part: self.convert(part, dtype), dtype, (value,))
            kind = self.helpers.vector(dtype, value.lanes)
            return Val(f"__builtin_convertvector({value.text}, {kind})", dtype, value.lanes)
        if dtype is DType.BOOL:
            return Val(f"({value.text} != 0)", dtype)
        if source.is_float and not dtype.is_float:
            return Val(f"{self.helpers.saturating(source, dtype)}({value.text})", dtype)
        return self.rounded(Val(f"({self.dialect.value(dtype)}){_operand(value)}", dtype))

    def fold(self, fn: Fn, value: Val) -> Val:
        """All lanes of a vector folded into one element, as a tree."""
        value = self.bind(value)
        parts = [self.lane_of(value, lane) for lane in range(value.lanes)]
        while len(parts) > 1:
            half = len(parts) // 2
            pairs = zip(parts[:half], parts[half:], strict=True)
            parts = [self.bind(self.apply(fn, pair)) for pair in pairs]
        return parts[0]


def _operand(value: Val) -> str:
    return value.text if value.is_simple or value.text.startswith("(") else f"({value.text})"
