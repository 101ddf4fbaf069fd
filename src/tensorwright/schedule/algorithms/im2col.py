"""Windows written out as columns of a matrix: a convolution becomes a plain product of matrices.

Rewrite:  y[.., h, w, ..] = sum over c, kh, kw of x[.., h*s + kh, w*s + kw, c] * g[kh, kw, c, ..]
      ->  y_columns[h, w, kh, kw, c] = x[.., h*s + kh, w*s + kw, c]
          y[h, w, ..] = sum over c, kh, kw of y_columns[h, w, kh, kw, c] * g[kh, kw, c, ..]
The columns have the layout of the data: its last dimension stays the last.  They hold an element
once for each window that contains it; the same terms are summed.
Source:   Chellapilla, Puri and Simard, "High Performance Convolutional Neural Networks for Document
          Processing", 2006.
"""

from __future__ import annotations

from tensorwright.expr import (
    Axis,
    Compute,
    Load,
    Range,
    Value,
    free_vars,
    is_nonnegative,
    loads_of,
    rebuild,
)
from tensorwright.schedule.algorithms.algorithm import Algorithm


def rewrite_as_im2col(tensor: Compute) -> Compute | None:
    """The tensor by columns; None unless exactly one operand is read by windows.

    The columns hold all windows, so it is None, too, where some begin or end outside of the data
    and a condition leaves that out.
    """
    windows = {load for load in loads_of(tensor.body) if _is_window(load, tensor)}
    if len(windows) != 1:
        return None
    (window,) = windows
    if not _is_inside(window, tensor):
        return None
    axes = _axes_of(window, tensor)
    columns = Compute(f"{tensor.name}_columns", axes, window)
    copy = Load(columns, tuple(axis.var for axis in axes))

    def on_load(load: Load) -> Value:
        return copy if load == window else load

    body = rebuild(tensor.body, on_load, lambda index: index, lambda condition: condition)
    return Compute(tensor.name, tensor.axes, body, tensor.reduction)


def _is_window(load: Load, tensor: Compute) -> bool:
    """Whether a tap moves along an operand together with a position, and some axis does not."""
    taps = {axis.var for axis in tensor.reduce_axes if axis.extent != 1}
    places = {axis.var for axis in tensor.axes}
    read = free_vars(*load.indices)
    slides = any(free_vars(i) & taps and free_vars(i) & places for i in load.indices)
    return slides and bool(places - read)


def _is_inside(load: Load, tensor: Compute) -> bool:
    """Whether an operand has all elements that are read, whatever the conditions of the reads."""
    axes = (*tensor.axes, *tensor.reduce_axes)
    bounds = {axis.var: Range.of_extent(axis.extent) for axis in axes}
    return all(
        is_nonnegative(index, bounds) and is_nonnegative(extent - 1 - index, bounds)
        for index, extent in zip(load.indices, load.source.shape, strict=True)
    )


def _axes_of(window: Load, tensor: Compute) -> tuple[Axis, ...]:
    """The axes of the columns: positions and taps, in the order of the data's dimensions."""
    order = [var for index in window.indices for var in sorted(free_vars(index), key=str)]
    axes = {axis.var: axis for axis in (*tensor.axes, *tensor.reduce_axes)}
    taps = [axes[var] for var in dict.fromkeys(order) if axes[var] in tensor.reduce_axes]
    places = [axes[var] for var in dict.fromkeys(order) if axes[var] in tensor.axes]
    is_last = bool(order) and axes[order[-1]] in tensor.reduce_axes
    is_last = is_last and len(free_vars(window.indices[-1])) == 1
    return (*places, *taps) if is_last else (*taps, *places)


IM2COL = Algorithm("im2col", rewrite_as_im2col)
