"""How the loops of a statement run: vectors, unrolled loops, threads, and their positions."""

from __future__ import annotations

from tensorwright.schedule import ForKind
from tensorwright.tuning.features.access import LoopBox
from tensorwright.tuning.features.columns import (
    Cell,
    above,
    any_flag,
    choose,
    product_of,
    same,
    total_of,
)
from tensorwright.tuning.features.names import POSITIONS

ANNOTATIONS = {
    "vector": ForKind.VECTOR,
    "unroll": ForKind.UNROLLED,
    "parallel": ForKind.PARALLEL,
}
_GPU = {
    "block_x": ForKind.BLOCK_X,
    "block_y": ForKind.BLOCK_Y,
    "block_z": ForKind.BLOCK_Z,
    "thread_x": ForKind.THREAD_X,
    "thread_y": ForKind.THREAD_Y,
    "thread_z": ForKind.THREAD_Z,
}


class LoopKinds:
    """Which loops of a statement exist, and which of them fold.

    A loop of one iteration does not.  A loop folds if it is inside the life of the stored buffer
    and does not move the element that the statement updates; every other loop is spatial.
    """

    def __init__(
        self,
        kinds: tuple[ForKind, ...],
        loops: LoopBox,
        store_moves: tuple[Cell, ...],
        depth: int,
        *,
        is_update: bool,
    ) -> None:
        self.kinds = kinds
        self.extents = loops.extents
        self.present = tuple(above(extent, 1) for extent in loops.extents)
        folds: list[Cell] = []
        for n, present in enumerate(self.present):
            inside = is_update and n >= depth
            folds.append(present * (1 - store_moves[n]) if inside else 0)
        self.folds = tuple(folds)
        self.spatial = tuple(
            present - fold if not isinstance(fold, int) or fold else present
            for present, fold in zip(self.present, folds, strict=True)
        )

    def position(self, n: int) -> dict[str, Cell]:
        """The position among the spatial or the folding loops; a single loop is the innermost."""
        features: dict[str, Cell] = {}
        for name, flags in (("spatial", self.spatial), ("reduce", self.folds)):
            here = flags[n]
            is_inner = same(total_of(flags[n + 1 :]), 0)
            is_outer = same(total_of(flags[:n]), 0)
            features[f"inner_{name}"] = here * is_inner
            features[f"outer_{name}"] = here * (1 - is_inner) * is_outer
            features[f"middle_{name}"] = here * (1 - is_inner) * (1 - is_outer)
        return features


def annotation_features(loops: LoopKinds) -> dict[str, Cell]:
    """Number, product, innermost extent and position of the loops that run in each way."""
    features: dict[str, Cell] = {}
    for name, kind in ANNOTATIONS.items():
        marked = [n for n, each in enumerate(loops.kinds) if each is kind]
        number = total_of([loops.present[n] for n in marked])
        features[f"{name}_num"] = number
        some = any_flag([loops.present[n] for n in marked])
        features[f"{name}_prod"] = some * product_of([loops.extents[n] for n in marked])
        length: Cell = 0
        position: dict[str, Cell] = dict.fromkeys(POSITIONS, 0)
        position["none"] = 1
        for n in marked:  # the innermost existing loop decides
            there = loops.present[n]
            length = choose(there, loops.extents[n], length)
            own = loops.position(n)
            position = {
                where: choose(there, own.get(where, 0), before)
                for where, before in position.items()
            }
        features[f"{name}_len"] = length
        features |= {f"{name}_type_{where}": flag for where, flag in position.items()}
    return features


def gpu_features(loops: LoopKinds) -> dict[str, Cell]:
    """The extents of the loops bound to a GPU's blocks and threads; nothing on a CPU."""
    features: dict[str, Cell] = {}
    for name, kind in _GPU.items():
        marked = [n for n, each in enumerate(loops.kinds) if each is kind]
        if marked:
            features[f"{name}_len"] = product_of([loops.extents[n] for n in marked])
            features["is_gpu"] = 1
    return features
