"""Networks that are exported with open dimensions: batches, sequences, caches, sides of images."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from tensorwright_lab.zoo.wild.decoders import RmsNorm
from tensorwright_lab.zoo.wild.export import Example
from tensorwright_lab.zoo.wild.vision_transformers import Mlp


class _BertLayer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.dense = (nn.Linear(width, width) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)
        self.mlp = Mlp(width, 4 * width)

    def _split(self, x: Tensor) -> Tensor:
        shape = (*x.size()[:-1], self.heads, x.size(-1) // self.heads)
        return x.view(shape).permute(0, 2, 1, 3)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = (self._split(each(x)) for each in (self.query, self.key, self.value))
        scores = q @ k.transpose(-1, -2) / q.size(-1) ** 0.5 + mask
        mixed = (torch.softmax(scores, dim=-1) @ v).permute(0, 2, 1, 3).contiguous()
        x = self.norm1(x + self.dense(mixed.view(x.size())))
        return self.norm2(x + self.mlp(x))


class _Bert(nn.Module):
    def __init__(self, words: int, longest: int, width: int, depth: int, heads: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(longest, width)
        self.kinds, self.norm = nn.Embedding(2, width), nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(_BertLayer(width, heads) for _ in range(depth))
        self.pooler = nn.Linear(width, width)
        self.register_buffer("ids", torch.arange(longest).expand(1, -1))

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        shape = input_ids.size()
        kinds = torch.zeros(shape, dtype=torch.long)
        x = self.words(input_ids) + self.kinds(kinds) + self.places(self.ids[:, : shape[1]])
        x = self.norm(x)
        mask = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for layer in self.layers:
            x = layer(x, mask)
        return x, torch.tanh(self.pooler(x[:, 0]))


def bert_small(depth: int = 4, width: int = 512, heads: int = 8, words: int = 30522) -> Example:
    """BERT small (Turc et al., 2019): input_ids, attention_mask i64 (batch, sequence)."""
    module = _Bert(words, 512, width, depth, heads)
    words_of = torch.ones(2, 7, dtype=torch.int64)
    return Example(module, {"input_ids": words_of, "attention_mask": words_of})


class _Bottleneck(nn.Module):
    def __init__(self, inner: int, outer: int, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
            *(nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
            *(nn.Conv2d(width, outer, 1, bias=False), nn.BatchNorm2d(outer)),
        )
        self.side: nn.Module = nn.Identity()
        if inner != outer or stride != 1:
            shorter = nn.Conv2d(inner, outer, 1, stride, bias=False)
            self.side = nn.Sequential(shorter, nn.BatchNorm2d(outer))

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.body(x) + self.side(x))


class _ResNet(nn.Module):
    def __init__(self, depths: tuple[int, ...]) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)]
        layers += [nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        inner = 64
        for stage, depth in enumerate(depths):
            for number in range(depth):
                width, stride = 64 << stage, 2 if stage and not number else 1
                layers.append(_Bottleneck(inner, 4 * width, width, stride))
                inner = 4 * width
        self.features, self.fc = nn.Sequential(*layers), nn.Linear(inner, 1000)

    def forward(self, image: Tensor) -> Tensor:
        x = functional.adaptive_avg_pool2d(self.features(image), 1)
        return self.fc(torch.flatten(x, 1))


def resnet50() -> Example:
    """ResNet-50 (He et al., CVPR 2016): image f32 (batch, 3, 224, 224) -> scores."""
    return Example(_ResNet((3, 4, 6, 3)), {"image": torch.zeros(2, 3, 224, 224)})


class _CachedAttention(nn.Module):
    def __init__(self, width: int, heads: int, groups: int) -> None:
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.q_proj = nn.Linear(width, heads * self.size, bias=False)
        self.k_proj = nn.Linear(width, groups * self.size, bias=False)
        self.v_proj = nn.Linear(width, groups * self.size, bias=False)
        self.o_proj = nn.Linear(heads * self.size, width, bias=False)

    def _turned(self, x: Tensor, angles: Tensor) -> Tensor:
        half = x.shape[-1] // 2
        other = torch.cat((-x[..., half:], x[..., :half]), -1)
        return x * angles.cos() + other * angles.sin()

    def _repeated(self, x: Tensor) -> Tensor:
        batch, groups, length, size = x.shape
        x = x[:, :, None].expand(batch, groups, self.heads // groups, length, size)
        return x.reshape(batch, self.heads, length, size)

    def forward(
        self, x: Tensor, angles: Tensor, mask: Tensor, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        batch, length, _ = x.shape
        q = self.q_proj(x).view(batch, length, self.heads, self.size).transpose(1, 2)
        k = self.k_proj(x).view(batch, length, self.groups, self.size).transpose(1, 2)
        v = self.v_proj(x).view(batch, length, self.groups, self.size).transpose(1, 2)
        keys = torch.cat((keys, self._turned(k, angles)), 2)
        values = torch.cat((values, v), 2)
        scores = self._turned(q, angles) @ self._repeated(keys).transpose(2, 3)
        mixed = torch.softmax(scores * self.size**-0.5 + mask, -1) @ self._repeated(values)
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, length, -1)), keys, values


class _CachedBlock(nn.Module):
    def __init__(self, width: int, heads: int, groups: int, inner: int) -> None:
        super().__init__()
        self.input_norm, self.post_norm = RmsNorm(width), RmsNorm(width)
        self.attention = _CachedAttention(width, heads, groups)
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(
        self, x: Tensor, angles: Tensor, mask: Tensor, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        mixed, keys, values = self.attention(self.input_norm(x), angles, mask, keys, values)
        x = x + mixed
        y = self.post_norm(x)
        y = self.down_proj(functional.silu(self.gate_proj(y)) * self.up_proj(y))
        return x + y, keys, values


class _CachedDecoder(nn.Module):
    def __init__(self, words: int, width: int, depth: int, heads: int, groups: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        blocks = (_CachedBlock(width, heads, groups, 8 * width // 3) for _ in range(depth))
        self.blocks, self.norm = nn.ModuleList(blocks), RmsNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        rates = 10000.0 ** (-torch.arange(0, width // heads, 2).float() / (width // heads))
        self.register_buffer("rates", rates)

    def forward(self, input_ids: Tensor, *caches: Tensor) -> tuple[Tensor, ...]:
        length, past = input_ids.shape[1], caches[0].shape[2]
        places = torch.arange(past, past + length)
        angles = (places[:, None].float() * self.rates[None]).repeat(1, 2)
        least = torch.full((length, past + length), torch.finfo(torch.float32).min)
        mask = torch.triu(least, diagonal=past + 1)
        x, made = self.embed(input_ids), []
        for block, keys, values in zip(self.blocks, caches[::2], caches[1::2], strict=True):
            x, *cache = block(x, angles, mask, keys, values)
            made += cache
        return (self.head(self.norm(x)), *made)


def llama_step(
    words: int = 8192, width: int = 576, depth: int = 6, heads: int = 9, groups: int = 3
) -> Example:
    """A step of a small Llama (Touvron et al., 2023) with the widths of SmolLM-135M: input_ids i64
    (batch, sequence), for each layer keys and values of the past (batch, 3, past, 64).
    """
    module = _CachedDecoder(words, width, depth, heads, groups)
    inputs = {"input_ids": torch.ones(1, 3, dtype=torch.int64)}
    for layer in range(depth):
        for name in ("keys", "values"):
            inputs[f"{name}_{layer}"] = torch.zeros(1, groups, 5, width // heads)
    return Example(module, inputs)


class _ReducedAttention(nn.Module):
    """Attention over an image whose keys are of a coarser one."""

    def __init__(self, width: int, heads: int, ratio: int) -> None:
        super().__init__()
        self.heads, self.ratio = heads, ratio
        self.q, self.kv, self.proj = (nn.Linear(width, n * width) for n in (1, 2, 1))
        if ratio > 1:
            self.sr, self.norm = nn.Conv2d(width, width, ratio, ratio), nn.LayerNorm(width)

    def forward(self, x: Tensor, rows: int, columns: int) -> Tensor:
        batch, length, width = x.shape
        size = width // self.heads
        q = self.q(x).reshape(batch, length, self.heads, size).permute(0, 2, 1, 3)
        if self.ratio > 1:
            image = x.permute(0, 2, 1).reshape(batch, width, rows, columns)
            fewer = self.norm(self.sr(image).reshape(batch, width, -1).permute(0, 2, 1))
        else:
            fewer = x
        kv = self.kv(fewer).reshape(batch, -1, 2, self.heads, size).permute(2, 0, 3, 1, 4)
        scores = q @ kv[0].transpose(-2, -1) * size**-0.5
        mixed = (torch.softmax(scores, dim=-1) @ kv[1]).transpose(1, 2)
        return self.proj(mixed.reshape(batch, length, width))


class _SegformerBlock(nn.Module):
    def __init__(self, width: int, heads: int, ratio: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = _ReducedAttention(width, heads, ratio)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.depthwise = nn.Conv2d(4 * width, 4 * width, 3, 1, 1, groups=4 * width)

    def forward(self, x: Tensor, rows: int, columns: int) -> Tensor:
        x = x + self.attn(self.norm1(x), rows, columns)
        y = self.fc1(self.norm2(x))
        batch, _, width = y.shape
        y = self.depthwise(y.transpose(1, 2).view(batch, width, rows, columns))
        return x + self.fc2(functional.gelu(y.flatten(2).transpose(1, 2)))


class _Segformer(nn.Module):
    def __init__(self, widths: tuple[int, ...], depth: int, classes: int) -> None:
        super().__init__()
        heads, ratios = (1, 2, 5, 8), (8, 4, 2, 1)
        inner = 3
        self.patches, self.stages = nn.ModuleList(), nn.ModuleList()
        self.norms, self.heads = nn.ModuleList(), nn.ModuleList()
        for number, width in enumerate(widths):
            kernel, stride = (3, 2) if number else (7, 4)
            self.patches.append(nn.Conv2d(inner, width, kernel, stride, kernel // 2))
            blocks = (_SegformerBlock(width, heads[number], ratios[number]) for _ in range(depth))
            self.stages.append(nn.ModuleList(blocks))
            self.norms.append(nn.LayerNorm(width))
            self.heads.append(nn.Linear(width, 256))
            inner = width
        self.fuse, self.norm = nn.Conv2d(1024, 256, 1, bias=False), nn.BatchNorm2d(256)
        self.classes = nn.Conv2d(256, classes, 1)

    def forward(self, image: Tensor) -> Tensor:
        x, levels, side = image, [], None
        for patch, stage, norm, head in zip(
            self.patches, self.stages, self.norms, self.heads, strict=True
        ):
            x = patch(x)
            batch, width, rows, columns = x.shape
            words = x.flatten(2).transpose(1, 2)
            for block in stage:
                words = block(words, rows, columns)
            words = norm(words)
            x = words.transpose(1, 2).reshape(batch, width, rows, columns)
            level = head(words).transpose(1, 2).reshape(batch, 256, rows, columns)
            side = side or (rows, columns)
            levels.append(functional.interpolate(level, size=side, mode="bilinear"))
        fused = functional.relu(self.norm(self.fuse(torch.cat(levels[::-1], 1))))
        return self.classes(fused)


def segformer_b0() -> Example:
    """SegFormer-B0 (Xie et al., NeurIPS 2021): image f32 (batch, 3, height, width)."""
    module = _Segformer((32, 64, 160, 256), 2, 150)
    return Example(module, {"image": torch.zeros(1, 3, 64, 96)})


class _LogMel(nn.Module):
    """Windows of a signal times waves, powers in bands, logarithms: 25 ms each 10 ms of 16 kHz."""

    def __init__(self, window: int = 400, stride: int = 160, bands: int = 80) -> None:
        super().__init__()
        self.stride, self.half = stride, window // 2 + 1
        turns = torch.arange(self.half)[:, None] * torch.arange(window) / window
        waves = torch.cat([torch.cos(2 * math.pi * turns), torch.sin(2 * math.pi * turns)])
        self.register_buffer("waves", (waves * torch.hann_window(window))[:, None])
        self.register_buffer("bands", torch.rand(bands, self.half))

    def forward(self, signal: Tensor) -> Tensor:
        parts = functional.conv1d(signal[:, None], self.waves, stride=self.stride)
        power = parts[:, : self.half] ** 2 + parts[:, self.half :] ** 2
        return (self.bands @ power).clamp(min=1e-5).log()


def log_mel() -> Example:
    """The front of a recogniser of speech: signal f32 (batch, samples)."""
    return Example(_LogMel(), {"signal": torch.zeros(1, 16000)})


class _GraphNetwork(nn.Module):
    """Means of what the neighbours of a node send, by scatter add."""

    def __init__(self, features: int, width: int, depth: int) -> None:
        super().__init__()
        widths = [features] + [width] * depth
        self.layers = nn.ModuleList(map(nn.Linear, widths, widths[1:]))

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        source, target = edges[0], edges[1]
        sent = torch.ones(edges.size(1))
        scale = (torch.zeros(x.size(0)).scatter_add(0, target, sent) + 1).rsqrt()
        weights = (scale[source] * scale[target])[:, None]
        for layer in self.layers:
            x = layer(x)
            rows = target[:, None].expand(-1, x.size(1))
            sums = torch.zeros_like(x).scatter_add(0, rows, x[source] * weights)
            x = functional.relu(sums + x * scale[:, None] ** 2)
        return x


def graph_network() -> Example:
    """A graph convolutional network (Kipf and Welling, ICLR 2017): x f32 (nodes, 32), edges i64
    (2, edges).
    """
    edges = torch.randint(0, 20, (2, 50))
    return Example(_GraphNetwork(32, 64, 3), {"x": torch.zeros(20, 32), "edges": edges})
