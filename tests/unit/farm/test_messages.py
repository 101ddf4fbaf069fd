"""What travels between a client and its workers is what was sent, or is refused."""

from __future__ import annotations

import pytest

from tensorwright.base import UsageError
from tensorwright.farm import Lost, Payload, Server, Unit, WrongKeyError, function_named, serving
from tensorwright.farm.farm import FarmOutcome
from tensorwright.processes import Died, Done, Raised, Stopped, TimedOut

KEY = b"k" * 32
UNIT = Unit("farm.echo", Payload({"a": [1, "é"]}, (b"", b"\x00\xff")), 2.5, "kind", ("w",), "3")


def test_a_request_is_read_back() -> None:
    assert serving.unpack_request(serving.pack_request(UNIT, KEY), KEY) == UNIT


OUTCOMES: tuple[FarmOutcome, ...] = (
    Done(Payload({"x": 1.5}, (b"code",))),
    Raised("ValueError", "no", "line 3", is_memory=True),
    Raised("UsageError", "w: r", error=UsageError(stage="s", where="w", reason="r")),
    Died("SIGSEGV", was_killed=False),
    TimedOut(3.0),
    Stopped(),
    Lost("gone"),
)


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda each: type(each).__name__)
def test_an_answer_is_read_back(outcome: FarmOutcome) -> None:
    request = serving.pack_request(UNIT, KEY)
    assert (
        serving.unpack_answer(serving.pack_answer(outcome, request, KEY), request, KEY) == outcome
    )


def test_another_key_is_noticed_before_anything_is_read() -> None:
    with pytest.raises(WrongKeyError, match="does not have the shared key"):
        serving.unpack_request(serving.pack_request(UNIT, KEY), b"other")
    answer = Server(b"other").answer(serving.pack_request(UNIT, KEY))
    with pytest.raises(WrongKeyError):
        serving.unpack_answer(answer, serving.pack_request(UNIT, KEY), KEY)


@pytest.mark.parametrize("place", [0, 33, 40, -1])
def test_a_changed_byte_is_noticed(place: int) -> None:
    message = bytearray(serving.pack_request(UNIT, KEY))
    message[place] ^= 1
    with pytest.raises(WrongKeyError):
        serving.unpack_request(bytes(message), KEY)


def test_an_answer_stands_for_its_own_request_only() -> None:
    request, other = serving.pack_request(UNIT, KEY), serving.pack_request(Unit("farm.echo"), KEY)
    answer = serving.pack_answer(Done(Payload()), request, KEY)
    with pytest.raises(ValueError, match="another request"):
        serving.unpack_answer(answer, other, KEY)


def test_units_differ_by_all_that_they_are() -> None:
    units = [
        UNIT,
        Unit("farm.wait", UNIT.payload),
        Unit("farm.echo", Payload({"a": 1})),
        Unit("farm.echo", Payload({"a": 1}, (b"1",))),
        Unit("farm.echo", Payload({"a": 1}), device="d"),
        Unit("farm.echo", Payload({"a": 1}), turn="1"),
    ]
    assert len({serving.digest_of(serving.pack_request(unit, KEY)) for unit in units}) == len(units)


def test_only_functions_of_the_list_are_done() -> None:
    with pytest.raises(UsageError, match="workers have no such function"):
        function_named("os.system")
    request = serving.pack_request(Unit("os.system", Payload(["true"])), b"")
    outcome = serving.unpack_answer(Server().answer(request), request, b"")
    assert isinstance(outcome, Raised)
    assert isinstance(outcome.error, UsageError)


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    request = serving.pack_request(UNIT, b"")
    monkeypatch.setattr("tensorwright.farm.serving.farm_version", lambda: "0.0+other")
    outcome = serving.unpack_answer(Server().answer(request), request, b"")
    assert isinstance(outcome, Raised)
    assert "install the same version" in outcome.text
