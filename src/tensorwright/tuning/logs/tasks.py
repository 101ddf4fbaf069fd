"""The programs that tasks of AutoTVM stand for, as graphs of one operator.

A task is a name, `conv2d_NCHWc.x86`, whose first word says the operator, and arguments: tensors,
then of convolutions strides, padding and dilation.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tensorwright.base import TensorwrightError
from tensorwright.graph import Graph, GraphBuilder
from tensorwright.records.logs import Argument, AutoTvmLine

_Maker = Callable[[AutoTvmLine], Graph]


def graph_of_task(line: AutoTvmLine) -> Graph | str:
    """The program of a line, or why there is none."""
    operator = line.task.split(".")[0].split("_")[0]
    make = _MAKERS.get("depthwise" if line.task.startswith("depthwise_conv2d") else operator)
    if make is None:
        return f"no program is known for the task {line.task}"
    if any(tensor.dtype != "float32" for tensor in line.tensors):
        return "its tensors are not float32"
    try:
        return make(line)
    except (TensorwrightError, ValueError, IndexError) as error:
        return f"its arguments are none of {line.task}: {error}"


def _convolution(line: AutoTvmLine) -> Graph:
    """data (n, c, *spatial), weights (oc, c/groups, *kernel), strides, padding, dilation."""
    data, weights = line.tensors[:2]
    strides, padding, dilations = (_numbers(each) for each in line.arguments[2:5])
    count = len(data.shape) - 2
    if len(weights.shape) != len(data.shape) or len(strides) != count:
        raise ValueError("data and weights are not NCHW and OIHW")
    if len(padding) == count:
        padding = padding * 2
    groups = data.shape[1] // weights.shape[1]
    if line.task.startswith("depthwise"):  # weights (c, multiplier, *kernel)
        groups = data.shape[1]
        weights_shape = (weights.shape[0] * weights.shape[1], 1, *weights.shape[2:])
    else:
        weights_shape = weights.shape
    b = GraphBuilder(line.task)
    x, w = b.input("x", data.shape), b.constant(np.zeros(weights_shape, np.float32))
    y = b.add("conv", x, w, strides=strides, pads=padding, dilations=dilations, groups=groups)
    return b.finish((y,))


def _dense(line: AutoTvmLine) -> Graph:
    """data (m, k), weights (n, k), perhaps a bias."""
    data, weights = line.tensors[:2]
    if len(data.shape) != 2 or data.shape[1:] != weights.shape[1:]:
        raise ValueError("data and weights are not (m, k) and (n, k)")
    b = GraphBuilder(line.task)
    x = b.input("x", data.shape)
    w = b.constant(np.zeros(tuple(reversed(weights.shape)), np.float32))
    return b.finish((b.add("matmul", x, w),))


def _batched(line: AutoTvmLine) -> Graph:
    """x (batch, m, k), y (batch, n, k); the shape of the result, its type, which are transposed."""
    x_shape, y_shape = (each.shape for each in line.tensors[:2])
    transposed = [each for each in line.arguments if isinstance(each, bool)]
    if transposed not in ([], [False, True]):
        raise ValueError("its operands are not (batch, m, k) and (batch, n, k)")
    if len(x_shape) != 3 or x_shape[::2] != y_shape[::2]:
        raise ValueError("x and y are not (batch, m, k) and (batch, n, k)")
    b = GraphBuilder(line.task)
    batch, columns, terms = y_shape
    x, y = b.input("x", x_shape), b.input("y", (batch, terms, columns))
    return b.finish((b.add("matmul", x, y),))


_MAKERS: dict[str, _Maker] = {
    "conv1d": _convolution,
    "conv2d": _convolution,
    "conv3d": _convolution,
    "depthwise": _convolution,
    "group": _convolution,
    "dense": _dense,
    "batch": _batched,
}


def _numbers(argument: Argument) -> tuple[int, ...]:
    if not isinstance(argument, tuple) or not all(type(each) is int for each in argument):
        raise ValueError(f"{argument!r} are not whole numbers")
    return tuple(each for each in argument if isinstance(each, int))
