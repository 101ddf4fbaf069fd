"""The list of commands. A new command needs a module with an object `command`, and a line here.

The package tensorwright-lab has further commands, which are listed if it is installed.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.base import LABORATORY, has_laboratory


@dataclass(frozen=True, slots=True)
class Entry:
    """A command: its name, and its line in the list of commands.

    goes_on   whether the same command continues after an interrupt
    package   the package that has the command's module
    """

    name: str
    summary: str
    goes_on: bool = False
    package: str = "tensorwright.cli"

    @property
    def module(self) -> str:
        """The name of the command's module, which is imported when the command is called."""
        return f"{self.package}.{self.name}"


COMMANDS = (
    Entry("optimize", "Tune on this machine, compile with the best schedules, save.", goes_on=True),
    Entry(
        "tune",
        "Tune models and tensor expressions; keep the measurements only.",
        goes_on=True,
    ),
    Entry("compile", "Compile with schedules on record, or by prediction; save."),
    Entry("run", "Run an executable, a model or a tensor expression."),
    Entry("profile", "Say where the time goes, kernel by kernel, and what limits it."),
    Entry("report", "Write one HTML file: what was found, where the time goes, and why."),
    Entry("inspect", "Show what becomes of a program: graph, layouts, workloads, code."),
    Entry("rewrite", "Write a better ONNX model: proved substitutions of its operators."),
    Entry("records", "List, export, import, prune and delete measurements."),
    Entry("cache", "Show what is kept on the disk, and clear it."),
    Entry("rules", "Prove, refute and explain substitutions of operator graphs."),
    Entry("farm", "Use many machines: start a scheduler, make keys, see what the workers do."),
    Entry("worker", "Build and measure for others: a worker of a farm."),
    Entry("operators", "List the operators of graphs, with their inputs and attributes."),
    Entry("doctor", "Say what this machine offers, and what is missing."),
    Entry("knobs", "List the settings."),
    Entry("explain", "Say what a kind of error means, and what to do."),
)
OF_LABORATORY = (
    Entry("bench", "Compare with other runtimes: same answers? how fast?", package=LABORATORY),
    Entry(
        "pretrain",
        "Train the model that chooses schedules without measurements.",
        package=LABORATORY,
    ),
    Entry("demo", "Tune a small network and compare it with ONNX Runtime.", package=LABORATORY),
)


def commands() -> tuple[Entry, ...]:
    """All commands, with those of the laboratory if it is installed."""
    return (*COMMANDS, *OF_LABORATORY) if has_laboratory() else COMMANDS
