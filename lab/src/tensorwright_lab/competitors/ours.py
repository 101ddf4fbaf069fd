"""tensorwright itself, as one of the competitors: an executable file, loaded and called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorwright
from tensorwright.peers.process.protocol import Arrays, Peer, PeerInfo, not_bound


class OursPeer(Peer):
    """Runs a file that `Executable.save` wrote. Options go to `tensorwright.load`."""

    def __init__(self) -> None:
        self._executable: Any = None
        self._inputs: Arrays = {}
        self.call: Callable[[], object] = not_bound

    def load(self, path: str, threads: int, options: Mapping[str, Any]) -> PeerInfo:
        """Load the executable."""
        load: Any = tensorwright.load
        self._executable = load(path, threads=threads, **options)
        version = str(getattr(tensorwright, "__version__", "from source"))
        return PeerInfo(version, f"{threads} threads")

    def bind(self, inputs: Arrays) -> None:
        """Convert and place the inputs, so that a call does nothing but run."""
        self._inputs = dict(inputs)
        bind = getattr(self._executable, "bind", None)
        self.call = bind(self._inputs) if bind else self.run

    def caller(self) -> Callable[[], object]:
        """A call with outputs of its own."""
        call: Callable[[], object] = self._executable.bind(self._inputs)
        return call

    def run(self) -> Arrays:
        """Compute the outputs of the bound inputs."""
        outputs: Arrays = self._executable.run(self._inputs)
        return outputs
