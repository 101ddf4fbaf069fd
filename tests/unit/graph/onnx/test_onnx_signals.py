"""Fourier transforms of every kind, as NumPy and PyTorch compute them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from onnx import ModelProto, TensorProto, helper
from tests.unit.graph.onnx.onnx_models import model_of

from tensorwright.base import UnsupportedError
from tensorwright.graph import interpret, simplify, verify
from tensorwright.graph.imports import load_onnx
from tensorwright.ops import Array

RANDOM = np.random.default_rng(5)
LENGTHS = (1, 2, 15, 240, 512, 600, 521)  # the last three are longer than one matrix; one is prime


def dft(shape: tuple[int, ...], axis: int, length: int | None = None, **flags: int) -> ModelProto:
    constants: dict[str, Array] = {"axis": np.array(axis)}
    if length is not None:
        constants["length"] = np.array(length)
    node = helper.make_node("DFT", ["x", "length" if length else "", "axis"], ["y"], **flags)
    return model_of([node], {"x": shape}, ["y"], constants=constants, opset=20)


def values(model: ModelProto, x: Array) -> Array:
    graph = verify(simplify(load_onnx(model)))
    (y,) = interpret(graph, {graph.inputs[0]: x}).values()
    return y


def as_complex(pairs: Array) -> Array:
    return pairs[..., 0] + 1j * pairs[..., 1]


def close(found: Array, expected: Array) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-4 * max(1, abs(expected).max()))


def normal(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("components", [1, 2])
def test_transforms(length: int, components: int) -> None:
    x = normal(3, length, components)
    signal = as_complex(x) if components == 2 else x[..., 0]
    close(as_complex(values(dft(x.shape, 1), x)), np.fft.fft(signal))
    close(as_complex(values(dft(x.shape, -2, inverse=1), x)), np.fft.ifft(signal))


@pytest.mark.parametrize("length", LENGTHS)
def test_half_spectra(length: int) -> None:
    x = normal(2, length, 1)
    half = as_complex(values(dft(x.shape, 1, onesided=1), x))
    close(half, np.fft.rfft(x[..., 0]))
    spectrum = normal(2, length // 2 + 1, 2)
    back = values(dft(spectrum.shape, 1, length, onesided=1, inverse=1), spectrum)
    close(back[..., 0], np.fft.irfft(as_complex(spectrum), length))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("length", [4, 9])
def test_other_axes_and_lengths(axis: int, length: int) -> None:
    x = normal(6, 7, 5, 1)
    found = as_complex(values(dft(x.shape, axis, length), x))
    close(found, np.fft.fft(x[..., 0], length, axis))


def stft(shape: tuple[int, ...], window: Array | None, length: int, **flags: int) -> ModelProto:
    constants = {"step": np.array(7), "length": np.array(length)}
    if window is not None:
        constants["window"] = window
    names = ["x", "step", "window" if window is not None else "", "length"]
    node = helper.make_node("STFT", names, ["y"], **flags)
    return model_of([node], {"x": shape}, ["y"], constants=constants, opset=17)


@pytest.mark.parametrize("length", [16, 300])
@pytest.mark.parametrize("has_window", [True, False])
@pytest.mark.parametrize("onesided", [0, 1])
def test_short_time_transforms(length: int, has_window: bool, onesided: int) -> None:
    x = normal(2, 400)
    window = np.hanning(length).astype(np.float32) if has_window else None
    expected = torch.stft(
        torch.from_numpy(x),
        length,
        7,
        window=torch.ones(length) if window is None else torch.from_numpy(window),
        center=False,
        onesided=bool(onesided),
        return_complex=True,
    )
    expected_rows = expected.transpose(1, 2).numpy()
    close(as_complex(values(stft((2, 400), window, length, onesided=onesided), x)), expected_rows)
    x3 = x[..., None]
    again = values(stft((2, 400, 1), window, length, onesided=onesided), x3)
    close(as_complex(again), expected_rows)


def test_what_is_no_signal_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="axis 2 is not one of a signal"):
        load_onnx(dft((2, 8, 1), 2))
    with pytest.raises(UnsupportedError, match="3 components"):
        load_onnx(dft((2, 8, 3), 1))
    with pytest.raises(UnsupportedError, match="no frame of 16"):
        load_onnx(stft((2, 10), None, 16))
    whole = model_of(
        [helper.make_node("DFT", ["x"], ["y"])],
        {"x": (2, 8, 1)},
        ["y"],
        opset=20,
        dtype=TensorProto.INT32,
    )
    with pytest.raises(UnsupportedError, match="i32, not floats"):
        load_onnx(whole)
