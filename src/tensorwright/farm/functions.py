"""The functions that a worker does: those of this list, and nothing else.

Each takes a `Payload` and returns one.  A new function is a line here.  Modules of other folders
are imported when a unit names their function, so that this folder imports none of them.
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

    name         what units call it
    module       that has it                   attribute   its name there
    is_isolated  whether it is done in a child of the worker, which is killed when the time is over;
                 others are done in the worker itself and have children of their own: they get a
                 second argument, whether nobody wants the result any more
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
    """Return the payload after {"seconds"}: what takes time on a device, and nothing here."""
    deadline = time.monotonic() + payload.data["seconds"]
    while (left_s := deadline - time.monotonic()) > 0:
        if should_stop():
            return None
        time.sleep(min(left_s, _TICK_S))
    return payload


def function_named(name: str) -> NamedFunction:
    """The function of this name.

    Raises:  UsageError if the list has none: nothing else is ever called.
    """
    for function in FUNCTIONS:
        if function.name == name:
            return function
    raise UsageError(
        stage="farm",
        where=f"function {name}",
        reason="it is not a function that workers do",
        remedy="one of " + ", ".join(each.name for each in FUNCTIONS),
    )


def call_named(name: str, payload: Payload) -> Payload:
    """Call a function by its name: the job of a worker's child."""
    result: Payload = function_named(name).load()(payload)
    return result
