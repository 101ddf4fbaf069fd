"""The process of one competitor: `python -m tensorwright.peers.process.worker KIND`.

See protocol.py.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from tensorwright.peers.process.kinds import create_peer, find_kind
from tensorwright.peers.process.protocol import (
    Message,
    Peer,
    decode,
    encode,
    read_arrays,
    write_arrays,
)


def serve(peer: Peer, commands: BinaryIO, answers: BinaryIO) -> None:
    """Answer commands until `quit` or the end of the pipe."""
    handlers: dict[str, Callable[[Peer, Message], Message]] = {
        "load": _load,
        "bind": _bind,
        "check": _check,
        "time": _time,
        "park": _park,
    }
    for line in commands:
        message = decode(line)
        if message["command"] == "quit":
            return
        try:
            answer = {"ok": True, **handlers[message["command"]](peer, message)}
        except Exception as error:  # noqa: BLE001 - what a runtime raises is its result
            answer = {"ok": False, "reason": f"{type(error).__name__}: {error}"}
        answers.write(encode(answer))
        answers.flush()


def _load(peer: Peer, message: Message) -> Message:
    info = peer.load(message["path"], message["threads"], message["options"])
    return {"version": info.version, "detail": info.detail}


def _bind(peer: Peer, message: Message) -> Message:
    peer.bind(read_arrays(Path(message["arrays"]), message["names"]))
    return {}


def _check(peer: Peer, message: Message) -> Message:
    return {"names": write_arrays(Path(message["arrays"]), peer.run())}


def _time(peer: Peer, message: Message) -> Message:
    number, call = message["number"], peer.call
    seconds = []
    gc.disable()
    try:
        for _ in range(message["repeat"]):
            start = time.perf_counter()
            for _ in range(number):
                call()
            seconds.append((time.perf_counter() - start) / number)
    finally:
        gc.enable()
    return {"seconds": seconds}


def _park(peer: Peer, message: Message) -> Message:
    peer.park()
    return {}


def main(kind: str) -> None:
    """Serve on the standard pipes. What the runtime prints goes to the error stream instead."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(create_peer(find_kind(kind)), sys.stdin.buffer, answers)


if __name__ == "__main__":
    main(sys.argv[1])
