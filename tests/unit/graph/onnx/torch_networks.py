"""Small networks in PyTorch, exported with open dimensions, as exporters write them."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import onnx
import torch
from onnx import ModelProto
from torch import Tensor, nn
from torch.nn import functional

Axes = Mapping[str, Mapping[int, str]]


@dataclass(frozen=True)
class Network:
    """A network, inputs of an example, the names of its open dimensions, and what these may be."""

    make: Callable[[], nn.Module]
    example: Callable[[], tuple[Tensor, ...]]
    axes: Axes
    points: tuple[Mapping[str, int], ...]
    sizes: Mapping[str, str] = field(default_factory=dict)


class Classifier(nn.Module):
    """Flattened images and two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(12, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.relu(self.first(x.view(x.shape[0], -1))))


class Residual(nn.Module):
    """A residual network for images of any sides."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.pool = nn.Conv2d(3, 8, 7, 2, 3), nn.MaxPool2d(3, 2, 1, ceil_mode=True)
        self.body = nn.Sequential(nn.Conv2d(8, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU())
        self.side, self.head = nn.Conv2d(8, 16, 1, 2), nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(torch.relu(self.stem(x)))
        x = torch.relu(self.body(x) + self.side(x))
        return self.head(torch.flatten(functional.adaptive_avg_pool2d(x, 1), 1))


class Encoder(nn.Module):
    """A layer of BERT: position ids out of a table, and a mask of padding."""

    def __init__(self, width: int = 16, heads: int = 2, longest: int = 64) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.words, self.places = nn.Embedding(10, width), nn.Embedding(longest, width)
        self.kinds, self.norm = nn.Embedding(2, width), nn.LayerNorm(width)
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.register_buffer("ids", torch.arange(longest).expand(1, -1))

    def split(self, x: Tensor) -> Tensor:
        return x.view((*x.size()[:-1], self.heads, self.size)).permute(0, 2, 1, 3)

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        shape = words.size()
        kinds = torch.zeros(shape, dtype=torch.long)
        x = self.words(words) + self.places(self.ids[:, : shape[1]]) + self.kinds(kinds)
        x = self.norm(x)
        q, k, v = (self.split(each) for each in self.project(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-1, -2) / self.size**0.5
        scores = scores + (1.0 - mask[:, None, None, :].to(x.dtype)) * -10000.0
        y = (torch.softmax(scores, -1) @ v).permute(0, 2, 1, 3).contiguous()
        return x + self.out(y.view((*y.size()[:-2], self.heads * self.size)))


class Decoder(nn.Module):
    """A step of a decoder: rotary positions behind what is past, a cache, grouped heads."""

    def __init__(self, width: int = 16, heads: int = 4, groups: int = 2) -> None:
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.words = nn.Embedding(10, width)
        self.q, self.k, self.v = (
            nn.Linear(width, count * self.size, bias=False) for count in (heads, groups, groups)
        )
        self.register_buffer("rates", 100.0 ** -torch.arange(0, 1, 2 / self.size))

    def turned(self, x: Tensor, angles: Tensor) -> Tensor:
        half = x.shape[-1] // 2
        other = torch.cat((-x[..., half:], x[..., :half]), -1)
        return x * angles.cos() + other * angles.sin()

    def repeated(self, x: Tensor) -> Tensor:
        batch, groups, length, size = x.shape
        x = x[:, :, None].expand(batch, groups, self.heads // groups, length, size)
        return x.reshape(batch, self.heads, length, size)

    def forward(self, words: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, ...]:
        batch, length = words.shape
        past = keys.shape[2]
        x = self.words(words)
        places = torch.arange(past, past + length)
        angles = (places[:, None].float() * self.rates[None]).repeat(1, 2)
        q = self.q(x).view(batch, length, self.heads, self.size).transpose(1, 2)
        k = self.k(x).view(batch, length, self.groups, self.size).transpose(1, 2)
        v = self.v(x).view(batch, length, self.groups, self.size).transpose(1, 2)
        keys = torch.cat((keys, self.turned(k, angles)), 2)
        values = torch.cat((values, v), 2)
        mask = torch.triu(torch.full((length, past + length), -1e9), diagonal=past + 1)
        scores = self.turned(q, angles) @ self.repeated(keys).transpose(2, 3) + mask
        y = torch.softmax(scores, -1) @ self.repeated(values)
        return y.transpose(1, 2).reshape(batch, length, -1), keys, values


class Segmenter(nn.Module):
    """Pixels as words of a sequence, and back to an image that is resized."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.patches, self.reduce = nn.Conv2d(3, width, 7, 4, 3), nn.Conv2d(width, width, 2, 2)
        self.norm, self.q, self.kv = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(8, 16)
        self.head = nn.Conv2d(width, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x)
        batch, width, rows, columns = x.shape
        words = self.norm(x.flatten(2).transpose(1, 2))
        fewer = words.permute(0, 2, 1).reshape(batch, width, rows, columns)
        fewer = self.reduce(fewer).reshape(batch, width, -1).permute(0, 2, 1)
        k, v = torch.split(self.kv(fewer), width, 2)
        words = words + torch.softmax(self.q(words) @ k.transpose(1, 2), -1) @ v
        y = self.head(words.transpose(1, 2).reshape(batch, width, rows, columns))
        y = functional.interpolate(y, scale_factor=2.0, mode="bilinear", align_corners=False)
        return functional.interpolate(
            y, size=(rows * 4, columns * 4), mode="bilinear", align_corners=False
        )


class Moves(nn.Module):
    """Positions, padding, cuts and means of a length that is open."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        batch, length, width = x.shape
        places = torch.arange(length).to(x.dtype)[None, :, None].expand(batch, -1, 1)
        y = functional.pad(torch.cat((x, places), -1), (1, 0, 0, 2))
        left, right = torch.split(y - y.mean(1, keepdim=True), [3, width - 1], 2)
        larger = functional.interpolate(left.transpose(1, 2), scale_factor=2)
        earlier = torch.ones(length, length).tril() @ x
        return (
            larger,
            right + 1.0 / length,
            earlier,
            x[:, -1],
            x[:, length // 2 :],
            x.repeat(1, 2, 1),
        )


def _words(*shape: int) -> Tensor:
    return torch.randint(0, 10, shape)


_IMAGE = {"x": {0: "batch", 2: "height", 3: "width"}}
_CACHE = {0: "batch", 2: "past"}
NETWORKS = {
    "classifier": Network(
        Classifier,
        lambda: (torch.randn(2, 3, 4),),
        {"x": {0: "batch"}},
        ({"batch": 1}, {"batch": 5}),
    ),
    "residual": Network(
        Residual,
        lambda: (torch.randn(2, 3, 32, 40),),
        _IMAGE,
        ({"batch": 1, "height": 32, "width": 33}, {"batch": 2, "height": 47, "width": 64}),
    ),
    "encoder": Network(
        Encoder,
        lambda: (_words(2, 7), torch.ones(2, 7, dtype=torch.long)),
        {"words": {0: "batch", 1: "seq"}, "mask": {0: "batch", 1: "seq"}},
        ({"batch": 1, "seq": 1}, {"batch": 3, "seq": 11}, {"batch": 2, "seq": 64}),
        {"seq": "1..64"},
    ),
    "decoder": Network(
        Decoder,
        lambda: (_words(2, 3), torch.randn(2, 2, 5, 4), torch.randn(2, 2, 5, 4)),
        {"words": {0: "batch", 1: "seq"}, "keys": _CACHE, "values": _CACHE},
        ({"batch": 1, "seq": 1, "past": 9}, {"batch": 3, "seq": 4, "past": 2}),
    ),
    "segmenter": Network(
        Segmenter,
        lambda: (torch.randn(2, 3, 32, 64),),
        _IMAGE,
        ({"batch": 1, "height": 33, "width": 35}, {"batch": 2, "height": 64, "width": 40}),
        {"height": "8..", "width": "8.."},
    ),
    "moves": Network(
        Moves,
        lambda: (torch.randn(2, 6, 4),),
        {"x": {0: "batch", 1: "length"}},
        ({"batch": 1, "length": 1}, {"batch": 3, "length": 9}),
    ),
}


def exported(network: Network, *, dynamo: bool = False) -> ModelProto:
    """The model by PyTorch's exporter of traces, or by its newer one."""
    torch.manual_seed(0)
    module, example = network.make().eval(), network.example()
    names, file = list(network.axes), io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not dynamo:
            axes = {name: dict(each) for name, each in network.axes.items()}
            torch.onnx.export(
                module, example, file, dynamo=False, input_names=names, dynamic_axes=axes
            )
            return onnx.load_from_string(file.getvalue())
        shapes = tuple(dict(each) for each in network.axes.values())
        program = torch.onnx.export(
            module, example, dynamo=True, input_names=names, dynamic_shapes=shapes, verbose=False
        )
    assert program is not None
    return program.model_proto
