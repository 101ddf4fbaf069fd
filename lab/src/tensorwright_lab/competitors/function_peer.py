"""Any Python function as a competitor: for benchmarks of single operators.

The path names a factory, "package.module:name" or "/path/to/file.py:name". It is called as
`factory(inputs, threads, **options)` with the bound arrays by name, and returns the function
to time, which takes nothing and returns an array, a sequence of arrays or arrays by name. Its
module may say `__version__` and `VECTOR_BYTES`.

    def matmul(inputs, threads, size):            path "mine.py:matmul", options {"size": 512}
        a = np.ones((size, size), np.float32)
        return lambda: a @ a
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tensorwright.peers.process.protocol import Arrays, Peer, PeerInfo


class FunctionPeer(Peer):
    """See the module's text."""

    def __init__(self) -> None:
        self._factory: Callable[..., Callable[[], object]] = _no_factory
        self._threads = 1
        self._options: dict[str, Any] = {}
        self.call: Callable[[], object] = _no_factory

    def load(self, path: str, threads: int, options: Mapping[str, Any]) -> PeerInfo:
        """Import the factory and call it without inputs, unless it needs some."""
        source, _, name = path.rpartition(":")
        is_file = source.endswith(".py")
        module = _import_file(Path(source)) if is_file else importlib.import_module(source)
        self._factory = getattr(module, name)
        self._threads, self._options = threads, dict(options)
        version, width = getattr(module, "__version__", ""), getattr(module, "VECTOR_BYTES", 0)
        return PeerInfo(str(version), f"{path}, {threads} threads", width)

    def bind(self, inputs: Arrays) -> None:
        """Make the function to time."""
        made = self._factory(inputs, self._threads, **self._options)
        self.call = made

    def run(self) -> Arrays:
        """Call the function once and name what it returns, by place where it has no names."""
        outputs = self.call()
        if isinstance(outputs, Mapping):
            return {str(name): np.asarray(value) for name, value in outputs.items()}
        several = outputs if isinstance(outputs, tuple | list) else (outputs,)
        return {str(number): np.asarray(value) for number, value in enumerate(several)}


def _import_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _no_factory(*_: object, **__: object) -> Any:
    raise ValueError("bind the inputs first; give {} where there are none")
