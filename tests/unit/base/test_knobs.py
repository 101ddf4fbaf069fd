from __future__ import annotations

import contextvars
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tensorwright.base import KNOBS, Knob, UsageError, available_cores, find_knob, knobs, override

BAD = {
    "threads": ["0", "-1", "two", "1.5"],
    "dump": ["graph,lop", "everything"],
    "verify": ["maybe"],
    "log": ["loud"],
    "seed": ["-1", "x"],
    "kernel_cache": ["2"],
    "cost_model": ["2"],
}


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: knob.name)
def test_every_knob_is_declared_well(knob: Knob[object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(knob.variable, raising=False)
    assert knob.doc
    assert knob.variable == "TENSORWRIGHT_" + knob.name.upper()
    assert getattr(knobs, knob.name.upper()) is knob
    default = knob.get()
    with override(**{knob.name: default}):
        assert knob.get() == default


@pytest.mark.parametrize(("name", "text"), [(name, text) for name in BAD for text in BAD[name]])
def test_bad_values_are_refused(name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    knob = find_knob(name)
    monkeypatch.setenv(knob.variable, text)
    with pytest.raises(UsageError, match=f"environment variable {knob.variable}"):
        knob.get()
    with pytest.raises(UsageError, match=f"knob {name}"), override(**{name: text}):
        pytest.fail("the block must not run")


def test_the_message_says_what_is_allowed() -> None:
    with pytest.raises(UsageError) as caught, override(threads="two"):
        pass
    assert caught.value == UsageError(
        stage="knobs",
        where="knob threads",
        reason="'two' is not a number of threads",
        remedy="give a whole number, at least 1",
    )


def test_unknown_knobs_are_refused() -> None:
    with pytest.raises(UsageError, match="did you mean threads"), override(thread=1):
        pass
    with pytest.raises(UsageError, match="one of threads, cores, home"):
        find_knob("zzz")


def test_scope_before_environment_before_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TENSORWRIGHT_SEED", raising=False)
    assert knobs.SEED.get() == 0
    monkeypatch.setenv("TENSORWRIGHT_SEED", "5")
    assert knobs.SEED.get() == 5
    with override(seed=6, verify=True):
        with override(seed="7"):
            assert knobs.SEED.get() == 7
            assert knobs.VERIFY.get() is True
        assert knobs.SEED.get() == 6
    assert knobs.SEED.get() == 5


def test_scope_ends_with_an_exception() -> None:
    with pytest.raises(RuntimeError), override(seed=9):
        raise RuntimeError
    assert knobs.SEED.get() != 9


def test_a_bad_value_changes_nothing() -> None:
    with pytest.raises(UsageError), override(seed=9, threads=0):
        pass
    assert knobs.SEED.get() != 9


def test_threads_take_a_scope_only_when_handed_one() -> None:
    seen: list[int] = []

    def look() -> None:
        seen.append(knobs.SEED.get())

    with override(seed=11):
        context = contextvars.copy_context()
        workers = [
            threading.Thread(target=look),
            threading.Thread(target=context.run, args=(look,)),
        ]
        for worker in workers:
            worker.start()
            worker.join()
    assert seen[0] != 11
    assert seen[1] == 11


@pytest.mark.usefixtures("unassumed")
@pytest.mark.parametrize(("text", "expected"), [("3", 3), ("3,2", 3), ("", None), ("x", None)])
def test_omp_num_threads_counts(
    text: str, expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TENSORWRIGHT_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert knobs.THREADS.get() == (expected or available_cores())
    monkeypatch.setenv("TENSORWRIGHT_THREADS", "9")
    assert knobs.THREADS.get() == 9


@pytest.mark.parametrize(
    ("value", "expected"),
    [("loop", {"loop"}), ("loop, asm", {"loop", "asm"}), (("graph",), {"graph"}), ("", set())],
)
def test_dump_is_a_set(value: object, expected: set[str]) -> None:
    with override(dump=value):
        assert knobs.DUMP.get() == expected
    with override(dump="all"):
        assert knobs.DUMP.get() == set(knobs.DUMP_STAGES)


def test_home_follows_the_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TENSORWRIGHT_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert knobs.HOME.get() == tmp_path / "tensorwright"
    monkeypatch.setenv("TENSORWRIGHT_HOME", str(tmp_path / "here"))
    assert knobs.HOME.get() == tmp_path / "here"


@dataclass(frozen=True, kw_only=True)
class Turning:
    """How a thing is turned."""

    angle: int = knobs.option(0, "By how much.")


@knobs.takes_options(Turning)
def turn(thing: str, how: Turning) -> str:
    """Turn a thing."""
    return f"{thing} by {how.angle}"


def test_options_and_their_subject_may_be_keywords() -> None:
    assert turn("a", Turning(angle=2)) == turn("a", angle=2) == "a by 2"
    by_name: Any = turn
    assert by_name(thing="a", angle=2) == "a by 2"
    for wrong, said in (((), "'thing'"), (("a", 2), "too many positional")):
        with pytest.raises(TypeError, match=said):
            by_name(*wrong)
    with pytest.raises(UsageError, match="did you mean angle"):
        by_name("a", angel=2)
