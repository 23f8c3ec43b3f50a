#!/usr/bin/env python3
"""Opens a page in a real headless Chromium and prints what it found as JSON; standard library alone (DevTools protocol over a pipe).

    page_check.py PAGE.html [--width 390 --height 844] [--dark] [--print] [--screenshot F.png] [--full] [--keys Tab,Enter] [--script CHECKS.js]

{"errors": [...], "requests": [...], "result": what the script's last expression gave, a promise awaited}. Exit code 77: no Chromium here.
"""
import argparse
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time


class Browser:
    def __init__(self, program):
        self.home = tempfile.mkdtemp(prefix="page-check-")
        to_read, to_write = os.pipe()
        from_read, from_write = os.pipe()

        def child():   # Chromium wants its end of the pipes as 3 and 4; go through high numbers so that none is overwritten
            os.dup2(to_read, 103), os.dup2(from_write, 104)
            os.dup2(103, 3), os.dup2(104, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", f"--user-data-dir={self.home}", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=child, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read), os.close(from_write)
        self.out, self.into = os.fdopen(to_write, "wb", 0), os.fdopen(from_read, "rb", 0)
        self.buffer, self.next, self.events = b"", 0, []

    def message(self):
        while b"\0" not in self.buffer:
            piece = self.into.read(1 << 16)
            if not piece:
                raise SystemExit("Chromium ended")
            self.buffer += piece
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, session=None, **params):
        self.next += 1
        number = self.next
        self.out.write(json.dumps({"id": number, "method": method, "params": params, **({"sessionId": session} if session else {})}).encode() + b"\0")
        while True:
            m = self.message()
            if m.get("id") == number:
                if "error" in m:
                    raise SystemExit(f"{method}: {m['error']}")
                return m["result"]
            self.events.append(m)

    def close(self):
        try:
            self.call("Browser.close")
        except (SystemExit, OSError):
            self.process.kill()
        self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("page")
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--height", type=int, default=800)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--print", action="store_true", dest="printed")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--screenshot")
    parser.add_argument("--keys", default="", help="pressed in turn before the scripts run: Tab,Tab,Enter")
    parser.add_argument("--script", action="append", default=[])
    a = parser.parse_args()
    program = os.environ.get("LOOPEGG_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not program:
        print("no Chromium here", file=sys.stderr)
        sys.exit(77)
    browser = Browser(program)
    try:
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

        def page(method, **params):
            return browser.call(method, session, **params)

        for domain in ("Page", "Runtime", "Network", "Log"):
            page(domain + ".enable")
        page("Emulation.setDeviceMetricsOverride", width=a.width, height=a.height, deviceScaleFactor=1, mobile=a.width < 600)
        page("Emulation.setEmulatedMedia", media="print" if a.printed else "", features=[{"name": "prefers-color-scheme", "value": "dark" if a.dark else "light"}])
        page("Page.navigate", url=pathlib.Path(a.page).resolve().as_uri())

        def evaluate(code):
            answer = page("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
            if "exceptionDetails" in answer:
                raise SystemExit("script failed: " + json.dumps(answer["exceptionDetails"])[:2000])
            return answer["result"].get("value")

        end = time.monotonic() + 40
        while time.monotonic() < end and evaluate("document.readyState == 'complete' && (document.documentElement.dataset.ready || !document.getElementById('charts'))") in (None, False, ""):
            time.sleep(0.1)
        for key in filter(None, a.keys.split(",")):
            code = {"Tab": 9, "Enter": 13, "Space": 32}[key]
            text = {"Enter": "\r", "Space": " "}.get(key)
            name = " " if key == "Space" else key
            page("Input.dispatchKeyEvent", type="keyDown", key=name, code=key, windowsVirtualKeyCode=code, **({"text": text} if text else {}))
            page("Input.dispatchKeyEvent", type="keyUp", key=name, code=key, windowsVirtualKeyCode=code)
            evaluate("(window.focusTrail ??= []).push((document.activeElement.id || document.activeElement.tagName) + ':' + getComputedStyle(document.activeElement).outlineStyle)")
        result = None
        for script in a.script:
            result = evaluate(pathlib.Path(script).read_text())
        if a.screenshot:
            clip = {}
            if a.full:
                height = evaluate("document.documentElement.scrollHeight")
                clip = {"clip": {"x": 0, "y": 0, "width": a.width, "height": height, "scale": 1}, "captureBeyondViewport": True}
            pathlib.Path(a.screenshot).write_bytes(base64.b64decode(page("Page.captureScreenshot", format="png", **clip)["data"]))
        errors, requests = [], []
        for m in browser.events:
            p = m.get("params", {})
            if m.get("method") == "Runtime.exceptionThrown":
                errors.append(p["exceptionDetails"].get("exception", {}).get("description") or p["exceptionDetails"]["text"])
            elif m.get("method") == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning", "assert"):
                errors.append(p["type"] + ": " + " ".join(str(x.get("value", x.get("description", ""))) for x in p["args"]))
            elif m.get("method") == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
                errors.append(p["entry"]["text"])
            elif m.get("method") == "Network.requestWillBeSent" and not p["request"]["url"].startswith(("file:", "data:")):
                requests.append(p["request"]["url"])
        print(json.dumps({"errors": errors, "requests": requests, "result": result}))
    finally:
        browser.close()


if __name__ == "__main__":
    main()
