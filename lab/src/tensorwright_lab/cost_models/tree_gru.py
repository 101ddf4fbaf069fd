"""A program as a vector: a gated recurrent unit that goes up the tree of loops.

A statement starts with an embedding of what one execution does; at each loop around it, from the
innermost outwards, the states of what the loop holds are added up and the unit takes in the loop:

    state of a statement = tanh(W_s leaf + b_s)
    input of a loop      = relu(W_x x + b_x), x its fields; the mean, where statements share it
    h                    = sum of the states of its children: statements and loops
    r, z                 = sigmoid(W_r x + U_r h + b_r), sigmoid(W_z x + U_z h + b_z)
    state of a loop      = z * h + (1 - z) * tanh(W_n x + r * (U_n h + c_n) + b_n)
    score                = w2 . relu(W1 (sum of the states of the outermost loops) + b1) + b2

Weights are arrays of NumPy's, and so is the arithmetic here, in 8-byte floats: a program's score
does not depend on which others are beside it.  PyTorch is asked for where weights are fitted only.

Source:   Chen et al., AutoTVM, NeurIPS 2018, section 3.1 (TreeGRU); Tai et al., Improved Semantic
          Representations From Tree-Structured LSTMs, ACL 2015, for the sum over children; Cho et
          al., EMNLP 2014, for the unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import RecordError
from tensorwright.tuning.features import FeatureSet
from tensorwright.tuning.models import Features, Scores
from tensorwright_lab.cost_models.tree_arrays import LEAF_WIDTH, LOOP_WIDTH, trees_of
from tensorwright_lab.feature_sets import LOOP_TREE, LOOPS

Arrays: TypeAlias = Mapping[str, NDArray[np.float32]]
Matrix: TypeAlias = NDArray[np.float64]

_BLOCK = 64  # programs at a time
GATES = 3  # r, z, n


def shapes_of(width: int) -> dict[str, tuple[int, ...]]:
    """The weights of a network with `width` numbers a state, by name."""
    return {
        "leaf_scale": (2, LEAF_WIDTH),
        "loop_scale": (2, LOOP_WIDTH),
        "leaf_weight": (width, LEAF_WIDTH),
        "leaf_bias": (width,),
        "loop_weight": (width, LOOP_WIDTH),
        "loop_bias": (width,),
        "input_weight": (GATES * width, width),
        "input_bias": (GATES * width,),
        "state_weight": (GATES * width, width),
        "state_bias": (GATES * width,),
        "hidden_weight": (width, width),
        "hidden_bias": (width,),
        "score_weight": (1, width),
        "score_bias": (1,),
    }


class TreeGru:
    """A fitted network; immutable.

    arrays   its weights by name, `shapes_of` their width; the two rows of a scale are what is taken
             off a field and what it is then multiplied with
    """

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = dict(arrays)
        self._weights = {name: each.astype(np.float64) for name, each in self.arrays.items()}

    @classmethod
    def of_arrays(cls, arrays: Arrays) -> TreeGru:
        """Check arrays from elsewhere.  Raises: RecordError where they are not such a network."""
        bias = arrays.get("loop_bias")
        width = len(bias) if bias is not None and bias.ndim == 1 else 0
        expected = shapes_of(width)
        if not width or {name: each.shape for name, each in arrays.items()} != expected:
            raise _fault("its arrays do not form a network")
        if any(each.dtype != np.float32 for each in arrays.values()):
            raise _fault("its weights are not 4-byte floats")
        if not all(np.isfinite(each).all() for each in arrays.values()):
            raise _fault("a weight is not finite")
        return cls(arrays)

    def scores(self, features: Features) -> Scores:
        """As `Ranker.scores`, for rows of `loop-tree`."""
        scores = np.zeros(len(features))
        for start in range(0, len(features), _BLOCK):
            scores[start : start + _BLOCK] = self._scores(features[start : start + _BLOCK])
        return scores

    def _scores(self, features: Features) -> Scores:
        w = self._weights
        trees = trees_of(features)
        state = np.tanh(
            _scaled(trees.leaves, w["leaf_scale"]) @ w["leaf_weight"].T + w["leaf_bias"]
        )
        width = state.shape[-1]
        apart = np.ones(state.shape[:2])  # a state's part where several rows hold the same one
        for level in reversed(range(LOOPS)):
            is_there = trees.is_there[:, :, level]
            if not is_there.any():
                continue
            shares = trees.shares[:, level].astype(np.float64)
            loop = _scaled(trees.loops[:, :, level], w["loop_scale"])
            x = shares @ np.maximum(loop @ w["loop_weight"].T + w["loop_bias"], 0.0)
            h = (shares > 0) @ (state * apart[..., None])
            own = x @ w["input_weight"].T + w["input_bias"]
            past = h @ w["state_weight"].T + w["state_bias"]
            r = _sigmoid(own[..., :width] + past[..., :width])
            z = _sigmoid(own[..., width : 2 * width] + past[..., width : 2 * width])
            n = np.tanh(own[..., 2 * width :] + r * past[..., 2 * width :])
            state = np.where(is_there[..., None], z * h + (1.0 - z) * n, state)
            apart = np.where(is_there, shares.max(axis=-1), apart)
        whole = (state * apart[..., None]).sum(axis=1)
        hidden = np.maximum(whole @ w["hidden_weight"].T + w["hidden_bias"], 0.0)
        scores: Scores = (hidden @ w["score_weight"].T + w["score_bias"])[:, 0]
        return scores


def read_network(arrays: Arrays, features: FeatureSet) -> TreeGru:
    """The network of a file.

    Raises:  RecordError where the arrays are none, and for one that reads other features.
    """
    if features.name != LOOP_TREE.name:
        raise RecordError(
            stage="cost model", where="network", reason=f"a network reads {LOOP_TREE.name}"
        )
    return TreeGru.of_arrays(arrays)


def _scaled(values: Features, scale: Matrix) -> Matrix:
    scaled: Matrix = (values - scale[0]) * scale[1]
    return scaled


def _sigmoid(values: Matrix) -> Matrix:
    sigmoid: Matrix = 0.5 * (1.0 + np.tanh(0.5 * values))
    return sigmoid


def _fault(reason: str) -> RecordError:
    return RecordError(stage="cost model", where="network", reason=reason, remedy="train it again")
