"""A headless Chromium for tests of pages, driven by its DevTools protocol over two pipes."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
_SWITCHES = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--remote-debugging-pipe", "--hide-scrollbars", "--window-size=1280,900"),
)
_WAIT_S = 10.0


class Browser:
    """One page of a Chromium; use it in a `with` block.

    messages   what the page has said on its console, and its errors
    """

    def __init__(self) -> None:
        assert CHROMIUM is not None
        self.messages: list[str] = []
        self._home = tempfile.TemporaryDirectory(
            prefix="tensorwright-chromium-", ignore_cleanup_errors=True
        )
        to_child, self._write = os.pipe()
        self._read, from_child = os.pipe()
        command = f'exec 3<&{to_child} 4>&{from_child}; exec "$@"'
        arguments = (CHROMIUM, *_SWITCHES, f"--user-data-dir={self._home.name}", "about:blank")
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", command, "bash", *arguments],
            pass_fds=(to_child, from_child),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_child)
        os.close(from_child)
        self._rest = b""
        self._number = 0
        self._session = ""
        pages = self._do("Target.getTargets")["targetInfos"]
        page = next(each["targetId"] for each in pages if each["type"] == "page")
        attached = self._do("Target.attachToTarget", targetId=page, flatten=True)
        self._session = attached["sessionId"]
        for part in ("Page", "Runtime", "Log"):
            self._do(f"{part}.enable")

    def open(self, address: str) -> None:
        """Go to an address, and wait until its scripts have run."""
        self._do("Page.navigate", url=address)
        end = time.monotonic() + _WAIT_S
        while not self.run("document.readyState === 'complete' && location.href !== 'about:blank'"):
            assert time.monotonic() < end, "the page is not complete"

    def run(self, script: str) -> Any:
        """The value of an expression in the page, as JSON has it."""
        answer = self._do(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key as a person does."""
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        for kind in ("keyDown", "keyUp"):
            self._do("Input.dispatchKeyEvent", type=kind, key=key, text=text)

    def prefer(self, theme: str) -> None:
        """Let the system of this person be light or dark."""
        self._do(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": theme}],
        )

    def resize(self, width: int, height: int) -> None:
        """Make the window so large."""
        self._do(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def shot(self, path: str | os.PathLike[str] | None = None, *, whole: bool = False) -> bytes:
        """A PNG of what is seen, or of the whole page."""
        answer = self._do("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        image = base64.b64decode(answer["data"])
        if path is not None:
            Path(path).write_bytes(image)
        return image

    def printed(self) -> bytes:
        """The page as a printer gets it, a PDF."""
        return base64.b64decode(self._do("Page.printToPDF", printBackground=False)["data"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)
        self._home.cleanup()

    def _do(self, method: str, **params: object) -> Any:
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self._note(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._read, 1 << 20)
            assert more, "Chromium has ended"
            self._rest += more
        text, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(text)
        return answer

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Runtime.consoleAPICalled":
                self.messages.append(f"{params['type']}: {params['args']}")
            case "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                self.messages.append(details.get("exception", {}).get("description", str(details)))
            case "Log.entryAdded":
                self.messages.append(params["entry"]["text"])
