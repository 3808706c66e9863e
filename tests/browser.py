"""A real browser without a window, driven by the DevTools protocol over two pipes.

    with Browser() as browser:
        page = browser.open(path, "step=2")
        page.run("document.title")

Exceptions of a page, and errors on its console, are in `page.errors`.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

#: the names of installed browsers with the protocol
NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)
#: seconds that a browser may take for an answer
MAX_ANSWER_SECONDS = 30.0


def find() -> str | None:
    """The installed browser: $CHROME, or the first on the path."""
    named = os.environ.get("CHROME")
    paths = filter(None, (shutil.which(name) for name in (named, *NAMES) if name))
    return next(paths, None)


class Page:
    """An open page of the browser."""

    def __init__(self, browser: Browser, session: str) -> None:
        self.browser, self.session = browser, session
        self.errors: list[str] = []

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to a call of the protocol."""
        return self.browser.ask(method, self.session, **params)

    def run(self, script: str) -> Any:
        """The value of an expression, awaited."""
        answer = self.ask(
            "Runtime.evaluate",
            expression=script,
            awaitPromise=True,
            returnByValue=True,
        )
        if "exceptionDetails" in answer:
            raise AssertionError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, script: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + MAX_ANSWER_SECONDS
        while not self.run(script):
            if time.monotonic() > end:
                raise AssertionError(f"never true: {script}; errors: {self.errors}")
            time.sleep(0.02)

    def press(self, key: str) -> None:
        """Press a key."""
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, **text)

    def middle(self, selector: str) -> dict[str, Any]:
        """The middle of an element, scrolled into view."""
        box = self.run(
            f"(x => {{ x.scrollIntoView({{block: 'center'}}); "
            "const b = x.getBoundingClientRect(); "
            "return [b.x + b.width / 2, b.y + b.height / 2]; })"
            f"(document.querySelector({json.dumps(selector)}))"
        )
        return {"x": box[0], "y": box[1]}

    def point(self, selector: str) -> None:
        """Move the pointer to the middle of an element."""
        at = self.middle(selector)
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", **at)

    def click(self, selector: str) -> None:
        """Click in the middle of an element."""
        at = self.middle(selector) | {"button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, **at)

    def media(self, **features: str) -> None:
        """Set preferences of the user, such as prefers_color_scheme="dark"."""
        named = [
            {"name": name.replace("_", "-"), "value": value}
            for name, value in features.items()
        ]
        self.ask("Emulation.setEmulatedMedia", features=named)

    def size(self, width: int, height: int) -> None:
        """Set the size of the window."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def picture(self, path: Path) -> None:
        """Write a picture of the window into a .png file."""
        answer = self.ask("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(answer["data"]))

    def close(self) -> None:
        """Close the page."""
        self.ask("Page.close")


class Browser:
    """A browser, from its start to its end."""

    def __enter__(self) -> Browser:
        program = find()
        assert program is not None
        self.home = tempfile.mkdtemp(prefix="isthmus-browser-")
        theirs_in, self.out = os.pipe()
        self.into, theirs_out = os.pipe()

        def number() -> None:
            """Give the pipes the numbers 3 and 4, which the browser expects."""
            high = [fcntl.fcntl(x, fcntl.F_DUPFD, 10) for x in (theirs_in, theirs_out)]
            for at, x in enumerate(high, 3):
                os.dup2(x, at)

        arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-extensions",
            "--disable-background-networking",
            "--remote-debugging-pipe",
            f"--user-data-dir={self.home}",
            "about:blank",
        ]
        self.process = subprocess.Popen(
            [program, *arguments],
            preexec_fn=number,
            pass_fds=(3, 4),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.number, self.rest = 0, b""
        self.pages: dict[str, Page] = {}
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.ask("Browser.close", None)
        except (AssertionError, OSError):
            self.process.kill()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        os.close(self.into)
        shutil.rmtree(self.home, ignore_errors=True)

    def ask(self, method: str, session: str | None, **params: Any) -> dict[str, Any]:
        """Send a call and wait for its answer."""
        self.number += 1
        call = {"id": self.number, "method": method, "params": params}
        if session is not None:
            call["sessionId"] = session
        text = json.dumps(call).encode() + b"\0"
        while text:
            text = text[os.write(self.out, text) :]
        end = time.monotonic() + MAX_ANSWER_SECONDS
        while True:
            answer = self._next(end)
            if answer.get("id") == self.number:
                assert "error" not in answer, answer["error"]
                return dict(answer["result"])
            self._note(answer)

    def _next(self, end: float) -> dict[str, Any]:
        """The next message of the browser."""
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.into], [], [], end - time.monotonic())
            assert ready, "the browser does not answer"
            part = os.read(self.into, 1 << 20)
            assert part, "the browser has ended"
            self.rest += part
        text, _, self.rest = self.rest.partition(b"\0")
        return dict(json.loads(text))

    def _note(self, event: dict[str, Any]) -> None:
        """Add an event to the errors of its page, if the event is an error."""
        page = self.pages.get(event.get("sessionId", ""))
        if page is None:
            return
        method, params = event.get("method"), event.get("params", {})
        wrong = (
            method == "Runtime.exceptionThrown"
            or (method == "Runtime.consoleAPICalled" and params["type"] == "error")
            or (method == "Log.entryAdded" and params["entry"]["level"] == "error")
        )
        if wrong:
            page.errors.append(json.dumps(params))

    def open(self, path: Path, fragment: str = "") -> Page:
        """Open a file as a page, with a fragment of the address."""
        target = self.ask("Target.createTarget", None, url="about:blank")["targetId"]
        answer = self.ask("Target.attachToTarget", None, targetId=target, flatten=True)
        page = Page(self, answer["sessionId"])
        self.pages[page.session] = page
        for domain in ("Runtime", "Log", "Page"):
            page.ask(f"{domain}.enable")
        page.ask("Page.navigate", url=f"{path.resolve().as_uri()}#{fragment}")
        return page
