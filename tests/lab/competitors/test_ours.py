"""Our own executable as a competitor, with a stand-in for the executable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorwright
from tensorwright_lab.competitors import ours

X = {"x": np.ones(2, np.float32)}


class Plain:
    """An executable that can only run."""

    def __init__(self, path: str, threads: int) -> None:
        self.loaded = (path, threads)
        self.calls = 0

    def run(self, inputs: dict[str, Any]) -> dict[str, Any]:
        self.calls += 1
        return {"y": inputs["x"] * 2}


class Binding(Plain):
    """An executable that can bind its inputs."""

    def bind(self, inputs: dict[str, Any]) -> Callable[[], object]:
        return lambda: "called bound"


@pytest.mark.parametrize("kind", [Plain, Binding])
def test_it_loads_binds_runs_and_calls(kind: type[Plain], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(vars(tensorwright), "load", kind)
    peer = ours.OursPeer()
    info = peer.load("model.tw", 2, {})
    assert (info.version, info.detail) == (tensorwright.__version__, "2 threads")
    with pytest.raises(ValueError, match="no inputs are bound"):
        peer.call()
    peer.bind(X)
    np.testing.assert_array_equal(peer.run()["y"], [2, 2])
    called = peer.call()
    assert called == "called bound" if kind is Binding else isinstance(called, dict)
    peer.park()
