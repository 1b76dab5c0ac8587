"""A real browser: headless Chromium of Debian, controlled by the DevTools protocol."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

PATIENCE_S = 60.0
POLL_S = 0.05
FLAGS = (
    *("--headless=new", "--remote-debugging-port=0", "--disable-gpu", "--hide-scrollbars"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
    "--no-sandbox",  # the tests' user may be root, and in a container
)


class Browser:
    """A browser tab. `requests` and `complaints` are those of the open page."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._loaded = asyncio.Event()
        self._listening = asyncio.create_task(self._listen())
        self.requests: list[str] = []
        self.complaints: list[str] = []

    async def begin(self) -> None:
        for domain in ("Page", "Network", "Runtime", "Log"):
            await self.ask(f"{domain}.enable")

    async def end(self) -> None:
        self._listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._listening

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        answer = self._answers[self._number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._number, "method": method, "params": params})
        async with asyncio.timeout(PATIENCE_S):
            return await answer

    async def open(self, url: str) -> None:
        """Open a page and wait until it is fully loaded."""
        self.requests.clear()
        self.complaints.clear()
        self._loaded.clear()
        await self.ask("Page.navigate", url=url)
        async with asyncio.timeout(PATIENCE_S):
            await self._loaded.wait()

    async def set_viewport(self, *, width: int, height: int = 800, scheme: str = "light") -> None:
        """Set the size of the window and the colour scheme."""
        await self.ask(
            "Emulation.setDeviceMetricsOverride",
            **{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        await self.ask("Emulation.setEmulatedMedia", features=[feature])

    async def value(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page. Raises AssertionError if it throws."""
        found = await self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    async def picture(self) -> bytes:
        """Return a screenshot of the whole page, as PNG."""
        found = await self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(found["data"])

    async def _listen(self) -> None:
        async for message in self._socket:
            received = message.json()
            if "id" in received:
                self._answered(self._answers.pop(received["id"]), received)
            else:
                self._happened(received["method"], received["params"])

    @staticmethod
    def _answered(answer: asyncio.Future[dict[str, Any]], reply: dict[str, Any]) -> None:
        if "error" in reply:
            answer.set_exception(AssertionError(reply["error"]))
        else:
            answer.set_result(reply["result"])

    def _happened(self, event: str, params: dict[str, Any]) -> None:
        match event:
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Log.entryAdded":
                self.complaints.append(params["entry"]["text"])
            case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown":
                self.complaints.append(str(params))
            case "Page.loadEventFired":
                self._loaded.set()


@contextlib.asynccontextmanager
async def browser(folder: Path) -> AsyncIterator[Browser]:
    """Run a browser. folder: an empty one for its profile."""
    process = _start(folder)
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not (port := _port(folder)):
                assert process.poll() is None, (folder / "log").read_text()[-2000:]
                await asyncio.sleep(POLL_S)
        async with _tab(port) as tab:
            yield tab
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _start(folder: Path) -> subprocess.Popen[bytes]:
    program = shutil.which("chromium")
    assert program is not None, "there is no chromium: tools/system test"
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={folder}", "about:blank"],
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "HOME": str(folder)},
        )


def _port(folder: Path) -> str:
    """Return the port of the DevTools protocol; '' while it does not listen."""
    file = folder / "DevToolsActivePort"
    return file.read_text().partition("\n")[0] if file.exists() else ""


@contextlib.asynccontextmanager
async def _tab(port: str) -> AsyncIterator[Browser]:
    async with aiohttp.ClientSession() as session:
        async with session.get(f"http://127.0.0.1:{port}/json") as answer:
            (page,) = [each for each in await answer.json() if each["type"] == "page"]
        async with session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as socket:
            tab = Browser(socket)
            await tab.begin()
            try:
                yield tab
            finally:
                await tab.end()
