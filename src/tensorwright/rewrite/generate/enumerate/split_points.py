"""Where tensors were put together: the places at which the generator splits them.

Seams are, per dimension, places in rising order; they pass through operators as shapes do.  Places
are sizes, so that one rule serves numbers and expressions over the inputs' extents.
"""

from __future__ import annotations

from typing import TypeAlias

from tensorwright.rewrite.dims import Shape, Size
from tensorwright.rewrite.terms import Param

__all__ = ["Seams", "no_seams", "seams_of"]

Seams: TypeAlias = tuple[tuple[Size, ...], ...]


def no_seams(rank: int) -> Seams:
    """A tensor that was not put together."""
    return ((),) * rank


def _common(left: Seams, right: Seams) -> Seams:
    return tuple(
        tuple(place for place in a if place in b) for a, b in zip(left, right, strict=True)
    )


def seams_of(
    operator: str,
    params: tuple[Param, ...],
    shapes: tuple[Shape, ...],
    seams: tuple[Seams, ...],
    result_rank: int,
) -> Seams:
    """The seams of a result from those of the arguments.

    Element-wise operators keep what their arguments share; a concatenation adds one; a matrix
    product has the rows' of its left and the columns' of its right argument, a convolution the
    batch's of its data and the channels' of its kernel.
    """
    match operator:
        case "ewadd" | "ewmul" | "ewsub" | "ewdiv":
            return _common(*seams)
        case "relu" | "exp" | "sigmoid" | "tanh" | "scalar_mul":
            return seams[0]
        case "matmul":
            return (*seams[0][:-1], seams[1][-1])
        case "transpose":
            return tuple(seams[0][at] for at in params if isinstance(at, int))
        case "concat" if isinstance(params[0], int):
            return _concatenated(params[0], shapes, seams)
        case "split0" | "split1" if isinstance(params[0], int) and not isinstance(params[1], str):
            return _part(operator == "split0", params[0], params[1], seams[0])
        case "conv2d":
            return (seams[0][0], seams[1][0], (), ())
        case "max_pool" | "avg_pool" | "enlarge":
            return (*seams[0][:2], (), ())
        case _:
            return no_seams(result_rank)


def _concatenated(axis: int, shapes: tuple[Shape, ...], seams: tuple[Seams, ...]) -> Seams:
    middle = shapes[0][axis]
    joined = (*seams[0][axis], middle, *(middle + place for place in seams[1][axis]))
    common = _common(*((*each[:axis], (), *each[axis + 1 :]) for each in seams))
    return (*common[:axis], joined, *common[axis + 1 :])


def _part(is_first: bool, axis: int, at: Size, seams: Seams) -> Seams:
    places = seams[axis]
    cut = places.index(at) if at in places else len(places)
    kept = places[:cut] if is_first else tuple(place - at for place in places[cut + 1 :])
    return (*seams[:axis], kept, *seams[axis + 1 :])
