"""A session as that of ONNX Runtime, for programs that were written for it.

    from tensorwright import onnxruntime_compat as onnxruntime
    session = onnxruntime.InferenceSession("model.onnx")
    (result,) = session.run(None, {"input": array})

A session compiles its model, or takes what was compiled before; it also opens an executable of
`tensorwright compile`.  Options that say how ONNX Runtime computes are taken and have no effect,
but the number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from tensorwright.base import EXECUTABLE, HEAD_BYTES, DType, UsageError, kind_of_bytes, kind_of_file
from tensorwright.compiling import compile, read_handle
from tensorwright.runtime import Executable, TensorSpec, load

if TYPE_CHECKING:
    from tensorwright.base import Array

PROVIDER = "CPUExecutionProvider"
_TYPES = {
    DType.F16: "float16",
    DType.BF16: "bfloat16",
    DType.F32: "float",
    DType.F64: "double",
    DType.I8: "int8",
    DType.I16: "int16",
    DType.I32: "int32",
    DType.I64: "int64",
    DType.U8: "uint8",
    DType.U16: "uint16",
    DType.U32: "uint32",
    DType.U64: "uint64",
    DType.BOOL: "bool",
}


@dataclass(frozen=True, slots=True)
class NodeArg:
    """An input or output: its name, extents (names for open ones), and type, "tensor(float)"."""

    name: str
    shape: list[int | str]
    type: str

    @classmethod
    def of(cls, spec: TensorSpec) -> NodeArg:
        """As a session says it."""
        shape: list[int | str] = [n if isinstance(n, int) else str(n) for n in spec.shape]
        return cls(spec.name, shape, f"tensor({_TYPES[spec.dtype]})")


@dataclass(slots=True)
class ModelMeta:
    """What a session says of its model."""

    graph_name: str
    producer_name: str = "tensorwright"
    description: str = ""
    domain: str = ""
    version: int = 0
    custom_metadata_map: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class SessionOptions:
    """Options of a session; `intra_op_num_threads` is the number of threads, 0 that of the knob."""

    intra_op_num_threads: int = 0
    inter_op_num_threads: int = 0
    graph_optimization_level: Any = None
    execution_mode: Any = None
    log_severity_level: int = 2
    enable_mem_pattern: bool = True
    enable_cpu_mem_arena: bool = True
    enable_profiling: bool = False
    _entries: dict[str, str] = field(default_factory=dict)

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Note an entry, which has no effect."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """An entry that was noted.  Raises: KeyError."""
        return self._entries[key]


class GraphOptimizationLevel(IntEnum):
    """What ONNX Runtime does with a graph; without effect here."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_ALL = 99


class ExecutionMode(IntEnum):
    """How ONNX Runtime runs nodes; without effect here."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class InferenceSession:
    """A model that is ready to run."""

    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | bytes,
        sess_options: SessionOptions | None = None,
        providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        **others: Any,
    ) -> None:
        """Compile a model, or load an executable.

        path_or_bytes   the path of a model or executable, or its bytes
        providers       the one for processors must be among them, where some are named
        Raises:  UsageError for other providers alone; the errors of `compile` and `load`.
        """
        del provider_options, others  # say how another library computes
        names = [each if isinstance(each, str) else each[0] for each in providers or (PROVIDER,)]
        if PROVIDER not in names:
            raise UsageError(
                stage="session",
                where=f"providers {', '.join(names)}",
                reason="a session runs on the processor alone",
                remedy=f"name {PROVIDER} among them",
            )
        self._options = sess_options or SessionOptions()
        threads = self._options.intra_op_num_threads or None
        model = read_handle(path_or_bytes)
        is_executable = _is_executable(model)
        self.executable: Executable = (load if is_executable else compile)(model, threads=threads)
        self._names = tuple(spec.name for spec in self.executable.outputs)

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: Any = None,
    ) -> list[Array]:
        """The outputs of these names, or all, in order.

        Raises:  InputError for an input that does not fit; UsageError for an unknown output.
        """
        del run_options
        wanted = tuple(output_names) if output_names else self._names
        unknown = [name for name in wanted if name not in self._names]
        if unknown:
            raise UsageError(
                stage="session",
                where=f"output {unknown[0]}",
                reason="the model has no such output",
                remedy="name some of " + ", ".join(self._names),
            )
        results = self.executable.run(input_feed)
        return [results[name] for name in wanted]

    def get_inputs(self) -> list[NodeArg]:
        """The inputs, in order."""
        return [NodeArg.of(spec) for spec in self.executable.inputs]

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, in order."""
        return [NodeArg.of(spec) for spec in self.executable.outputs]

    def get_providers(self) -> list[str]:
        """The one provider."""
        return [PROVIDER]

    def get_session_options(self) -> SessionOptions:
        """The options with which it was made."""
        return self._options

    def get_modelmeta(self) -> ModelMeta:
        """The name of the model's graph."""
        return ModelMeta(self.executable.plan.name)


def get_available_providers() -> list[str]:
    """The one provider."""
    return [PROVIDER]


def get_device() -> str:
    """Where sessions run."""
    return "CPU"


def _is_executable(model: Any) -> bool:
    if isinstance(model, bytes):
        return kind_of_bytes(model[:HEAD_BYTES]) is EXECUTABLE
    try:
        return isinstance(model, str | os.PathLike) and kind_of_file(model) is EXECUTABLE
    except OSError:  # compiling says what is wrong with it
        return False
