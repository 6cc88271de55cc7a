"""A page in a real Chromium, by its DevTools protocol over a pipe.

Python's standard library only: --remote-debugging-pipe talks JSON, a NUL
behind each message, on descriptors 3 (to the browser) and 4 (from it).
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

DEADLINE_S = 120
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu",
         "--disable-background-networking", "--disable-sync",
         "--disable-component-update", "--no-first-run",
         "--remote-debugging-pipe", "--hide-scrollbars"]


class Browser:
    def __init__(self, *flags):
        self.folder = tempfile.mkdtemp()
        to_read, self.to = os.pipe()
        self.source, from_write = os.pipe()

        def place():
            # Away from 3 and 4 first: either may be in the other's place.
            ends = [os.dup(to_read), os.dup(from_write)]
            high = [os.dup2(end, 100 + i) for i, end in enumerate(ends)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)
        self.process = subprocess.Popen(
            ["chromium", *FLAGS, *flags, f"--user-data-dir={self.folder}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, preexec_fn=place, close_fds=False)
        os.close(to_read)
        os.close(from_write)
        self.rest, self.events, self.last, self.session = b"", [], 0, None
        target = self.call("Target.createTarget", url="about:blank")
        self.session = self.call("Target.attachToTarget", flatten=True,
                                 targetId=target["targetId"])["sessionId"]

    def receive(self, deadline):
        while b"\0" not in self.rest:
            left = deadline - time.monotonic()
            assert left > 0, "the browser does not answer"
            ready, _, _ = select.select([self.source], [], [], left)
            if ready:
                piece = os.read(self.source, 1 << 20)
                assert piece, "the browser has ended"
                self.rest += piece
        line, self.rest = self.rest.split(b"\0", 1)
        return json.loads(line)

    def call(self, method, **params):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + DEADLINE_S
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.last:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            self.events.append(answer)

    def open(self, url):
        """Show a page; its errors, and the addresses it requested."""
        for domain in "Page", "Runtime", "Log", "Network":
            self.call(f"{domain}.enable")
        self.events.clear()
        self.call("Page.navigate", url=url)
        deadline = time.monotonic() + DEADLINE_S
        while not any(e.get("method") == "Page.loadEventFired"
                      for e in self.events):
            self.events.append(self.receive(deadline))

    def seen(self, *methods):
        self.evaluate("0")  # earlier messages have arrived
        return [e["params"] for e in self.events
                if e.get("method") in methods]

    def evaluate(self, text):
        result = self.call("Runtime.evaluate", expression=text,
                           returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def complaints(self):
        """The errors of the page itself; reading its charts causes others."""
        return (self.seen("Runtime.exceptionThrown") +
                [e for e in self.seen("Log.entryAdded")
                 if "readback" not in e["entry"]["text"]] +
                [e for e in self.seen("Runtime.consoleAPICalled")
                 if e["type"] in ("error", "warning")])

    def picture(self, path, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width,
                  height=height, deviceScaleFactor=1, mobile=False)
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.source)
        shutil.rmtree(self.folder, ignore_errors=True)
