"""Find wrong answers of runtimes, and choose the reference for the others.

Networks that end in a softmax are compared by what it reads, too: a further output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onnx import ModelProto, ValueInfoProto

from tensorwright.cli.arguments.models import moved_from
from tensorwright.peers.process import (
    NO_STEPS,
    Arrays,
    Steps,
    describe_error,
    max_rel_error,
    max_steps,
)

WRONG = 1e-3
WRONG_STEPS = 2.0
"""An answer further from the reference is wrong, by so much of the largest number, or by so many
steps of a quantised output: its runtime is in no race and no figure."""
UNHELD = "*"
"""Behind what belongs to a competitor that does not keep to the target's vectors."""


@dataclass(frozen=True, slots=True)
class Apart:
    """How far an answer is from another one; `str` of it is as tables have it.

    relative   as of `max_rel_error`; None where there is no answer      steps   as of `max_steps`
    """

    relative: float | None
    steps: float | None = None

    @property
    def is_wrong(self) -> bool:
        """Whether that is too far; without an answer nothing is."""
        is_far = self.relative is not None and not self.relative <= WRONG
        return is_far or not (self.steps or 0.0) <= WRONG_STEPS

    def __str__(self) -> str:
        return describe_error(self.relative, self.steps)


def apart(ours: Arrays, theirs: Arrays, steps: Steps = NO_STEPS) -> Apart:
    """How far one answer is from another."""
    return Apart(max_rel_error(ours, theirs, steps), max_steps(ours, theirs, steps))


def worst_of(errors: Sequence[Apart]) -> Apart:
    """The largest of each sort of error."""
    relative = [each.relative for each in errors if each.relative is not None]
    steps = [each.steps for each in errors if each.steps is not None]
    return Apart(max(relative, default=None), max(steps, default=None))


def choose_reference(answers: Mapping[str, Arrays], steps: Steps = NO_STEPS) -> str:
    """Which peer's answer all are compared with: the first that another peer agrees with.

    So one of three alone never decides that the others are wrong; where no two agree, the first
    does.  Ours has no voice: it is what is judged.  `answers` is in the order of trust, not empty.
    """
    for name, answer in answers.items():
        others = (each for other, each in answers.items() if other != name)
        if any(not apart(each, answer, steps).is_wrong for each in others):
            return name
    return next(iter(answers))


def wrong_text(name: str, error: Apart, errors: Mapping[str, Apart]) -> str:
    """The message about a wrong answer.

    errors   those of all runtimes, the reference's among them
    """
    right = [other for other, each in errors.items() if not each.is_wrong]
    who = f"{', '.join(right)} agree" if len(right) > 1 else f"that of {right[0]} counts"
    return f"{name} answers wrongly: off by {error}; {who}"


_SOFTMAX = ("Softmax", "LogSoftmax")


@dataclass(frozen=True, slots=True)
class Shown:
    """A model with a further output: `name` is the tensor before the last softmax."""

    model: ModelProto
    name: str


def show_logits(model: ModelProto) -> Shown | None:
    """A copy whose further output is what the softmax that makes an output reads; None without one.

    Behind a softmax, errors are hidden: it maps large differences of small scores to nothing.
    """
    makers = {name: node for node in model.graph.node for name in node.output}
    outputs = {output.name for output in model.graph.output}
    for output in model.graph.output:
        node = moved_from(output.name, makers)
        if node is None or node.op_type not in _SOFTMAX or node.input[0] in outputs:
            continue
        if node.input[0] not in makers:
            continue
        shown = ModelProto()
        shown.CopyFrom(model)
        del shown.metadata_props[:]  # it is no longer what they say it was made from
        shown.graph.output.append(ValueInfoProto(name=node.input[0], type=output.type))
        shown.graph.output[-1].type.tensor_type.ClearField("shape")
        return Shown(shown, node.input[0])
    return None
