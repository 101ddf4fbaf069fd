"""The operator suite in PyTorch's eager mode, for `FunctionPeer`.

The path of the factory is "tensorwright_lab.competitors.torch_eager_operators:make". A variant
is a form of the suite, in one of PyTorch's memory formats where it has several: the benchmark times
all, the best counts.
Constants of ConvLayer are folded into the convolution beforehand, as PyTorch's own tools do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from tensorwright.ops import Array
from tensorwright.peers.process.protocol import Arrays
from tensorwright_lab import zoo
from tensorwright_lab.competitors.pytorch_peer import vector_bytes

__version__ = str(torch.__version__)
VECTOR_BYTES = vector_bytes()

Operation = Callable[[], torch.Tensor]
Operands = dict[str, torch.Tensor]

_CONVOLUTIONS = {3: functional.conv1d, 4: functional.conv2d, 5: functional.conv3d}
_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def make(
    inputs: Arrays,
    threads: int,
    *,
    case: dict[str, Any],
    form: str,
    copies: int,
    seed: int = 0,
) -> Callable[[], list[Array]]:
    """Prepare copies of a variant, "channels_first/dense"; `inputs` is not read."""
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    program = zoo.operator_program(zoo.OperatorCase.from_json(case))
    name, _, variant = form.partition("/")
    chosen = program.form(name)
    operations = []
    for copy in range(copies):
        drawn = zoo.draw_operands(program, copy, seed)
        pairs = zip(program.operands, chosen.operands, strict=True)
        operands = {each: torch.from_numpy(a.apply(drawn[each])) for (each, _), a in pairs}
        operations.append(_BUILDERS[program.case.family](program, chosen, variant, operands))

    def run() -> list[Array]:
        return [_numpy(operation()) for operation in operations]

    return run


def _numpy(tensor: torch.Tensor) -> Array:
    array: Array = tensor.numpy()  # shares its memory: costs nothing
    return array


def _convolution(
    program: zoo.OperatorProgram, form: zoo.Form, variant: str, operands: Operands
) -> Operation:
    case = program.case
    x, w, bias = _formatted(_folded(operands), variant)
    count = x.dim() - 2
    is_deep = form.name == "volumes"
    stride = [1] * is_deep + [case["stride"]] * (count - is_deep)
    padding = [0] * is_deep + [case["padding"]] * (count - is_deep)
    dilation = [case.get("dilation", 1)] * count
    groups = case.get("channels", 0) or case.get("groups", 1)
    convolve = _CONVOLUTIONS[x.dim()]
    if "scale" in operands:
        return lambda: functional.relu_(convolve(x, w, bias, stride, padding, dilation, groups))
    return lambda: convolve(x, w, bias, stride, padding, dilation, groups)


def _transposed(
    program: zoo.OperatorProgram, _: zoo.Form, variant: str, operands: Operands
) -> Operation:
    x, w, bias = _formatted(_folded(operands), variant)
    stride, padding = program.case["stride"], program.case["padding"]
    return lambda: functional.conv_transpose2d(x, w, bias, stride, padding)


def _folded(operands: Operands) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Input, weight and bias, with what follows the convolution folded into them."""
    if "scale" not in operands:
        return operands["x"], operands["w"], operands.get("bias")
    scale, offset = operands["scale"].flatten(), operands["offset"].flatten()
    return (
        operands["x"],
        operands["w"] * scale.reshape(-1, 1, 1, 1),
        operands["bias"] * scale + offset,
    )


def _formatted(
    given: tuple[torch.Tensor, torch.Tensor, torch.Tensor | None], variant: str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    x, w, bias = given
    if variant != "last":
        return x, w, bias
    if x.dim() == 3:  # no format of its own: the same order, as strides
        return x.transpose(1, 2).contiguous().transpose(1, 2), w, bias
    memory_format = _LAST[x.dim()]
    return (
        x.contiguous(memory_format=memory_format),
        w.contiguous(memory_format=memory_format),
        bias,
    )


def _product(_: zoo.OperatorProgram, __: zoo.Form, variant: str, operands: Operands) -> Operation:
    a, b = operands["a"], operands["b"]
    if variant == "single":
        left, right = a[0], b[0]
        return lambda: torch.mm(left, right)
    return lambda: torch.bmm(a, b)


def _norm(_: zoo.OperatorProgram, form: zoo.Form, __: str, operands: Operands) -> Operation:
    x = operands["x"]
    if form.name == "squares":
        return lambda: (x * x).sum(dim=(1, 2)).sqrt_()
    if form.name == "product":
        flat = x.flatten(1)
        rows, columns = flat.unsqueeze(1), flat.unsqueeze(2)
        if len(flat) == 1:
            vector = flat[0]
            return lambda: torch.dot(vector, vector).sqrt_()
        return lambda: torch.bmm(rows, columns).sqrt_()
    return lambda: torch.linalg.vector_norm(x, dim=(1, 2))


def _scores(_: zoo.OperatorProgram, form: zoo.Form, __: str, operands: Operands) -> Operation:
    queries, keys = operands["q"], operands["k"]
    if form.name == "einsum":
        return lambda: torch.softmax(torch.einsum("bqhd,bkhd->bhqk", queries, keys), -1)
    left, right = queries.permute(0, 2, 1, 3), keys.permute(0, 2, 3, 1)
    return lambda: torch.softmax(torch.matmul(left, right), -1)


_BUILDERS: dict[str, Callable[[zoo.OperatorProgram, zoo.Form, str, Operands], Operation]] = {
    **dict.fromkeys(("C1D", "C2D", "C3D", "GRP", "DIL", "DEP", "CAP", "ConvLayer"), _convolution),
    "T2D": _transposed,
    "GMM": _product,
    "NRM": _norm,
    "TBS": _scores,
}
