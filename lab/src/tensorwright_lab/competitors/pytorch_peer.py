"""PyTorch, eager, on the CPU at its best: in the layout that is faster for this network.

A model of the suite `wild` is the module that it was exported from, as its users would run it:
attention in one call, recurrent layers as they are. Another one is made of its operators
(torch_network). Normalisation is folded into convolutions, as PyTorch's own tools do, gradients are
off, inputs are placed beforehand. Images and videos are tried as they come and with channels last,
weights and inputs both; what is faster stays.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import torch
from torch.nn.utils.fusion import fuse_conv_bn_eval

from tensorwright.peers.process.protocol import Arrays, Peer, PeerInfo, not_bound
from tensorwright_lab.competitors.torch_network import Network, make_network
from tensorwright_lab.zoo import make_module

_CONVOLUTIONS = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)
_NORMS = (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d)


class ModuleNetwork(torch.nn.Module):  # type: ignore[misc]  # the types of PyTorch are not checked
    """Calls a module: input tensors in the model's order to a tuple of outputs."""

    def __init__(self, module: Any, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        super().__init__()
        self.module = module
        self.input_names, self.output_names = tuple(inputs), tuple(outputs)

    def forward(self, *tensors: Any) -> tuple[Any, ...]:
        """The outputs of the model."""
        outputs = self.module(*tensors)
        return outputs if isinstance(outputs, tuple) else (outputs,)

    def with_weights(self, weights: Mapping[str, Any]) -> ModuleNetwork:
        """A copy with other parameters in the places of that name."""
        other = copy.deepcopy(self)
        for name, parameter in other.named_parameters():
            parameter.data = weights.get(name, parameter.data)
        other.eval()
        return other


def fold_norms(module: Any, inputs: Sequence[Any]) -> None:
    """Put batch normalisation into the convolution whose output it reads, in place.

    Which reads which is seen by running the module once.
    Requires: the module is in the mode of inference; nothing else reads that output.
    """
    made: list[tuple[Any, Any]] = []
    pairs: list[tuple[Any, Any]] = []

    def after_convolution(convolution: Any, _: Any, output: Any) -> None:
        made.append((convolution, output))

    def before_norm(norm: Any, given: tuple[Any, ...]) -> None:
        pairs.extend((maker, norm) for maker, output in made if output is given[0])

    hooks = [
        each.register_forward_hook(after_convolution)
        for each in module.modules()
        if isinstance(each, _CONVOLUTIONS)
    ]
    hooks += [
        each.register_forward_pre_hook(before_norm)
        for each in module.modules()
        if isinstance(each, _NORMS)
    ]
    with torch.no_grad():
        module(*inputs)
    for hook in hooks:
        hook.remove()
    fused = {convolution: fuse_conv_bn_eval(convolution, norm) for convolution, norm in pairs}
    fused |= {norm: torch.nn.Identity() for _, norm in pairs}
    for owner in list(module.modules()):
        for name, child in list(owner.named_children()):
            if child in fused:
                setattr(owner, name, fused[child])


_TRIES = 5
_WIDTHS = {"DEFAULT": 16, "AVX2": 32, "AVX512": 64}
_CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


class TorchPeer(Peer):
    """The common part of eager and compiled PyTorch, which differ in `prepare`."""

    def __init__(self) -> None:
        self.network: Network | ModuleNetwork | None = None
        self._run: Callable[[], Sequence[Any]] = not_bound
        self.call: Callable[[], object] = not_bound

    def load(self, path: str, threads: int, options: Mapping[str, Any]) -> PeerInfo:
        """Make a module of an ONNX file."""
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        torch.set_float32_matmul_precision("highest")
        self.network = _read(path).eval()
        version = str(torch.__version__).split("+")[0]
        return PeerInfo(version, f"{self.describe()}, {threads} threads", vector_bytes())

    def describe(self) -> str:
        """How it runs, in a word."""
        return "eager"

    def bind(self, inputs: Arrays) -> None:
        """Place the inputs and run once."""
        if self.network is None:
            raise ValueError("no model is loaded")
        tensors = [torch.from_numpy(np.array(inputs[name])) for name in self.network.input_names]
        run = self.prepare(self.network, tensors)
        run()
        self._run = self.call = run

    def prepare(
        self, network: Network | ModuleNetwork, tensors: Sequence[Any]
    ) -> Callable[[], Sequence[Any]]:
        """The function to time: the network on these tensors, in the faster layout."""
        plain = bind_call(network, tensors)
        if not any(tensor.dim() in _CHANNELS_LAST for tensor in network.parameters()):
            return plain
        last = bind_call(in_channels_last(network), [channels_last(each) for each in tensors])
        plain_s = last_s = float("inf")
        for _ in range(_TRIES):
            plain_s, last_s = min(plain_s, _seconds(plain)), min(last_s, _seconds(last))
        return plain if plain_s <= last_s else last

    def run(self) -> Arrays:
        """Compute the outputs of the bound inputs."""
        names = self.network.output_names if self.network is not None else ()
        outputs = [output.contiguous().numpy() for output in self._run()]
        return dict(zip(names, outputs, strict=True))


def _read(path: str) -> Network | ModuleNetwork:
    """The module that a model was exported from, where that can be made again, else its operators.

    Raises:  ValueError naming an operator that has no counterpart.
    """
    model = onnx.load(path)
    made = make_module(model)
    if made is None:
        return make_network(model)
    module, inputs = made
    fold_norms(module, inputs)
    weights = {each.name for each in model.graph.initializer}
    names = [each.name for each in model.graph.input if each.name not in weights]
    return ModuleNetwork(module, names, [each.name for each in model.graph.output])


def vector_bytes() -> int:
    """Of the widest vectors that PyTorch's kernels use in this process; 0 where it does not say."""
    return _WIDTHS.get(torch.backends.cpu.get_cpu_capability(), 0)


def bind_call(network: Callable[..., Any], tensors: Sequence[Any]) -> Callable[[], Sequence[Any]]:
    """The network on these tensors, as a function of nothing that keeps no gradients."""

    def call() -> Sequence[Any]:
        with torch.inference_mode():
            outputs: Sequence[Any] = network(*tensors)
        return outputs

    return call


def channels_last(tensor: Any) -> Any:
    """The same numbers with the channels of images and videos beside each other in memory."""
    layout = _CHANNELS_LAST.get(tensor.dim())
    return tensor if layout is None else tensor.contiguous(memory_format=layout)


def in_channels_last(network: Network | ModuleNetwork) -> Network | ModuleNetwork:
    """A copy whose weights are laid out so."""
    weights = {name: channels_last(each.detach()) for name, each in network.named_parameters()}
    return network.with_weights(weights)


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
