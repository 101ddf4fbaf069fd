"""Compiled kernels on disk: found again, checked, bounded, and never in the way."""

import os
import stat
import threading
import time
import warnings
from collections import Counter
from pathlib import Path

import pytest

from tensorwright.base import override
from tensorwright.runtime import (
    KernelCache,
    default_cache,
)


@pytest.fixture
def cache(tmp_path: Path) -> KernelCache:
    return KernelCache(tmp_path / "kernels")


def fetch(cache: KernelCache, key: str = "key") -> bytes:
    """What is kept under a key; it is put there if it is missing."""
    data = cache.get(key)
    if data is None:
        data = f"code of {key}".encode()
        cache.put(key, data)
    return data


def test_what_was_put_is_found_by_others(cache: KernelCache) -> None:
    first = fetch(cache)
    assert fetch(cache) == first
    assert KernelCache(cache.folder).get("key") == first
    assert cache.counts == Counter(hits=1, misses=1, stored=1)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: b"",
        lambda data: data[:20],
        lambda data: data[:-5] + bytes([data[-5] ^ 1]) + data[-4:],
        lambda data: b"X" + data[1:],
        lambda data: data + b"\0",
    ],
)
def test_a_damaged_entry_is_made_again(cache: KernelCache, damage: object) -> None:
    good = fetch(cache)
    (path,) = cache.folder.glob("*.kernel")
    path.write_bytes(damage(path.read_bytes()))
    assert fetch(cache) == good
    assert cache.counts == Counter(misses=2, corrupt=1, stored=2)
    assert cache.get("key") == good


def test_an_entry_under_another_name_is_not_taken(cache: KernelCache) -> None:
    cache.put("a", b"code of a")
    (cache.folder / "a.kernel").rename(cache.folder / "b.kernel")
    assert cache.get("b") is None
    assert cache.counts["corrupt"] == 1


def test_a_link_is_not_followed(cache: KernelCache, tmp_path: Path) -> None:
    cache.put("a", b"code")
    (cache.folder / "a.kernel").rename(tmp_path / "elsewhere")
    (cache.folder / "a.kernel").symlink_to(tmp_path / "elsewhere")
    assert cache.get("a") is None


def test_the_folder_is_closed_to_others(cache: KernelCache) -> None:
    cache.folder.mkdir(mode=0o755)
    cache.folder.chmod(0o777)
    cache.put("a", b"code")
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((cache.folder / "a.kernel").stat().st_mode) == 0o600


def test_a_strangers_folder_is_not_used(
    cache: KernelCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.put("a", b"code")
    fresh = KernelCache(cache.folder)
    monkeypatch.setattr(os, "getuid", lambda: 12345678)
    with pytest.warns(RuntimeWarning, match="it belongs to another user"):
        assert fresh.get("a") is None
    assert not fresh.put("b", b"code")
    assert sorted(path.name for path in cache.folder.iterdir()) == ["a.kernel"]


def test_a_file_of_a_stranger_in_the_own_folder_is_not_taken(
    cache: KernelCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code in it would run with this user's rights."""
    cache.put("a", b"code")
    assert cache.get("a") == b"code"
    monkeypatch.setattr(os, "getuid", lambda: 12345678)  # the folder has been looked at
    assert cache.get("a") is None


def test_an_unusable_place_costs_one_warning(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    cache = KernelCache(blocked / "kernels")
    with pytest.warns(RuntimeWarning, match="What is compiled is not kept") as caught:
        code = fetch(cache)
    assert len(caught) == 1
    assert "TENSORWRIGHT_HOME" in str(caught[0].message)
    assert fetch(cache) == code
    assert cache.counts == Counter(misses=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fetch(KernelCache(blocked / "choices")) == code  # of the same home


def test_a_folder_that_may_only_be_read_is_said_before_compiling(
    cache: KernelCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.put("a", b"code")
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert cache.get("a") == b"code"
    with pytest.warns(RuntimeWarning, match="no permission to write there"):
        assert cache.get("b") is None


def test_a_full_disk_costs_one_warning(cache: KernelCache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put("a", b"code")

    def full(*_: object, **__: object) -> object:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.warns(RuntimeWarning, match="No space left on device"):
        assert fetch(cache)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fetch(cache)
    assert [path.name for path in cache.folder.iterdir()] == ["a.kernel"]


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path / "kernels", limit_bytes=10_000)
    now = time.time()
    for index in range(9):
        cache.put(f"k{index}", bytes(1000))
        os.utime(cache.folder / f"k{index}.kernel", (now - 100 + index, now - 100 + index))
    assert cache.get("k0") is not None  # and so it is the youngest now
    cache.put("k9", bytes(1000))
    assert cache.size_bytes() <= 10_000
    assert cache.get("k1") is None
    assert cache.get("k0") is not None
    assert cache.get("k9") is not None
    assert cache.counts["pruned"] >= 2


def test_what_a_killed_process_was_writing_is_removed(cache: KernelCache) -> None:
    fetch(cache)
    abandoned, written_now = (cache.folder / f".new-{name}" for name in ("old", "now"))
    for path in (abandoned, written_now):
        path.write_bytes(b"half of an entry")
    os.utime(abandoned, (time.time() - 7200,) * 2)
    cache.clear()
    assert list(cache.folder.iterdir()) == [written_now]


def test_threads_share_a_cache(cache: KernelCache) -> None:
    results: list[bytes] = []

    def work() -> None:
        results.extend(fetch(cache, str(value)) for value in range(5))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(set(results)) == 5
    assert cache.counts["hits"] + cache.counts["misses"] == 20
    assert cache.counts["corrupt"] == 0


def test_the_knob_says_where(tmp_path: Path) -> None:
    with override(home=tmp_path):
        assert default_cache().folder == tmp_path / "kernels"
        assert default_cache() is default_cache()
        assert not (tmp_path / "kernels").exists()
        assert fetch(default_cache()) == fetch(default_cache())
        assert default_cache().counts == Counter(hits=1, misses=1, stored=1)
