"""Networks of sound: encoders of speech, a generator of samples, a separator of voices."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from tensorwright_lab.zoo.wild.export import Example
from tensorwright_lab.zoo.wild.vision_transformers import Mlp


class _SpeechAttention(nn.Module):
    """Attention of all to all; keys have no bias."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.25
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = (batch, length, self.heads, width // self.heads)
        q = self.query(x).view(*parts).permute(0, 2, 1, 3) * self.scale
        k = self.key(x).view(*parts).permute(0, 2, 3, 1) * self.scale
        v = self.value(x).view(*parts).permute(0, 2, 1, 3)
        mixed = functional.softmax((q @ k).float(), dim=-1) @ v
        return self.out(mixed.permute(0, 2, 1, 3).flatten(start_dim=2))


class _SpeechBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attn_ln, self.mlp_ln = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = _SpeechAttention(width, heads)
        self.mlp = Mlp(width, 4 * width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.attn_ln(x))
        return x + self.mlp(self.mlp_ln(x))


class _Whisper(nn.Module):
    def __init__(self, frames: int, mels: int, width: int, depth: int, heads: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(mels, width, 3, padding=1)
        self.conv2 = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.positions = nn.Parameter(torch.zeros((frames + 1) // 2, width))
        self.blocks = nn.Sequential(*(_SpeechBlock(width, heads) for _ in range(depth)))
        self.ln_post = nn.LayerNorm(width)

    def forward(self, mel: Tensor) -> Tensor:
        x = functional.gelu(self.conv2(functional.gelu(self.conv1(mel)))).permute(0, 2, 1)
        return self.ln_post(self.blocks(x + self.positions))


def whisper_tiny(
    frames: int = 3000, mels: int = 80, width: int = 384, depth: int = 4, heads: int = 6
) -> Example:
    """The encoder of Whisper tiny (Radford et al., ICML 2023) on 30 s of speech: mel f32 (1, 80,
    3000) -> (1, 1500, 384).
    """
    module = _Whisper(frames, mels, width, depth, heads)
    return Example(module, {"mel": torch.zeros(1, mels, frames)})


class _Wav2Vec2(nn.Module):
    def __init__(self, width: int, hidden: int, depth: int, heads: int) -> None:
        super().__init__()
        shapes = ((10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2))
        layers: list[nn.Module] = []
        for number, (kernel, stride) in enumerate(shapes):
            layers.append(nn.Conv1d(width if number else 1, width, kernel, stride, bias=False))
            if not number:
                layers.append(nn.GroupNorm(width, width))
            layers.append(nn.GELU())
        self.extractor = nn.Sequential(*layers)
        self.feature_norm = nn.LayerNorm(width)
        self.projection = nn.Linear(width, hidden)
        self.positions = nn.Conv1d(hidden, hidden, 128, padding=64, groups=16)
        self.norm = nn.LayerNorm(hidden)
        self.blocks = nn.Sequential(*(_SpeechBlock(hidden, heads) for _ in range(depth)))
        self.head = nn.Linear(hidden, 32)

    def forward(self, wave: Tensor) -> Tensor:
        x = self.extractor(wave.unsqueeze(1)).transpose(1, 2)
        x = self.projection(self.feature_norm(x))
        positions = functional.gelu(self.positions(x.transpose(1, 2))[:, :, :-1]).transpose(1, 2)
        return self.head(self.blocks(self.norm(x + positions)))


def wav2vec2(
    samples: int = 32000, width: int = 512, hidden: int = 768, depth: int = 4, heads: int = 12
) -> Example:
    """A recogniser of speech like wav2vec 2.0 base (Baevski et al., NeurIPS 2020), with four of its
    layers, on 2 s: wave f32 (1, 32000) -> scores (1, 99, 32).
    """
    module = _Wav2Vec2(width, hidden, depth, heads)
    return Example(module, {"wave": torch.zeros(1, samples)})


class _GatedLayer(nn.Module):
    """A dilated convolution that sees only the past, its gate, and what goes to the output."""

    def __init__(self, width: int, skip: int, dilation: int) -> None:
        super().__init__()
        self.pad = dilation
        self.conv = nn.Conv1d(width, 2 * width, 2, dilation=dilation)
        self.condition = nn.Conv1d(80, 2 * width, 1, bias=False)
        self.residual = nn.Conv1d(width, width, 1)
        self.skip = nn.Conv1d(width, skip, 1)

    def forward(self, x: Tensor, mel: Tensor) -> tuple[Tensor, Tensor]:
        y = self.conv(functional.pad(x, (self.pad, 0))) + self.condition(mel)
        a, b = y.chunk(2, dim=1)
        y = torch.tanh(a) * torch.sigmoid(b)
        return (x + self.residual(y)) * 0.5**0.5, self.skip(y)


class _WaveNet(nn.Module):
    def __init__(self, width: int, skip: int, cycles: int, depth: int) -> None:
        super().__init__()
        self.first = nn.Conv1d(1, width, 1)
        self.layers = nn.ModuleList(
            _GatedLayer(width, skip, 1 << number) for _ in range(cycles) for number in range(depth)
        )
        self.last = nn.Sequential(
            nn.ReLU(), nn.Conv1d(skip, skip, 1), nn.ReLU(), nn.Conv1d(skip, 256, 1)
        )

    def forward(self, wave: Tensor, mel: Tensor) -> Tensor:
        mel = functional.interpolate(mel, size=wave.shape[-1], mode="nearest")
        x = self.first(wave)
        skipped: Tensor | float = 0.0
        for layer in self.layers:
            x, skip = layer(x, mel)
            skipped = skipped + skip
        return self.last(skipped)


def wavenet(
    samples: int = 4000, width: int = 64, skip: int = 128, cycles: int = 2, depth: int = 10
) -> Example:
    """WaveNet (van den Oord et al., 2016), conditioned on a spectrogram: wave f32 (1, 1, 4000), mel
    (1, 80, 20) -> scores (1, 256, 4000).
    """
    module = _WaveNet(width, skip, cycles, depth)
    wave, mel = torch.zeros(1, 1, samples), torch.zeros(1, 80, samples // 200)
    return Example(module, {"wave": wave, "mel": mel})


class _GlobalNorm(nn.Module):
    """Normalisation over channels and time."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(1, channels, 1))
        self.beta = nn.Parameter(torch.zeros(1, channels, 1))

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(dim=(1, 2), keepdim=True)
        variance = (x - mean).pow(2).mean(dim=(1, 2), keepdim=True)
        return self.gamma * (x - mean) / (variance + 1e-8).pow(0.5) + self.beta


class _SeparationLayer(nn.Module):
    """Widen, PReLU and norm, a dilated convolution of each channel, and both narrow outputs."""

    def __init__(self, width: int, inner: int, dilation: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(width, inner, 1),
            nn.PReLU(),
            _GlobalNorm(inner),
            nn.Conv1d(inner, inner, 3, padding=dilation, dilation=dilation, groups=inner),
            nn.PReLU(),
            _GlobalNorm(inner),
        )
        self.residual = nn.Conv1d(inner, width, 1)
        self.skip = nn.Conv1d(inner, width, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.layers(x)
        return x + self.residual(y), self.skip(y)


class _ConvTasNet(nn.Module):
    def __init__(self, filters: int, width: int, inner: int, cycles: int, depth: int) -> None:
        super().__init__()
        self.encoder = nn.Conv1d(1, filters, 16, stride=8, bias=False)
        self.norm = _GlobalNorm(filters)
        self.narrow = nn.Conv1d(filters, width, 1)
        self.layers = nn.ModuleList(
            _SeparationLayer(width, inner, 1 << number)
            for _ in range(cycles)
            for number in range(depth)
        )
        self.masks = nn.Sequential(nn.PReLU(), nn.Conv1d(width, 2 * filters, 1), nn.Sigmoid())
        self.decoder = nn.ConvTranspose1d(filters, 1, 16, stride=8, bias=False)

    def forward(self, wave: Tensor) -> Tensor:
        encoded = torch.relu(self.encoder(wave.unsqueeze(1)))
        x = self.narrow(self.norm(encoded))
        skipped: Tensor | float = 0.0
        for layer in self.layers:
            x, skip = layer(x)
            skipped = skipped + skip
        batch, filters, frames = encoded.shape
        masks = self.masks(skipped).view(batch, 2, filters, frames)
        parted = (encoded.unsqueeze(1) * masks).view(batch * 2, filters, frames)
        return self.decoder(parted).view(batch, 2, -1)


def conv_tasnet(
    samples: int = 16000,
    filters: int = 512,
    width: int = 128,
    inner: int = 512,
    cycles: int = 2,
    depth: int = 8,
) -> Example:
    """Conv-TasNet (Luo and Mesgarani, "Surpassing ideal time-frequency magnitude masking", 2019),
    two of its three repeats: wave f32 (1, 16000), 2 s, -> two voices (1, 2, 16000).
    """
    module = _ConvTasNet(filters, width, inner, cycles, depth)
    return Example(module, {"wave": torch.zeros(1, samples)})
