"""What the cost model learned goes from one session to the next."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from tests.targets import native_target
from tests.unit.tuning.helpers import FakeBuilder, FakeRunner, doubled, numbered_space
from tests.unit.tuning.models.model_samples import made_up

from tensorwright.base import override
from tensorwright.records import MemoryStore, RecordStore, Setting
from tensorwright.tuning.learning import USUAL, ModelFile, model_file_of, open_learning
from tensorwright.tuning.models import BoostedSettings, LearnedModel
from tensorwright.tuning.session import (
    Interrupt,
    Options,
    Progress,
    SessionParts,
    tune,
)
from tensorwright.tuning.task import Task
from tensorwright_lab.cost_models import scores_of

TARGET = native_target()
TESTED = made_up("a", 20, 3, 9)


def trained(count: int) -> LearnedModel:
    model = LearnedModel(BoostedSettings(rounds=10))
    model.observe(made_up("a", count, 3, 0))
    assert model.refit()
    return model


@pytest.fixture
def file(tmp_path: Path) -> ModelFile:
    return ModelFile(tmp_path / "model.npz", "here")


def test_the_next_session_starts_from_what_was_kept(file: ModelFile) -> None:
    cold = open_learning(USUAL, Setting(TARGET, 2), 0, file)
    assert cold.before is None
    assert file.keep(trained(100), None)
    warm, again = (open_learning(USUAL, Setting(TARGET, 2), 0, file) for _ in range(2))
    assert warm.before is not None
    assert warm.before.samples == 100
    found = [scores_of(each.shared, TESTED).tolist() for each in (cold, warm, again)]
    assert found[0] != found[1]
    assert found[1] == found[2]


def test_few_samples_do_not_replace_many(file: ModelFile) -> None:
    assert not file.keep(trained(40), None)
    assert not file.path.exists()
    assert file.keep(trained(200), None)
    before = file.load()
    assert not file.keep(trained(80), before)
    assert file.keep(trained(120), before)
    after = file.load()
    assert after is not None
    assert after.samples == 120


def test_an_untrained_model_is_not_kept(file: ModelFile) -> None:
    model = LearnedModel(BoostedSettings())
    model.observe(made_up("a", 100, 3, 0))
    assert not file.keep(model, None)


@pytest.mark.parametrize("text", ["", "{", '{"kind": "something else"}'])
def test_a_damaged_file_is_one_warning_and_is_replaced(file: ModelFile, text: str) -> None:
    file.path.write_text(text)
    with pytest.warns(RuntimeWarning, match=r"cost model .*model\.npz: .*starts without it") as one:
        found = open_learning(USUAL, Setting(TARGET, 2), 0, file)
    assert len(one) == 1
    assert found.before is None
    assert file.keep(trained(80), found.before)
    assert file.load() is not None


def test_the_file_of_another_machine_is_not_used(file: ModelFile) -> None:
    file.keep(trained(80), None)
    with pytest.warns(RuntimeWarning, match="it is of the machine here"):
        assert replace(file, hardware="elsewhere").load() is None


def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    file = ModelFile(tmp_path / "missing" / "model.npz", "here")
    with pytest.warns(RuntimeWarning, match="it is not written"):
        assert not file.keep(trained(80), None)


def test_the_file_lies_beside_the_store(tmp_path: Path) -> None:
    with RecordStore(tmp_path / "records.sqlite") as store:
        one = model_file_of(store, Setting(TARGET, 2, "here"))
        other = model_file_of(store, Setting(TARGET, 1, "here"))
        with override(cost_model="0"):
            assert model_file_of(store, Setting(TARGET, 2, "here")) is None
    with RecordStore(tmp_path / "mine.sqlite") as store:
        third = model_file_of(store, Setting(TARGET, 2, "here"))
    assert model_file_of(MemoryStore(), Setting(TARGET, 2, "here")) is None
    assert one is not None
    assert other is not None
    assert third is not None
    assert len({one.path, other.path, third.path}) == 3
    assert {each.path.parent for each in (one, other, third)} == {tmp_path}
    assert one.path.name.startswith("records.model-here-")


def session(folder: Path, trials: int = 80, **changes: object) -> list[tuple[str, str]]:
    """What a session of learned search measured, in order."""
    runner = FakeRunner()
    options = Options(should_rank=False, recheck_rounds=0)
    with RecordStore(folder / "records.sqlite") as store:
        tune(
            [Task(doubled("one"))],
            Setting(TARGET, 2, "here"),
            store,
            replace(options, trials=trials, seed=0, **changes),  # type: ignore[arg-type]
            parts=SessionParts(
                FakeBuilder(),
                runner,
                make_space=lambda task, target: numbered_space(task, target, 2000),
            ),
        )
    return runner.measured


def test_sessions_keep_a_model_only_where_asked(tmp_path: Path) -> None:
    session(tmp_path)
    assert not list(tmp_path.glob("*.model-*"))


class StopsAfter:
    """Interrupts the session once so much was tried."""

    def __init__(self, trials: int) -> None:
        self.trials = trials
        self.interrupt = Interrupt()

    def on_progress(self, progress: Progress) -> None:
        if progress.trials >= self.trials:
            self.interrupt.set()

    def close(self) -> None:
        """Nothing is open."""


def test_an_interrupted_session_keeps_what_it_learned(tmp_path: Path) -> None:
    stop = StopsAfter(70)
    changes = {"callbacks": [stop], "interrupt": stop.interrupt, "keeps_model": True}
    assert len(session(tmp_path, trials=800, **changes)) < 100
    assert len(list(tmp_path.glob("records.model-*.npz"))) == 1


def test_equal_files_give_equal_decisions(tmp_path: Path) -> None:
    file = None
    measured = []
    for name in ("first", "second", "third"):
        folder = tmp_path / name
        folder.mkdir()
        if file is not None:
            (folder / file.name).write_bytes(file.read_bytes())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            measured.append(session(folder, keeps_model=True))
        if file is None:
            (file,) = folder.glob("records.model-here-*-2t.npz")
    assert len(measured[0]) == 80
    assert measured[1] == measured[2]
