"""Both kinds of farm do units, in processes that may crash, hang and go away."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.farms import COMMAND, farm_here, started

from tensorwright.base import MachineError, UsageError
from tensorwright.farm import (
    Farm,
    FarmSecurity,
    Payload,
    StdioFarm,
    Unit,
    connect,
    dask_part,
    make_keys,
)
from tensorwright.farm.connecting import loopback_of
from tensorwright.processes import Done, Raised

WORKER = (*COMMAND, "worker")


@pytest.fixture(scope="module")
def dask_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    only_build = ("--device", "none", "--slots", "2", "--name", "one")
    with farm_here(tmp_path_factory.mktemp("farm"), only_build) as address:
        yield address


@pytest.fixture(scope="module", params=["dask", "stdio"])
def farm(request: pytest.FixtureRequest, dask_address: str) -> Iterator[Farm]:
    with ExitStack() as stack:
        if request.param == "dask":
            yield stack.enter_context(connect(dask_address))
        else:
            command = (*WORKER, "--stdio", "--device", "none", "--slots", "2")
            yield stack.enter_context(StdioFarm([command]))


def test_units_are_done_and_equal_ones_once_for_all(farm: Farm) -> None:
    units = [Unit("farm.echo", Payload({"n": n % 3}, (bytes(n % 3),))) for n in range(7)]
    assert farm.run(units) == [Done(unit.payload) for unit in units]
    (worker,) = farm.workers()  # they were done, so it is there
    assert worker.slots == farm.slots == 2
    assert worker.device is None


def test_many_units_travel_in_few_messages(
    dask_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed")
    sent: list[int] = []
    get = distributed.Client.get

    def counting(self: Any, graph: Any, keys: list[str], **how: Any) -> Any:
        sent.append(len(keys))
        return get(self, graph, keys, **how)

    monkeypatch.setattr(distributed.Client, "get", counting)
    units = [Unit("farm.wait", Payload({"seconds": 0, "n": n})) for n in range(64)]
    with connect(dask_address) as farm:
        answers = dict(farm.results(units, ahead=64))
    assert answers == {n: Done(unit.payload) for n, unit in enumerate(units)}
    assert sent == [64]


def test_a_unit_that_cannot_be_done_says_so(farm: Farm) -> None:
    (outcome,) = farm.run([Unit("farm.nothing")])
    assert isinstance(outcome, Raised)
    assert isinstance(outcome.error, UsageError)


def test_what_nobody_waits_for_is_given_up(farm: Farm) -> None:
    long = [Unit("farm.wait", Payload({"seconds": 60, "n": n})) for n in range(4)]
    for _ in farm.results([*long[:1], Unit("farm.echo")], ahead=2):
        break  # the short one; leaving gives up the long one
    assert farm.run([Unit("farm.echo", Payload(1))]) == [Done(Payload(1))]
    calls = iter([False, False, True])
    assert list(farm.results(long, lambda: next(calls, True))) == []
    units = [Unit("farm.wait", Payload({"seconds": 0.01, "n": n})) for n in range(4)]
    assert all(isinstance(each, Done) for each in farm.run(units))


def test_a_large_request_is_not_in_the_message_with_the_calls(dask_address: str) -> None:
    units = [Unit("farm.echo", Payload(n, (bytes(12 << 20),))) for n in range(3)]
    with connect(dask_address) as farm, warnings.catch_warnings():
        warnings.simplefilter("error")  # Dask warns of large messages
        assert farm.run(units) == [Done(unit.payload) for unit in units]


def test_units_for_a_worker_that_is_started_again_are_done_there(
    dask_address: str, tmp_path: Path
) -> None:
    """A small one, which the worker does as it is killed, and a large one that waits behind it."""
    command = ("worker", dask_address, "--device", "none", "--slots", "1", "--name", "other")
    small, large = Payload({"seconds": 1}), Payload({"seconds": 0}, (bytes(5 << 20),))
    units = [Unit("farm.wait", payload, workers=("other",)) for payload in (small, large)]
    with ExitStack() as stack:
        farm = stack.enter_context(connect(dask_address))
        worker = started(command, tmp_path)
        while all(each.name != "other" for each in farm.workers()):
            time.sleep(0.2)

        calls = count()

        def kill_once() -> bool:
            if next(calls) == 20:
                worker.kill()
                worker.wait()
                again = started(command, tmp_path)
                stack.callback(again.wait)
                stack.callback(again.kill)
            return False

        assert farm.run(units, kill_once) == [Done(unit.payload) for unit in units]


def test_a_worker_runs_no_function_of_a_plain_dask_client(dask_address: str) -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.Client(dask_address, set_as_default=False, timeout=5) as client:
        with pytest.raises(Exception):  # noqa: B017, PT011 - Dask makes a TypeError of it
            client.run(os.getpid)
        future = client.submit(os.getpid, pure=False)
        with pytest.raises(Exception):  # noqa: B017, PT011 - whatever Dask makes of the refusal
            future.result(timeout=2)
    with connect(dask_address) as farm:
        assert farm.run([Unit("farm.echo", Payload("on"))]) == [Done(Payload("on"))]


def test_the_last_worker_that_goes_away_is_an_error() -> None:
    command = (*WORKER, "--stdio", "--device", "none", "--slots", "1")
    with StdioFarm([command]) as farm:
        units = [Unit("farm.wait", Payload({"seconds": 60}))]
        with pytest.raises(MachineError, match="went away"):
            for _ in farm.results(_killing(farm, units)):
                pass


def _killing(farm: StdioFarm, units: list[Unit]) -> Iterator[Unit]:
    yield from units
    (peer,) = farm._peers
    os.kill(peer.process.pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("tcp://192.0.2.1:8786", "without keys"),
        ("tls://127.0.0.1:8786", "and none are given"),
        ("http://127.0.0.1:8786", "not of the form"),
    ],
)
def test_an_address_without_protection_is_refused(address: str, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        connect(address)


def can_listen(host: str) -> bool:
    try:
        with socket.create_server((host, 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def listening(address: str) -> set[str]:
    """Where the scheduler and the worker of a farm listen, by the sockets that they have opened."""
    psutil = pytest.importorskip("psutil")
    with connect(address) as farm:
        end = time.monotonic() + 60
        while not farm.workers() and time.monotonic() < end:
            time.sleep(0.1)
        children = {child.pid for child in psutil.Process().children(recursive=True)}
        heard = {
            (each.pid, each.laddr.ip)
            for each in psutil.net_connections("inet")
            if each.status == psutil.CONN_LISTEN and each.pid in children
        }
    assert len({pid for pid, _ in heard}) >= 2, "the scheduler and the worker"
    return {ip for _, ip in heard}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows sockets of other processes")
def test_a_farm_without_keys_listens_on_loopback_only(dask_address: str, tmp_path: Path) -> None:
    """No setting of Dask says it."""
    assert listening(dask_address) == {"127.0.0.1"}
    if not can_listen("::1"):
        pytest.skip("this machine has no IPv6")
    with farm_here(tmp_path, ("--device", "none", "--slots", "1"), host="::1") as address:
        assert listening(address) == {"::1", "127.0.0.1"}


def test_a_scheduler_that_goes_away_ends_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Dask would log a traceback for each of its tasks, in the scheduler and in the client."""
    dask = pytest.importorskip("dask")
    client = dask_part("client")
    monkeypatch.setattr("tensorwright.farm.dask.client._CONNECT_S", 1.0)
    command = (*COMMAND, "farm", "scheduler", "tcp://127.0.0.1:0", "--page", "127.0.0.1:0")
    with ExitStack() as stack:
        scheduler = stack.enter_context(
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        )
        stack.callback(scheduler.kill)
        address = scheduler.stdout.readline().decode().split()[-1] if scheduler.stdout else ""
        worker = started(("worker", address, "--device", "none", "--slots", "1"), tmp_path)
        stack.enter_context(worker)
        stack.callback(worker.kill)
        stack.enter_context(dask.config.set({"distributed.comm.timeouts.connect": "1s"}))
        farm = stack.enter_context(client.DaskFarm(address, waits_s=0))
        while not farm.workers():
            time.sleep(0.2)
        units = [Unit("farm.wait", Payload({"seconds": 1, "n": n})) for n in range(60)]
        answers = farm.results(units)
        number, answer = next(answers)
        assert answer == Done(units[number].payload)
        scheduler.send_signal(signal.SIGINT)
        told = pytest.warns(UserWarning, match="the scheduler at .* went away; waiting 0 s")
        with told, pytest.raises(MachineError, match="no scheduler answers there"):
            list(answers)
        assert scheduler.communicate()[1] == b"Interrupted.\n"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("host", "address"),
    [
        *(("127.0.0.2", "127.0.0.2"), ("127.255.255.254", "127.255.255.254"), ("::1", "[::1]")),
        *(("0.0.0.0", ""), ("192.0.2.1", ""), ("::", ""), ("", ""), ("no.such.host.invalid", "")),
    ],
)
def test_one_function_says_what_is_loopback(host: str, address: str) -> None:
    assert loopback_of(host) == address


@pytest.mark.parametrize(
    "command",
    ["yes helloworld", "echo hello", r"printf 's\002\0\0\0\0\0\0\0xx'", "/no/such/program"],
)
def test_a_command_that_is_not_a_worker_is_refused(command: str) -> None:
    """A shell at the other end of ssh may print a text before the worker starts."""
    with pytest.raises(MachineError) as caught:
        connect(f"stdio:{command}")
    assert caught.value.where.startswith("worker ")
    assert caught.value.remedy == "run that command in a shell: it must wait, and print no text"


def test_a_port_of_another_program_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as that of the scheduler's page: a web server waits for a question, and Dask as well."""
    monkeypatch.setattr("tensorwright.farm.dask.client._CONNECT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(MachineError) as caught:
            connect(address)
    assert str(caught.value) == (
        f"address {address}: no scheduler answers there (timed out)\n  try: start one with "
        "`tensorwright farm scheduler`, with the same folder of keys"
    )


def test_keys_are_made_once_and_for_the_owner_only(tmp_path: Path) -> None:
    files = make_keys(tmp_path / "keys")
    assert all(path.stat().st_mode & 0o077 == 0 for path in files)
    security = FarmSecurity(tmp_path / "keys")
    assert len(security.key) == 32
    with pytest.raises(UsageError, match="is there already"):
        make_keys(tmp_path / "keys")
    with pytest.raises(UsageError, match="does not encrypt"):
        connect("tcp://127.0.0.1:8786", security)


@pytest.mark.parametrize("name", ["ca.pem", "farm.pem", "farm.key", "shared.key"])
@pytest.mark.parametrize("share", [0, 0.5])
def test_damaged_keys_are_refused(tmp_path: Path, name: str, share: float) -> None:
    """Without the check, a worker would try them for ever, and the client look for a scheduler."""
    folder = tmp_path / "keys"
    make_keys(folder)
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: int(len(content) * share)])
    with pytest.raises(UsageError, match=r"damaged|bytes, not 32") as caught:
        connect("tls://127.0.0.1:8786", FarmSecurity(folder))
    assert str(folder) in caught.value.where
    assert caught.value.remedy == (
        "make keys with `tensorwright farm keys FOLDER`, and copy the folder"
    )
