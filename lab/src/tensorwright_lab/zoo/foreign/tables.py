"""Networks over graphs, sets, tables and sequences of numbers."""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from torch import nn
from torch.nn import functional

from tensorwright_lab.zoo.foreign.case import Given, Size
from tensorwright_lab.zoo.foreign.exporting import BOTH, Network

Tensor: TypeAlias = Any
_QUANTIZED = (*BOTH, "torchscript+dynamic", "torchscript+qdq")


class _Messages(nn.Module):
    """Sums of messages over the edges that go to a node, by scatter add."""

    def __init__(self) -> None:
        super().__init__()
        self.message = nn.Linear(18, 12)
        self.update = nn.GRUCell(12, 8)

    def forward(self, nodes: Tensor, sources: Tensor, targets: Tensor, edges: Tensor) -> Tensor:
        for _ in range(2):
            parts = torch.cat([nodes[sources], nodes[targets], edges], 1)
            sent = self.message(parts).relu()
            sums = torch.zeros(nodes.shape[0], 12).index_add(0, targets, sent)
            nodes = self.update(sums, nodes)
        return nodes.mean(0)


class _Attending(nn.Module):
    """Weights of edges that are a softmax over those to the same node."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(8, 8)
        self.score = nn.Linear(16, 1)

    def forward(self, nodes: Tensor, sources: Tensor, targets: Tensor) -> Tensor:
        x = self.project(nodes)
        scores = functional.leaky_relu(self.score(torch.cat([x[sources], x[targets]], 1)))
        weights = scores.clamp(max=5).exp()
        at = targets[:, None]
        sums = torch.zeros(x.shape[0], 1).scatter_add(0, at, weights)
        weights = weights / (sums[targets] + 1e-9)
        mixed = torch.zeros_like(x).scatter_add(0, at.expand(-1, 8), weights * x[sources])
        return functional.elu(mixed)


class _Greatest(nn.Module):
    """The greatest message of each node, by scatter with a maximum."""

    def forward(self, nodes: Tensor, sources: Tensor, targets: Tensor) -> Tensor:
        at = targets[:, None].expand(-1, 8)
        return nodes.scatter_reduce(0, at, nodes[sources], "amax", include_self=True)


class _Points(nn.Module):
    """A set of points: one layer for each, the greatest of all, a class."""

    def __init__(self) -> None:
        super().__init__()
        self.each = nn.Sequential(nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16), nn.ReLU())
        self.whole = nn.Linear(16, 5)

    def forward(self, points: Tensor) -> tuple[Tensor, Tensor]:
        x = self.each(points.transpose(1, 2))
        return self.whole(x.max(2).values), (points[:, :, None] - points[:, None]).pow(2).sum(3)


class _Layers(nn.Module):
    """Rows of a table: layer norms, residual layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(10, 32)
        self.norms = nn.ModuleList(nn.LayerNorm(32) for _ in range(2))
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(2))
        self.last = nn.Linear(32, 3)

    def forward(self, rows: Tensor) -> Tensor:
        x = self.first(rows)
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x = x + functional.gelu(layer(norm(x)))
        return self.last(x)


class _Columns(nn.Module):
    """Numbers and categories of a table, with products of all pairs of features."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(20, 8) for _ in range(3))
        self.numbers = nn.Linear(4, 8)
        self.last = nn.Sequential(nn.Linear(8 + 6, 16), nn.ReLU(), nn.Linear(16, 1))
        self.register_buffer("pairs", torch.triu_indices(4, 4, 1))

    def forward(self, numbers: Tensor, kinds: Tensor) -> Tensor:
        parts = [self.numbers(numbers)]
        parts += [table(kinds[:, k]) for k, table in enumerate(self.tables)]
        x = torch.stack(parts, 1)
        products = (x @ x.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.last(torch.cat([parts[0], products], 1)).sigmoid().squeeze(1)


class _Bag(nn.Module):
    """Words as a bag: a mean of rows of a table, by a mask or by offsets."""

    def __init__(self, *, offsets: bool) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(40, 12, mode="mean")
        self.table = nn.Embedding(40, 12, padding_idx=0)
        self.classes = nn.Linear(12, 4)
        self.by_offsets = offsets

    def forward(self, words: Tensor) -> Tensor:
        if self.by_offsets:
            return self.classes(self.bag(words))
        mask = (words != 0).to(torch.float32)
        counts = mask.sum(1, keepdim=True).clamp(min=1)
        return self.classes(self.table(words).sum(1) / counts)


class _Forecast(nn.Module):
    """Series of numbers: a trend by moving means, what is left in patches, a normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.trend = nn.AvgPool1d(5, 1, 2, count_include_pad=False)
        self.cells = nn.GRU(1, 8, batch_first=True)
        self.last = nn.Linear(8, 6)

    def forward(self, series: Tensor) -> Tensor:
        mean = series.mean(1, keepdim=True)
        scale = (series.var(1, keepdim=True, unbiased=False) + 1e-5).sqrt()
        x = (series - mean) / scale
        x = x - self.trend(x.unsqueeze(1)).squeeze(1)
        return self.last(self.cells(x.unsqueeze(2))[0][:, -1]) * scale + mean


class _Experts(nn.Module):
    """Tokens that go to the two best of four experts."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(12, 4)
        self.weights = nn.Parameter(torch.randn(4, 12, 12) * 0.3)

    def forward(self, tokens: Tensor) -> Tensor:
        best, at = self.gate(tokens).softmax(-1).topk(2, -1)
        outputs = torch.einsum("td,edf->tef", tokens, self.weights).relu()
        chosen = outputs.gather(1, at.unsqueeze(-1).expand(-1, -1, 12))
        return (best.unsqueeze(-1) * chosen).sum(1)


class _Twins(nn.Module):
    """Texts and images in one space: all cosines."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(6, 8), nn.Linear(10, 8)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, texts: Tensor, images: Tensor) -> tuple[Tensor, Tensor]:
        left = functional.normalize(self.left(texts), dim=-1)
        right = functional.normalize(self.right(images), dim=-1)
        logits = self.scale.exp() * left @ right.t()
        return logits, logits.t().softmax(-1)


class _Signal(nn.Module):
    """Windows of a heartbeat: residual layers with strides, a mean over time."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(c, 8, 7, 2, 3) for c in (2, 8, 8))
        self.skips = nn.ModuleList(nn.Conv1d(c, 8, 1, 2) for c in (2, 8, 8))
        self.norms = nn.ModuleList(nn.GroupNorm(2, 8) for _ in range(3))
        self.last = nn.Linear(8, 3)

    def forward(self, leads: Tensor) -> Tensor:
        x = leads
        for layer, skip, norm in zip(self.layers, self.skips, self.norms, strict=True):
            x = norm(layer(x) + skip(x)).relu()
        return self.last(functional.adaptive_avg_pool1d(x, 1).flatten(1))


class _Noise(nn.Module):
    """A step of diffusion: waves of the time, an image of any sides, a skip."""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(8, 8), nn.SiLU())
        self.down, self.up = nn.Conv2d(2, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, padding=1)
        self.norm = nn.GroupNorm(4, 8)
        self.last = nn.Conv2d(10, 2, 3, padding=1)
        self.register_buffer("waves", 100 ** (-torch.arange(4) / 4))

    def forward(self, image: Tensor, steps: Tensor) -> Tensor:
        angles = steps[:, None] * self.waves[None]
        at = self.time(torch.cat([angles.sin(), angles.cos()], 1))
        x = functional.silu(self.norm(self.down(image) + at[:, :, None, None]))
        x = self.up(functional.interpolate(x, size=image.shape[2:], mode="nearest"))
        return self.last(torch.cat([x, image], 1))


_NODES = Given("nodes", ("nodes", 8))
_ENDS = tuple(Given(name, ("edges",), "ids", "nodes") for name in ("sources", "targets"))
_GRAPH = {"nodes": Size(1, 12), "edges": Size(0, 30)}
_ROWS = {"batch": Size(0, 6)}

NETWORKS = (
    Network(
        *("graph network", "sums", _Messages, (_NODES, *_ENDS, Given("values", ("edges", 2)))),
        *(_GRAPH,),
    ),
    Network("graph network", "attention", _Attending, (_NODES, *_ENDS), _GRAPH),
    Network("graph network", "greatest", _Greatest, (_NODES, *_ENDS), _GRAPH),
    Network(
        *("points", "set", _Points, (Given("points", ("batch", "points", 3)),)),
        *({"batch": Size(0, 3), "points": Size(1, 20)},),
    ),
    Network("table", "layer norm", _Layers, (Given("rows", ("batch", 10)),), _ROWS, _QUANTIZED),
    Network(
        *("table", "pairs", _Columns),
        (Given("numbers", ("batch", 4)), Given("kinds", ("batch", 3), "ids", 20)),
        *(_ROWS, (*BOTH, "torchscript+dynamic")),
    ),
    Network(
        *("bag of words", "mask", lambda: _Bag(offsets=False)),
        (Given("words", ("batch", "time"), "ids", 40),),
        {"batch": Size(0, 4), "time": Size(0, 9)},
    ),
    Network(
        *("bag of words", "bag", lambda: _Bag(offsets=True)),
        (Given("words", ("batch", "time"), "ids", 40),),
        {"batch": Size(1, 4), "time": Size(1, 9)},
    ),
    Network(
        *("forecast", "gru", _Forecast, (Given("series", ("batch", "time")),)),
        *({"batch": Size(0, 4), "time": Size(1, 30)}, (*BOTH, "torchscript+dynamic")),
    ),
    Network(
        "experts", "two of four", _Experts, (Given("tokens", ("tokens", 12)),), {"tokens": Size()}
    ),
    Network(
        *("twins", "cosines", _Twins),
        (Given("texts", ("texts", 6)), Given("images", ("images", 10))),
        *({"texts": Size(), "images": Size()}, (*BOTH, "torchscript+dynamic")),
    ),
    Network(
        *("signal", "residual", _Signal, (Given("leads", ("batch", 2, "time")),)),
        *({"batch": Size(0, 4), "time": Size(1, 64)}, (*BOTH, "torchscript+qdq")),
    ),
    Network(
        *("diffusion", "step", _Noise),
        (Given("image", ("batch", 2, "rows", "columns")), Given("steps", ("batch",))),
        {"batch": Size(0, 3), "rows": Size(1, 16), "columns": Size(1, 16)},
    ),
)
