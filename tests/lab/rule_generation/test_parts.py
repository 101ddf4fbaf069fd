"""The parts of the enumeration, each against the plainest way to do the same."""

from __future__ import annotations

from itertools import product as pairs_of

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lab.rule_generation.tiny import TINY, enumerated

from tensorwright.base import UsageError
from tensorwright.farm import Payload
from tensorwright_lab.rule_generation.answers import Meter
from tensorwright_lab.rule_generation.enumerate.blocks import Block, Order, keys, values
from tensorwright_lab.rule_generation.enumerate.checkpoint import WorkFolder, remove
from tensorwright_lab.rule_generation.enumerate.enumerate import enumerate_terms, run_of
from tensorwright_lab.rule_generation.enumerate.grouping import Equalities, sizes_of
from tensorwright_lab.rule_generation.enumerate.shards import collisions, in_order, owned, runs_of
from tensorwright_lab.rule_generation.enumerate.sharing import shared_pairs, union_size
from tensorwright_lab.rule_generation.enumerate.state import ValueStore, restore
from tensorwright_lab.rule_generation.fingerprint.field import P, centred, product, residues_of
from tensorwright_lab.rule_generation.fingerprint.fingerprints import keys_of

_SETTINGS = settings(max_examples=30)
_RESIDUES = st.one_of(st.integers(0, P - 1), st.sampled_from([0, 1, P // 2, P // 2 + 1, P - 1]))


@_SETTINGS
@given(st.data(), st.sampled_from([1, 3, 240, 241, 500]))
def test_products_are_exact(data, inner):
    fill = data.draw(st.lists(_RESIDUES, min_size=5, max_size=5))
    a = np.resize(np.array(fill, np.uint64), (2, inner))
    b = np.resize(np.array(fill[::-1], np.uint64), (inner, 3))
    found = product(centred(a), centred(b))
    wanted = (a.astype(object) @ b.astype(object)) % P
    assert (residues_of(found) == wanted.astype(np.uint64)).all()
    assert (found == centred(residues_of(found))).all()


@_SETTINGS
@given(rows=st.lists(st.integers(0, 8), min_size=1, max_size=6))
def test_the_store_gives_back_any_rows(tmp_path_factory, rows):
    store = ValueStore(tmp_path_factory.mktemp("store"), {})
    kept = np.arange(9 * 2 * 4, dtype=np.uint32).reshape(9, 2, 4)
    assert store.append((2, 2), kept[:5]) == 0
    assert store.append((2, 2), kept[5:]) == 5
    found = store.take((2, 2), np.array(rows), (0, 1))
    assert (found == kept[rows]).all()
    assert (store.take((2, 2), np.array(rows), (1,)) == kept[rows][:, 1:]).all()


_CASES = (
    ("ewadd", (), ((2, 2), (2, 2)), (2, 2)),
    ("matmul", (), ((2, 2), (2, 2)), (2, 2)),
    ("concat", (0,), ((2, 2), (2, 2)), (4, 2)),
    ("conv2d", (1, 1, "same", "none"), ((1, 2, 3, 3), (2, 2, 3, 3)), (1, 2, 3, 3)),
    ("conv2d", (1, 1, "same", "relu"), ((1, 2, 3, 3), (2, 2, 3, 3)), (1, 2, 3, 3)),
)


@pytest.mark.parametrize("case", _CASES)
@pytest.mark.parametrize("order", list(Order))
def test_tables_pairs_and_values_agree(tmp_path, case, order):
    operator, params, shapes, shape = case
    generator = np.random.default_rng(2)
    tensors = {
        each: generator.integers(0, P, (9, 2, int(np.prod(each)))).astype(np.uint32)
        for each in dict.fromkeys(shapes)
    }
    left, right = np.arange(9, dtype=np.int32), np.arange(8, dtype=np.int32)
    block = Block(0, 0, operator, params, shapes, shape, left, right, True, order)
    table = keys(block, tensors, (0, 1), 7)
    kept = block.kept()
    places = np.arange(len(block)) if kept is None else kept
    single = block.at(places[::-1])
    assert (keys(single, tensors, (0, 1), 7) == table[::-1]).all()
    second = {each: value[:, 1:] for each, value in tensors.items()}
    assert (keys(single, second, (1,), 7)[:, 0] == table[::-1, 1]).all()
    made = values(single, tensors, (0, 1))
    assert (keys_of(made, shape, 7) == table[::-1]).all()


def test_orders_choose_pairs():
    numbers = np.arange(3, dtype=np.int32)

    def kept(order):
        block = Block(0, 0, "ewadd", (), ((2,), (2,)), (2,), numbers, numbers, True, order)
        places = block.kept()
        left, right = block.pairs(np.arange(9) if places is None else places)
        return list(zip(left.tolist(), right.tolist(), strict=True))

    every = list(pairs_of(range(3), range(3)))
    assert kept(Order.ANY) == every
    assert kept(Order.DIFFERENT) == [(a, b) for a, b in every if a != b]
    assert kept(Order.RISING) == [(a, b) for a, b in every if a < b]


@_SETTINGS
@given(st.lists(st.lists(st.integers(0, 20), max_size=12), min_size=1, max_size=4), st.data())
def test_owners_tell_each_shard_which_words_occur_twice(shards, data):
    spread = np.uint64((1 << 62) // 21)
    older = data.draw(st.lists(st.integers(0, 20), unique=True, max_size=5))
    every = [*older, *(word for words in shards for word in words)]
    for count in (1, 4):
        runs = [runs_of(np.array(words, np.uint64) * spread, count) for words in shards]
        own = [owned(np.array(older, np.uint64) * spread, owner, count) for owner in range(count)]
        answers = [
            collisions(Payload(blobs=(own[owner].tobytes(), *(run[owner] for run in runs)))).blobs
            for owner in range(count)
        ]
        for words, blobs in zip(shards, zip(*answers, strict=True), strict=True):
            places, found = in_order(blobs)
            wanted = [at for at, word in enumerate(words) if every.count(word) > 1]
            assert places.tolist() == wanted
            assert found.tolist() == [words[at] * int(spread) for at in wanted]


def test_sharing_pairs_are_those_of_brute_force(tmp_path):
    table = enumerated(tmp_path / "work", 3).table
    stored = np.flatnonzero((table.row >= 0) & (table.cost > 0))
    sets = {c: set(table.nodes[c].tolist()) - {0} for c in stored.tolist()}
    wanted = {
        (a, b)
        for a, b in pairs_of(sets, sets)
        if a < b
        and sets[a] & sets[b]
        and len(sets[a] | sets[b]) == 2
        and len(sets[a]) + len(sets[b]) > 2
    }
    first, second = shared_pairs(table, 2)
    size = union_size(table.nodes[first], table.nodes[second])
    total = table.cost[first].astype(int) + table.cost[second]
    kept = (size == 2) & (total > 2)
    assert set(zip(first[kept].tolist(), second[kept].tolist(), strict=True)) == wanted
    for a, b in zip(first[:50], second[:50], strict=True):
        both = union_size(table.nodes[[a]], table.nodes[[b]])[0]
        assert both == len(sets[int(a)] | sets[int(b)])


def test_a_work_folder_is_of_one_run(tmp_path):
    folder = WorkFolder(tmp_path / "work", {"seed": 1})
    folder.save("state", {"x": np.arange(3)})
    same = WorkFolder(tmp_path / "work", {"seed": 1})
    assert same.load("state")["x"].tolist() == [0, 1, 2]
    with pytest.raises(UsageError, match="another run"):
        WorkFolder(tmp_path / "work", {"seed": 2})
    (tmp_path / "work" / "state.npz").write_bytes(b"no archive")
    with pytest.raises(UsageError, match="cannot be read"):
        same.load("state")
    same.save_unit("words-4-0", Payload(3, (b"ab", b"", b"cde")))
    assert same.unit("words-4-0") == Payload(3, (b"ab", b"", b"cde"))
    assert same.unit("words-4-0", (2,)) == Payload(3, (b"cde",))
    remove(tmp_path / "work")
    assert not (tmp_path / "work").exists()


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "letter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(UsageError, match="something else"):
        WorkFolder(tmp_path, {})
    assert (tmp_path / "letter.txt").read_text(encoding="utf-8") == "dear"


def test_progress_says_what_is_left():
    said, now = [], [0.0]
    meter = Meter(said.append, "level 4", 100.0, done=20.0, clock=lambda: now[0])
    now[0] = 4.0
    meter.add(20.0)
    now[0] = 10.0
    meter.add(20.0)
    assert said == ["level 4: 60%, 0:10 left"]


def test_terms_of_a_class_are_counted_by_size(tmp_path):
    folder = WorkFolder(tmp_path / "work", run_of(TINY, 3, 0))
    found = enumerate_terms(TINY, 3, folder)
    state = restore(folder)
    table, equal = state.table, Equalities.joined(state.equal)
    stored = range(len(table))
    levels = [0, *np.cumsum([len(each) for each in state.equal])]
    sizes = sizes_of(table, state.equal, 2)
    applications = [
        (int(c), int(table.a[c]), int(table.b[c]), int(table.cost[c]))
        for c in stored
        if table.cost[c] > 0
    ]
    for level in (1, 2):
        for row in range(levels[level - 1], levels[level]):
            a, b = int(equal.batch.a[row]), int(equal.batch.b[row])
            applications.append((int(equal.of[row]), a, b, level))
    one, two = np.zeros(len(table)), np.zeros(len(table))
    for of, _, _, level in applications:
        one[of] += level == 1
    for of, a, b, level in applications:
        args = [each for each in (a, b) if each >= 0]
        if level == 2:
            two[of] += np.prod([one[each] if table.cost[each] else 1 for each in args])
        else:
            two[of] += sum(one[each] for each in args)
    assert (sizes[:, 1] == one).all()
    assert (sizes[:, 2] == two).all()
    assert found.graphs > sizes[:, 1:].sum() + found.applications[2] / 2
