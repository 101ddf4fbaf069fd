"""The kinds of numbers of a GGUF file, and their blocks as codes with scales.

A number of a block is (code - zero) * scale.  Codes are unsigned; without zeros they are around
2 ** (bits - 1).  Codes of 5 and 6 bits become ones of 8; no kind loses anything.

Shapes:  raw (rows, blocks, bytes) u8
             -> codes (rows, numbers) u8, scale, zero (rows, numbers / block) f32
Source:  github.com/ggml-org/ggml, src/ggml-quants.c (dequantize_row_q4_0 and its like).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import DType

Bytes: TypeAlias = NDArray[Any]
Scales: TypeAlias = tuple[NDArray[Any], NDArray[Any] | None]


@dataclass(frozen=True, slots=True)
class Plain:
    """Numbers as they are."""

    name: str
    dtype: DType
    elements: ClassVar[int] = 1

    @property
    def size_bytes(self) -> int:
        """The bytes of a number."""
        return self.dtype.size_bytes

    def numbers(self, raw: Bytes) -> NDArray[Any]:
        """The numbers of some blocks, (rows, numbers), in f32."""
        flat = raw.reshape(len(raw), -1).view(self.dtype.numpy)
        return np.asarray(flat, np.float32)


@dataclass(frozen=True, slots=True)
class Coded:
    """Codes with a scale for each of their blocks.

    elements, size_bytes    numbers in a block of the file, and its bytes
    bits, block             of a code as we keep it, and how many codes have one scale
    quantized, scales       the codes and scales of the bytes of blocks
    """

    name: str
    elements: int
    size_bytes: int
    bits: int
    block: int
    quantized: Callable[[Bytes], NDArray[Any]]
    scales: Callable[[Bytes], Scales]

    @property
    def has_zeros(self) -> bool:
        """Whether blocks have a zero of their own."""
        return self.scales in (_two, _scales_of_k)

    def numbers(self, raw: Bytes) -> NDArray[Any]:
        """The numbers of some blocks, (rows, numbers), in f32."""
        scale, zero = self.scales(raw)
        middle = np.float32(1 << (self.bits - 1)) if zero is None else zero[..., None]
        quantized = self.quantized(raw).reshape(*scale.shape, self.block)
        numbers: NDArray[Any] = (quantized - middle) * scale[..., None]
        return numbers.reshape(len(raw), -1)


Kind: TypeAlias = Plain | Coded


def _half(raw: Bytes, at: int) -> NDArray[Any]:
    """The f16 that begins at a byte of each block, as f32: (rows, blocks)."""
    halves = np.ascontiguousarray(raw[..., at : at + 2]).view("<f2")
    return np.asarray(halves[..., 0], np.float32)


def _joined(parts: NDArray[Any]) -> NDArray[Any]:
    return parts.reshape(len(parts), -1)


def _nibbles(raw: Bytes, at: int, run: int, count: int = 16) -> NDArray[Any]:
    """The low halves of each run of bytes, then the high ones: (rows, blocks, runs, 2, run)."""
    body = raw[..., at : at + count].reshape(*raw.shape[:2], -1, run)
    both = np.empty((*body.shape[:3], 2, run), np.uint8)
    np.bitwise_and(body, 15, out=both[..., 0, :])
    np.right_shift(body, 4, out=both[..., 1, :])
    return both


def _codes_of_q5(raw: Bytes, at: int) -> NDArray[Any]:
    """The fifth bits of 32 codes begin at a byte of each block, their nibbles follow."""
    bits: NDArray[Any] = np.unpackbits(raw[..., at : at + 4], axis=-1, bitorder="little")
    fifth = (bits << 4).reshape(*raw.shape[:2], 1, 2, 16)
    return _joined(_nibbles(raw, at + 4, 16) | fifth)


def _affine(scale: NDArray[Any], least: NDArray[Any]) -> Scales:
    """What (code - zero) * scale needs for code * scale + least.

    Where the scale is 0, so that all numbers are `least`, it is so small that codes do not count.
    """
    steps = np.where(scale == 0, np.maximum(np.abs(least) * np.float32(1e-12), 1e-30), scale)
    steps = steps.astype(np.float32)
    return steps, (-least / steps).astype(np.float32)


def _six_bits(raw: Bytes) -> tuple[NDArray[Any], NDArray[Any]]:
    """The scales and the least numbers of the 8 parts of a block, in units of their own."""
    low, middle, high = (raw[..., at : at + 4] for at in (4, 8, 12))
    scale = np.concatenate((low & 63, (high & 15) | ((low >> 6) << 4)), axis=-1)
    least = np.concatenate((middle & 63, (high >> 4) | ((middle >> 6) << 4)), axis=-1)
    return scale.astype(np.float32), least.astype(np.float32)


def _scales_of_k(raw: Bytes) -> Scales:
    scale, least = _six_bits(raw)
    scale, least = scale * _half(raw, 0)[..., None], least * _half(raw, 2)[..., None]
    return _affine(_joined(scale), _joined(-least))


def _codes_of_q5_k(raw: Bytes) -> NDArray[Any]:
    shifts = np.arange(8, dtype=np.uint8).reshape(4, 2, 1)
    fifth = (raw[..., None, None, 16:48] >> shifts) & 1
    return _joined(_nibbles(raw, 48, 32, 128) | (fifth << 4))


def _codes_of_q6_k(raw: Bytes) -> NDArray[Any]:
    lows = raw[..., :128].reshape(*raw.shape[:2], 2, 2, 32)
    lows = np.stack((lows & 15, lows >> 4), axis=3)
    shifts = np.arange(0, 8, 2, dtype=np.uint8).reshape(2, 2, 1)
    highs = (raw[..., 128:192].reshape(*raw.shape[:2], 2, 1, 1, 32) >> shifts) & 3
    return _joined((lows | (highs << 4)) + 96)


def _scales_of_q6_k(raw: Bytes) -> Scales:
    scales = raw[..., 192:208].view(np.int8).astype(np.float32)
    return _joined(scales * _half(raw, 208)[..., None]), None


def _one(at: int) -> Callable[[NDArray[Any]], Scales]:
    return lambda raw: (_half(raw, at), None)


def _two(raw: Bytes) -> Scales:
    return _affine(_half(raw, 0), _half(raw, 2))


_ALL = (
    (0, Plain("F32", DType.F32)),
    (1, Plain("F16", DType.F16)),
    (30, Plain("BF16", DType.BF16)),
    (2, Coded("Q4_0", 32, 18, 4, 32, lambda raw: _joined(_nibbles(raw, 2, 16)), _one(0))),
    (3, Coded("Q4_1", 32, 20, 4, 32, lambda raw: _joined(_nibbles(raw, 4, 16)), _two)),
    (6, Coded("Q5_0", 32, 22, 8, 32, lambda raw: _codes_of_q5(raw, 2) + 112, _one(0))),
    (7, Coded("Q5_1", 32, 24, 8, 32, lambda raw: _codes_of_q5(raw, 4), _two)),
    (8, Coded("Q8_0", 32, 34, 8, 32, lambda raw: _joined(raw[..., 2:] ^ 128), _one(0))),
    (
        12,
        Coded(
            "Q4_K", 256, 144, 4, 32, lambda raw: _joined(_nibbles(raw, 16, 32, 128)), _scales_of_k
        ),
    ),
    (13, Coded("Q5_K", 256, 176, 8, 32, _codes_of_q5_k, _scales_of_k)),
    (14, Coded("Q6_K", 256, 210, 8, 16, _codes_of_q6_k, _scales_of_q6_k)),
)
KINDS: Mapping[int, Kind] = MappingProxyType(dict(_ALL))
"""By their numbers in files."""

_UNREAD = (
    "9 Q8_1, 10 Q2_K, 11 Q3_K, 15 Q8_K, 16 IQ2_XXS, 17 IQ2_XS, 18 IQ3_XXS, 19 IQ1_S, 20 IQ4_NL, "
    "21 IQ3_S, 22 IQ2_S, 23 IQ4_XS, 24 I8, 25 I16, 26 I32, 27 I64, 28 F64, 29 IQ1_M, 34 TQ1_0, "
    "35 TQ2_0, 39 MXFP4"
)
NAMES = MappingProxyType({int(n): name for n, name in map(str.split, _UNREAD.split(", "))})
"""Kinds that are not read."""
