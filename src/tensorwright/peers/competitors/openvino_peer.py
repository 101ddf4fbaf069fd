"""OpenVINO on the CPU, in f32 unless another precision is asked for, with the settings that make it
fastest.

It does one request at a time (the LATENCY hint, one stream) on the requested number of threads;
hardware threads count as cores. By default it computes in bf16 if the processor can, and in groups
of 8-bit numbers if weights are compressed. Both are switched off. The properties of the compiled
model are checked, and the width of its kernels' vectors. Inputs are bound without a copy, and
outputs are read in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import openvino
from openvino import properties
from openvino.properties import hint

from tensorwright.base import detect_target
from tensorwright.peers.process.protocol import Arrays, Peer, PeerInfo, not_bound

_PRECISION = "INFERENCE_PRECISION_HINT"
_WIDTHS = (("avx512", 64), ("avx2", 32), ("sse", 16))


class OpenVinoPeer(Peer):
    """See the module's text. Options: further properties of the compiled model, by name."""

    def __init__(self) -> None:
        self._request: Any = None
        self._model: Any = None
        self._inputs: dict[str, Any] = {}
        self.call: Callable[[], object] = not_bound

    def load(self, path: str, threads: int, options: Mapping[str, Any]) -> PeerInfo:
        """Compile an ONNX file."""
        core = openvino.Core()
        settings = {**make_settings(threads), **options}
        self._model = core.compile_model(core.read_model(path), "CPU", settings)
        self._request = self._model.create_infer_request()
        asked = options.get(_PRECISION, "f32")
        check_compiled(self._model, threads, str(asked))
        version = str(openvino.__version__).split("-")[0]
        detail = f"{_precision(self._model)}, {threads} threads, 1 stream"
        return PeerInfo(version, detail, _widest_vectors(self._model))

    def bind(self, inputs: Arrays) -> None:
        """Bind the inputs; OpenVINO reads the arrays in place."""
        self._inputs = {name: np.ascontiguousarray(array) for name, array in inputs.items()}
        for port in self._model.inputs:
            array = self._inputs[_name_in(port.get_names(), self._inputs)]
            self._request.set_tensor(port, openvino.Tensor(array, shared_memory=True))
        self.call = self._infer

    def run(self) -> Arrays:
        """Compute the outputs of the bound inputs."""
        self.call()
        return {
            port.get_any_name(): np.array(self._request.get_tensor(port).data)
            for port in self._model.outputs
        }

    def _infer(self) -> object:
        return self._request.infer(share_outputs=True)


def make_settings(threads: int) -> dict[str, Any]:
    """The properties that make one inference as fast as it can be in f32 on `threads` cores."""
    return {
        hint.inference_precision(): openvino.Type.f32,
        hint.performance_mode(): hint.PerformanceMode.LATENCY,
        hint.enable_hyper_threading(): True,
        hint.dynamic_quantization_group_size(): 0,
        properties.inference_num_threads(): threads,
        properties.streams.num(): 1,
    }


def _precision(model: Any) -> str:
    return str(model.get_property(hint.inference_precision()).get_type_name())


def check_compiled(model: Any, threads: int, precision: str = "f32") -> None:
    """Check that the compiled model has the requested number of threads, and the precision or f32,
    which a processor without the other one computes in.

    Raises:  ValueError.
    """
    own = _precision(model)
    if own not in (precision, "f32"):
        raise ValueError(f"it computes in {own}, not in {precision}")
    given = model.get_property(properties.inference_num_threads())
    if given != threads:
        raise ValueError(f"it uses {given} threads, not {threads}")


def _widest_vectors(model: Any) -> int:
    """Bytes of the widest vectors among the kernels that the compiled model names.

    Kernels of MLAS, which it calls for products of matrices, use the processor's widest vectors.
    """
    nodes = model.get_runtime_model().get_ops()
    kernels = {str(node.get_rt_info()["primitiveType"].astype(str)) for node in nodes}
    widths = [detect_target().vector_bytes for kernel in kernels if "mlas" in kernel]
    widths += [width for kernel in kernels for name, width in _WIDTHS if name in kernel]
    return max(widths, default=0)


def _name_in(names: set[str], inputs: Mapping[str, object]) -> str:
    """The name of a port that is the name of an input, too."""
    own = sorted(names & inputs.keys())
    if not own:
        raise ValueError(f"no input for {', '.join(sorted(names))}")
    return own[0]
