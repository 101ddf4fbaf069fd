"""The interface that the onnx package asks of a backend (`onnx.backend.base`).

    import tensorwright.integrations.onnx_backend as backend
    results = backend.run_model(model, [array])                 once
    prepared = backend.prepare(model, "CPU"); prepared.run([array])     many times

A model whose inputs have open shapes is compiled once for all of them, where all of its operators
take any size. Where they do not, and where a shape is computed from the value of an input, it is
compiled at the first call, for what that brings; a later call with another shape or value compiles
again. `BackendRep.placement` says what did the work of the last call.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper
from onnx.backend import base

from tensorwright import pipeline
from tensorwright.base import InputError, Target, UnsupportedError, UserError
from tensorwright.graph import Graph
from tensorwright.graph.imports import load_onnx, value_inputs
from tensorwright.ops import Array
from tensorwright.runtime import ConstantRef, CopyStep, Executable

Model: TypeAlias = ModelProto | bytes | str | os.PathLike[str]


class Placement(Enum):
    """Where the work of a call is done."""

    COMPILED = "compiled"  # all of it by machine code
    HOST = "host"  # some of it by NumPy, between kernels
    FOLDED = "folded"  # all of it while compiling: no result depends on an input of the call


class BackendRep(base.BackendRep):
    """A prepared model. Not for several threads at once while it may still compile."""

    def __init__(
        self, model: Model, target: str | Target | None = None, threads: int | None = None
    ) -> None:
        """Compile, unless shapes or values of inputs are needed first."""
        self._model = model
        self._target = target
        self._threads = threads
        self._deciding = value_inputs(model)
        inputs = _free_inputs(model)
        self._names = tuple(info.name for info in inputs)
        self._open = tuple(info.name for info in inputs if _is_open(info))
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._values: dict[str, Array] = {}
        self._executable: Executable | None = None
        if not self._deciding and not self._open:
            self._compile({}, {})

    @property
    def executable(self) -> Executable | None:
        """What was compiled last; None before a first call that has to bring values."""
        return self._executable

    @property
    def placement(self) -> Placement | None:
        """Where the work of the last compiled program is done."""
        return None if self._executable is None else placement_of(self._executable)

    @property
    def host_operators(self) -> tuple[str, ...]:
        """The operators that run in NumPy."""
        return () if self._executable is None else self._executable.host_operators

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Array, ...]:
        """The outputs, for inputs in the model's order or by name.

        Raises:  InputError for what does not fit the model; as `tensorwright.compile` where values
                 of inputs decide about shapes.
        """
        given = self._given(inputs)
        values = {name: given[name] for name in self._deciding if name in given}
        shapes = {name: np.shape(given[name]) for name in self._open if name in given}
        executable = self._executable
        is_fit = executable is not None and (bool(executable.sizes) or shapes == self._shapes)
        if executable is None or not is_fit or not _is_same(values, self._values):
            executable = self._compile(shapes, values)
        results = executable.run({n: each for n, each in given.items() if n not in values})
        return tuple(results[spec.name] for spec in executable.outputs)

    def _given(self, inputs: Any) -> dict[str, Any]:
        if isinstance(inputs, Mapping):
            return dict(inputs)
        if not isinstance(inputs, Sequence):
            inputs = [inputs]
        names = self._names
        if len(inputs) != len(names):
            raise InputError(
                stage="run",
                where="inputs",
                reason=f"{len(inputs)} are given, the model has {len(names)}",
                remedy=f"give {', '.join(names) or 'none'}",
            )
        return dict(zip(names, inputs, strict=True))

    def _compile(self, shapes: dict[str, tuple[int, ...]], values: Mapping[str, Any]) -> Executable:
        others = {name: shape for name, shape in shapes.items() if name not in values}
        try:
            executable = self._built(load_onnx(self._model, input_values=values))
        except UserError:  # not for any size, or of unknown rank
            graph = load_onnx(self._model, input_shapes=others, input_values=values)
            executable = self._built(graph)
        self._executable = executable
        self._shapes = shapes
        self._values = {name: np.array(value) for name, value in values.items()}
        return executable

    def _built(self, graph: Graph) -> Executable:
        return pipeline.compile(graph, target=self._target, threads=self._threads)


class Backend(base.Backend):
    """The compiler, as the onnx package sees it."""

    @classmethod
    def is_compatible(cls, model: Model, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether every operator of the model is supported; device must be "CPU".

        Where shapes wait for what a call brings, only the call can tell: the answer is yes.
        """
        if not cls.supports_device(device):
            return False
        if value_inputs(model) or any(map(_is_open, _free_inputs(model))):
            return True
        try:
            load_onnx(model)
        except UnsupportedError:
            return False
        return True

    @classmethod
    def prepare(cls, model: Model, device: str = "CPU", **kwargs: Any) -> BackendRep:
        """Compile a model; `target` and `threads` are those of `tensorwright.compile`."""
        if not cls.supports_device(device):
            raise UnsupportedError(
                stage="compile",
                where=f"device {device}",
                reason="there is no code generator for it",
                remedy='prepare the model for "CPU"',
                operator="model",
            )
        return BackendRep(model, kwargs.get("target"), kwargs.get("threads"))

    @classmethod
    def run_model(
        cls, model: Model, inputs: Any, device: str = "CPU", **kwargs: Any
    ) -> tuple[Array, ...]:
        """Compile a model and run it once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype[Any], tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Array, ...]:
        """Compile a single node and run it; `opset_version` says which operator set it is of."""
        arrays = [np.asarray(value) for value in inputs]
        model = _model_of(node, arrays, kwargs.get("opset_version"))
        return cls.run_model(model, arrays, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether there is a code generator for it; a number may follow ("CPU:0")."""
        return device.partition(":")[0] == "CPU"


def placement_of(executable: Executable) -> Placement:
    """Where an executable does its work."""
    if executable.host_operators:
        return Placement.HOST
    is_folded = all(
        isinstance(step, CopyStep) and isinstance(step.source, ConstantRef)
        for step in executable.plan.steps
    )
    return Placement.FOLDED if is_folded else Placement.COMPILED


def _is_same(values: Mapping[str, Any], fixed: Mapping[str, Array]) -> bool:
    return values.keys() == fixed.keys() and all(
        np.asarray(value).dtype == fixed[name].dtype and np.array_equal(value, fixed[name])
        for name, value in values.items()
    )


def _free_inputs(model: Model) -> tuple[ValueInfoProto, ...]:
    """The inputs of a model that a call must give, in order: those that are not initialisers."""
    if isinstance(model, bytes):
        model = onnx.load_model_from_string(model)
    elif not isinstance(model, ModelProto):
        model = onnx.load_model(os.fspath(model), load_external_data=False)
    held = {tensor.name for tensor in model.graph.initializer}
    return tuple(info for info in model.graph.input if info.name not in held)


def _is_open(info: ValueInfoProto) -> bool:
    """Whether the model leaves the shape of a tensor open."""
    tensor = info.type.tensor_type
    if not info.type.HasField("tensor_type"):
        return False
    return not tensor.HasField("shape") or any(
        not dim.HasField("dim_value") for dim in tensor.shape.dim
    )


def _model_of(node: NodeProto, arrays: Sequence[Array], opset: int | None) -> ModelProto:
    names = [name for name in node.input if name]
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for name, a in zip(dict.fromkeys(names), arrays, strict=True)
    ]
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None)
        for name in node.output
        if name
    ]
    graph = helper.make_graph([node], node.op_type, inputs, outputs)
    if opset is None:
        return helper.make_model(graph)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, opset)])


is_compatible = Backend.is_compatible
prepare = Backend.prepare
run = Backend.run_model
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
