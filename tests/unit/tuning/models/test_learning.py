"""What a session learns with is chosen by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.targets import native_target
from tests.unit.tuning.helpers import FakeBuilder, FakeRunner, doubled, numbered_space

from tensorwright.base import RecordError, UsageError
from tensorwright.records import RecordStore, Setting
from tensorwright.tuning.learning import Learning, open_learning
from tensorwright.tuning.models import Fading
from tensorwright.tuning.session import Options, SessionParts, tune
from tensorwright.tuning.task import Task

TARGET = native_target()


def session(
    folder: Path, learning: Learning, names: tuple[str, ...] = ("one",), trials: int = 64
) -> list[str]:
    """What a session measured, in order."""
    runner = FakeRunner()
    options = Options(should_rank=False, recheck_rounds=0)
    with RecordStore(folder / "records.sqlite") as store:
        tune(
            [Task(doubled(name)) for name in names],
            Setting(TARGET, 2, "here"),
            store,
            replace(options, trials=trials, seed=0, keeps_model=True, learning=learning),
            parts=SessionParts(
                FakeBuilder(),
                runner,
                make_space=lambda task, target: numbered_space(task, target, 2000),
            ),
        )
    return [trace for _, trace in runner.measured]


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What a session measures that learns as usual."""
    return session(tmp_path_factory.mktemp("usual"), Learning(), trials=32)


@pytest.mark.parametrize(
    ("features", "model"),
    [
        ("knob", "trees-pairs"),
        ("knob", "trees-lambdarank"),
        ("itervar", "trees-squares"),
        ("curve-paired@8", "trees-pairs"),
        ("loop-tree", "embedding-pairs"),
    ],
)
def test_a_session_searches_by_any_features_and_model(
    tmp_path: Path, usual: list[str], features: str, model: str
) -> None:
    if model.startswith("embedding"):
        pytest.importorskip("torch")
    found = session(tmp_path, Learning(features, model), trials=32)
    assert len(set(found)) == 32
    assert found != usual


def test_features_of_one_space_have_a_model_for_each_task(tmp_path: Path) -> None:
    assert len(session(tmp_path, Learning("knob"), ("one", "two"))) == 64
    assert not list(tmp_path.glob("*.model-*"))
    learned = open_learning(Learning("knob"), Setting(TARGET, 2), 0)
    assert learned.shared is None
    assert not learned.keep()


def test_what_was_learned_is_kept_for_each_way_to_learn(tmp_path: Path) -> None:
    for learning in (Learning(), Learning("context", "trees-lambdarank")):
        session(tmp_path, learning)
    names = sorted(path.name for path in tmp_path.glob("*.model-*"))
    assert [name.split("2t")[1] for name in names] == [
        "-context-trees-lambdarank.npz",
        ".npz",
    ]
    again = tmp_path / "again"
    again.mkdir()
    start = tmp_path / names[0]
    found = session(again, Learning("context", fading=Fading.HELD_OUT, start=start), trials=32)
    assert len(found) == 32
    with pytest.raises(RecordError, match="it judges the features 'context'"):
        open_learning(Learning(start=start), Setting(TARGET, 2), 0)


def test_an_embedding_reads_trees_of_loops_only() -> None:
    with pytest.raises(UsageError, match="choose the features 'loop-tree'"):
        Learning("itervar", "embedding-pairs")


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UsageError, match="did you mean trees-pairs"):
        Learning(model="tree-pairs")
    with pytest.raises(UsageError, match="features 'none'"):
        Learning("none")


def test_a_model_to_start_from_must_be_readable(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    path.write_text("{")
    with pytest.raises(RecordError, match="as an earlier version wrote it"):
        open_learning(Learning(start=path), Setting(TARGET, 2), 0)
