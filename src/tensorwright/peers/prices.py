"""The times of operators and networks in another runtime.

The times of operators and networks in another runtime, each measured there once.

    with PeerPrices("onnxruntime", threads=2) as prices:
        prices.seconds(TypedOperator("matmul", (), (x, w), y))   an operator, as a separate model
        prices.kernels_of(graph)                                 a network, as one step

The runtime has a separate process, which stays inside the block.  The time of a model of one tiny
operator is the cost of a call, which is subtracted from each price.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from tensorwright.base import MachineError
from tensorwright.graph import Graph, GraphBuilder, random_inputs
from tensorwright.graph.onnx_export import save_onnx
from tensorwright.peers.process import process
from tensorwright.processes import Child, Done, Job
from tensorwright.rewriting import networks

_LIMIT_S = 120.0
_OPERATOR_S = 0.02  # of measuring an operator
_NETWORK_S = 0.6  # of measuring a network
_NODE_S = 5e-7  # of a node in a network beside its kernel


class PeerPrices:
    """Prices by another runtime; each is measured once.

    kind   a name in KINDS
    Raises:  MachineError if the runtime is not installed, or fails.
    """

    def __init__(self, kind: str, threads: int) -> None:
        self._kind = kind
        self._threads = threads
        self._roofline = networks.Roofline()
        self._operators: dict[networks.TypedOperator, float] = {}
        self._networks: dict[str, float] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="tensorwright-prices-")
        self._child = Child()
        self._call_s = 0.0
        try:
            self._call_s = self._measured(_smallest(), _OPERATOR_S)
        except MachineError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process of the runtime."""
        self._child.close()
        self._folder.cleanup()

    def seconds(self, use: networks.TypedOperator) -> float:
        """Seconds of an application; 0 if all inputs are constant, or it moves no data.

        The price of an opaque operator is an estimate, because no rule changes it.
        """
        estimate = self._roofline.seconds(use)
        if not estimate or use.operator == networks.CALL:
            return estimate
        if use not in self._operators:
            graph = networks.network_of(use)
            own = self._measured(graph, _OPERATOR_S) if graph.nodes else 0.0
            self._operators[use] = own + _NODE_S
        return self._operators[use]

    def kernels_of(self, graph: Graph) -> tuple[networks.PricedKernel, ...]:
        """A network as one step: the runtime does not say what its kernels are."""
        text = str(graph)
        if text not in self._networks:
            self._networks[text] = self._measured(graph, _NETWORK_S)
        return (networks.PricedKernel(self._networks[text], ()),)

    def _measured(self, graph: Graph, budget_s: float) -> float:
        path = Path(self._folder.name) / "model.onnx"
        save_onnx(graph, path)
        job = Job(
            process.time_file,
            (self._kind, str(path), random_inputs(graph), self._threads, budget_s),
        )
        outcome = self._child.do(job, _LIMIT_S)
        if not isinstance(outcome, Done):
            raise MachineError(
                stage="rewrite",
                where=f"peer {self._kind}",
                reason=f"it does not time a model: {outcome}",
                remedy="pip install 'tensorwright[bench]'",
            )
        taken: float = outcome.value
        return max(0.0, taken - self._call_s)


def _smallest() -> Graph:
    b = GraphBuilder("smallest")
    return b.finish((b.add("relu", b.input("x", (1,))),))
