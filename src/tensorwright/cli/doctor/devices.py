"""What the doctor says about devices of OpenCL and CUDA, and about NVIDIA's compiler."""

from __future__ import annotations

import importlib
import json
import sys

from tensorwright.base import GpuApi
from tensorwright.cli.doctor.finding import Finding
from tensorwright.cli.doctor.tools import output_of, version_of

_MEASURING = "tensorwright.profiling.devices"
_CUDA = "tensorwright.codegen.cuda"
_DEVICE = "tensorwright.runtime.cards.cuda_cards"


def devices() -> list[Finding]:
    """A finding for each device, with its measured rates, and one for NVIDIA's compiler.

    Another process measures the devices, because a driver may end the process that uses it.
    """
    return [*_opencl(), *_cuda(), _nvrtc()]


def _opencl() -> list[Finding]:
    if not version_of("pyopencl"):
        remedy = "pip install 'tensorwright[opencl]', and with PoCL 'tensorwright[opencl,pocl]'"
        return [Finding("OpenCL", "pyopencl is not installed (for --target opencl)", remedy)]
    remedy = "install the driver of your card, or pip install 'tensorwright[opencl,pocl]'"
    return _measured("OpenCL", GpuApi.OPENCL, remedy)


def _cuda() -> list[Finding]:
    lack = importlib.import_module(_DEVICE).why_no_card()
    if lack is not None:
        return [Finding("CUDA", f"{lack.reason} (for --target cuda)", lack.remedy)]
    return _measured(
        "CUDA", GpuApi.CUDA, "run nvidia-smi: its memory may be full, or the card at fault"
    )


def _measured(name: str, api: GpuApi, remedy: str) -> list[Finding]:
    """A finding for each device of a driver; if there is none, a finding with the remedy."""
    printed = output_of([sys.executable, "-m", _MEASURING, api])
    devices = json.loads(printed) if printed.startswith("[") else []
    if not devices:
        return [Finding(name, f"no device (for --target {api})", remedy)]
    return [Finding(name, _text(each["facts"], each["rates"], each["speed"])) for each in devices]


def _text(facts: dict[str, object], rates: dict[str, float], speed: dict[str, float]) -> str:
    """A device in three lines: what its driver says, how it copies, and how fast kernels run."""
    memory, shared = (int(str(facts[key])) for key in ("memory_bytes", "shared_bytes"))
    to, on, back = (rates[key] / 1e9 for key in ("to_device", "on_device", "from_device"))
    return (
        f"{facts['name']} ({facts['platform']}, {facts['version']}): "
        f"{facts['compute_units']} units, {memory / 2**30:.1f} GiB, "
        f"{shared // 1024} KiB shared, {facts['threads_per_block']} threads a block\n"
        f"copies: {to:.1f} GB/s to it, {on:.1f} on it, {back:.1f} from it; "
        f"a short one takes {rates['round_trip_s'] * 1e6:.0f} us\n"
        f"kernels: {speed['flops_per_s'] / 1e9:.0f} GFLOP/s of f32, memory "
        f"{speed['bytes_per_s'] / 1e9:.0f} GB/s; a launch takes {speed['launch_s'] * 1e6:.1f} us"
    )


def _nvrtc() -> Finding:
    purpose = "code for NVIDIA's cards: --target cuda:sm_90a"
    nvrtc = importlib.import_module(_CUDA).find_nvrtc()
    if nvrtc is None:
        remedy = "pip install 'tensorwright[cuda]'"
        return Finding("NVRTC", f"not installed (for {purpose})", remedy)
    first, last = nvrtc.architectures[0], nvrtc.architectures[-1]
    version = ".".join(map(str, nvrtc.version))
    return Finding("NVRTC", f"{version}, sm_{first} to sm_{last} (for {purpose})")
