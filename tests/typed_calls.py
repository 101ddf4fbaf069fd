"""Calls as users write them, which mypy reads with the package; nothing runs them.

An ignored error that mypy does not find is an error, too: so it must refuse the last calls.
"""

from __future__ import annotations

import tensorwright


def calls(model: str) -> tuple[tensorwright.Executable, ...]:
    """Options are keywords, with their types."""
    best = tensorwright.rewrite(model, search="saturate", seconds=3, rules=["own.rules"])
    tensorwright.profile(model, repeats=3, at={"batch": 1})
    tensorwright.quantize(model, weights="int4", block=32)
    return (
        tensorwright.compile(model, target="native", threads=2, sizes={"batch": "1..4"}),
        tensorwright.compile(best.graph, sizes="fixed"),
        tensorwright.tune(model, minutes=3, space="templates", strategy="random", callbacks=()),
        tensorwright.optimize(model, trials=3, rewrite=False, records="records.sqlite"),
    )


def mistakes(model: str) -> None:
    """A name that is no option, and a value of another type."""
    tensorwright.compile(model, threds=2)  # type: ignore[call-overload]
    tensorwright.tune(model, minutes="3")  # type: ignore[call-overload]
