"""What torch.compile is told as `mode` and `options`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tensorwright
from tensorwright import compiling, pipeline
from tensorwright.base import UsageError, did_you_mean
from tensorwright.graph.aten_import import ExportedGraph, load_exported
from tensorwright.runtime import Executable

LOG = logging.getLogger("tensorwright.torch")
"""It names what PyTorch runs, and what has no effect."""
_TUNED_MINUTES = 5.0
_MODES = ("default", "max-autotune", "max-autotune-no-cudagraphs", "reduce-overhead")


@dataclass(frozen=True, slots=True)
class Options:
    """What `options` of torch.compile may hold.

    minutes    search so long for fast schedules, for each graph; 0 takes what is on record
    freeze     parameters never change, and no other module runs the same code: nothing is compared
    strict     refuse what PyTorch would have to run, as fullgraph=True does
    target, threads, records   as of `tensorwright.compile`
    """

    minutes: float = 0.0
    freeze: bool = False
    strict: bool = False
    target: str | None = None
    threads: int | None = None
    records: Any = None

    @classmethod
    def read(cls, mode: str | None, options: Mapping[str, Any] | None) -> Options:
        """The options of a call of torch.compile.

        Raises:  UsageError for another mode or name, and for a value of another kind.
        """
        if mode is not None and mode not in _MODES:
            remedy = did_you_mean(mode, _MODES, "one of " + ", ".join(_MODES))
            raise usage(f"mode {mode!r}", "there is no such mode", remedy)
        if mode == "reduce-overhead":
            LOG.warning("mode %r changes nothing: it is about graphs of CUDA", mode)
        given = dict(options or {})
        for name, value in given.items():
            if name not in cls.__dataclass_fields__:
                fields = cls.__dataclass_fields__
                remedy = did_you_mean(name, fields, "one of " + ", ".join(fields))
                raise usage(f"option {name!r}", "there is no such option", remedy)
            _check_value(name, value)
        if mode is not None and mode.startswith("max-autotune"):
            given.setdefault("minutes", _TUNED_MINUTES)
        return cls(**given)

    def compile(self, record: ExportedGraph, *, is_first: bool) -> Executable:
        """The executable of a record.

        The first one of a graph is kept for later processes; those for parameters that changed
        since are of this process alone.
        """
        more = {"target": self.target, "threads": self.threads, "records": self.records}
        graph = load_exported(record)
        if self.minutes:
            tuned: Executable = tensorwright.optimize(graph, minutes=self.minutes, **more)
            return tuned
        compile_graph = compiling.compile if is_first else pipeline.compile
        return compile_graph(graph, **more)


def usage(where: str, reason: str, remedy: str) -> UsageError:
    """The error of a wrong use of torch.compile."""
    return UsageError(stage="torch.compile", where=where, reason=reason, remedy=remedy)


def _check_value(name: str, value: object) -> None:
    """Refuse a value of an option that is of another kind.

    Raises:  UsageError.
    """
    match name, value:
        case "minutes", bool():
            wanted = "a number of minutes"
        case "minutes", int() | float() if 0 <= value < float("inf"):
            return
        case "minutes", _:
            wanted = "a number of minutes"
        case "freeze" | "strict", bool():
            return
        case "freeze" | "strict", _:
            wanted = "True or False"
        case _:
            return  # `tensorwright.compile` checks the others
    raise usage(f"option {name!r}", f"{value!r} is not {wanted}", f"give {wanted}")
