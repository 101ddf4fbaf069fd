"""Which output of a call is an input of the next one: by their names, or as the caller says."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tensorwright import base
from tensorwright.runtime.plan.plan import TensorSpec

_STATE_WORDS = {"past", "present", "cache", "state", "states", "hidden", "cell", "memory", "kv"}
_WORDS_OF_TIME = {"past", "present", "new", "next", "out", "in", "prev", "previous", "last", "n"}
_NEXT = ("n", "N")  # hn is what h becomes
_NUMBER = "%d"  # in the name of a layer's state


def state_pairs(inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> dict[str, str]:
    """The outputs that become inputs in the next call, as names and types say, by those inputs.

    Names agree without their words of time: present.0.key and past_key_values.0.key, state and
    stateN, cache_in and new_cache.
    """
    stems: dict[tuple[str, ...], list[TensorSpec]] = {}
    for spec in inputs:
        stems.setdefault(_stem(spec.name), []).append(spec)
    pairs = {}
    for made in outputs:
        names = [made.name, *(made.name.removesuffix(end) for end in _NEXT)]
        ends = [spec for spec in inputs if spec.name in names[1:]]
        alike = ends or stems.get(_stem(made.name), [])
        fitting = [spec for spec in alike if _are_alike(spec, made)]
        words = {word for spec in (made, *fitting) for word in _split(spec.name)}
        is_state = ends or words & _STATE_WORDS
        if len(fitting) == 1 and is_state and fitting[0].name not in pairs:
            pairs[fitting[0].name] = made.name
    return pairs


def _split(name: str) -> list[str]:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower().replace("key_values", "")
    return re.findall(r"[a-z]+|\d+", spaced)


def _stem(name: str) -> tuple[str, ...]:
    """The words of a name that do not say which of two calls it is of."""
    return tuple(word for word in _split(name) if word not in _WORDS_OF_TIME)


def _are_alike(taken: TensorSpec, made: TensorSpec) -> bool:
    """Whether an output may be the next value of an input, as far as numbers say."""
    is_typed = taken.dtype is made.dtype and len(taken.shape) == len(made.shape)
    return is_typed and all(
        a == b or not (isinstance(a, int) and isinstance(b, int))
        for a, b in zip(taken.shape, made.shape, strict=True)
    )


def growing_axes(taken: TensorSpec, made: TensorSpec) -> tuple[int, ...]:
    """The axes along which a call makes a state longer: the last one is its length."""
    pairs = enumerate(zip(taken.shape, made.shape, strict=True))
    return tuple(at for at, (extent, longer) in pairs if extent != longer)


def _numbered(pairs: Any, inputs: Mapping[str, TensorSpec]) -> Any:
    """Pairs of which past.%d stands for all inputs past.0, past.1 and so on."""
    if not isinstance(pairs, Mapping):
        return pairs
    result = {}
    for name, made in pairs.items():
        is_pattern = _NUMBER in str(name)
        for number in itertools.count():
            own, its = (str(each).replace(_NUMBER, str(number)) for each in (name, made))
            if not is_pattern or own not in inputs:
                break
            result[own] = its
        if not is_pattern or number == 0:
            result[name] = made
    return result


def checked_pairs(
    inputs: Mapping[str, TensorSpec], outputs: Mapping[str, TensorSpec], pairs: Any
) -> dict[str, str]:
    """The pairs, if they are of the executable; %d stands for 0, 1 and so on.

    Raises:  UsageError.
    """
    pairs = _numbered(pairs, inputs)
    listed = f"its inputs are {', '.join(inputs)}, its outputs {', '.join(outputs)}"
    if not pairs:
        reason = f"no output is the state of the next call by its name; {listed}"
        raise wrong_argument("state", reason, 'name the pairs: state={"an input": "an output"}')
    if not isinstance(pairs, Mapping):
        reason = f"it must be a mapping, not {type(pairs).__name__}; {listed}"
        raise wrong_argument("state", reason, 'name the pairs: state={"an input": "an output"}')
    for name, made in pairs.items():
        for what, each, specs in (("input", name, inputs), ("output", made, outputs)):
            if each not in specs:
                raise wrong_argument(
                    "state", f"it has no {what} {each}", base.did_you_mean(each, [*specs], listed)
                )
        if not _are_alike(inputs[name], outputs[made]):
            reason = f"{outputs[made]} cannot become {inputs[name]}"
            raise wrong_argument(
                "state", reason, "give an output of the same element type and shape"
            )
    return dict(pairs)


def wrong_argument(argument: str, reason: str, remedy: str) -> base.UsageError:
    """The error for an argument of a session."""
    where = f"argument {argument}"
    return base.UsageError(stage="run", where=where, reason=reason, remedy=remedy)
