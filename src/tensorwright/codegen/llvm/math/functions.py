"""Mathematical functions as LLVM IR text, for any lane count.

exp, expm1, log, log1p, sigmoid and tanh, and erf, sin, cos, atan and fmod in f32, are vector code
of our own (<= 4 ulp over the full range; measured: at most 2.4; fmod is exact). The others call the
C library once per lane. What LLVM has as an instruction or intrinsic (sqrt, fabs, floor, ...) has
no entry here. A definition is internal and always inlined, so that constants are hoisted out of the
caller's loop; emit each one once per module, and each declaration once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from tensorwright.base import CpuTarget, DType, InternalError
from tensorwright.codegen.llvm.math.emitter import MathEmitter
from tensorwright.codegen.llvm.math.kernels import (
    emit_erf,
    emit_exp,
    emit_expm1,
    emit_fmod,
    emit_log,
    emit_log1p,
    emit_sigmoid,
    emit_tanh,
)
from tensorwright.codegen.llvm.math.trigonometry import emit_atan, emit_cos, emit_sin
from tensorwright.machine_code import LIBM_BINARY, LIBM_UNARY, Number

_Kernel = Callable[..., Number]
_KERNELS: dict[str, _Kernel] = {
    "exp": emit_exp,
    "expm1": emit_expm1,
    "log": emit_log,
    "log1p": emit_log1p,
    "sigmoid": emit_sigmoid,
    "tanh": emit_tanh,
}
_VECTOR: dict[tuple[str, DType], _Kernel] = {
    ("erf", DType.F32): emit_erf,
    ("sin", DType.F32): emit_sin,
    ("cos", DType.F32): emit_cos,
    ("atan", DType.F32): emit_atan,
    ("fmod", DType.F32): emit_fmod,
    **{(name, DType.F32): kernel for name, kernel in _KERNELS.items()},
    **{(name, DType.F64): kernel for name, kernel in _KERNELS.items()},
}
MATH_FUNCTIONS: tuple[str, ...] = tuple(
    sorted({name for name, _ in _VECTOR} | {*LIBM_UNARY, *LIBM_BINARY})
)
"""Every name that `math_function` knows, for both f32 and f64."""


@dataclass(frozen=True, slots=True)
class MathFunction:
    """A function of vectors: call `symbol` with `arity` vectors of the dtype and lane count.

    `declarations` are the lines that `ir_text` needs besides; several functions may share some.
    """

    symbol: str
    arity: int
    ir_text: str
    declarations: tuple[str, ...]


@lru_cache(maxsize=512)
def math_function(name: str, dtype: DType, lanes: int, target: CpuTarget) -> MathFunction:
    """The definition of a function on vectors of `lanes`, also more than a register holds.

    Raises:  InternalError for a name not in `MATH_FUNCTIONS`, or a dtype other than f32 and f64.
    """
    if name not in MATH_FUNCTIONS:
        raise InternalError(
            stage="codegen", where=f"function {name}", reason="there is no code for it"
        )
    arity = 2 if name in LIBM_BINARY else 1
    emitter = MathEmitter(name, arity, dtype, lanes, target)
    kernel = _VECTOR.get((name, dtype))
    if kernel is None or (kernel is emit_fmod and not target.fma):
        emitter.finish(emitter.library(name, *emitter.parameters))
    else:
        emitter.finish(kernel(emitter, *emitter.parameters))
    (text,) = emitter.module.definitions.values()
    declarations = tuple(sorted(emitter.module.declarations))
    return MathFunction(f"@{emitter.symbol}", arity, text, declarations)
