"""A report as text would make it: small, complete, with names that try to become code."""

from __future__ import annotations

import copy
from typing import Any

from tensorwright.report import FORMAT

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


def document() -> dict[str, Any]:
    """A report of a network whose every name is hostile."""
    return copy.deepcopy(_DOCUMENT)


def _step(number: int, workload: str, time_us: float, least_us: float, **more: Any) -> Any:
    step = {
        "number": number,
        "label": f"conv2d {EVIL}",
        "kind": "kernel",
        "outputs": [f"y{number} {EVIL}"],
        "workload": workload,
        "time_us": time_us,
        "share": time_us / 1000,
        "flops": 4_000_000,
        "bytes_moved": 80_000,
        "gflops_per_s": 40.0,
        "gbytes_per_s": 3.0,
        "roofline_share": least_us / time_us,
        "arithmetic_us": least_us,
        "memory_us": 0.1 * least_us,
        "cache_us": 0.0,
        "calls_us": 0.2,
        "bottleneck": "code",
        "tuned": True,
    }
    return step | more


_NEST = "for i in 0..8  @parallel:\n  for j in 0..16:\n    y[i, j] = x[i, j]"
_COMPARED = {
    "untuned_us": 400.0,
    "tuned_us": 300.0,
    "speed_up": 1.333,
    "least": 1.28,
    "most": 1.4,
    "is_same": False,
    "is_sure": True,
}
_TRIALS = [
    {
        "number": number,
        "at_s": 0.5 * number,
        "status": "ok",
        "time_us": 300.0 + 400.0 / number,
        "best_us": 300.0 + 400.0 / number,
        "predicted_us": 280.0 + 500.0 / number,
        "round": number // 4,
    }
    for number in range(1, 13)
]
_DOCUMENT: dict[str, Any] = {
    "format": FORMAT,
    "name": f"net {EVIL}",
    "command": f"tensorwright optimize '{EVIL}'",
    "written": "2026-01-31T12:00:00.000000Z",
    "machine": {
        "processor": EVIL,
        "fingerprint": "x86_64-2c-avx2-00000000",
        "cores": 2,
        "caches": ["L1 32 KiB"],
        "threads": 2,
        "target": "native",
        "system": "Linux",
        "versions": {"tensorwright": "0.1.0+0123", "python": "3.12.1"},
    },
    "noise": {"is_busy": True, "others": EVIL, "peak_share": 0.97, "warning": f"busy: {EVIL}"},
    "profile": {
        "network": "net",
        "network_us": 1000.0,
        "runs": 40,
        "adds_up": True,
        "roofline_share": 0.5,
        "peak_gflops_per_s": 200.0,
        "levels": [{"name": "memory", "size_bytes": None, "gbytes_per_s": 10.0}],
        "call_ns": 30.0,
        "start_threads_ns": 400.0,
        "steps": [
            _step(0, "a" * 16, 600.0, 200.0),
            _step(1, "b" * 16, 300.0, 250.0),
            _step(2, "b" * 16, 80.0, 95.0),
            _step(3, "", 20.0, 1.0, kind="host", bottleneck="host operator", tuned=None),
        ],
    },
    "whole": _COMPARED,
    "rivals": {
        "ours": {"time_us": 1000.0, "least_us": 990.0, "most_us": 1010.0},
        "rivals": [
            {
                "name": "ONNX Runtime",
                "version": "1.2",
                "error": 1e-6,
                "time_us": 1430.0,
                "ratio": 1.43,
                "least": 1.38,
                "most": 1.49,
                "is_sure": True,
            },
            {"name": "OpenVINO", "version": "3", "reason": EVIL},
        ],
    },
    "parts": {
        "parts": [
            {"part": part, "does": EVIL, "time_us": us, "least_us": us - 9, "most_us": us + 9}
            for part, us in (("operators", 2000.0), ("fusion", 1500.0), ("threads", 1000.0))
        ],
        "missing": [{"part": "layouts", "reason": EVIL}],
    },
    "graphs": {
        "before": [
            {
                "name": f"t{number} {EVIL}",
                "operator": "matmul",
                "type": "f32(4, 8)",
                "reads": [number - 1] if number else [EVIL],
                "constants": 1,
                "attributes": EVIL,
                **({"rule": 0} if number == 9 else {}),
            }
            for number in range(20)
        ],
        "after": [
            {
                "name": f"t{number} {EVIL}",
                "operator": "matmul",
                "type": "f32(4, 8)",
                "reads": [number - 1] if number else [EVIL],
                "constants": 1,
                "attributes": "",
                **({"rule": 0} if number == 9 else {}),
            }
            for number in range(19)
        ],
        "rules": [
            {
                "name": EVIL,
                "texts": [f"matmul(?x, ?y) == {EVIL}"],
                "count": 1,
                "places": [[f"?x = {EVIL}"]],
                "proofs": [f"proved: {EVIL}"],
                "before_us": 1200.0,
                "time_us": 1000.0,
                "gain_us": 200.0,
                "noise_us": 20.0,
            }
        ],
    },
    "workloads": [
        {
            "key": letter * 16,
            "name": f"conv2d_relu {EVIL}",
            "weight": 2.0,
            "best_us": 333.3,
            "default_us": 400.0,
            "roofline_us": 100.0,
            "rival_us": 350.0,
            "rival_name": "ONNX Runtime",
            "best_schedule": EVIL,
            "default_schedule": "split(i, 8)",
            "failed": 1,
            "trial_count": 12,
            "compared": _COMPARED,
            "trials": _TRIALS,
            "program": EVIL,
            "nests": {"default": _NEST, "best": _NEST.replace("16", "32") + f"\n{EVIL}"},
        }
        for letter in "ab"
    ],
    "missing": {"gains": ""},
    "answer": {
        "time_us": 1000.0,
        "roofline_us": 500.0,
        "left_us": 500.0,
        "untuned": _COMPARED,
        "rival": {
            "name": "ONNX Runtime",
            "ratio": 1.43,
            "least": 1.38,
            "most": 1.49,
            "is_sure": True,
        },
    },
}
