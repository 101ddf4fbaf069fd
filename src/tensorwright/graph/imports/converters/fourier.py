"""Fourier transforms as products with matrices of sines and cosines.

A transform of short rows is one product with the whole matrix. Longer rows of a*b elements take two
products with smaller matrices and a rotation between them: Cooley and Tukey, "An Algorithm for the
Machine Calculation of Complex Fourier Series", Math. Comp. 19, 1965; in this order Bailey, "FFTs in
External or Hierarchical Memory", 1990.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import DType
from tensorwright.expr import Index, IndexExpr
from tensorwright.graph.imports.call import Call, Operand, Results, Table, in_single_precision
from tensorwright.graph.imports.tensors import dtype_of
from tensorwright.ops import NARROW, decided, number_of

_MOST_AT_ONCE = 256  # elements of a row that one matrix transforms

Parts: TypeAlias = tuple[str, ...]
"""Complex rows (count, length): their real parts, and the imaginary ones where not all are 0."""


def _angles(rows: int, columns: int, length: int) -> NDArray[np.float64]:
    """2 pi j k / length; the product is taken modulo the length first, so that it stays exact."""
    products = np.outer(np.arange(rows), np.arange(columns)) % length
    return np.asarray(2 * math.pi / length * products, np.float64)


def _rotated(call: Call, parts: Parts, angles: NDArray[np.float64], operator: str) -> Parts:
    """Multiply by e^(i angle): each element ("mul") or by it as a matrix ("matmul")."""
    kind = call.dtype_of(parts[0]).numpy
    cosine, sine = np.cos(angles).astype(kind), np.sin(angles).astype(kind)
    real, imaginary = (call.add(operator, parts[0], factor) for factor in (cosine, sine))
    if len(parts) == 1:
        return real, imaginary
    less = call.add(operator, parts[1], sine)
    more = call.add(operator, parts[1], cosine)
    return call.add("sub", real, less), call.add("add", imaginary, more)


def _turned(call: Call, parts: Parts, shape: tuple[Index, Index, Index]) -> Parts:
    """Rows (a, b*c) as (a*c, b)."""
    a, b, c = shape
    turned_parts = []
    for part in parts:
        turned = call.add("transpose", call.add("reshape", part, shape=shape), perm=(0, 2, 1))
        turned_parts.append(call.add("reshape", turned, shape=(a * c, b)))
    return tuple(turned_parts)


def _transform(call: Call, parts: Parts, count: Index, length: int, sign: int) -> Parts:
    """The sums over j of rows[j] e^(sign 2 pi i j k / length) for k in 0..length."""
    call.check_elements(length)
    first = max(n for n in range(1, math.isqrt(length) + 1) if length % n == 0)
    if length <= _MOST_AT_ONCE or first == 1:
        call.check_elements(length * length)
        return _rotated(call, parts, sign * _angles(length, length, length), "matmul")
    second = length // first  # j = j1*second + j2, k = k1 + first*k2
    parts = _turned(call, parts, (count, first, second))
    parts = _transform(call, parts, count * second, first, sign)
    shape = (count, second, first)
    parts = tuple(call.add("reshape", part, shape=shape) for part in parts)
    parts = _rotated(call, parts, sign * _angles(second, first, length), "mul")
    parts = _turned(call, parts, shape)
    parts = _transform(call, parts, count * first, second, sign)
    parts = _turned(call, parts, (count, first, second))
    return tuple(call.add("reshape", part, shape=(count, length)) for part in parts)


def _fitted(call: Call, rows: str, length: int) -> str:
    """Rows cut off, or with zeros behind them."""
    own = number_of(call.sizes(rows)[1])
    if own < length:
        return call.add("pad", rows, pads=(0, 0, 0, length - own))
    return rows if own == length else call.piece(rows, 1, 0, length)


def _with_conjugates(call: Call, parts: Parts, length: int) -> Parts:
    """Whole rows from their first halves: what follows mirrors them with the other sign of i."""
    kept = length // 2 + 1
    real, *imaginary = (_fitted(call, part, kept) for part in parts)
    if kept == length:
        return (real, *imaginary)
    mirrored = [call.piece(part, 1, length - kept, 0, -1) for part in (real, *imaginary)]
    mirrored[1:] = [call.add("neg", part) for part in mirrored[1:]]
    pairs = zip((real, *imaginary), mirrored, strict=True)
    return tuple(call.add("concat", *pair, axis=1) for pair in pairs)


def _parts_of(call: Call, x: str, count: Index, length: Index) -> Parts:
    """The parts of rows (..., length, 1 or 2)."""
    dtype, components = call.dtype_of(x), number_of(call.sizes(x)[-1])
    if not dtype.is_float:
        raise call.unsupported(f"it transforms {dtype}, not floats")
    if components not in (1, 2):
        raise call.unsupported(f"its input has {components} components, not 1 or 2")
    taken = (call.take(x, number, -1) for number in range(components))
    return tuple(call.add("reshape", part, shape=(count, length)) for part in taken)


def _dft(call: Call) -> Results:
    shape = call.sizes(0)
    if call.opset < 20:
        axis = call.integer("axis", 1)
    else:
        axis = int(call.scalar(2, "axis")) if call.has(2) else -2
    if not -len(shape) <= axis < len(shape) or axis % len(shape) == len(shape) - 1:
        raise call.unsupported(f"its axis {axis} is not one of a signal in {shape}")
    axis %= len(shape)
    others = [at for at in range(len(shape) - 1) if at != axis]
    perm = (*others, axis, len(shape) - 1)
    x = call.add("transpose", call.tensor(0), perm=perm)
    count = math.prod(shape[at] for at in others)
    extent = number_of(shape[axis])
    parts = _parts_of(call, x, count, extent)
    is_inverse = call.flag("inverse")
    is_half = call.flag("onesided")
    own = 2 * (extent - 1) if is_inverse and is_half else extent
    length = int(call.scalar(1, "dft_length")) if call.has(1) else own
    if length < 1:
        raise call.unsupported(f"it transforms rows of {length} elements")
    if is_inverse and is_half:
        parts = _with_conjugates(call, parts, length)
    else:
        parts = tuple(_fitted(call, part, length) for part in parts)
    parts = _transform(call, parts, count, length, 1 if is_inverse else -1)
    if is_inverse:
        scale = call.as_array(1 / length, call.dtype_of(0))
        parts = tuple(call.add("mul", part, scale) for part in parts)
    if is_half:
        parts = parts[:1] if is_inverse else _halves(call, parts, length)
    kept = number_of(call.sizes(parts[0])[1])
    stacked = call.stack(parts, 2)
    target = (*(shape[at] for at in others), kept, len(parts))
    back = tuple(perm.index(at) for at in range(len(shape)))
    return (call.add("transpose", call.add("reshape", stacked, shape=target), perm=back),)


def _halves(call: Call, parts: Parts, length: int) -> Parts:
    return tuple(call.piece(part, 1, 0, length // 2 + 1) for part in parts)


def _stft(call: Call) -> Results:
    shape = call.sizes(0)
    signal = call.tensor(0)
    if len(shape) == 2:
        signal = call.add("unsqueeze", signal, axes=(2,))
    batch, extent = shape[:2]
    step = int(call.scalar(1, "frame_step"))
    if call.has(3):
        length = int(call.scalar(3, "frame_length"))
    else:
        length = call.extents(2)[0] if call.has(2) else number_of(extent)
    frames = (extent - length) // step + 1 if step > 0 else 0
    if length < 1 or not decided(frames >= 1):
        raise call.unsupported(f"{extent} elements have no frame of {length} by {step}")
    if isinstance(frames, IndexExpr):
        first = call.add("mul", call.positions(frames, DType.I64), np.asarray(step))
        first = call.add("unsqueeze", first, axes=(1,))
        starts: Operand = call.add("add", first, np.arange(length))
    else:
        call.check_elements(frames * length)
        starts = np.arange(frames)[:, None] * step + np.arange(length)
    parts = []
    for part in _parts_of(call, signal, batch, extent):
        framed = call.take(part, starts, axis=1)
        if call.has(2):
            framed = call.add("mul", framed, call.tensor(2))
        parts.append(call.add("reshape", framed, shape=(batch * frames, length)))
    spectrum = _transform(call, tuple(parts), batch * frames, length, -1)
    if call.flag("onesided", default=True):
        spectrum = _halves(call, spectrum, length)
    kept = number_of(call.sizes(spectrum[0])[1])
    return (call.add("reshape", call.stack(spectrum, 2), shape=(batch, frames, kept, 2)),)


def _mel_weights(call: Call) -> Results:
    """Triangles over the bins of a spectrum, as wide as they are on the scale of pitches."""
    bins, length, rate = (int(call.scalar(at, "size")) for at in range(3))
    call.check_elements((length // 2 + 1) * bins)
    low, high = (2595 * math.log10(1 + call.scalar(at, "edge") / 700) for at in (3, 4))
    pitches = low + np.arange(bins + 2) * ((high - low) / (bins + 2))
    corners = (700 * (10 ** (pitches / 2595) - 1) * (length + 1)) // rate
    at = np.arange(length // 2 + 1)[:, None]
    left, centre, right = corners[:-2], corners[1:-1], corners[2:]
    with np.errstate(divide="ignore", invalid="ignore"):
        rising, falling = (at - left) / (centre - left), (right - at) / (right - centre)
    weights = np.where((at >= left) & (at < centre), rising, 0)
    weights = np.where((at >= centre) & (at < right), falling, weights)
    weights = np.where((at == centre) & (centre >= left), 1, weights)
    dtype = dtype_of(call.integer("output_datatype", 1), call.label, call.operator)
    return (weights.astype(dtype.numpy),)


FOURIER: Table = (
    ("DFT", in_single_precision(_dft, NARROW)),
    ("STFT", in_single_precision(_stft, NARROW)),
    ("MelWeightMatrix", _mel_weights),
)
