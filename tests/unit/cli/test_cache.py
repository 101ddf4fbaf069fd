from pathlib import Path

from tests.command_line import Invoke

from tensorwright.runtime import named_cache


def test_caches_are_listed_and_cleared(invoke: Invoke, home: Path) -> None:
    (home / "kernels").unlink()  # that of all tests
    named_cache("kernels").put("a" * 64, b"x" * 1_000_000)
    named_cache("choices").put("b" * 64, b"y")
    listed = invoke("cache", "list")
    assert listed.exit_code == 0
    rows = [line.split()[:3] for line in listed.output.splitlines()]
    assert ["kernels", "1", "1.0"] in rows
    assert ["choices", "1", "0.0"] in rows
    assert ["executables", "0", "0.0"] in rows
    assert invoke("cache", "clear", "choices").output == "choices: 1 entries removed, 0.0 MB\n"
    assert "kernels: 1 entries removed, 1.0 MB" in invoke("cache", "clear").output
    assert (named_cache("kernels").count(), named_cache("choices").count()) == (0, 0)
    assert invoke("cache", "clear", "nothing").exit_code == 2
