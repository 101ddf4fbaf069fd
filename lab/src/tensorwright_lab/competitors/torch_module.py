"""A model that PyTorch exported, as the very module that it was exported from.

What its users would run: attention in one call, recurrent layers as they are. Normalisation behind
a convolution is folded into it, as PyTorch's own tools do.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.nn.utils.fusion import fuse_conv_bn_eval

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
