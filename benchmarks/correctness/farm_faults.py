"""Kill scheduler, workers and client of a farm at any moment; let devices hang and lie.

    python benchmarks/correctness/farm_faults.py [--kills 50] [--devices 20] [--json FILE]
        [--only KIND ...] [--minutes 60] [--seed 0]

Sessions of a few rounds run on simulated devices (`simulated_farm.py`).  A drill ends one of the
processes with SIGKILL, starts it again, and goes on until it was ended so often; a killed client is
started again by the same command.  Then devices hang (their process stops), or lie (all times are
halved, or right programs are said to be wrong), from the beginning or later.  Of every session all
records are read: is one missing, doubled, or not what a right device says?  Exit code 1 if so.

FILE is kept after each kind; a kind of which it has fewer faults than asked for is gone on with.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tensorwright.farm import connect
from tensorwright.records import MemoryStore, RecordStore

sys.path.insert(0, str(Path(__file__).parent))
from simulated_farm import judge, search

HERE = Path(__file__).parent
SIMULATED = HERE / "simulated_farm.py"
TRIALS = 96
FEW_TRIALS = 48
SILENT_S = {"hang": 8.0}  # other workers may be slow to speak where the machine is busy
USUAL_SILENT_S = 60.0
AWAY = ("no scheduler answers there", "the farm has no device at all")
KILLED = ("worker", "scheduler", "client")
FAULTS = ("hang", "half", "wrong")
MOST_PAUSE_S = 20.0  # a slow machine starts slowly
PAUSES_S = {"worker": (0.3, 1.5), "scheduler": (2.0, 5.0), "client": (2.0, 7.0)}


@dataclass
class Row:
    """What came of one kind of fault."""

    kind: str
    faults: int = 0
    sessions: int = 0
    records: int = 0
    lost: int = 0
    doubled: int = 0
    false: int = 0
    set_aside: int = 0
    seconds: float = 0.0

    def add(self, judged: dict[str, int], records: int) -> None:
        self.sessions += 1
        self.records += records
        self.lost += judged["lost"]
        self.doubled += judged["doubled"]
        self.false += judged["false"]

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.doubled or self.false)


@dataclass
class Processes:
    """The processes of a farm, each with a home of its own."""

    folder: Path
    port: int
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def start(self, name: str, *command: str) -> None:
        home = self.folder / name
        home.mkdir(exist_ok=True)
        self.running[name] = subprocess.Popen(
            command,
            env=os.environ | {"TENSORWRIGHT_HOME": str(home)},
            stdout=(self.folder / f"{name}.log").open("ab"),
            stderr=subprocess.STDOUT,
            process_group=0,
        )

    def start_scheduler(self, silent_s: float = USUAL_SILENT_S) -> None:
        self.start(
            "scheduler",
            *(sys.executable, "-m", "tensorwright", "farm", "scheduler", self.address),
            *("--page", "127.0.0.1:0", "--silent", str(silent_s)),
        )

    def is_up(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def start_worker(self, name: str, fault: str = "", after: int = 0) -> None:
        self.start(
            name,
            *(sys.executable, str(SIMULATED), "worker", self.address, name),
            *("--fault", fault, "--after", str(after)),
        )

    def start_client(self, records: Path, seed: int) -> None:
        self.start(
            "client",
            *(sys.executable, str(SIMULATED), "client", self.address),
            *(str(records), str(seed), str(TRIALS)),
        )

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        for name in list(self.running):
            self.kill(name)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def drill_kills(
    farm: Processes, kind: str, row: Row, kills: int, limit_s: float, source: random.Random
) -> None:
    """Kill processes of one kind while clients work; every session ends with all its records."""
    started, session = time.monotonic(), row.sessions

    def is_over() -> bool:
        return row.faults >= kills or time.monotonic() - started > limit_s

    low_s, usual_s = PAUSES_S[kind]
    high_s, size = usual_s, 0
    while not is_over() or "client" in farm.running:
        records = farm.folder / f"{kind}-{session}.sqlite"
        if "client" not in farm.running:
            farm.start_client(records, session)
        try:
            code = farm.running["client"].wait(source.uniform(low_s, high_s))
        except subprocess.TimeoutExpired:
            if not is_over():
                row.faults += 1
                again(farm, kind, records, session, source)
            grown = records.stat().st_size if records.exists() else 0
            high_s = usual_s if grown != size else min(1.5 * high_s, MOST_PAUSE_S)
            size = grown
            continue
        del farm.running["client"]
        high_s = usual_s
        if code and any(each in said_by(farm) for each in AWAY):
            continue  # who starts while nobody is there is told so: the same command again
        if code:
            raise SystemExit(f"the client ended with {code}: {said_by(farm)}")
        with RecordStore(records) as store:
            records = tuple(store.query())
        row.add(judge(records, TRIALS), len(records))
        session += 1


def said_by(farm: Processes) -> str:
    """The end of what the clients have printed."""
    return (farm.folder / "client.log").read_text()[-2000:]


def again(farm: Processes, kind: str, records: Path, session: int, source: random.Random) -> None:
    """Kill a process and start it again."""
    name = source.choice(["one", "two"]) if kind == "worker" else kind
    farm.kill(name)
    restart: dict[str, Callable[[], None]] = {
        "worker": lambda: farm.start_worker(name),
        "scheduler": farm.start_scheduler,
        "client": lambda: farm.start_client(records, session),
    }
    restart[kind]()


def drill_devices(
    farm: Processes, fault: str, row: Row, count: int, limit_s: float, source: random.Random
) -> None:
    """Add a faulty device to two right ones; a session of all three ends with true records."""
    started = time.monotonic()
    for number in range(row.faults, count):
        if time.monotonic() - started > limit_s:
            break
        name = f"{fault}-{number}"
        farm.start_worker(name, fault, source.choice([0, 0, 2, 5, 9]))
        with connect(farm.address) as client:
            wait_for(lambda client=client: len(client.workers()) == 3)
            store = MemoryStore()
            search(client, store, number, FEW_TRIALS)
            aside = [each for each in client.workers() if each.device and each.device.set_aside]
            row.set_aside += any(each.name == name for each in aside)
        records = tuple(store.query())
        row.faults += 1
        row.add(judge(records, FEW_TRIALS), len(records))
        farm.kill(name)
        with connect(farm.address) as client:
            wait_for(lambda client=client: len(client.workers()) == 2)


def wait_for(condition: Callable[[], bool], limit_s: float = 240.0, every_s: float = 0.2) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit("the farm did not come up")
        time.sleep(every_s)


def read_rows(file: Path | None) -> dict[str, Row]:
    """What was done before, by kind of fault."""
    if file is None or not file.exists():
        return {}
    return {facts["kind"]: Row(**facts) for facts in json.loads(file.read_bytes())}


def print_table(rows: list[Row]) -> None:
    print(
        f"{'fault':18} {'times':>5} {'sessions':>8} {'records':>8} {'lost':>5} {'doubled':>8} "
        f"{'false':>6} {'set aside':>9} {'s':>6}"
    )
    for row in rows:
        print(
            f"{row.kind:18} {row.faults:5} {row.sessions:8} {row.records:8} {row.lost:5} "
            f"{row.doubled:8} {row.false:6} {row.set_aside:9} {row.seconds:6.0f}"
        )


def tell(facts: dict[str, object], file: Path | None) -> None:
    """Print facts, one a line, and keep them in a file."""
    for name, value in facts.items():
        print(f"{name:20} {value if isinstance(value, list) else f'{value:.6g}'}")
    if file:
        file.write_text(json.dumps(facts, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--devices", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=60.0, help="of each kind of fault")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", choices=(*KILLED, *FAULTS))
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    rows = read_rows(asked.json)
    limit_s = 60 * asked.minutes
    for kind in asked.only or (*KILLED, *FAULTS):
        name = f"{kind} killed" if kind in KILLED else f"device {kind}"
        row = rows.setdefault(name, Row(name))
        source, started = random.Random(f"{kind} {asked.seed} {row.faults}"), time.monotonic()
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            farm = Processes(Path(folder), free_port())
            try:
                farm.start_scheduler(SILENT_S.get(kind, USUAL_SILENT_S))
                wait_for(farm.is_up)
                farm.start_worker("one")
                farm.start_worker("two")
                if kind in KILLED:
                    drill_kills(farm, kind, row, asked.kills, limit_s, source)
                else:
                    drill_devices(farm, kind, row, asked.devices, limit_s, source)
            finally:
                farm.close()
                row.seconds += time.monotonic() - started
                print_table([row])
                if asked.json:
                    facts = [vars(each) for each in rows.values()]
                    asked.json.write_text(json.dumps(facts, indent=1) + "\n")
    print()
    print_table(list(rows.values()))
    faults = sum(not row.is_clean for row in rows.values())
    if faults:
        print(f"repeat: python {' '.join(sys.argv)}")
    print(f"\n{sum(row.sessions for row in rows.values())} cases, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
