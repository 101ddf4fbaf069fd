"""The functions that a worker calls: those of this list, and no others.

Each takes a `Payload` and returns one.  A new function is a line here.  A worker imports the module
of a function when a unit names it, so this folder imports no other folder.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tensorwright.base import UsageError
from tensorwright.farm.unit import Payload


@dataclass(frozen=True, slots=True)
class NamedFunction:
    """A function of this package, or of the laboratory.

    name         its name in units
    module       where it is defined           attribute   its name there
    is_isolated  whether a child of the worker calls it, which is killed when the time is over.
                 The worker itself calls the others, which start children of their own; they get
                 a second argument, `should_stop`: whether the client has given the unit up
    """

    name: str
    module: str
    attribute: str
    is_isolated: bool = True

    def load(self) -> Callable[..., Any]:
        """Import it."""
        function: Callable[..., Any] = getattr(importlib.import_module(self.module), self.attribute)
        return function


_ENUMERATE = "tensorwright_lab.rule_generation.enumerate"
_GENERALIZE = "tensorwright_lab.rule_generation.generalize.steps"
_TICK_S = 0.2
_TUNING = "tensorwright.tuning.on_farm.worker_functions"
FUNCTIONS = (
    NamedFunction("farm.echo", "tensorwright.farm.functions", "echo"),
    NamedFunction("farm.wait", "tensorwright.farm.functions", "wait", is_isolated=False),
    NamedFunction("rules.prove", "tensorwright.rewriting.prove.prover", "decided"),
    NamedFunction("rules.keys", f"{_ENUMERATE}.shards", "shard_keys"),
    NamedFunction("rules.words", f"{_ENUMERATE}.shards", "shard_words"),
    NamedFunction("rules.values", f"{_ENUMERATE}.shards", "shard_values"),
    NamedFunction("rules.collisions", f"{_ENUMERATE}.owners", "collisions"),
    NamedFunction("rules.uses", "tensorwright_lab.rule_generation.candidates.uses", "listed_uses"),
    NamedFunction("rules.holding", _GENERALIZE, "holding"),
    NamedFunction("rules.widened", _GENERALIZE, "widened_rules"),
    NamedFunction("rules.general", _GENERALIZE, "general_rules"),
    NamedFunction(
        "rules.examine", "tensorwright_lab.rule_generation.selection.examine", "examined"
    ),
    NamedFunction(
        "farm.set_aside", "tensorwright.farm.device_state", "set_aside", is_isolated=False
    ),
    NamedFunction("tune.build", _TUNING, "build_candidate", is_isolated=False),
    NamedFunction("tune.measure", _TUNING, "measure_candidates", is_isolated=False),
)


def echo(payload: Payload) -> Payload:
    """Return the payload: for tests, and to time a farm."""
    return payload


def wait(payload: Payload, should_stop: Callable[[], bool]) -> Payload | None:
    """Return the payload after {"seconds"}: a simulated device, which uses no processor time."""
    deadline = time.monotonic() + payload.data["seconds"]
    while (left_s := deadline - time.monotonic()) > 0:
        if should_stop():
            return None
        time.sleep(min(left_s, _TICK_S))
    return payload


def function_named(name: str) -> NamedFunction:
    """The function of this name.

    Raises:  UsageError if the list does not have it.
    """
    for function in FUNCTIONS:
        if function.name == name:
            return function
    raise UsageError(
        stage="farm",
        where=f"function {name}",
        reason="workers have no such function",
        remedy="one of " + ", ".join(each.name for each in FUNCTIONS),
    )


def call_named(name: str, payload: Payload) -> Payload:
    """Call a function by its name: the job of a worker's child."""
    result: Payload = function_named(name).load()(payload)
    return result
