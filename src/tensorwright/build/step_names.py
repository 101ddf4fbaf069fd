"""The names that the steps of an executable have in its network; the executable keeps them as text.

A plan says where tensors lie, but not what they are called, and it has no steps for views.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from tensorwright.graph import (
    AliasCall,
    BranchCall,
    CollectCall,
    ConcatInPlace,
    CopyCall,
    KernelCall,
    LoopCall,
    OpaqueCall,
    Partition,
)

NAMES_SOURCE = "steps"
"""The name of the text among the sources of an executable."""


@dataclass(frozen=True, slots=True)
class StepName:
    """A step that runs: the tensors that it writes, and its workload's key, if it has one."""

    outputs: tuple[str, ...]
    workload: str


@dataclass(frozen=True, slots=True)
class View:
    """A tensor that needs no work: a part of another tensor, or several tensors side by side.

    before   the number of the first step that runs after it
    """

    operator: str
    inputs: tuple[str, ...]
    output: str
    before: int


@dataclass(frozen=True, slots=True)
class StepNames:
    """The steps of a network, in the plan's order; the plan's last copies have no names."""

    steps: tuple[StepName, ...] = ()
    views: tuple[View, ...] = ()


def step_names(partition: Partition) -> StepNames:
    """The names of a partitioned network."""
    steps: list[StepName] = []
    views: list[View] = []
    for step in partition.steps:
        match step:
            case KernelCall(workload, _, outputs):
                steps.append(StepName(outputs, workload.key))
            case OpaqueCall(node):
                steps.append(StepName(node.outputs, ""))
            case CopyCall(output) | CollectCall(output):
                steps.append(StepName((output,), ""))
            case BranchCall(node=node) | LoopCall(node=node):
                steps.append(StepName(node.outputs, ""))
            case AliasCall(output, source, _, node):
                views.append(View(node.operator, (source,), output, len(steps)))
            case ConcatInPlace(output, parts, node):
                names = tuple(name for name, _ in parts)
                views.append(View(node.operator, names, output, len(steps)))
    return StepNames(tuple(steps), tuple(views))


def format_step_names(names: StepNames) -> str:
    """Step names as JSON."""
    return json.dumps(asdict(names))


def read_step_names(sources: Mapping[str, str]) -> StepNames:
    """The names that an executable keeps; empty if it keeps none."""
    text = sources.get(NAMES_SOURCE)
    if text is None:
        return StepNames()
    data = json.loads(text)
    steps = (StepName(tuple(each["outputs"]), each["workload"]) for each in data["steps"])
    views = (
        View(each["operator"], tuple(each["inputs"]), each["output"], each["before"])
        for each in data["views"]
    )
    return StepNames(tuple(steps), tuple(views))
