"""The commands of the command line. A new one is a file with a `command`, and a line here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """A command: its name, its line of help, and the module whose `command` it is.

    goes_on   whether the same command goes on where an interrupt has stopped it
    """

    name: str
    summary: str
    goes_on: bool = False

    @property
    def module(self) -> str:
        """Imported by name, when the command is called."""
        return f"tensorwright.cli.{self.name}"


COMMANDS = (
    Entry("optimize", "Tune on this machine, compile with the best found, save it.", goes_on=True),
    Entry(
        "tune",
        "Tune models and tensor expressions; what was measured is kept, nothing else.",
        goes_on=True,
    ),
    Entry("compile", "Compile with what is on record, else by prediction; save it."),
    Entry("run", "Run an executable, a model or a tensor expression."),
    Entry("profile", "Say where the time goes, kernel by kernel, and what limits it."),
    Entry("bench", "Compare with other runtimes: same answers? how fast?"),
    Entry("inspect", "Show what becomes of a program: graph, layouts, workloads, code."),
    Entry("rewrite", "Write a better ONNX model: proved substitutions of its operators."),
    Entry("records", "List, export, import, prune and delete what has been measured."),
    Entry("pretrain", "Train the model that chooses schedules where nothing was measured."),
    Entry("rules", "Prove, refute and explain substitutions of operator graphs."),
    Entry("operators", "List the operators of graphs, with their inputs and attributes."),
    Entry("doctor", "Say what this machine offers, and what is missing."),
    Entry("knobs", "List the settings."),
    Entry("demo", "Tune a small network and compare it with ONNX Runtime."),
)
