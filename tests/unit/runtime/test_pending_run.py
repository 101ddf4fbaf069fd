"""Calls in the background: results, errors, cancelling, coroutines."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError
from typing import Any

import numpy as np
import pytest
from tests.unit.runtime.networks import HOSTED, chain_inputs, executable

from tensorwright.base import InputError, knobs
from tensorwright.runtime import Executable


def flip(arrays: tuple[Any, ...], attributes: Any) -> tuple[Any, ...]:
    return (np.flip(arrays[0], attributes["axis"]),)


class Waiting:
    """A host function that says when it begins, and waits."""

    def __init__(self) -> None:
        self.begins, self.may_go = threading.Event(), threading.Event()

    def __call__(self, arrays: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
        self.begins.set()
        assert self.may_go.wait(20)
        return flip(arrays, attributes)


def hosted(function: Any = flip) -> Executable:
    return executable(HOSTED, hosts={"flip": function})


def test_many_runs_give_what_run_gives() -> None:
    program = hosted()
    given = [chain_inputs(seed) for seed in range(20)]
    runs = [program.run_async(inputs) for inputs in given]
    for inputs, run in zip(given, runs, strict=True):
        np.testing.assert_array_equal(run.result(20)["z"], program.run(inputs)["z"])
        assert run.done()
        assert not run.cancelled()
        assert not run.cancel()


def test_wrong_inputs_are_refused_at_once_and_errors_come_with_the_results() -> None:
    with pytest.raises(InputError):
        hosted().run_async({})

    def fail(*_: object) -> Any:
        raise MemoryError

    with pytest.raises(MemoryError):
        hosted(fail).run_async(chain_inputs()).result(20)


def test_a_run_is_cancelled_between_its_steps_and_before_it_begins() -> None:
    waiting = Waiting()
    program = hosted(waiting)
    first = program.run_async(chain_inputs())
    others = [program.run_async(chain_inputs()) for _ in range(knobs.CORES.get())]
    assert waiting.begins.wait(20)
    last = others[-1]
    assert last.cancel()
    assert last.cancelled()
    assert first.cancel()
    assert not first.cancelled()  # it has not stopped yet
    waiting.may_go.set()
    for run in (first, last):
        with pytest.raises(CancelledError):
            run.result(20)
        assert run.cancelled()
    expected = hosted().run(chain_inputs())["z"]
    for run in others[:-1]:
        np.testing.assert_array_equal(run.result(20)["z"], expected)
    np.testing.assert_array_equal(program.run(chain_inputs())["z"], expected)


def test_coroutines_await_runs_and_cancel_them() -> None:
    waiting = Waiting()
    slow, fast = hosted(waiting), hosted()

    async def main() -> None:
        results = await fast.run_async(chain_inputs())
        np.testing.assert_array_equal(results["z"], fast.run(chain_inputs())["z"])
        run = slow.run_async(chain_inputs())
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.wrap_future(run), 0.01)
        waiting.may_go.set()
        with pytest.raises(CancelledError):
            run.result(20)

    asyncio.run(main())
