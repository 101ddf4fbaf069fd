"""Fit a program embedding with PyTorch: the one module that imports it.

It is imported by name where a network is fitted.  The losses are those of trees: their gradient at
the scores of a batch is where the gradient of the network starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from tensorwright.tuning.models.losses import Column, make_loss
from tensorwright.tuning.models.protocol import TrainingSet
from tensorwright_lab.cost_models.held_out import part_of
from tensorwright_lab.cost_models.tree_arrays import NetworkSettings, Trees, trees_of
from tensorwright_lab.cost_models.tree_gru import TreeGru, shapes_of

Weights: TypeAlias = "dict[str, torch.Tensor]"
Places: TypeAlias = NDArray[np.int64]

_CLIP = 1.0


def fit(data: TrainingSet, margin: Column, settings: NetworkSettings) -> TreeGru:
    """A network whose scores, added to the margin, make the loss of the settings small.

    Every step is on a batch of programs of as few workloads as fill it, and on its loss.  Equal
    arguments give equal networks: one thread, seeded choices.  Whether the program around it takes
    gradients does not matter.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.enable_grad():
            return TreeGru(_fit(data, margin, settings))
    finally:
        torch.set_num_threads(threads)


def _fit(data: TrainingSet, margin: Column, settings: NetworkSettings) -> dict[str, _Array]:
    rows, is_row = _padded(data)
    weights = _initial(rows[is_row], settings)
    trained = [each.requires_grad_() for name, each in weights.items() if "scale" not in name]
    optimizer = torch.optim.AdamW(trained, settings.learning_rate, weight_decay=settings.decay)
    random = np.random.default_rng(settings.seed)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, settings.learning_rate, total_steps=max(settings.steps, 2), pct_start=0.15
    )
    batches = _batches(data, settings.batch, random)
    for step in range(settings.steps):
        mask = np.zeros(len(data.counts), np.bool_)
        mask[next(batches)] = True
        chosen = np.flatnonzero(mask)
        scores = scores_by(weights, trees_of(rows[chosen], is_row[chosen]))
        now = margin[chosen] + scores.detach().numpy().astype(np.float64)
        gradient, _ = make_loss(part_of(data, mask), settings).slopes(now, step)
        optimizer.zero_grad()
        scores.backward(torch.from_numpy((gradient / len(chosen)).astype(np.float32)))
        torch.nn.utils.clip_grad_norm_(trained, _CLIP)
        optimizer.step()
        schedule.step()
    return {name: each.detach().numpy().copy() for name, each in weights.items()}


_Array: TypeAlias = NDArray[np.float32]


def _padded(data: TrainingSet) -> tuple[_Array, NDArray[np.bool_]]:
    """The rows of programs (programs, most rows, columns), and which are not padding."""
    is_row = np.arange(int(data.counts.max())) < data.counts[:, None]
    padded = np.zeros((*is_row.shape, data.rows.shape[1]), np.float32)
    padded[is_row] = data.rows
    return padded, is_row


def _batches(data: TrainingSet, size: int, random: np.random.Generator) -> Iterator[Places]:
    """Batches without end: all programs, those of a workload side by side, again and again."""
    count = int(data.groups.max()) + 1
    while True:
        places = random.permutation(count)[data.groups]
        order = np.lexsort((random.random(len(places)), places))
        for start in range(0, len(order), size):
            yield order[start : start + size]


def _initial(rows: _Array, settings: NetworkSettings) -> Weights:
    """Weights to start from: uniform by the width of their inputs; scales from the data."""
    generator = torch.Generator().manual_seed(settings.seed)
    trees = trees_of(rows[:, None])
    weights: Weights = {}
    for name, shape in shapes_of(settings.width).items():
        if name.endswith("_scale"):
            values = trees.leaves[:, 0] if name == "leaf_scale" else trees.loops[trees.is_there]
            weights[name] = torch.from_numpy(_scale(values, shape))
            continue
        bound = 1.0 / np.sqrt(shape[-1])
        drawn = torch.rand(shape, generator=generator) * 2.0 - 1.0
        weights[name] = torch.zeros(shape) if name.endswith("_bias") else drawn * bound
    return weights


def _scale(values: _Array, shape: tuple[int, ...]) -> _Array:
    """The mean of each field, and one over its spread."""
    scale = np.zeros(shape, np.float32)
    scale[1] = 1.0
    if len(values):
        spread = values.std(axis=0)
        scale[0] = values.mean(axis=0)
        scale[1] = 1.0 / np.maximum(spread, 0.1)
    return scale


def scores_by(weights: Weights, trees: Trees) -> torch.Tensor:
    """The scores of `TreeGru.scores`, so that gradients can be taken; padding counts nothing."""
    leaves, loops, shares = (
        torch.from_numpy(np.ascontiguousarray(each))
        for each in (trees.leaves, trees.loops, trees.shares)
    )
    w = weights
    linear = torch.nn.functional.linear
    leaf = (leaves - w["leaf_scale"][0]) * w["leaf_scale"][1]
    state = torch.tanh(linear(leaf, w["leaf_weight"], w["leaf_bias"]))
    apart = torch.from_numpy(trees.is_row.astype(np.float32))
    for level in reversed(range(loops.shape[2])):
        if not trees.is_there[:, :, level].any():
            continue
        is_there = torch.from_numpy(trees.is_there[:, :, level])
        own_shares = shares[:, level]
        loop = (loops[:, :, level] - w["loop_scale"][0]) * w["loop_scale"][1]
        x = own_shares @ torch.relu(linear(loop, w["loop_weight"], w["loop_bias"]))
        h = (own_shares > 0).float() @ (state * apart[..., None])
        own = linear(x, w["input_weight"], w["input_bias"]).chunk(3, dim=-1)
        past = linear(h, w["state_weight"], w["state_bias"]).chunk(3, dim=-1)
        r = torch.sigmoid(own[0] + past[0])
        z = torch.sigmoid(own[1] + past[1])
        n = torch.tanh(own[2] + r * past[2])
        state = torch.where(is_there[..., None], z * h + (1.0 - z) * n, state)
        apart = torch.where(is_there, own_shares.max(dim=-1).values, apart)
    whole = (state * apart[..., None]).sum(dim=1)
    hidden = torch.relu(linear(whole, w["hidden_weight"], w["hidden_bias"]))
    return linear(hidden, w["score_weight"], w["score_bias"])[:, 0]
