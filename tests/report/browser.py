"""A headless Chromium that opens pages and says what it saw: errors, requests, figures, widths, screenshots.

It is spoken to over a pipe (Chrome DevTools Protocol), so nothing but the browser itself is needed.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")
START = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 50) for end in sys.argv[1:3]]
for place, end in enumerate(ends, 3):
    os.dup2(end, place)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Puts the pipes where the browser looks for them, 3 and 4, and becomes the browser."""
PATIENCE = 120.0
"""Seconds after which a silent browser counts as broken: a slow machine is not an error."""

LOOK = """(() => {
  const inked = svg => [...svg.querySelectorAll("path, image, text, rect, circle, line, use")].some(part => {
    const box = part.getBoundingClientRect();
    return box.width + box.height > 0;
  });
  const figures = [...document.querySelectorAll("svg, img, canvas")].map(figure => {
    const box = figure.getBoundingClientRect();
    const drawn = figure.tagName === "IMG" ? figure.complete && figure.naturalWidth > 0
      : figure.tagName === "CANVAS" ? figure.width > 0 : inked(figure);
    return {
      drawn: drawn && box.width > 20 && box.height > 20,
      said: figure.getAttribute("aria-label") || figure.getAttribute("alt") || "",
      inside: box.left >= -1 && box.right <= document.documentElement.clientWidth + 1,
    };
  });
  const images = [...document.querySelectorAll("svg image")].map(one => one.href.baseVal);
  const ids = [...document.querySelectorAll("[id]")].map(one => one.id);
  return {
    figures, images,
    repeated: ids.filter((id, place) => ids.indexOf(id) !== place),
    width: document.documentElement.scrollWidth, window: document.documentElement.clientWidth,
    background: getComputedStyle(document.body).backgroundColor, ink: getComputedStyle(document.body).color,
    anchors: [...document.querySelectorAll("main > section")].map(one => one.id),
  };
})()"""


@dataclass
class Opened:
    """What was seen of a page: what it complained of, what it asked the network for, and what is on it."""

    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    seen: dict[str, Any] = field(default_factory=dict)

    def faults(self) -> list[str]:
        """Everything that is wrong with it, a sentence each."""
        found = [f"console: {error}" for error in self.errors]
        found += [f"asks for {address}" for address in self.requests]
        for place, figure in enumerate(self.seen["figures"], 1):
            name = f"figure {place} ({figure['said'][:40]!r})"
            found += [f"{name} is not drawn"] if not figure["drawn"] else []
            found += [f"{name} says nothing to who cannot see it"] if len(figure["said"]) < 15 else []
            found += [f"{name} reaches beyond the window"] if not figure["inside"] else []
        if self.seen["width"] > self.seen["window"]:
            found.append(f"scrolls sideways: {self.seen['width']} px in a window of {self.seen['window']}")
        found += [f"the id {name!r} is there twice" for name in self.seen["repeated"]]
        return found


def find_browser() -> str | None:
    """The path of a Chromium, None where there is none."""
    return next((path for name in NAMES if (path := shutil.which(name)) is not None), None)


class Browser:
    """A Chromium in a process of its own, with one page."""

    def __init__(self, program: str, folder: Path) -> None:
        commands, answers = os.pipe(), os.pipe()
        flags = [*FLAGS, "--remote-debugging-pipe", f"--user-data-dir={folder / 'profile'}", "about:blank"]
        ends = (commands[0], answers[1])
        start = [sys.executable, "-c", START, *map(str, ends), program, *flags]
        with (folder / "browser.log").open("wb") as log:
            self._process = subprocess.Popen(start, pass_fds=ends, stdout=log, stderr=log)
        os.close(commands[0])
        os.close(answers[1])
        self._commands, self._answers = commands[1], answers[0]
        self._unread, self._number, self._session = b"", 0, ""
        self._events: list[dict[str, Any]] = []
        try:
            self._attach()
        except RuntimeError as error:
            self._process.kill()
            self._process.wait()
            said = (folder / "browser.log").read_text(encoding="utf-8", errors="replace")
            raise RuntimeError(f"{program} does not start: {said[-2000:]}") from error

    def _attach(self) -> None:
        target = next(one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **settings: Any) -> dict[str, Any]:
        """One command and its answer; what happens meanwhile is kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": settings}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._number:
            self._events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def open(self, page: Path, *, width: int = 1100, height: int = 900, dark: bool = False) -> Opened:
        """Opens a file in a window of this width, waits until it is loaded, and looks at it."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self._events = []
        self.call("Page.navigate", url=page.resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self._events):
            self._events.append(self._read())
        opened = Opened(seen=self.run(LOOK))
        for event in self._events:
            self._take(event, opened, page.resolve().as_uri())
        return opened

    def run(self, script: str) -> Any:
        """The value of a script on the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(
                answer["exceptionDetails"]["exception"].get("description", "the script failed")
            )
        return answer["result"].get("value")

    def shoot(self, path: Path, *, whole: bool = False) -> None:
        """Writes a PNG of the window, or of the whole page."""
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=whole, **self._clip(whole))
        path.write_bytes(base64.b64decode(picture["data"]))

    def print(self) -> bytes:
        """The page on paper, as a PDF."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"])

    def close(self) -> None:
        """Ends the browser."""
        self._session = ""
        os.write(self._commands, json.dumps({"id": 0, "method": "Browser.close"}).encode() + b"\0")
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._commands)
        os.close(self._answers)

    def _clip(self, whole: bool) -> dict[str, Any]:
        if not whole:
            return {}
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}

    def _read(self) -> dict[str, Any]:
        """The next message."""
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._answers], [], [], max(0.0, until - time.monotonic()))
            part = os.read(self._answers, 1 << 20) if ready else b""
            if not part:
                raise RuntimeError("the browser says nothing any more")
            self._unread += part
        message, _, self._unread = self._unread.partition(b"\0")
        read: dict[str, Any] = json.loads(message)
        return read

    @staticmethod
    def _take(event: dict[str, Any], opened: Opened, own: str) -> None:
        settings = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            details = settings["exceptionDetails"]
            opened.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif event.get("method") == "Runtime.consoleAPICalled" and settings["type"] in ("error", "warning"):
            opened.errors.append(" ".join(str(one.get("value", "")) for one in settings["args"]))
        elif event.get("method") == "Log.entryAdded" and settings["entry"]["level"] in ("error", "warning"):
            opened.errors.append(settings["entry"]["text"])
        elif event.get("method") == "Network.requestWillBeSent":
            address = settings["request"]["url"]
            if not address.startswith("data:") and address != own:
                opened.requests.append(address)
