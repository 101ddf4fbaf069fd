"""Hold other runtimes to the vectors of a target that has narrower ones than this machine.

Runtimes choose their kernels by the processor's features. If a setting limits the choice, it is an
environment variable that their libraries read when they are loaded. ONNX Runtime has no such
setting: its kernels, MLAS, look only at the processor. OpenVINO calls MLAS for some products of
matrices, too.
"""

from __future__ import annotations

from types import MappingProxyType

from tensorwright.base import CpuTarget, detect_target
from tensorwright.peers.process.protocol import PeerInfo

_VARIABLES: MappingProxyType[int, MappingProxyType[str, str]] = MappingProxyType(
    {
        32: MappingProxyType(
            {
                "ONEDNN_MAX_CPU_ISA": "AVX2",  # oneDNN, in OpenVINO and in PyTorch
                "OV_CPU_MAX_ISA": "AVX2",  # OpenVINO's own kernels, from 2026.4 on
                "ATEN_CPU_CAPABILITY": "avx2",  # PyTorch's own kernels; TorchInductor's vectors
                "MKL_ENABLE_INSTRUCTIONS": "AVX2",  # products of matrices in PyTorch
                "TORCHINDUCTOR_CPP_MARCH": "x86-64-v3",  # the features that its compiler may use
            }
        )
    }
)


def is_narrower(target: CpuTarget | None) -> bool:
    """Whether this machine has wider vectors than the target."""
    return target is not None and target.vector_bytes < detect_target().vector_bytes


def holding_variables(target: CpuTarget | None) -> MappingProxyType[str, str]:
    """The variables of a competitor's process that hold it to the target; may be empty."""
    if target is None or not is_narrower(target):
        return MappingProxyType({})
    return _VARIABLES.get(target.vector_bytes, MappingProxyType({}))


def is_held(info: PeerInfo, target: CpuTarget | None) -> bool | None:
    """Whether a loaded competitor keeps to the target's vectors; None if the target has the widest.

    A competitor that does not tell the width of its vectors counts as one that does not keep to it.
    """
    if target is None or not is_narrower(target):
        return None
    return 0 < info.vector_bytes <= target.vector_bytes
