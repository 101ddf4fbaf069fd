"""exp, log, tanh, erf, sin to at most 4 ulp over the whole range, at every width; libm per lane."""

import ctypes
import math
from collections.abc import Callable

import numpy as np
import pytest
from tests.draws import first_seed, random_source
from tests.targets import NEON, native_target

from tensorwright.base import CpuTarget, DType, InternalError, cpu_target, missing_here
from tensorwright.codegen.llvm import MATH_FUNCTIONS, math_function
from tensorwright.machine_code import LIBM_SYMBOLS
from tensorwright.machine_code.compilation import assembly, compile_module
from tensorwright.runtime import load_object

MAX_ULP = 4.0
SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0]
NATIVE = native_target()
TARGETS = {name: cpu_target(f"x86-64-{name}") for name in ("sse2", "avx2", "avx512")}
RUNNABLE = {name: target for name, target in TARGETS.items() if not missing_here(target)} or {
    "native": NATIVE
}
WIDTHS = [
    (name, lanes)
    for name, lanes in (
        *(("sse2", 1), ("sse2", 4), ("avx2", 1), ("avx2", 8), ("avx2", 16)),
        *(("avx512", 1), ("avx512", 3), ("avx512", 16), ("avx512", 32)),
    )
    if name in RUNNABLE
] or [("native", 1), ("native", NATIVE.lanes(DType.F32))]


def loop_ir(name: str, dtype: DType, lanes: int, target: CpuTarget) -> str:
    function = math_function(name, dtype, lanes, target)
    element = "float" if dtype is DType.F32 else "double"
    kind = element if lanes == 1 else f"<{lanes} x {element}>"
    packed = f"[{lanes} x {element}]"
    arguments = ", ".join([f"{kind} %x", f"{kind} %z"][: function.arity])
    loads = "\n".join(
        f"  %p{value} = getelementptr {packed}, ptr %{pointer}, i64 %i\n"
        f"  %{value} = load {kind}, ptr %p{value}, align {dtype.size_bytes}"
        for pointer, value in (("a", "x"), ("c", "z"))
    )
    declarations = "\n".join(function.declarations)
    return f"""{declarations}
{function.ir_text}
define void @loop(ptr noalias %a, ptr noalias %c, ptr noalias %b, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
{loads}
  %y = call {kind} {function.symbol}({arguments})
  %q = getelementptr {packed}, ptr %b, i64 %i
  store {kind} %y, ptr %q, align {dtype.size_bytes}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


def compiled(name: str, dtype: DType, lanes: int, target: CpuTarget) -> Callable[..., np.ndarray]:
    """The function on arrays, as machine code of that width."""
    code = load_object(compile_module(loop_ir(name, dtype, lanes, target), target), ("loop",))
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)(code.address("loop"))

    def run(x: np.ndarray, z: np.ndarray | None = None) -> np.ndarray:
        vectors = -(-len(x) // lanes)
        padded = [
            np.resize(part, vectors * lanes).astype(dtype.numpy)
            for part in (x, x if z is None else z)
        ]
        result = np.empty_like(padded[0])
        call(padded[0].ctypes.data, padded[1].ctypes.data, result.ctypes.data, vectors)
        assert code.symbols == ("loop",)  # and the code lives as long as this function
        return result[: len(x)]

    return run


def largest_ulp(found: np.ndarray, truth: np.ndarray, x: np.ndarray) -> tuple[float, float]:
    """The largest error in units of the last place of the rounded truth, and where it is."""
    with np.errstate(all="ignore"):
        rounded = truth.astype(found.dtype)
        unit = np.spacing(np.abs(rounded)).astype(truth.dtype)
        error = np.abs(found.astype(truth.dtype) - truth) / unit
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    error = np.where(same, 0.0, np.where(np.isnan(error), np.inf, error)).astype(np.float64)
    worst = int(error.argmax())
    return float(error[worst]), float(x[worst])


def all_f32(stride: int) -> np.ndarray:
    """Every stride-th bit pattern of f32, NaN, infinities and subnormals included."""
    first = random_source("bits").randrange(stride)
    bits = np.arange(first, 1 << 32, stride, dtype=np.uint64).astype(np.uint32)
    return np.concatenate([bits.view(np.float32), np.array(SPECIAL, np.float32)])


def truth_f64(name: str, x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        if name == "erf":
            return compiled("erf", DType.F64, 1, next(iter(RUNNABLE.values())))(x)
        if name == "sigmoid":
            power = np.exp(-np.abs(x))
            return np.asarray(np.where(x < 0, power, 1.0) / (1.0 + power))
        return np.asarray(getattr(np, {"atan": "arctan"}.get(name, name))(x))


F32_ONLY = ["erf", "sin", "cos", "atan"]
VECTOR = ["exp", "expm1", "log", "log1p", "sigmoid", "tanh"]


@pytest.mark.parametrize("name", [*VECTOR, *F32_ONLY])
@pytest.mark.drawn
def test_f32_is_accurate_over_all_bit_patterns(name: str) -> None:
    x = all_f32(7919)
    with np.errstate(invalid="ignore"):  # signalling NaNs among the patterns
        truth = truth_f64(name, x.astype(np.float64))
    for target_name, lanes in WIDTHS:
        found = compiled(name, DType.F32, lanes, RUNNABLE[target_name])(x)
        ulp, where = largest_ulp(found, truth, x)
        assert ulp <= MAX_ULP, f"{name} {target_name} x{lanes}: {ulp} ulp at {where!r}"


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_sines_are_accurate_beside_their_zeros(name: str) -> None:
    quarter_turns = np.arange(-6000, 6001) * (math.pi / 2)
    nearest = quarter_turns.astype(np.float32)
    x = np.concatenate([nearest, np.nextafter(nearest, np.float32(0)), nearest * np.float32(1.01)])
    truth = truth_f64(name, x.astype(np.float64))
    for target_name, lanes in WIDTHS:
        found = compiled(name, DType.F32, lanes, RUNNABLE[target_name])(x)
        ulp, where = largest_ulp(found, truth, x)
        assert ulp <= MAX_ULP, f"{name} {target_name} x{lanes}: {ulp} ulp at {where!r}"


@pytest.mark.parametrize("name", ["erf", "sigmoid", "tanh", "sin", "cos"])
@pytest.mark.drawn
def test_bounded_functions_stay_in_their_bounds(name: str) -> None:
    x = all_f32(4999)
    x = x[~np.isnan(x)]
    for target_name, lanes in WIDTHS:
        found = compiled(name, DType.F32, lanes, RUNNABLE[target_name])(x)
        assert np.nanmax(np.abs(found)) == 1.0, f"{name} {target_name} x{lanes}"


@pytest.mark.parametrize("name", VECTOR)
@pytest.mark.drawn
def test_f64_is_accurate(name: str) -> None:
    random = np.random.default_rng(first_seed())
    x = np.concatenate(
        [
            random.integers(0, 1 << 64, 40_000, dtype=np.uint64).view(np.float64),
            random.uniform(-750, 750, 20_000),
            random.normal(size=20_000),
            np.array([*SPECIAL, 5e-324, 1e-310, 1.8e308, 709.78, 709.79, -745.1, -745.2]),
        ]
    )
    with np.errstate(invalid="ignore"):
        truth = truth_f64(name, x.astype(np.longdouble))
    for target_name, lanes in WIDTHS:
        found = compiled(name, DType.F64, lanes, RUNNABLE[target_name])(x)
        ulp, where = largest_ulp(found, truth, x)
        assert ulp <= MAX_ULP, f"{name} {target_name} x{lanes}: {ulp} ulp at {where!r}"


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64], ids=str)
@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("exp", SPECIAL[:4], [1.0, 1.0, math.inf, 0.0]),
        ("exp", [1e30, -1e30], [math.inf, 0.0]),
        ("log", [0.0, -0.0, math.inf, 1.0], [-math.inf, -math.inf, math.inf, 0.0]),
        ("log", [-1.0, -math.inf, math.nan], [math.nan] * 3),
        ("expm1", SPECIAL[:4], [0.0, -0.0, math.inf, -1.0]),
        ("log1p", [0.0, -0.0, math.inf, -1.0], [0.0, -0.0, math.inf, -math.inf]),
        ("log1p", [-1.5, -math.inf, math.nan], [math.nan] * 3),
        ("sigmoid", SPECIAL[:4], [0.5, 0.5, 1.0, 0.0]),
        ("tanh", SPECIAL[:4], [0.0, -0.0, 1.0, -1.0]),
        ("erf", SPECIAL[:4], [0.0, -0.0, 1.0, -1.0]),
        ("erf", [math.nan, 30.0, -30.0], [math.nan, 1.0, -1.0]),
        ("sin", [0.0, -0.0, math.inf, math.nan], [0.0, -0.0, math.nan, math.nan]),
        ("cos", [0.0, -0.0, -math.inf, math.nan], [1.0, 1.0, math.nan, math.nan]),
        ("atan", [0.0, -0.0, math.nan], [0.0, -0.0, math.nan]),
        ("atan", [math.inf, -math.inf, 1.0], [math.pi / 2, -math.pi / 2, math.pi / 4]),
    ],
)
def test_special_values(name: str, dtype: DType, x: list[float], expected: list[float]) -> None:
    target = next(reversed(RUNNABLE.values()))
    values = np.array(x, dtype.numpy)
    for lanes in (1, target.lanes(dtype)):
        found = compiled(name, dtype, lanes, target)(values)
        np.testing.assert_array_equal(found, np.array(expected, dtype.numpy))
        numbers = ~np.isnan(expected)
        signs = np.signbit(np.array(expected))
        np.testing.assert_array_equal(np.signbit(found)[numbers], signs[numbers])


@pytest.mark.parametrize("name", ["exp", "sigmoid"])
@pytest.mark.parametrize("dtype", [DType.F32, DType.F64], ids=str)
def test_nothing_is_left_far_below(name: str, dtype: DType) -> None:
    lowest = float(np.finfo(dtype.numpy).min)
    x = np.array([-1423.0, -1e4, -1e30, lowest, -math.inf], dtype.numpy)
    for target_name, lanes in WIDTHS:
        found = compiled(name, dtype, lanes, RUNNABLE[target_name])(x)
        np.testing.assert_array_equal(found, np.zeros_like(x))
        assert not np.signbit(found).any()


@pytest.mark.parametrize("name", ["erf", "sin", "cos", "atan", "tan", "sinh", "exp2"])
@pytest.mark.parametrize("dtype", [DType.F32, DType.F64], ids=str)
def test_functions_at_every_width(name: str, dtype: DType) -> None:
    x = np.linspace(-0.95, 3.0, 37).astype(dtype.numpy)
    expected = [getattr(math, name)(float(value)) for value in x]
    target = next(reversed(RUNNABLE.values()))
    for lanes in (1, 8):
        found = compiled(name, dtype, lanes, target)(x)
        np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(dtype.numpy).eps)


@pytest.mark.parametrize(("name", "reference"), [("pow", np.power), ("atan2", np.arctan2)])
def test_functions_of_two_arguments(name: str, reference: np.ufunc) -> None:
    x, z = np.linspace(0.1, 5, 33), np.linspace(-3, 3, 33)
    target = next(reversed(RUNNABLE.values()))
    assert math_function(name, DType.F64, 4, target).arity == 2
    found = compiled(name, DType.F64, 4, target)(x, z)
    np.testing.assert_allclose(found, reference(x, z), rtol=1e-15)


def test_remainders_are_exact() -> None:
    random = np.random.default_rng(3)
    y = random.uniform(0.1, 9, 30_000).astype(np.float32)
    patterns = random.integers(0, 1 << 32, (2, 100_000), dtype=np.uint64).astype(np.uint32)
    edges = np.array(np.meshgrid([*SPECIAL, 5e-45, 3e38], [*SPECIAL, 2.5, 3e38]), np.float32)
    pairs = (
        (random.normal(0, 100, y.size).astype(np.float32), y),
        (np.nextafter((y * random.integers(1, 999, y.size)).astype(np.float32), np.float32(0)), y),
        (patterns[0].view(np.float32), patterns[1].view(np.float32)),
        (edges[0].ravel(), edges[1].ravel()),
    )
    for target_name, lanes in WIDTHS:
        fmod = compiled("fmod", DType.F32, lanes, RUNNABLE[target_name])
        for a, b in pairs:
            with np.errstate(all="ignore"):
                expected = np.fmod(a, b)
            found = fmod(a, b)
            np.testing.assert_array_equal(found, expected, err_msg=f"{target_name} x{lanes}")
            numbers = ~np.isnan(expected)
            signs = np.signbit(found)[numbers], np.signbit(expected)[numbers]
            np.testing.assert_array_equal(*signs)


def test_every_name_compiles_for_every_target() -> None:
    for name in MATH_FUNCTIONS:
        for dtype in (DType.F32, DType.F64):
            for target in (TARGETS["avx2"], NEON):
                assert compile_module(loop_ir(name, dtype, 4, target), target)[:4] == b"\x7fELF"


@pytest.mark.parametrize("name", [*VECTOR, "erf", "atan"])
def test_f32_functions_call_no_library(name: str) -> None:
    text = assembly(loop_ir(name, DType.F32, 16, TARGETS["avx512"]), TARGETS["avx512"])
    assert "call" not in text
    assert "%zmm" in text


def test_library_calls_are_among_the_loaders_symbols() -> None:
    for name in MATH_FUNCTIONS:
        for dtype in (DType.F32, DType.F64):
            for line in math_function(name, dtype, 2, TARGETS["avx2"]).declarations:
                symbol = line.partition("@")[2].partition("(")[0]
                assert symbol.startswith("llvm.") or symbol in LIBM_SYMBOLS


def test_unknown_names_and_types_are_refused() -> None:
    with pytest.raises(InternalError, match="there is no code for it"):
        math_function("frobnicate", DType.F32, 4, NATIVE)
    with pytest.raises(InternalError, match="only f32 and f64"):
        math_function("exp", DType.F16, 4, NATIVE)
