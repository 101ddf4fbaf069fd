"""Networks over sequences: taggers, speech, voices, and decoders with caches."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tensorwright_lab.zoo.foreign.case import Given, Size
from tensorwright_lab.zoo.foreign.exporting import BOTH, Block, Network

Tensor: TypeAlias = Any
_DYNAMIC = ("torchscript", "dynamo", "torchscript+dynamic")
_SCRIPTS = ("torchscript", "torchscript+dynamic")  # the other exporter cannot write them
_BATCH_TIME = {"batch": Size(0, 5), "time": Size(0, 30)}
_WORDS = Given("words", ("batch", "time"), "ids", 50)
_FRAMES = Given("frames", ("batch", "time", 20))


class _Tagger(nn.Module):
    """Words, a recurrent layer, a label for each word."""

    def __init__(self, kind: str, layers: int = 1, *, both: bool = True) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 16)
        self.cells = getattr(nn, kind)(16, 24, layers, batch_first=True, bidirectional=both)
        self.labels = nn.Linear(48 if both else 24, 7)

    def forward(self, words: Tensor) -> Tensor:
        return functional.log_softmax(self.labels(self.cells(self.table(words))[0]), -1)


class _PackedTagger(nn.Module):
    """A tagger of texts that are padded to the longest one."""

    def __init__(self, kind: str, layers: int = 1) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 16)
        self.cells = getattr(nn, kind)(16, 24, layers, batch_first=True, bidirectional=True)
        self.labels = nn.Linear(48, 7)

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(self.table(words), lengths, batch_first=True)
        return self.labels(pad_packed_sequence(self.cells(packed)[0], batch_first=True)[0])


class _LastState(nn.Module):
    """The class of a text by the last states of two directions."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 12)
        self.cells = nn.GRU(12, 16, 2, batch_first=True, bidirectional=True)
        self.classes = nn.Linear(32, 4)

    def forward(self, words: Tensor) -> Tensor:
        state = self.cells(self.table(words))[1]
        return self.classes(torch.cat([state[-2], state[-1]], 1)).softmax(1)


class _CharacterTagger(nn.Module):
    """Words by convolutions over their letters."""

    def __init__(self) -> None:
        super().__init__()
        self.letters = nn.Embedding(30, 8)
        self.windows = nn.Conv1d(8, 12, 3, padding=1)
        self.cells = nn.LSTM(12, 10, batch_first=True)
        self.labels = nn.Linear(10, 5)

    def forward(self, letters: Tensor) -> Tensor:
        batch, words, length = letters.shape
        parts = self.letters(letters.reshape(batch * words, length)).transpose(1, 2)
        best = self.windows(parts).relu().max(2).values
        return self.labels(self.cells(best.reshape(batch, words, 12))[0]).argmax(-1)


class _TimeConvolution(nn.Module):
    """Dilated convolutions that see the past alone, with gates."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(20, 40, 3, dilation=2**k) for k in range(3))
        self.out = nn.Linear(20, 6)

    def forward(self, frames: Tensor) -> Tensor:
        x = frames.transpose(1, 2)
        for k, layer in enumerate(self.layers):
            a, b = layer(functional.pad(x, (2 ** (k + 1), 0))).chunk(2, 1)
            x = x + a.tanh() * b.sigmoid()
        return self.out(x.transpose(1, 2))


class _VoiceActivity(nn.Module):
    """A step of a stream: the states go in and come out."""

    def __init__(self) -> None:
        super().__init__()
        self.front = nn.Conv1d(1, 16, 16, 8)
        self.cells = nn.LSTM(16, 16, 2)
        self.out = nn.Linear(16, 1)

    def forward(self, samples: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = self.front(samples.unsqueeze(1)).relu().permute(2, 0, 1)
        y, (h, c) = self.cells(x, (h, c))
        return self.out(y[-1]).sigmoid(), h, c


class _LogMel(nn.Module):
    """Frames of a signal by strided convolutions with waves, their powers in bands, logarithms."""

    def __init__(self) -> None:
        super().__init__()
        angles = torch.arange(33)[:, None] * torch.arange(64)[None] * (2 * math.pi / 64)
        waves = torch.cat([angles.cos(), angles.sin()]) * torch.hann_window(64)
        self.register_buffer("waves", waves[:, None].contiguous())
        self.register_buffer("bands", torch.rand(20, 33))

    def forward(self, signal: Tensor) -> Tensor:
        padded = functional.pad(signal.unsqueeze(1), (32, 32), mode="reflect")
        parts = functional.conv1d(padded, self.waves, stride=16)
        power = parts[:, :33] ** 2 + parts[:, 33:] ** 2
        mel = (self.bands @ power).clamp(min=1e-5).log10()
        return (mel - mel.mean(-1, keepdim=True)) / 4


class _Spectrum(nn.Module):
    """Frames of a signal by torch.stft."""

    def forward(self, signal: Tensor) -> Tensor:
        window = torch.hann_window(32)
        parts = torch.stft(signal, 32, 8, window=window, center=False, return_complex=False)
        return parts.pow(2).sum(-1).add(1e-6).log()


class _SpeechEncoder(nn.Module):
    """A subsampling front, then attention with a mask of lengths, and a convolution module."""

    def __init__(self) -> None:
        super().__init__()
        self.front = nn.Conv2d(1, 4, 3, 2)
        self.project = nn.Linear(36, 16)
        self.attend = Block(16, 2)
        self.windows = nn.Conv1d(16, 16, 5, padding=2, groups=16)

    def forward(self, frames: Tensor, lengths: Tensor) -> Tensor:
        x = self.front(frames.unsqueeze(1)).relu()
        batch, channels, time, bands = x.shape
        x = self.project(x.transpose(1, 2).reshape(batch, time, channels * bands))
        padded = torch.arange(time)[None] >= ((lengths - 1) // 2)[:, None].clamp(min=1)
        x = self.attend(x, padded)
        return x + functional.silu(self.windows(x.transpose(1, 2))).transpose(1, 2)


class _VoiceEncoder(nn.Module):
    """Letters of a text with a mask, and the logarithm of how long each of them sounds."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(40, 16)
        self.layers = nn.ModuleList(nn.Conv1d(16, 16, 5, padding=2) for _ in range(2))
        self.norm = nn.LayerNorm(16)
        self.mean = nn.Conv1d(16, 24, 1)
        self.duration = nn.Conv1d(16, 1, 1)

    def forward(self, letters: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        x = self.table(letters).transpose(1, 2) * 4.0
        mask = (torch.arange(letters.shape[1])[None] < lengths[:, None]).unsqueeze(1).to(x.dtype)
        for layer in self.layers:
            x = x + self.norm(layer(x * mask).relu().transpose(1, 2)).transpose(1, 2)
        mean, scale = self.mean(x * mask).chunk(2, 1)
        return mean * mask, scale.exp() * mask, (self.duration(x * mask) * mask).exp().ceil()


class _Durations(nn.Module):
    """Letters repeated by durations, with one matrix of zeros and ones."""

    def forward(self, features: Tensor, durations: Tensor, frames: Tensor) -> Tensor:
        ends = durations.cumsum(1)
        at = torch.arange(frames.shape[1])[None, :, None]
        path = (at < ends[:, None]) & (at >= (ends - durations)[:, None])
        return path.to(features.dtype) @ features + frames


class _Vocoder(nn.Module):
    """A spectrum to a signal: transposed convolutions, residual blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(20, 16, 7, padding=3)
        self.ups = nn.ModuleList(
            [nn.ConvTranspose1d(16, 8, 8, 4, 2), nn.ConvTranspose1d(8, 4, 4, 2, 1)]
        )
        self.blocks = nn.ModuleList(
            nn.Conv1d(c, c, 3, dilation=d, padding=d) for c in (8, 4) for d in (1, 3)
        )
        self.last = nn.Conv1d(4, 1, 7, padding=3)

    def forward(self, spectrum: Tensor) -> Tensor:
        x = self.first(spectrum)
        for k, up in enumerate(self.ups):
            x = up(functional.leaky_relu(x, 0.1))
            y = x
            for block in self.blocks[2 * k : 2 * k + 2]:
                y = y + block(functional.leaky_relu(x, 0.1))
            x = y / 2
        return self.last(x).tanh()


class _Decoder(nn.Module):
    """A step of a decoder: rotary positions, a cache in front, a triangle of a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(60, 32)
        self.products = nn.Linear(32, 96)
        self.out = nn.Linear(32, 32)
        self.words = nn.Linear(32, 60, bias=False)
        self.register_buffer("turns", 10000 ** (-torch.arange(4) / 4))

    def forward(self, words: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, ...]:
        batch, length = words.shape
        past = keys.shape[2]
        x = self.table(words)
        y = x * (x.pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt()
        parts = self.products(y).reshape(batch, length, 3, 4, 8).permute(2, 0, 3, 1, 4)
        at = torch.arange(past, past + length)
        angles = at[:, None] * self.turns[None]
        angles = torch.cat([angles, angles], 1)
        query = self._turned(parts[0], angles)
        keys = torch.cat([keys, self._turned(parts[1], angles)], 2)
        values = torch.cat([values, parts[2]], 2)
        hidden = torch.arange(past + length)[None] > at[:, None]
        scores = (query @ keys.transpose(2, 3) / 8**0.5).masked_fill(hidden, -1e9)
        mixed = (scores.softmax(-1) @ values).transpose(1, 2).reshape(batch, length, 32)
        return self.words(x + self.out(mixed)), keys, values

    @staticmethod
    def _turned(x: Tensor, angles: Tensor) -> Tensor:
        return x * angles.cos() + torch.cat([-x[..., 4:], x[..., :4]], -1) * angles.sin()


class _Encoder(nn.Module):
    """A text encoder: positions in a table, a mask, a pooled result."""

    def __init__(self, *, library: bool = False) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 16)
        self.at = nn.Embedding(64, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, activation="gelu", batch_first=True)
        self.layers = nn.ModuleList(layer if library else Block(16, 2) for _ in range(2))
        self.is_library = library

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        x = self.table(words) + self.at(torch.arange(words.shape[1]))
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=~mask) if self.is_library else layer(x, ~mask)
        weights = mask.unsqueeze(-1).to(x.dtype)
        pooled = (x * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        return functional.normalize(pooled, dim=1)


class _Recogniser(nn.Module):
    """A line of text in an image: convolutions, then recurrent layers over its columns."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()),
            nn.MaxPool2d((2, 1)),
        )
        self.cells = nn.LSTM(64, 16, 2, bidirectional=True)
        self.letters = nn.Linear(32, 11)

    def forward(self, image: Tensor) -> Tensor:
        x = self.layers(image).flatten(1, 2).permute(2, 0, 1)
        return self.letters(self.cells(x)[0]).log_softmax(2)


_CACHE = ("batch", 4, "past", 8)
_CACHES = (Given("keys", _CACHE), Given("values", _CACHE))
_STATES = (Given("h", (2, "batch", 16)), Given("c", (2, "batch", 16)))
_LENGTHS = Given("lengths", ("batch",), "lengths", "time")
_SIGNAL = (Given("signal", ("batch", "samples")),)

NETWORKS = (
    Network("tagger", "lstm", lambda: _Tagger("LSTM"), (_WORDS,), _BATCH_TIME, _DYNAMIC),
    Network("tagger", "gru", lambda: _Tagger("GRU", 2), (_WORDS,), _BATCH_TIME, _DYNAMIC),
    Network("tagger", "rnn", lambda: _Tagger("RNN", both=False), (_WORDS,), _BATCH_TIME, BOTH[:1]),
    Network(
        *("packed tagger", "lstm", lambda: _PackedTagger("LSTM"), (_WORDS, _LENGTHS)),
        *({"batch": Size(1, 5), "time": Size(1, 30)}, ("torchscript",)),
    ),
    Network(
        *("packed tagger", "gru", lambda: _PackedTagger("GRU", 2), (_WORDS, _LENGTHS)),
        *({"batch": Size(1, 5), "time": Size(1, 30)}, ("torchscript", "torchscript+dynamic")),
    ),
    Network("text classifier", "gru", _LastState, (_WORDS,), _BATCH_TIME, _DYNAMIC),
    Network(
        *("letter tagger", "lstm", _CharacterTagger),
        (Given("letters", ("batch", "words", "length"), "ids", 30),),
        {"batch": Size(0, 3), "words": Size(0, 6), "length": Size(1, 9)},
    ),
    Network("causal convolution", "gates", _TimeConvolution, (_FRAMES,), _BATCH_TIME),
    Network(
        *(
            "voice activity",
            "lstm",
            _VoiceActivity,
            (Given("samples", ("batch", "time")), *_STATES),
        ),
        *({"batch": Size(0, 4), "time": Size(0, 128)}, _SCRIPTS),
    ),
    Network("log mel", "waves", _LogMel, _SIGNAL, {"batch": Size(0, 3), "samples": Size(0, 400)}),
    Network("log mel", "stft", _Spectrum, _SIGNAL, {"batch": Size(1, 3), "samples": Size(0, 400)}),
    Network(
        *("speech encoder", "conformer", _SpeechEncoder, (_FRAMES, _LENGTHS)),
        *({"batch": Size(0, 3), "time": Size(1, 40)}, _DYNAMIC),
    ),
    Network(
        *("voice encoder", "durations", _VoiceEncoder),
        (Given("letters", ("batch", "time"), "ids", 40), _LENGTHS),
        {"batch": Size(0, 3), "time": Size(1, 20)},
    ),
    Network(
        *("voice encoder", "repeating", _Durations),
        (
            Given("features", ("batch", "time", 12)),
            Given("durations", ("batch", "time"), "ids", 4),
            Given("frames", ("batch", "frames", 12)),
        ),
        {"batch": Size(0, 3), "time": Size(0, 9), "frames": Size(0, 20)},
    ),
    Network(
        *("vocoder", "generator", _Vocoder, (Given("spectrum", ("batch", 20, "time")),)),
        *(_BATCH_TIME, (*BOTH, "torchscript+qdq")),
    ),
    Network(
        *("decoder", "cache", _Decoder),
        (Given("words", ("batch", "time"), "ids", 60), *_CACHES),
        {"batch": Size(0, 3), "time": Size(0, 8), "past": Size(0, 12)},
        _DYNAMIC,
    ),
    Network(
        *("text encoder", "pooled", _Encoder),
        (_WORDS, Given("mask", ("batch", "time"), "bool")),
        *(_BATCH_TIME, _DYNAMIC),
    ),
    Network(
        *("text encoder", "library", lambda: _Encoder(library=True)),
        (_WORDS, Given("mask", ("batch", "time"), "bool")),
        *(_BATCH_TIME, ("dynamo",)),
    ),
    Network(
        *("text recogniser", "crnn", _Recogniser, (Given("image", ("batch", 1, 16, "width")),)),
        *({"batch": Size(0, 3), "width": Size(2, 50)}, _SCRIPTS),  # two columns are one window
    ),
)
