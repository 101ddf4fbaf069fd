"""The folds of AutoTVM's templates: convolutions of images, and products of matrices."""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.expr import Axis, Compute, Index, Load, Var, free_vars, multiplied_loads
from tensorwright.schedule import ScheduleState
from tensorwright.tuning.space.axes.anchor import only_fold


@dataclass(frozen=True, slots=True)
class ImageConvolution:
    """A convolution of images: names of its axes.

    channels, rows, columns   of the result     images   the other one
    terms, taps               of the reduction: channels, rows and columns of the kernel; "" where
                              there are none
    """

    name: str
    channels: str
    rows: str
    columns: str
    terms: str
    taps: tuple[str, str]

    @property
    def is_depthwise(self) -> bool:
        """Whether each channel of the result reads one of the image."""
        return not self.terms


@dataclass(frozen=True, slots=True)
class DenseProduct:
    """A product of matrices, or of many: names of its axes."""

    name: str
    rows: str
    columns: str
    terms: str
    is_batched: bool


def find_image_convolution(state: ScheduleState) -> ImageConvolution | None:
    """The axes of a program that is a convolution NCHW, not grouped, or depthwise; or None."""
    fold = only_fold(state)
    loads = multiplied_loads(fold.tensor) if fold is not None else None
    if fold is None or loads is None or not _has_plain_extents(fold.tensor):
        return None
    for data, kernel in (loads, loads[::-1]):
        convolution = _as_convolution(fold.tensor, data, kernel)
        if convolution is not None:
            return convolution
    return None


def _as_convolution(tensor: Compute, data: Load, kernel: Load) -> ImageConvolution | None:
    if not len(tensor.axes) == len(data.indices) == len(kernel.indices) == 4:
        return None
    images, channels, rows, columns = tensor.axes
    taps = [_tap(tensor, kernel.indices[n], data.indices[n]) for n in (2, 3)]
    slides = [axis.var in free_vars(data.indices[n]) for n, axis in ((2, rows), (3, columns))]
    if data.indices[0] != images.var or kernel.indices[0] != channels.var or not all(slides):
        return None
    names: dict[Index, str] = {axis.var: axis.name for axis in tensor.reduce_axes}
    terms = ""
    if data.indices[1] != channels.var:
        if data.indices[1] != kernel.indices[1] or data.indices[1] not in names:
            return None
        terms = names[data.indices[1]]
    elif kernel.indices[1] != 0:
        return None
    used = [name for name in (terms, *taps) if name]
    if len(used) != len(names) or None in taps:
        return None
    first, second = (tap or "" for tap in taps)
    return ImageConvolution(
        tensor.name, channels.name, rows.name, columns.name, terms, (first, second)
    )


def _tap(tensor: Compute, in_kernel: Index, in_data: Index) -> str | None:
    """The axis of the reduction along one direction of the kernel, "" for one tap, None if none."""
    if in_kernel == 0:
        return ""
    names = {axis.var: axis.name for axis in tensor.reduce_axes}
    if not isinstance(in_kernel, Var) or in_kernel not in free_vars(in_data):
        return None
    return names.get(in_kernel)


def find_dense_product(state: ScheduleState) -> DenseProduct | None:
    """The axes of a program that is a product of matrices; or None."""
    fold = only_fold(state)
    loads = multiplied_loads(fold.tensor) if fold is not None else None
    if fold is None or loads is None or not _has_plain_extents(fold.tensor):
        return None
    tensor = fold.tensor
    if len(tensor.axes) not in (2, 3) or len(tensor.reduce_axes) != 1:
        return None
    *batch, rows, columns = tensor.axes
    (terms,) = tensor.reduce_axes
    for left, right in (loads, loads[::-1]):
        along = [_plain_axes(tensor, load) for load in (left, right)]
        own = [{*(each or ())} - {axis.name for axis in batch} for each in along]
        if own == [{rows.name, terms.name}, {columns.name, terms.name}]:
            return DenseProduct(tensor.name, rows.name, columns.name, terms.name, bool(batch))
    return None


def _plain_axes(tensor: Compute, load: Load) -> tuple[str, ...] | None:
    """The axes that are the indices of a load; None if one is something else."""
    names: dict[Index, str] = {a.var: a.name for a in (*tensor.axes, *tensor.reduce_axes)}
    indices = [index for index in load.indices if index != 0]
    if not all(index in names for index in indices):
        return None
    return tuple(names[index] for index in indices)


def _has_plain_extents(tensor: Compute) -> bool:
    axes: tuple[Axis, ...] = (*tensor.axes, *tensor.reduce_axes)
    return all(isinstance(axis.extent, int) and axis.extent > 0 for axis in axes)
