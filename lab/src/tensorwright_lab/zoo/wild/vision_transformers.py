"""Networks of patches: a vision transformer, shifted windows, and mixers without attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from tensorwright_lab.zoo.wild.export import Example


class Mlp(nn.Module):
    """Two linear layers with GELU (by erf) between."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, inner)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(inner, width)

    def forward(self, x: Tensor) -> Tensor:
        """X (..., width) -> the same shape."""
        return self.fc2(self.act(self.fc1(x)))


class SelfAttention(nn.Module):
    """Attention of all tokens to all, queries, keys and values from one product."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """X (batch, tokens, width) -> the same shape."""
        batch, tokens, width = x.shape
        qkv = self.qkv(x).reshape(batch, tokens, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(q, k, v)
        return self.proj(mixed.transpose(1, 2).reshape(batch, tokens, width))


class _EncoderBlock(nn.Module):
    """Attention and two linear layers, each after a layer norm, each added to its input."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attn = SelfAttention(width, heads)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = Mlp(width, 4 * width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class _VisionTransformer(nn.Module):
    def __init__(self, image: int, patch: int, width: int, depth: int, heads: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.zeros(1, (image // patch) ** 2 + 1, width))
        self.blocks = nn.Sequential(*(_EncoderBlock(width, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, 1000)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat((self.class_token.expand(x.shape[0], -1, -1), x), dim=1)
        x = self.blocks(x + self.positions)
        return self.head(self.norm(x)[:, 0])


def vit_s16(image: int = 224, width: int = 384, depth: int = 12, heads: int = 6) -> Example:
    """ViT-S/16 (Dosovitskiy et al., "An image is worth 16x16 words", ICLR 2021; Touvron et al.,
    ICML 2021): image f32 (1, 3, 224, 224) -> scores (1, 1000).
    """
    module = _VisionTransformer(image, 16, width, depth, heads)
    return Example(module, {"image": torch.zeros(1, 3, image, image)})


def _partition(x: Tensor, window: int) -> Tensor:
    """Cut (batch, rows, columns, width) into (windows, window * window, width)."""
    batch, rows, columns, width = x.shape
    x = x.view(batch, rows // window, window, columns // window, window, width)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, window * window, width)


def _join(x: Tensor, window: int, rows: int, columns: int) -> Tensor:
    """The reverse of `_partition`."""
    x = x.view(-1, rows // window, columns // window, window, window, x.shape[-1])
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, rows, columns, x.shape[-1])


def _shift_mask(side: int, window: int, shift: int) -> Tensor:
    """(windows, tokens, tokens): -100 between tokens that only the roll made neighbours."""
    regions = torch.zeros(1, side, side, 1)
    cuts = (slice(0, -window), slice(-window, -shift), slice(-shift, None))
    for number, (rows, columns) in enumerate((r, c) for r in cuts for c in cuts):
        regions[:, rows, columns] = number
    tokens = _partition(regions, window).squeeze(-1)
    apart = tokens.unsqueeze(1) - tokens.unsqueeze(2)
    return torch.zeros_like(apart).masked_fill(apart != 0, -100.0)


class _WindowAttention(nn.Module):
    """Attention inside windows, with a learned bias for each distance between two tokens."""

    def __init__(self, width: int, heads: int, window: int) -> None:
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.bias_table = nn.Parameter(torch.zeros((2 * window - 1) ** 2, heads))
        points = torch.stack(torch.meshgrid(*[torch.arange(window)] * 2, indexing="ij")).flatten(1)
        apart = points[:, :, None] - points[:, None, :] + window - 1
        self.register_buffer("bias_index", apart[0] * (2 * window - 1) + apart[1])
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        windows, tokens, width = x.shape
        qkv = self.qkv(x).reshape(windows, tokens, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q * self.scale) @ k.transpose(-2, -1)
        bias = self.bias_table[self.bias_index.view(-1)].view(tokens, tokens, self.heads)
        scores = scores + bias.permute(2, 0, 1).unsqueeze(0)
        if mask is not None:
            count = mask.shape[0]
            scores = scores.view(windows // count, count, self.heads, tokens, tokens)
            scores = scores + mask.unsqueeze(1).unsqueeze(0)
            scores = scores.view(windows, self.heads, tokens, tokens)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(windows, tokens, width)
        return self.proj(mixed)


class _SwinBlock(nn.Module):
    def __init__(self, width: int, heads: int, side: int, window: int, shift: int) -> None:
        super().__init__()
        self.side, self.window = side, min(window, side)
        self.shift = shift if side > window else 0
        self.norm1 = nn.LayerNorm(width)
        self.attn = _WindowAttention(width, heads, self.window)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = Mlp(width, 4 * width)
        mask = _shift_mask(side, self.window, self.shift) if self.shift else None
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        y = self.norm1(x).view(batch, self.side, self.side, width)
        if self.shift:
            y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
        y = self.attn(_partition(y, self.window), self.mask)
        y = _join(y, self.window, self.side, self.side)
        if self.shift:
            y = torch.roll(y, (self.shift, self.shift), (1, 2))
        x = x + y.view(batch, tokens, width)
        return x + self.mlp(self.norm2(x))


class _PatchMerging(nn.Module):
    """Four neighbours become one token of twice the width."""

    def __init__(self, width: int, side: int) -> None:
        super().__init__()
        self.side = side
        self.norm = nn.LayerNorm(4 * width)
        self.reduction = nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, _, width = x.shape
        x = x.view(batch, self.side, self.side, width)
        corners = (x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2])
        return self.reduction(self.norm(torch.cat(corners, -1).view(batch, -1, 4 * width)))


class _Swin(nn.Module):
    def __init__(self, image: int, width: int, depths: tuple[int, ...]) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, stride=4)
        self.patch_norm = nn.LayerNorm(width)
        layers: list[nn.Module] = []
        side, heads, window = image // 4, width // 32, 7
        for stage, depth in enumerate(depths):
            if stage:
                layers.append(_PatchMerging(width, side))
                width, side, heads = 2 * width, side // 2, 2 * heads
            shifts = (window // 2 * (number % 2) for number in range(depth))
            layers += [_SwinBlock(width, heads, side, window, shift) for shift in shifts]
        self.layers = nn.Sequential(*layers)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 1000)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patch_norm(self.patches(image).flatten(2).transpose(1, 2))
        x = self.norm(self.layers(x))
        return self.head(x.transpose(1, 2).mean(-1))


def swin_t(image: int = 224, width: int = 96, depths: tuple[int, ...] = (2, 2, 6, 2)) -> Example:
    """Swin-T (Liu et al., "Swin Transformer", ICCV 2021): windows of 7x7, every other one rolled;
    image f32 (1, 3, 224, 224) -> scores (1, 1000).
    """
    return Example(_Swin(image, width, depths), {"image": torch.zeros(1, 3, image, image)})


class _MixerBlock(nn.Module):
    """Linear layers over the tokens, then over the channels."""

    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.mlp_tokens = Mlp(tokens, width // 2)
        self.norm2 = nn.LayerNorm(width)
        self.mlp_channels = Mlp(width, 4 * width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.mlp_tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.mlp_channels(self.norm2(x))


class _Mixer(nn.Module):
    def __init__(self, image: int, patch: int, width: int, depth: int) -> None:
        super().__init__()
        tokens = (image // patch) ** 2
        self.stem = nn.Conv2d(3, width, patch, stride=patch)
        self.blocks = nn.Sequential(*(_MixerBlock(tokens, width) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 1000)

    def forward(self, image: Tensor) -> Tensor:
        x = self.blocks(self.stem(image).flatten(2).transpose(1, 2))
        return self.head(self.norm(x).mean(dim=1))


def mixer_s16(image: int = 224, width: int = 512, depth: int = 8) -> Example:
    """Mixer-S/16 (Tolstikhin et al., "MLP-Mixer", NeurIPS 2021): image f32 (1, 3, 224, 224) ->
    scores (1, 1000).
    """
    return Example(_Mixer(image, 16, width, depth), {"image": torch.zeros(1, 3, image, image)})
