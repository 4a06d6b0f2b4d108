"""Headless Chromium, driven through its DevTools pipe: no driver, no port, no package beyond Chromium."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PATIENCE_S = 60.0


def find():
    """Chromium's path; None where there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    return None


class Chromium:
    """One browser with one page. `messages` gathers what its console says and errors that nobody caught."""

    def __init__(self, path, width=1360, height=1000):
        self.profile = tempfile.mkdtemp(prefix="gdrperf-chromium-")
        to_read, self.to = os.pipe()
        self.back, from_write = os.pipe()
        # Chromium reads commands at 3 and answers at 4.
        command = (f"exec 3<&{to_read} 4>&{from_write}; exec \"$0\" \"$@\"")
        self.process = subprocess.Popen(
            ["bash", "-c", command, path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--remote-debugging-pipe", "--no-first-run", "--disable-background-networking", "--disable-extensions",
             "--hide-scrollbars", f"--user-data-dir={self.profile}", f"--window-size={width},{height}", "about:blank"],
            pass_fds=(to_read, from_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.number = 0
        self.rest = b""
        self.events = []
        self.messages = []
        self.requests = []
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")

    def close(self):
        os.close(self.to)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.back)
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        wanted = self.number
        answer = self._until(lambda each: each.get("id") == wanted, method)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    def _until(self, wanted, what):
        deadline = time.monotonic() + PATIENCE_S
        while True:
            while b"\0" in self.rest:
                line, self.rest = self.rest.split(b"\0", 1)
                message = json.loads(line)
                self._note(message)
                if wanted(message):
                    return message
            ready, _, _ = select.select([self.back], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(self.back, 1 << 20) if ready else b""
            if not data:
                raise AssertionError(f"Chromium: no answer to {what}")
            self.rest += data

    def _note(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.messages.append(params["type"] + ": " +
                                 " ".join(str(each.get("value", each.get("description"))) for each in params["args"]))
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.messages.append("exception: " + details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.messages.append(f"log: {params['entry']['text']}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Page.loadEventFired":
            self.events.append("load")

    def open(self, path):
        """Loads a file; seconds until its load event."""
        self.messages.clear()
        self.requests.clear()
        self.events.clear()
        begin = time.monotonic()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        if not self.events:
            self._until(lambda each: each.get("method") == "Page.loadEventFired", "load")
        return time.monotonic() - begin

    def run(self, expression):
        """Value of a JavaScript expression; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise AssertionError(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def choose(self, selector, value):
        """Picks an option as a person does: sets it and tells the page."""
        return self.run(f"""(() => {{ const box = document.querySelector({json.dumps(selector)}); box.value = {json.dumps(value)};
          box.dispatchEvent(new Event('change', {{bubbles: true}})); box.dispatchEvent(new Event('input', {{bubbles: true}})); return box.value; }})()""")

    def press(self, key):
        codes = {"Tab": 9, "Enter": 13, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        text = {"Enter": "\r", " ": " "}.get(key)
        down = dict(key=key, code={" ": "Space"}.get(key, key), windowsVirtualKeyCode=codes[key])
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **down,
                  **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **down)

    def click(self, selector):
        box = self.run(f"""(() => {{ const one = document.querySelector({json.dumps(selector)}); one.scrollIntoView({{block: 'center'}});
          const r = one.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def media(self, **features):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": name.replace("_", "-"), "value": value} for name, value in features.items()])

    def screenshot(self, path, whole=True, height=None):
        size = self.run("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": size[0], "height": height or size[1], "scale": 1}
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole, clip=clip)["data"]
        with open(path, "wb") as out:
            out.write(base64.b64decode(data))

    def pdf(self, path):
        with open(path, "wb") as out:
            out.write(base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"]))
