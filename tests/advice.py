"""Advice is tried: what a refusal says is followed, and must not meet the same refusal.

Importing this module lets every import of a model with open sizes follow the sizes that its refusal
advises, in all tests.  `corrected` follows what a refusal of the command line says.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Sequence
from typing import Any

from tensorwright.base import TensorwrightError
from tensorwright.graph.imports import importer as onnx
from tensorwright.graph.imports.aten import importer as aten

_SIZES = re.compile(r"sizes=(\{[^}]*\})")
_TRIED = re.compile(r"\n  try: (?P<remedy>.*?)\n  read on: ", re.DOTALL)
_OPTION = re.compile(r'^(?:[^-]*: )?(?P<option>--[a-z-]+) (?P<value>"[^"]*"|[^\s;,]+)')
_NAMED = re.compile(r"did you mean (?P<name>[^\s?]+)(?: or [^?]*)?\?")


def _trying(imported: Callable[..., Any]) -> Callable[..., Any]:
    """`with_needed_bounds`, with whose refusals what they advise is tried."""

    def tried(run: Any, own: Any, given: dict[str, Any], open_sizes: Sequence[str]) -> Any:
        try:
            return imported(run, own, given, open_sizes)
        except TensorwrightError as error:
            advised = _SIZES.search(error.remedy)
            if advised is not None:
                sizes = ast.literal_eval(advised[1])
                try:
                    imported(run, own, {**given, **sizes}, open_sizes)
                except TensorwrightError as again:
                    same = (again.where, again.reason) == (error.where, error.reason)
                    if same:
                        raise AssertionError(f"{sizes} meets that again:\n{error}") from again
            raise

    return tried


onnx.with_needed_bounds = aten.with_needed_bounds = _trying(onnx.with_needed_bounds)


def corrected(words: Sequence[str], told: str) -> list[str] | None:
    """A refused command line, changed as the message says; None where nothing is said that a
    program can follow.
    """
    found = _TRIED.search(told)
    if found is None:
        return None
    remedy, where = " ".join(found["remedy"].split()), told.partition(": ")[2]
    option = _OPTION.search(remedy)
    if option is not None and not re.search(r"[A-Z]{3,}|\.\.\.", option["value"]):
        name, value = option["option"], shlex.split(option["value"])[0]
        if name in words:
            at = words.index(name) + 1
            return [*words[:at], value, *words[at + 1 :]]
        return [*words, name, value]
    named = _NAMED.search(remedy)
    if named is not None:
        for wrong in re.findall(r"\w[\w.-]*", where.partition(named[0])[0]):
            word = re.compile(rf"(?<![\w-]){re.escape(wrong)}(?![\w-])")
            changed = [word.sub(named["name"], each) for each in words]
            if changed != list(words):
                return changed
    if remedy == "leave it out":
        option_left = re.search(r"option (--[a-z-]+)", where)
        if option_left is not None:
            at = words.index(option_left[1])
            has_value = at + 1 < len(words) and not words[at + 1].startswith("-")
            return [*words[:at], *words[at + 1 + has_value :]]
    return None
