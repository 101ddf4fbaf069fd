"""Functions that the tests run as competitors in worker processes."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorwright.graph import interpret
from tensorwright.graph.imports import load_onnx


def add(inputs: dict[str, Any], threads: int, amount: float = 0.0) -> Callable[[], object]:
    print("noise on the standard output")
    return lambda: {name: array + amount for name, array in inputs.items()}


def pair(inputs: dict[str, Any], threads: int) -> Callable[[], object]:
    return lambda: (np.float32(threads), np.zeros((2, 0), np.int64))


def sleep(inputs: dict[str, Any], threads: int, seconds: float) -> Callable[[], object]:
    return lambda: time.sleep(seconds)


def process(inputs: dict[str, Any], threads: int) -> Callable[[], object]:
    return lambda: np.int64(os.getpid())


def refuse(inputs: dict[str, Any], threads: int) -> Callable[[], object]:
    raise ValueError("this one refuses")


def crash(inputs: dict[str, Any], threads: int) -> Callable[[], object]:
    def work() -> None:
        sys.stderr.write("last words\n")
        sys.stderr.flush()
        os.kill(os.getpid(), signal.SIGKILL)

    return work


def network(inputs: dict[str, Any], threads: int, model: str) -> Callable[[], object]:
    graph = load_onnx(model)
    return lambda: interpret(graph, inputs)
